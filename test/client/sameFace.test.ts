/** A remote conversation behaves like an embedded one: each scenario runs in both, and the results are compared. */
import { expect, it } from 'vitest';
import * as z from 'zod';
import {
  type AgentOptions,
  createAgent,
  defineTool,
  type LogHandle,
  type LogStore,
  memoryStore,
  subAgents,
  toolResult,
} from '../../src/index.ts';
import { call, deaf, during, scripted, t } from '../support/scriptedReplies.ts';
import { collected, comparable, type Either, embedded, remote, shown, type World } from './places.ts';

const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ euros: z.number() }),
  needsApproval: ({ euros }) => euros > 100,
  execute: ({ euros }) => toolResult.success(`sent ${euros}`, { state: { sent: euros } }),
});

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys.',
  parameters: z.object({}),
  execute: () => new Promise(() => undefined),
});

/** Each world has its own store and script; a restart keeps the store and continues the script. */
function options(replies: () => Parameters<typeof scripted>[0], more: Partial<AgentOptions> = {}) {
  const store = memoryStore();
  let lives = 0;
  const scripts = replies();
  return (): AgentOptions => {
    lives += 1;
    const model = lives === 1 ? scripted(scripts) : scripted(scripts.slice(-1));
    return { model, store, tools: [transfer, deploy], ...more };
  };
}

type Story = (world: World) => Promise<unknown>;

async function sameInBoth(make: () => () => AgentOptions, story: Story, by?: string): Promise<unknown> {
  const inProcess = await story(embedded(make()));
  const overHttp = await story(await remote(make(), by));
  expect(comparable(overHttp)).toEqual(comparable(inProcess));
  return inProcess;
}

async function items(run: ReturnType<Either['send']>): Promise<string[]> {
  const types: string[] = [];
  for await (const item of run) if ('seq' in item) types.push(item.type);
  return types;
}

it('a message, its run and its views', () =>
  sameInBoth(
    () => options(() => [[t('hel'), t('lo')], 'again']),
    async (world) => {
      const conversation = await world.open('a');
      const run = conversation.send('hi');
      const entries = await items(run);
      const first = [await run.text, await run.result, entries];
      const second = await conversation.send([{ type: 'text', text: 'more' }]).result;
      return [first, second, shown(conversation)];
    },
  ));

it('the caller and the choices of a request, and the final answer while it grows', () =>
  sameInBoth(
    () =>
      options(() => [[t('{"city":"Li'), t('sbon"}')], 'again'], {
        output: z.object({ city: z.string() }),
        models: { other: scripted(['{"city":"Porto"}'], { id: 'other' }) },
      }),
    async (world) => {
      const conversation = await world.open('a');
      const run = conversation.send('where?', { by: 'ann', context: { page: 1 } });
      const partial: unknown[] = [];
      for await (const value of run.partialOutput) partial.push(value);
      const other = await conversation.send('and then?', { by: 'ann', model: 'other', settings: { temperature: 0 } })
        .result;
      return [partial.at(-1), await run.result, other, shown(conversation)];
    },
    'ann',
  ));

it('tools and their state', () =>
  sameInBoth(
    () => options(() => [[t('x'), call('c1', 'transfer', { euros: 5 }), call('c2', 'nope')], 'done']),
    async (world) => {
      const conversation = await world.open('a');
      const { result } = conversation.send('go');
      return [await result, shown(conversation)];
    },
  ));

it('a call that waits: approval, a repeated answer, another one, and the resumption', () =>
  sameInBoth(
    () => options(() => [[call('c1', 'transfer', { euros: 500 })], 'done']),
    async (world) => {
      const conversation = await world.open('a');
      const suspended = await conversation.send('go').result;
      const waiting = shown(conversation);
      const code = (error: { code: string }) => error.code;
      const refused = await conversation.decide({ callId: 'c1', action: 'maybe' } as never).catch(code);
      const receipts = [
        await conversation.decide({ callId: 'c1', suspension: 1, action: 'approve', by: 'ann' }),
        await conversation.decide({ callId: 'c1', suspension: 1, action: 'approve', by: 'ann' }),
        await conversation.decide({ callId: 'c1', suspension: 1, action: 'deny' }),
        await conversation.decide({ callId: 'c9', action: 'deny' }),
      ];
      const { pending } = conversation;
      const again = conversation.resume();
      return [
        suspended,
        waiting,
        refused,
        receipts,
        pending,
        await items(again),
        await again.result,
        shown(conversation),
      ];
    },
  ));

it('a steer and a followUp while a run is active', () =>
  sameInBoth(
    () => {
      let begin = (): void => {};
      const begun = new Promise<void>((resolve) => {
        begin = resolve;
      });
      Object.assign(globalThis, { begin });
      return options(() => [during(() => begun, [call('c1', 'transfer', { euros: 1 })]), 'one', 'two']);
    },
    async (world) => {
      const { begin } = globalThis as unknown as { begin: () => void };
      const conversation = await world.open('a');
      const run = conversation.send('go');
      await expect.poll(() => conversation.status).toBe('active');
      await expect.poll(() => conversation.log().some(({ type }) => type === 'user-message')).toBe(true);
      const steer = conversation.steer('left');
      await expect.poll(() => conversation.queue.length).toBe(1);
      const later = conversation.send('then', { kind: 'followUp' });
      await expect.poll(() => conversation.queue.length).toBe(2);
      const { queue } = conversation;
      begin();
      return [queue, await steer.delivered, await run.result, await later.result, shown(conversation)];
    },
  ));

it('a steer and a followUp begin a run where nothing runs', () =>
  sameInBoth(
    () => options(() => ['one', 'two', 'three']),
    async (world) => {
      const conversation = await world.open('a');
      const delivered = [await conversation.followUp('first').delivered];
      await expect.poll(() => conversation.status).toBe('idle');
      const steered = await conversation.send('second', { kind: 'steer' }).result;
      return [delivered, steered, shown(conversation)];
    },
  ));

it('cancel: of what streams, of a queued message, of what waits, and of nothing', () =>
  sameInBoth(
    () => options(() => [deaf(t('half')), [call('c1', 'transfer', { euros: 500 })], 'never']),
    async (world) => {
      const conversation = await world.open('a');
      const run = conversation.send('go');
      await expect.poll(() => conversation.inFlight?.text).toBe('half');
      const { inFlight } = conversation;
      const replayed = collected(conversation.live$);
      const queued = conversation.send('later', { kind: 'followUp' });
      await expect.poll(() => conversation.queue.length).toBe(1);
      await queued.cancel();
      const gaveBack = await queued.result;
      await conversation.cancel();
      const cancelled = [conversation.status, await run.result];
      await conversation.send('again').result;
      await conversation.cancel();
      const waiting = shown(conversation);
      await conversation.cancel();
      return [inFlight, replayed[0], gaveBack, cancelled, waiting, shown(conversation)];
    },
  ));

it('a run is cancelled by its handle, and by its signal before and after it begins', () =>
  sameInBoth(
    () => options(() => [deaf(t('a')), deaf(t('b'))]),
    async (world) => {
      const conversation = await world.open('a');
      const first = conversation.send('one');
      await expect.poll(() => conversation.inFlight?.text).toBe('a');
      await first.cancel();
      const abort = new AbortController();
      const second = conversation.send('two', { signal: abort.signal });
      await expect.poll(() => conversation.inFlight?.text).toBe('b');
      abort.abort();
      const results = [await first.result, await second.result];
      const third = await conversation.send('three', { signal: abort.signal }).result;
      return [results, third.termination, third.cause, conversation.status];
    },
  ));

it.each(['steer', 'followUp'] as const)(
  'a %s that its caller takes back leaves the run of another caller alone',
  async (kind) => {
    await sameInBoth(
      () => options(() => [deaf(t('a')), deaf(t('b'))]),
      async (world) => {
        const conversation = await world.open('a');
        const run = conversation.send('one');
        await expect.poll(() => conversation.inFlight?.text).toBe('a');
        const abort = new AbortController();
        const sent = conversation.send('two', { kind, signal: abort.signal });
        const kept = conversation.followUp('three');
        await expect.poll(() => conversation.queue.length).toBe(2);
        abort.abort();
        await expect.poll(() => conversation.queue.length).toBe(1);
        const after = [conversation.status, conversation.inFlight?.text, conversation.queue.length];
        expect(after).toEqual(['active', 'a', 1]);
        if (kind === 'followUp') after.push((await sent.result).termination);
        await run.cancel();
        return [after, (await run.result).termination, (await sent.result).termination, await kept.delivered];
      },
    );
  },
);

it('a refusal of the agent has the same code, and a failed run the same error', () =>
  sameInBoth(
    () => options(() => [deaf(t('a'))], { policies: { limits: { queue: 1 } } }),
    async (world) => {
      const conversation = await world.open('a');
      const codeOf = async (act: () => Promise<{ error?: { code: string } }>) => {
        try {
          return (await act()).error?.code;
        } catch (error) {
          return (error as { code: string }).code;
        }
      };
      const run = conversation.send('one');
      await expect.poll(() => conversation.inFlight?.text).toBe('a');
      const codes = [
        await codeOf(async () => conversation.send('two').result),
        await codeOf(async () => conversation.send('').result),
        await codeOf(async () => conversation.send('x', { messageId: 'a/b' }).result),
      ];
      await run.cancel();
      const failed = await conversation.send('the script has ended').result;
      const text = await conversation
        .send('again')
        .text.then(undefined, (error: { code: string; name: string }) => [error.name, error.code]);
      return [codes, failed, text, conversation.status];
    },
  ));

it('after a restart: the log, what waits, a settlement and a resumption', () =>
  sameInBoth(
    () => options(() => [[call('c1', 'deploy')], 'done']),
    async (world) => {
      let conversation = await world.open('a');
      const run = conversation.send('go');
      await expect.poll(() => conversation.log().some(({ type }) => type === 'tool-started')).toBe(true);
      await world.restart();
      if (world.name === 'embedded') conversation = await world.open('a');
      const interrupted = (await run.result).reason;
      await expect.poll(() => conversation.status).toBe('idle');
      const after = shown(conversation);
      const unsettled = conversation.unsettled.map(({ callId }) => callId);
      const receipts = [
        ...(unsettled.length > 0 ? [await conversation.settle('c1', { ran: 'deployed' })] : []),
        await conversation.settle('c9', { didNotRun: true }),
      ];
      return [interrupted, after, unsettled, receipts, await conversation.resume().result, shown(conversation)];
    },
  ));

it('the calls of sub-agents wait and are decided', () =>
  sameInBoth(
    () =>
      options(
        () => [
          [call('s1', 'spawn_agents', { tasks: [{ id: 't', task: 'pay' }] })],
          [call('c1', 'transfer', { euros: 900 })],
          [call('r1', 'submit_result', { result: 'paid' })],
          'all done',
        ],
        { tools: [transfer, subAgents({ tools: [transfer] })] },
      ),
    async (world) => {
      const conversation = await world.open('a');
      const suspended = await conversation.send('go').result;
      const { pending } = conversation;
      const [{ callId = '', suspension = 1 } = {}] = pending;
      const receipt = await conversation.decide({ callId, suspension, action: 'approve' });
      const left = conversation.pending;
      const { result } = conversation.resume();
      return [suspended, pending, receipt, left, await result, shown(conversation)];
    },
  ));

it('a resumption with nothing to continue, before the first message and after the last', () =>
  sameInBoth(
    () => options(() => [[t('hello')]]),
    async (world) => {
      const conversation = await world.open('a');
      const first = conversation.resume();
      const results = [await first.result, await items(first)];
      await conversation.send('hi').result;
      return [results, await conversation.resume().result, shown(conversation)];
    },
  ));

/** A conversation whose process died while the call c1 ran. */
async function crashed(): Promise<LogStore> {
  const agent = createAgent({ model: scripted([[call('c1', 'deploy')]]), tools: [deploy] });
  const conversation = await agent.open('a');
  conversation.send('go', { messageId: 'm' });
  await expect.poll(() => conversation.log().some(({ type }) => type === 'tool-started')).toBe(true);
  const store = memoryStore();
  const handle = await store.open('a');
  await handle.append(conversation.log(), 0);
  await handle.close();
  await agent.close();
  return store;
}

it.each([
  ['succeeds', 'deployed'],
  ['is suspended', toolResult.pending({ reason: 'which' })],
] as const)('a resumption that only repeats a settled call, which %s', async (_, result) => {
  const stores = [await crashed(), await crashed()];
  const parameters = z.object({});
  const again = defineTool({ name: 'deploy', description: 'Deploys.', parameters, execute: () => result });
  await sameInBoth(
    () => options(() => [[t('done')]], { tools: [again], store: stores.shift() ?? memoryStore() }),
    async (world) => {
      const conversation = await world.open('a');
      await conversation.send('more').result;
      expect(await conversation.settle('c1', { retry: true })).toBe('applied');
      return [await conversation.resume().result, conversation.status, conversation.pending];
    },
  );
});

it('a resumption that the store refuses', () => {
  const refusing = (): LogStore => {
    const memory = memoryStore();
    return {
      list: (filters) => memory.list(filters),
      delete: (id) => memory.delete(id),
      open: async (id, opening) => {
        const handle = await memory.open(id, opening);
        const append: LogHandle['append'] = async (entries, expectedSeq) => {
          if (entries.some(({ type }) => type === 'run-resumed')) throw new Error('the disk is full');
          return handle.append(entries, expectedSeq);
        };
        return { read: (from) => handle.read(from), append, close: () => handle.close() };
      },
    };
  };
  return sameInBoth(
    () => options(() => [deaf(t('a'))], { store: refusing() }),
    async (world) => {
      const conversation = await world.open('a');
      const run = conversation.send('go');
      await expect.poll(() => conversation.inFlight?.text).toBe('a');
      await run.cancel();
      const { termination, cause, error } = await conversation.resume().result;
      // A server does not send the message of its store.
      return [termination, cause, error?.code];
    },
  );
});
