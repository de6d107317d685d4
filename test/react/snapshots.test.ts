/** The values that components read: stable snapshots, the conversation that they share, and rendering on a server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { createElement, type ReactElement } from 'react';
import { renderToString } from 'react-dom/server';
import { expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool } from '../../src/index.ts';
import { type ShownConversation, snapshotsOf } from '../../src/react/conversationSnapshots.ts';
import { type ConversationSnapshot, useAgent, useConversation } from '../../src/react/index.ts';
import { holdConversation } from '../../src/react/sharedConversations.ts';
import { clientOf, serverOf } from '../client/places.ts';
import { entries, root } from '../docs/documents.ts';
import { call, deaf, scripted, t } from '../support/scriptedReplies.ts';

interface Manifest {
  dependencies: { [name: string]: string };
}

const ask = defineTool({
  name: 'ask',
  description: 'Waits for a person.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => 'done',
});

function agentOf(...replies: Parameters<typeof scripted>[0]) {
  const agent = createAgent({ model: scripted(replies), tools: [ask] });
  onTestFinished(() => agent.close());
  return agent;
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

it.each(['embedded', 'remote'])('%s: a snapshot is the same object until something changes', async (where) => {
  const options = () => ({ model: scripted([deaf(t('half')), [call('c1', 'ask')]]), tools: [ask] });
  const agent = where === 'embedded' ? createAgent(options()) : clientOf((await serverOf(options)).base);
  onTestFinished(() => agent.close());
  const conversation = await agent.open('a');
  const { read, subscribe } = snapshotsOf(conversation);
  const shown: ConversationSnapshot[] = [read()];
  const stop = subscribe(() => {
    if (read() !== shown.at(-1)) shown.push(read());
  });
  expect(read()).toBe(shown[0]);
  expect(shown[0]).toMatchObject({ status: 'idle', pending: [], inFlight: null, connection: 'open' });
  const run = conversation.send('go');
  await expect.poll(() => read().inFlight?.text).toBe('half');
  expect(read()).toBe(read());
  await conversation.cancel();
  await run.result;
  await expect.poll(() => read().status).toBe('idle');
  expect(read().inFlight).toBe(null);
  await conversation.send('again').result;
  await expect.poll(() => read().status).toBe('waiting');
  expect(read().pending.map(({ callId }) => callId)).toEqual(['c1']);
  expect(read()).toBe(read());
  stop();
  const { length } = shown;
  await conversation.cancel();
  expect(shown).toHaveLength(length);
  expect(new Set(shown).size).toBe(shown.length);
  expect(shown.map(({ status }) => status)).toContain('active');
});

/** A conversation in the middle of a reply that has two waiting calls, with some of its fields replaced. */
function conversationWith(fields: object = {}): ShownConversation {
  const inner = { suspension: 2, path: ['c1', 'c2'], callId: 'c2', name: 'ask', args: {}, reason: 'r' };
  const input = { index: 0, callId: 'c3', name: 'ask', text: '{' };
  const base = {
    shownView: { cycles: [] },
    inFlight: { runId: 'r', text: 'half', reasoning: 'why', toolInputs: [input] },
    pending: [{ ...inner, callId: 'c1', path: ['c1'], suspension: 1 }, inner],
    status: 'active',
    connection: { state: 'open' },
    ...fields,
  };
  return { ...base, view: () => base.shownView } as never;
}

/** Every value of a conversation that a component can show, replaced by another value. */
function* changes(value: unknown, rebuild: (changed: unknown) => object): Generator<[string, object]> {
  if (typeof value !== 'object' || value === null) {
    yield [JSON.stringify(value), rebuild(typeof value === 'number' ? value + 1 : `${value} and more`)];
    return;
  }
  for (const [key, child] of Object.entries(value)) {
    const place = (changed: unknown): unknown =>
      Array.isArray(value)
        ? value.map((each, index) => (index === Number(key) ? changed : each))
        : { ...value, [key]: changed };
    for (const [name, changed] of changes(child, (inner) => rebuild(place(inner)))) yield [`${key}: ${name}`, changed];
  }
  if (Array.isArray(value)) yield ['one less', rebuild(value.slice(1))];
}

it('a snapshot is another object after a change of anything that it shows, and the same one without a change', () => {
  const { inFlight, pending } = conversationWith();
  const [first, second] = pending;
  // Name, arguments and reason of a call belong to its suspension.
  const asked = pending.map(({ suspension, path }) => ({ suspension, path }));
  const all: [string, object][] = [
    ...changes(inFlight, (changed) => ({ inFlight: changed })),
    ...changes(asked, (changed) => ({
      pending: (changed as typeof asked).map((each, index) => ({ ...pending[index], ...each })),
    })),
    ['nothing in flight', { inFlight: null }],
    ['another status', { status: 'idle' }],
    ['another view', { shownView: { cycles: [] } }],
    ['another state of the connection', { connection: { state: 'connecting' } }],
    ['the calls in another order', { pending: [second, first] }],
    ['one more call', { pending: [...pending, first] }],
    [
      'one more tool input',
      { inFlight: { ...inFlight, toolInputs: [...(inFlight?.toolInputs ?? []), { index: 1, text: '' }] } },
    ],
  ];
  const stale = all.filter(([, fields]) => {
    const shown = { ...conversationWith() };
    const { read } = snapshotsOf(shown as ShownConversation);
    const before = read();
    Object.assign(shown, structuredClone({ inFlight, pending }));
    expect(read()).toBe(before);
    const { shownView, ...changed } = fields as { shownView?: unknown };
    Object.assign(shown, changed, shownView !== undefined && { view: () => shownView });
    const after = read();
    return after === before || read() !== after;
  });
  expect(stale.map(([name]) => name)).toEqual([]);
  expect(all.length).toBeGreaterThan(15);
});

it('a close that failed is forgotten: the id can be opened again, as often as it fails', async () => {
  let closes = 0;
  const opener = {
    open: async () => ({
      close: () => {
        closes += 1;
        return closes % 2 === 1 ? Promise.reject(new Error('the disk is full')) : Promise.resolve();
      },
    }),
  };
  for (let time = 1; time <= 3; time += 1) {
    const held = holdConversation(opener, 'a');
    await held.opening;
    held.release();
    await turn();
    expect(closes).toBe(time);
  }
});

it('components share the conversation of an id, and the last one that leaves closes it', async () => {
  const agent = agentOf('one');
  const [first, second] = [holdConversation(agent, 'a'), holdConversation(agent, 'a')];
  const conversation = await first.opening;
  expect(await second.opening).toBe(conversation);
  // React takes a component away and puts it back at once.
  first.release();
  second.release();
  first.release();
  const third = holdConversation(agent, 'a');
  await turn();
  expect(await third.opening).toBe(conversation);
  expect(await conversation.send('go').text).toBe('one');
  third.release();
  await turn();
  // It is opened again only after its close.
  const fourth = holdConversation(agent, 'a');
  const again = await fourth.opening;
  expect(again).not.toBe(conversation);
  expect(again.log().length).toBeGreaterThan(3);
  fourth.release();
  await turn();
  await (await agent.open('a')).close();
});

it('an opening that fails rejects for those who wait, and is tried again later', async () => {
  const agent = agentOf();
  const other = await agent.open('a');
  const first = holdConversation(agent, 'a');
  await expect(first.opening).rejects.toMatchObject({ code: 'session_busy' });
  await other.close();
  const second = holdConversation(agent, 'a');
  expect((await second.opening).id).toBe('a');
  first.release();
  second.release();
});

it('a server renders what the conversation shows, and opens none', async () => {
  let opened = 0;
  const agent = agentOf('Hello.');
  const conversation = await agent.open('a');
  await conversation.send('Hi').result;
  const counting = {
    open: (id?: string) => {
      opened += 1;
      return agent.open(id);
    },
  };
  function Texts(): ReactElement {
    const { view, status } = useConversation(conversation);
    const texts = view.cycles.flatMap(({ rounds }) => rounds.flatMap(({ output }) => output.texts));
    return createElement('p', null, status, ': ', texts.map(({ text }) => text).join());
  }
  function Chat(): ReactElement {
    const own = useAgent(counting, 'b');
    const snapshot = useConversation(own);
    return createElement('div', null, own === null && snapshot === null ? 'opening' : 'open', createElement(Texts));
  }
  expect(renderToString(createElement(Chat))).toBe('<div>opening<p>idle<!-- -->: <!-- -->Hello.</p></div>');
  expect(opened).toBe(0);
});

it('the example is built as an app builds it, and needs no more than its package names', async () => {
  const folder = join(root, 'docs/examples/react-chat');
  const alias = Object.fromEntries([...entries].map(([name, source]) => [name, join(root, source)]));
  const { metafile } = await build({
    entryPoints: [join(folder, 'main.tsx')],
    absWorkingDir: root,
    alias,
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    logLevel: 'silent',
  });
  const [output] = Object.values(metafile.outputs);
  const brought = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const reached = brought.flatMap(([input]) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? []);
  const named = Object.keys((JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest).dependencies);
  const ofLibrary = ['eventsource-parser', 'partial-json', 'rxjs', 'tslib', 'scheduler'];
  expect([...new Set(reached)].filter((name) => !named.includes(name) && !ofLibrary.includes(name))).toEqual([]);
});
