import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { NewEntry } from '../../machines/internal.ts';
import { sampleEntries } from '../../machines/log/entryKinds.ts';
import {
  type AgentOptions,
  defineTool,
  type LogStore,
  type ModelPart,
  memoryStore,
  type Plugin,
  toolResult,
} from '../../src/index.ts';
import { redactor } from '../../src/log/redact.ts';
import { withBlobs } from '../support/samplePictures.ts';
import {
  askedTool,
  call,
  calls,
  entriesOf,
  opened,
  outcomeOf,
  plainTool,
  play,
  playTool,
  resultText,
  type ScriptedModel,
  say,
  scripted,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

const SECRET = 'sk-live-0123456789abcdef';
/** Escaped differently in JSON, in a URL and in plain text. */
const ODD = 'p"ss\\wörd/&\n!';

/** Everything that a reader of the conversation, or the model, receives. */
async function visibleText(options: AgentOptions & { model: ScriptedModel }, before?: string): Promise<string> {
  const conversation = await opened(options);
  await conversation.send(before ?? 'go').result;
  const { pending, queue, state } = conversation;
  const seen = [conversation.log(), conversation.messages(), conversation.view(), pending, queue, state];
  return JSON.stringify([seen, options.model.requests]);
}
const finish: ModelPart = { type: 'finish', reason: 'tool-calls' };

const leaks: [string, (secret: string) => AgentOptions & { model: ScriptedModel }, boolean?][] = [
  ['the result of a tool', (secret) => tool(() => `key=${secret};`)],
  ['a result that is JSON', (secret) => tool(() => ({ nested: [{ key: secret }] }))],
  ['a key of a result', (secret) => tool(() => ({ [secret]: true }))],
  ['a part of a result', (secret) => tool(() => [{ type: 'text', text: secret }])],
  ['an error', (secret) => tool(() => Promise.reject(new Error(`cannot log in with ${secret}`)))],
  ['the name of an error', (secret) => tool(() => Promise.reject(Object.assign(new Error('x'), { name: secret })))],
  ['a code', (secret) => tool(() => toolResult.error('x', secret))],
  ['the reason of a suspension', (secret) => tool(() => toolResult.pending({ reason: secret }))],
  ['the payload of a suspension', (secret) => tool(() => toolResult.pending({ reason: 'r', payload: { secret } }))],
  ['state', (secret) => tool(() => toolResult.success('x', { state: { a: secret, [secret]: [secret] } }))],
  ['the text of a reply', (secret) => replying({ type: 'text-delta', text: `it is ${secret}` })],
  [
    'the text of a reply in pieces',
    (secret) => replying(...[...secret].map((text) => ({ type: 'text-delta' as const, text }))),
  ],
  ['reasoning', (secret) => replying({ type: 'reasoning-delta', text: secret })],
  ['a diagnostic of the model', (secret) => replying({ type: 'diagnostic', code: 'c', detail: { [secret]: secret } })],
  ['the name of an unknown tool', (secret) => replying(call('c1', secret))],
  ['the id of a call', (secret) => replying(call(secret, 't'))],
  ['arguments', (secret) => replying(call('c1', 't', JSON.stringify({ a: secret, [secret]: 1 })))],
  ['arguments that do not parse', (secret) => replying(call('c1', 't', `{${secret}`))],
  [
    'data of the provider',
    (secret) => replying({ type: 'tool-call', callId: 'c', name: 't', args: '{}', extra: { secret } }),
  ],
  [
    'context of a plugin that throws',
    (secret) => plugged({ name: 'p', runStart: () => Promise.reject(new Error(secret)) }),
  ],
  ['a block', (secret) => plugged({ name: 'p', beforeToolExecute: () => ({ block: secret }) })],
  ['arguments of a plugin', (secret) => plugged({ name: 'p', beforeToolExecute: () => ({ args: { secret } }) })],
  ['a result of a plugin', (secret) => plugged({ name: 'p', afterToolExecute: () => ({ result: secret }) })],
];
function tool(execute: () => unknown) {
  return { model: scripted([calls(call('c1', 't'))]), tools: [plainTool('t', execute)] };
}
function replying(...parts: ModelPart[]) {
  return { model: scripted([[...parts, finish]]), tools: [plainTool('t', () => 'ok')] };
}
function plugged(plugin: Plugin) {
  return { ...tool(() => 'ok'), plugins: [plugin] };
}

describe.each([SECRET, ODD])('H-081 the secret %j', (secret) => {
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
  const twice = JSON.stringify(forms[1]).slice(1, -1);

  test.each(leaks)('nobody receives it in %s', async (_, options) => {
    const all = await visibleText({ ...options(secret), secrets: [secret] });
    for (const form of [...forms, twice]) expect(all).not.toContain(form);
    expect(all).toContain('[redacted]');
  });

  test('the model does not receive it in a message of the user', async () => {
    const all = await visibleText(
      { model: scripted([]), secrets: [secret] },
      `use ${secret} and ${encodeURIComponent(secret)}`,
    );
    for (const form of forms) expect(all).not.toContain(form);
  });

  test('it is not stored in a decision, but the tool receives it', async () => {
    const seen: unknown[] = [];
    const conversation = await opened({
      model: scripted([calls(call('a', 'ask'), call('b', 'ask'))]),
      tools: [askedTool('ask', seen)],
      secrets: [secret],
    });
    await conversation.send('go').result;
    await conversation.decide({ callId: 'a', action: 'edit', args: { path: secret }, by: secret });
    await conversation.decide({ callId: 'b', action: 'deny', reason: secret });
    await conversation.resume().result;
    expect(seen).toMatchObject([{ args: { path: secret } }]);
    const all = JSON.stringify(conversation.log());
    for (const form of [...forms, twice]) expect(all).not.toContain(form);
  });
});

/** Words of the library itself, and words of the host: names, ids, kinds. */
const OWN_WORDS = new Set([
  ...['type', 'conversationId', 'runId', 'messageId', 'callId', 'kind', 'outcome', 'group', 'name', 'action', 'role'],
  ...[
    'cwd',
    'code',
    'cause',
    'of',
    'why',
    'idempotencyKey',
    'model',
    // Names that the agent has, or the message is refused.
    'tools',
    'output',
    'finish',
    'child',
    'phase',
    'boundary',
    'waiting',
  ],
]);

/** Each text in a value: its path, and the value with the secret in its place. */
function* withSecret(value: unknown, way: string[] = []): Generator<[way: string[], changed: unknown]> {
  if (typeof value === 'string') yield [way, SECRET];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value))
    for (const [below, changed] of withSecret(child, [...way, key]))
      yield [
        below,
        Array.isArray(value) ? Object.assign([...value], { [key]: changed }) : { ...value, [key]: changed },
      ];
}

test('a secret in any text of any entry is not stored, except for the words that identify entries', () => {
  // The stop reason is a word of the library.
  const entries = sampleEntries('c').filter(({ type }) => type !== 'run-stop');
  const places = entries.flatMap(({ seq: _, at: __, conversationId: ___, ...entry }) =>
    [...withSecret(entry)].map(([way, changed]) => ({ way, changed: changed as NewEntry, type: entry.type })),
  );
  const stored = places.filter(({ changed }) => JSON.stringify(redactor([SECRET]).entry(changed)).includes(SECRET));
  const isOwn = (way: string[]): boolean => OWN_WORDS.has(way.filter((key) => !/^\d+$/.test(key)).at(-1) ?? '');
  expect(stored.filter(({ way }) => !isOwn(way)).map(({ type, way }) => `${type}: ${way.join('.')}`)).toEqual([]);
  expect(places.length - stored.length).toBeGreaterThan(10);
});

test('a model failure with a secret in its message is reported without it, also in the result of the run', async () => {
  const model = scripted([
    () => {
      throw new Error(`refused ${SECRET}`);
    },
  ]);
  const { result, log } = await play({ model, secrets: [SECRET], policies: { modelRetry: { attempts: 1 } } });
  expect(result.error?.message).toBe('refused [redacted]');
  expect(JSON.stringify([result, log])).not.toContain(SECRET);
});

test.each<[string, number, (text: string) => unknown]>([
  ['a code', 64, (text) => toolResult.error('x', text)],
  ['the reason of a suspension', 2_024, (text) => toolResult.pending({ reason: text })],
  ['an error', 131_048, (text) => Promise.reject(new Error(text))],
])('a secret is redacted before %s is cut in the middle of it, at character %i', async (_, cut, give) => {
  for (let shown = 1; shown < SECRET.length; shown += 5) {
    const text = `${'x'.repeat(cut - shown)}${SECRET}${'y'.repeat(4 * cut)}`;
    const { log } = await playTool(
      plainTool('t', () => give(text)),
      '{}',
      { secrets: [SECRET] },
    );
    const stored = JSON.stringify(log);
    expect(stored).toContain('xxxx');
    expect(stored).not.toMatch(/xsk?-?|bcdef/);
  }
});

test('a secret is redacted before a long output is cut in the middle of it', async () => {
  for (let shift = 0; shift < SECRET.length; shift += 5) {
    const output = `${'x'.repeat(131_048 - shift)}${SECRET}${'y'.repeat(400_000)}`;
    const { log } = await playTool(
      plainTool('t', () => output),
      '{}',
      { secrets: [SECRET] },
    );
    expect(resultText(log)).not.toMatch(/sk-|bcdef/);
  }
});

test.each([
  JSON.stringify({ a: `x${SECRET}x` }),
  // Another valid spelling in JSON.
  JSON.stringify({ a: `x${SECRET}x` }).replace('sk-', '\\u0073k-'),
])('the tool receives the arguments that the log contains: %s', async (args) => {
  const seen: unknown[] = [];
  const parameters = z.object({ a: z.string() });
  const echo = defineTool({ name: 't', description: '', parameters, execute: (args) => seen.push(args) });
  const { log } = await playTool(echo, args, { secrets: [SECRET] });
  expect(seen).toEqual([{ a: 'x[redacted]x' }]);
  const [item] = entriesOf(log, 'agent-output').map((entry) => entry.item);
  expect(item?.type === 'tool-call' && item.args).toEqual(seen[0]);
});

test("a model's own key is a secret, also a later one", async () => {
  const keys = [SECRET];
  const model = scripted([calls(call('c1', 't'))], { secrets: keys });
  const conversation = await opened({ model, tools: [plainTool('t', () => `${SECRET} and the-next-key`)] });
  keys.push('the-next-key');
  await conversation.send('go').result;
  expect(resultText(conversation.log())).toBe('[redacted] and [redacted]');
});

test.each([1, 7, 8, 9, 40])('a key of a model with %i characters is a secret if it has at least 8', async (length) => {
  const key = SECRET.repeat(2).slice(-length);
  const model = scripted([say(`it is <${key}>`)], { secrets: [key] });
  const { log } = await play({ model });
  const [output] = entriesOf(log, 'agent-output');
  expect(output?.item).toMatchObject({ text: length < 8 ? `it is <${key}>` : 'it is <[redacted]>' });
});

test('a short word that a local server uses as a key is not a secret; a word that the host names is', async () => {
  const model = scripted([say('local ollama 4711')], { secrets: ['ollama', 'x'] });
  const { log } = await play({ model, secrets: ['4711', ''] });
  const [output] = entriesOf(log, 'agent-output');
  expect(output?.item).toMatchObject({ text: 'local ollama [redacted]' });
});

test.each([
  'run-stop',
  'completed',
  'user-message',
  'assistant',
  'text',
  'succeeded',
  'permission',
  'approve',
  'a',
  '1',
  'ask',
])('the secret %j, a word of the log itself, damages nothing', async (secret) => {
  const conversation = await opened({
    model: scripted([calls(call('k', 'ask'))]),
    tools: [askedTool('ask')],
    secrets: [secret],
  });
  expect((await conversation.send('go').result).termination).toBe('Suspended');
  expect(conversation.pending.map(({ callId, name }) => [callId, name])).toEqual([['k', 'ask']]);
  expect(await conversation.decide({ callId: 'k', action: 'approve' })).toBe('applied');
  expect((await conversation.resume().result).termination).toBe('NaturalEnd');
  expect(outcomeOf(conversation.log(), 'k')).toBe('succeeded');
  expect(conversation.view().cycles[0]?.stop?.reason).toBe('completed');
});

test("the store's error in the result of a run contains no secret", async () => {
  const store = memoryStore();
  const refusing: LogStore = {
    list: () => store.list(),
    delete: (id) => store.delete(id),
    open: async (id, options) => {
      const handle = await store.open(id, options);
      return {
        read: (from) => handle.read(from),
        append: (entries, seq) =>
          seq === 0 ? handle.append(entries, seq) : Promise.reject(new Error(`no room at postgres://u:${SECRET}@db`)),
        close: () => handle.close(),
      };
    },
  };
  const conversation = await opened({ model: scripted([say('hi')]), secrets: [SECRET], store: refusing });
  const { error } = await conversation.send('go').result;
  expect(error?.message).toContain('no room at postgres://u:[redacted]@db');
});

test('a secret that occurs in its encoding does not damage an image', async () => {
  const data = 'iVBORw0KGgpBQkNERUZHSDQ3MTFJSg==';
  const content = [{ type: 'image', mediaType: 'image/png', data }];
  const { log } = await playTool(
    plainTool('t', () => content),
    '{}',
    { secrets: ['Q3MTF'], store: withBlobs(memoryStore(), () => ({})) },
  );
  expect(entriesOf(log, 'tool-result')[0]?.content).toEqual(content);
});

describe('secrets with common characters', () => {
  const secretTexts: [string, readonly string[], string, string][] = [
    [
      'one is a prefix of the other',
      ['sk-abcd', 'sk-abcd-efgh'],
      'a sk-abcd-efgh b sk-abcd c',
      'a [redacted] b [redacted] c',
    ],
    ['one is a suffix of the other', ['abcd-efgh', 'efgh'], 'a abcd-efgh b efgh c', 'a [redacted] b [redacted] c'],
    ['one is inside the other', ['bcd', 'abcde'], 'x abcde bcd', 'x [redacted] [redacted]'],
    ['the end of one is the start of the other', ['abcdef', 'defghi'], 'x abcdefghi y', 'x [redacted] y'],
    ['one overlaps itself', ['abab'], 'x ababab y', 'x [redacted] y'],
    ['they are adjacent', ['abcd', 'efgh'], 'x abcdefgh y', 'x [redacted][redacted] y'],
  ];
  test.each(secretTexts)('no part of either remains if %s', async (_, secrets, output, left) => {
    for (const order of [secrets, [...secrets].reverse()]) {
      const { log } = await playTool(
        plainTool('t', () => output),
        '{}',
        { secrets: order },
      );
      expect(resultText(log)).toBe(left);
    }
  });
});
