/**
 * Foreign content on its way to the page: events of any shape, credentials, and characters that would control the
 * display.
 */
import fc from 'fast-check';
import { h, options } from 'preact';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { createActor, createMachine } from 'xstate';
import { drawTextsSafely, shownText } from '../../inspector/view/foreignText.ts';
import type { LogEntry } from '../../machines/index.ts';
import { createAgent } from '../../src/index.ts';
import { excerpt, pageJson, withoutCredentials } from '../../src/inspect/excerpt.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog, recordText } from '../../src/inspect/recordLog.ts';
import { sourceText } from '../../src/printable.ts';
import { scripted } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { drives } from './displayCharacters.ts';

/** A credential in its surrounding text, and the part that must stay hidden. */
const CREDENTIALS: readonly (readonly [text: string, hidden: string])[] = [
  ['the key is sk-proj-abcdefghijklmnop1234 now', 'abcdefghijklmnop1234'],
  ['ghp_abcdefghijklmnopqrstuvwxyz0123', 'abcdefghijklmnopqrstuvwxyz0123'],
  ['github_pat_11ABCDEFG0abcdefghijkl', '11ABCDEFG0abcdefghijkl'],
  ['id AKIAIOSFODNN7EXAMPLE', 'IOSFODNN7EXAMPLE'],
  ['xoxb-1234567890-abcdef', '1234567890-abcdef'],
  ['Authorization: Bearer abc.def.ghi-jklmnop==', 'abc.def.ghi-jklmnop'],
  ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl', 'c2lnbmF0dXJl'],
  ['{"user":"ada","apiKey":"hunter2 with \\" in it"}', 'hunter2'],
  ['{ "nested": { "db_password" : "hunter2" } }', 'hunter2'],
  ['PORT=80\nSTRIPE_SECRET_KEY=hunter2\nHOST=h', 'hunter2'],
  ['export GITHUB_TOKEN="hunter2 again"', 'hunter2'],
  ['DATABASE_URL=postgres://ada:hunter2@host/db', 'hunter2'],
  ['git clone https://x-oauth:hunter2@example.com/a.git now', 'hunter2'],
  ['Authorization: Basic YWRhOmh1bnRlcjI=', 'YWRhOmh1bnRlcjI'],
  ['pay with sk_live_abcdefghijklmnop', 'abcdefghijklmnop'],
  ['glpat-abcdefghijklmnopqrst', 'abcdefghijklmnopqrst'],
  ['npm_abcdefghijklmnopqrstuvwxyz0123456789', 'abcdefghijklmnopqrstuvwxyz'],
  ['-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nhunter2==\n-----END RSA PRIVATE KEY-----', 'hunter2'],
];
const HARMLESS = [
  'MAX_TOKENS=100 and a token is a word',
  '{"inputTokens":"12","secretary":7}',
  'the password is asked for',
  'sk-short and eyJ alone',
  'PASSWORD=',
  'see https://example.com:8080/a@b and mailto:ada@example.com',
  'Basic training and a basic_example_of_words',
  '-----BEGIN PUBLIC KEY-----',
];

const entryOf = (text: string): LogEntry[] => {
  const base = { seq: 0, at: 0, conversationId: 'c', runId: 'r' };
  const call = { callId: 'c0', name: 'n', args: { path: text, [text]: 1, list: [{ deep: text }] } };
  return [
    { ...base, type: 'user-message', messageId: 'm', kind: 'direct', content: [{ type: 'text', text }] },
    { ...base, type: 'agent-output', item: { type: 'tool-call', ...call, argsText: text } },
    { ...base, type: 'agent-output', item: { type: 'reasoning', text } },
    { ...base, type: 'tool-result', callId: 'c0', outcome: 'succeeded', content: [{ type: 'text', text }] },
    { ...base, type: 'tool-suspended', callId: 'c0', suspension: 1, reason: text, payload: { [text]: text } },
    {
      ...base,
      type: 'decision',
      callId: 'c0',
      suspension: 1,
      decision: { callId: 'c0', action: 'deny', reason: text },
    },
    { ...base, type: 'state-changed', writes: { [text]: text } },
    { ...base, type: 'model-retry', turn: 1, attempt: 1, waitMs: 0, model: 'm', reason: text },
    { ...base, type: 'compaction', upToSeq: 0, summary: text },
    { ...base, type: 'diagnostic', code: 'x', detail: { [text]: text } },
    { ...base, type: 'extension', name: text, value: text },
  ];
};

describe('a credential', () => {
  it.each(CREDENTIALS)('it is hidden in texts, values and keys before it leaves for the page: %s', (text, hidden) => {
    expect(withoutCredentials(text)).toContain('[redacted]');
    expect(withoutCredentials(text)).not.toContain(hidden);
    expect(JSON.stringify(excerpt({ [text]: [text] }))).not.toContain(hidden);
    for (const entry of entryOf(text)) {
      const text = recordText({ n: 0, at: 0, type: 'entry', conversation: 'c', entry });
      expect(text, entry.type).not.toContain(hidden);
      expect(JSON.parse(text), entry.type).toMatchObject({ n: 0, entry: { seq: 0, type: entry.type } });
    }
    expect(shownText(text)).not.toContain(hidden);
  });

  it('under a name that indicates it, it is hidden in arguments, in any form', () => {
    const [, called] = entryOf('x');
    const entry = { ...called, item: { type: 'tool-call', callId: 'c', name: 'n', args: { password: 'hunter2' } } };
    const text = recordText({ n: 0, at: 0, type: 'entry', conversation: 'c', entry: entry as LogEntry });
    expect(text).toContain('"password":"[redacted]"');
  });

  it.each(CREDENTIALS)('it is hidden in a cut text, at any place of the cut: %s', (text, hidden) => {
    const limits = { text: 100, items: 5, depth: 5, values: 50 };
    const shown = hidden.slice(0, 6);
    for (let before = 0; before <= 100; before++) {
      const long = `${'x'.repeat(before)}\n${text}\n${'y'.repeat(700)}`;
      expect(String(excerpt(long, limits)), `${before}`).not.toContain(shown);
    }
  });

  it('it is hidden if it starts before the end of a text and its own end is unknown', () => {
    const text = `{"password":"hunter2${'z'.repeat(5_000)}`;
    expect(withoutCredentials(text)).toBe('{"password":"[redacted]');
    expect(excerpt(text, { text: 30, items: 1, depth: 1, values: 1 })).not.toContain('hunter2');
  });

  it.each(HARMLESS)('harmless words are not redacted: %s', (text) => {
    expect(withoutCredentials(text)).toBe(text);
    const [entry] = entryOf(text);
    expect(pageJson({ entry })).toEqual({ entry });
  });

  it('an entry without one is unchanged: it is not even copied', () => {
    for (const entry of entryOf('plain words')) expect(pageJson(entry)).toBe(entry);
  });
});

it('the failure of a store is shown without the secrets of the agent', async () => {
  const records = new RecordLog(() => 0);
  const { observe } = new Observed(records);
  const store = troubledStore();
  const agent = createAgent({ model: scripted([]), secrets: ['disk is full'], store, inspect: observe });
  onTestFinished(() => agent.close());
  const conversation = await agent.open('a');
  store.trouble(() => 'failed');
  await conversation.send('go').result;
  store.trouble(() => 'stored');
  const recordTexts = [...records.since(0)].map(recordText).join('\n');
  expect(recordTexts).toContain('store: the [redacted]');
  expect(recordTexts).not.toContain('disk is full');
});

describe('a character that would control the display', () => {
  const character = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc.constantFrom(
      '\u202e',
      '\u2066',
      '\u2069',
      '\u200f',
      '\u061c',
      '\u2028',
      '\u009b',
      '\u{e0041}',
      '\u001b]0;x\u0007',
    ),
  );
  const texts = fc.array(character, { maxLength: 12 }).map((parts) => parts.join(''));

  it('it is shown as an escape in every drawn text, and in every attribute that is read', () => {
    drawTextsSafely();
    fc.assert(
      fc.property(texts, (text) => {
        const { props } = h('button', { title: text, 'aria-label': text, placeholder: text, id: 'kept' });
        const { title, 'aria-label': label, placeholder, id } = props as unknown as { [name: string]: string };
        const node = { type: null, props: text };
        options.vnode?.(node as never);
        for (const shown of [title, label, placeholder, node.props]) {
          expect(drives(shown ?? '')).toBe(false);
          expect(shown).toBe(shownText(text));
        }
        expect(id).toBe('kept');
      }),
    );
  });

  it('it is a JSON escape in edited arguments, so the value is the same', () => {
    fc.assert(
      fc.property(texts, texts, (name, value) => {
        const text = sourceText(JSON.stringify({ [name]: [value] }, null, 2));
        expect(drives(text)).toBe(false);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify({ [name]: [value] })));
      }),
    );
  });
});
const { vnode } = options;
afterEach(() => {
  if (vnode) options.vnode = vnode;
  else delete options.vnode;
});

describe('a value that is not an event', () => {
  const actorRef = { id: 'a', sessionId: 'x:0', system: {}, getSnapshot: () => ({}) };
  const whole: readonly { readonly [field: string]: unknown }[] = [
    { type: '@xstate.actor', actorRef },
    { type: '@xstate.event', actorRef, event: { type: 'GO' } },
    { type: '@xstate.snapshot', actorRef, event: { type: 'GO' }, snapshot: { value: 'a', status: 'active' } },
    { type: '@xstate.microstep', actorRef, event: { type: 'GO' }, snapshot: { value: 'a' }, _transitions: [] },
    { type: '@runchart.open', conversation: {} },
  ];
  const wrong = [undefined, null, 7, 'x', [], {}, Symbol('x'), () => {}];
  const half = whole.flatMap((event) =>
    Object.keys(event).flatMap((field) => wrong.map((value) => ({ ...event, [field]: value }))),
  );
  const throwing = new Proxy(
    {},
    {
      get() {
        throw new Error('not now');
      },
    },
  );
  const foreign = [
    ...wrong,
    throwing,
    { type: 'x' },
    { type: '@xstate.later', actorRef },
    new Error('x'),
    whole.at(-1),
  ];

  it('it is ignored: nothing is thrown, and nothing is recorded', () => {
    const records = new RecordLog(() => 0);
    const { observe } = new Observed(records);
    // With an empty snapshot or no microsteps they are complete: no other field is read.
    const isReadable = (event: { type?: unknown; [field: string]: unknown }): boolean => {
      const [same] = whole.filter(({ type }) => type === event.type);
      const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;
      return (
        same !== undefined &&
        event.actorRef === actorRef &&
        (event.type === '@xstate.actor' || event.event === same.event) &&
        (!('snapshot' in same) || isObject(event.snapshot))
      );
    };
    for (const event of [...foreign, ...half.filter((event) => !isReadable(event))])
      expect(() => observe(event)).not.toThrow();
    expect([...records.since(0)]).toEqual([]);
    for (const event of half) expect(() => observe(event)).not.toThrow();
  });

  it('it ends nothing: an app is observed after it', () => {
    const records = new RecordLog(() => 0);
    const { observe } = new Observed(records);
    observe(null);
    const app = createActor(createMachine({ id: 'm', initial: 'a', states: { a: {} } }), { inspect: observe }).start();
    observe({ type: '@xstate.event', actorRef: app });
    expect([...records.since(0)].map(({ type }) => type)).toContain('actor');
    app.stop();
  });
});
