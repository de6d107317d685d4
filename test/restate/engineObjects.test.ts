/** The objects of the engine and their readers, with a context and a server of the test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engineAgentOf } from '../../src/agent.ts';
import { createAgent, type LogEntry } from '../../src/index.ts';
import { ModelError } from '../../src/models/model.ts';
import { type BlobStore, blobDirectory } from '../../src/restate/blobStore.ts';
import type { Waiting } from '../../src/restate/chain/engineAttempt.ts';
import { CHAIN_VERSION } from '../../src/restate/chain/holdConversation.ts';
import { ContentStore, INLINE_CHARACTERS } from '../../src/restate/contentStore.ts';
import { engineObjects } from '../../src/restate/engineObjects.ts';
import { type HubSignal, type LiveHub, processHub } from '../../src/restate/liveHub.ts';
import { objectNames } from '../../src/restate/objectCalls.ts';
import { RestateAttempt } from '../../src/restate/restateAttempt.ts';
import { RestateStore } from '../../src/restate/restateStore.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { nextTurn } from '../../src/timeLimit.ts';
import { sdk, TerminalError } from './objectSdk.ts';

type Handler = (context: object, input?: unknown) => Promise<unknown>;
interface Made {
  handlers: Record<string, Handler>;
  options: { journalRetention?: unknown };
}

const ONE_PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function conversationObject(
  hub: LiveHub,
  { text = 'hello', failure, store }: { text?: string; failure?: ModelError; store?: BlobStore } = {},
): Made {
  const model = scriptedModel([...(failure ? [failure] : []), text]);
  const agent = engineAgentOf(createAgent({ model }));
  if (!agent) throw new Error('the agent is not of this process');
  return engineObjects({ sdk, agent, service: 'test', hub, store })[0] as unknown as Made;
}

/** The context of an invocation without an earlier attempt. */
function contextOf(acts: object[], state = new Map<string, unknown>()) {
  const answers: unknown[] = [];
  const sleeps: number[] = [];
  const values = [...acts];
  const mapped = (promise: Promise<unknown>) =>
    Object.assign(promise, { map: (change: (value: unknown) => unknown) => promise.then(change) });
  const context = {
    key: 'one',
    request: () => ({ attemptCompletedSignal: new AbortController().signal }),
    get: async (key: string) => state.get(key) ?? null,
    set: (key: string, value: unknown) => state.set(key, value),
    clear: (key: string) => state.delete(key),
    run: (_: string, act: () => Promise<unknown>) => mapped(Promise.resolve().then(act)),
    awakeable: () => ({ id: 'bell', promise: mapped(new Promise(() => {})) }),
    sleep: (ms: number) => {
      sleeps.push(ms);
      return mapped(Promise.resolve());
    },
    genericCall: async () => values.splice(0).map((act, index) => ({ act, to: String(index) })),
    genericSend: () => {},
    resolveAwakeable: (_: string, answer: unknown) => answers.push(answer),
  };
  return { context, answers, sleeps, state };
}

describe('the objects of a durable engine', () => {
  it('a hub that throws changes nothing', async () => {
    const throwing = { publish: () => raise('no hub'), subscribe: () => () => {} };
    const rejecting = { ...throwing, publish: () => Promise.reject(new Error('no hub')) as unknown as undefined };
    for (const hub of [throwing, rejecting]) {
      const { context, answers } = contextOf([
        { type: 'open', actId: 'a', cwd: '/' },
        { type: 'send', actId: 'b', content: 'hello' },
      ]);
      await conversationObject(hub).handlers.hold?.(context);
      expect(answers).toEqual([{ value: expect.anything() }, { value: expect.anything() }]);
    }
  });

  it('a wait before a retry is a sleep of the engine', async () => {
    const { context, state, sleeps } = contextOf([
      { type: 'open', actId: 'a', cwd: '/' },
      { type: 'send', actId: 'b', content: 'hello' },
    ]);
    const failure = new ModelError({ code: 'rate-limit', retryAfterMs: 40_000 });
    await conversationObject(processHub, { failure }).handlers.hold?.(context);
    const [ms = 0, ...more] = sleeps;
    expect(ms).toBeGreaterThan(30_000);
    expect(ms).toBeLessThanOrEqual(40_000);
    expect(more).toEqual([]);
    expect([...state.values()].filter((entry) => (entry as { type?: string }).type === 'model-retry')).toHaveLength(1);
  });

  it('an attempt shows its reply after a reset, and an entry ends the reply only where it is one', async () => {
    const published: HubSignal[] = [];
    const hub = { publish: (_: string, signal: HubSignal) => void published.push(signal), subscribe: () => () => {} };
    const { context } = contextOf([
      { type: 'open', actId: 'a', cwd: '/' },
      { type: 'send', actId: 'b', content: 'hello', options: { messageId: 'message' } },
    ]);
    await conversationObject(hub).handlers.hold?.(context);
    const live = published.flatMap((each) => (each.type === 'live' && 'runId' in each.signal ? [each.signal] : []));
    expect(live[0]).toEqual({ type: 'reset', runId: live[1]?.runId });
    expect(new Set(live.slice(1).map(({ type }) => type))).toEqual(new Set(['text-delta']));
    const appended = published.flatMap((each) => (each.type === 'appended' ? [each] : []));
    expect(appended[0]).toMatchObject({ isReplyOpen: true });
    expect(appended.at(-1)).not.toHaveProperty('isReplyOpen');
  });

  it.each([[undefined], [null], ['text'], [{}], [{ type: 'send' }], [{ type: 1, actId: 'a' }]])(
    'an act that is none is refused before it waits: %j',
    async (act) => {
      const { context } = contextOf([]);
      await expect(conversationObject(processHub).handlers.ask?.(context, act)).rejects.toThrow(TerminalError);
    },
  );

  it('the log is the same with a blob store, and the state contains nothing large', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'runchart-objects-'));
    const text = 'a long reply '.repeat(10_000);
    const acts = [
      { type: 'open', actId: 'a', cwd: '/' },
      { type: 'send', actId: 'b', content: text, options: { messageId: 'message' } },
    ];
    const logs: string[] = [];
    for (const store of [undefined, blobDirectory(directory)]) {
      const object = conversationObject(processHub, { text, ...(store && { store }) });
      const { context, state } = contextOf(acts);
      await object.handlers.hold?.(context);
      const largest = Math.max(...[...state.values()].map((value) => JSON.stringify(value).length));
      expect(largest > INLINE_CHARACTERS).toBe(store === undefined);
      const read = object.handlers.read as Handler;
      const { entries } = (await read(context, { from: 0 })) as { entries: LogEntry[] };
      expect(entries.length).toBeGreaterThan(3);
      logs.push(JSON.stringify(entries).replaceAll(/"(at|createdAt)":\d+/g, ''));
    }
    rmSync(directory, { recursive: true });
    expect(logs[1] === logs[0]).toBe(true);
  });

  it('an image is in the blob store, and the log has its reference', async () => {
    const kept = new Map<string, Uint8Array>();
    const store: BlobStore = {
      put: async (_, name, bytes) => void kept.set(name, bytes),
      get: async (_, name) => kept.get(name) ?? raise('no such bytes'),
      delete: async () => {},
    };
    const image = { type: 'image', mediaType: 'image/png', data: ONE_PIXEL };
    const { context, state } = contextOf([
      { type: 'open', actId: 'a', cwd: '/' },
      { type: 'send', actId: 'b', content: [image], options: { messageId: 'message' } },
    ]);
    await conversationObject(processHub, { store }).handlers.hold?.(context);
    const message = [...state.values()].find((value) => (value as Partial<LogEntry>)?.type === 'user-message');
    expect(JSON.stringify(message)).toMatch(/blob:[0-9a-f]{64}:image\/png/);
    expect([...kept.values()]).toEqual([new Uint8Array(Buffer.from(ONE_PIXEL, 'base64'))]);
  });

  it.each([
    ['one long entry', [4_100_000], [1]],
    ['a long entry before others', [4_100_000, 10, 10], [1, 2]],
    ['a long entry after others', [10, 10, 4_100_000], [2, 1]],
    ['two long entries', [4_100_000, 4_100_000], [1, 1]],
    ['entries that are long together', [2_100_000, 2_100_000, 10], [1, 2]],
    ['short entries', [10, 10, 10], [3]],
  ])('a log with %s is read in pages that each have an entry', async (_, lengths, pages) => {
    const { context, state } = contextOf([{ type: 'open', actId: 'a', cwd: '/' }]);
    const object = conversationObject(processHub);
    await object.handlers.hold?.(context);
    const read = object.handlers.read as Handler;
    const { length: first } = (await read(context, { from: 0 })) as { length: number };
    const [lengthKey] = [...state].find(([, value]) => value === first) ?? [];
    const [entryKey = '', header] = [...state].find(([, value]) => (value as { seq?: number }).seq === 0) ?? [];
    for (const [index, length] of lengths.entries()) {
      const seq = first + index;
      state.set(entryKey.replace('0', String(seq)), { ...(header as object), seq, text: 'x'.repeat(length) });
    }
    state.set(lengthKey ?? '', first + lengths.length);
    const found: number[] = [];
    for (let from = first; from < first + lengths.length; ) {
      const { entries } = (await read(context, { from })) as { entries: LogEntry[] };
      expect(entries[0]?.seq).toBe(from);
      found.push(entries.length);
      from += entries.length;
    }
    expect(found).toEqual(pages);
  });

  it('a large act waits under its name, and one that the store does not have is refused', async () => {
    const kept = new Map<string, Uint8Array>();
    const store: BlobStore = {
      put: async (_, name, bytes) => void kept.set(name, bytes),
      get: async (_, name) => kept.get(name) ?? raise('no such bytes'),
      delete: async () => {},
    };
    const put: unknown[] = [];
    const { context } = contextOf([]);
    Object.assign(context, {
      awakeable: () => ({ id: 'answer', promise: Promise.resolve({ value: {} }) }),
      genericCall: async ({ parameter }: { parameter: unknown }) => void put.push(parameter),
    });
    const act = { type: 'send', actId: 'a', content: 'x'.repeat(INLINE_CHARACTERS) };
    const { ask } = conversationObject(processHub, { store }).handlers;
    await ask?.(context, act);
    const [{ act: name }] = put as [{ act: unknown }];
    expect(JSON.stringify(name).length).toBeLessThan(100);
    await ask?.(context, name);
    expect(put[1]).toEqual(put[0]);
    await expect(ask?.(context, { storedAs: '0'.repeat(64) })).rejects.toThrow();
    await expect(conversationObject(processHub).handlers.ask?.(context, name)).rejects.toThrow(TerminalError);
  });

  it.each([
    ['of a newer version', { version: CHAIN_VERSION + 1 }, 'version'],
    ['that is damaged', { 'e/1': { seq: 1, type: 'conversation' } }, 'corrupt'],
  ])('acts on a log %s are answered with an error, and the log stays as it is', async (_, change, code) => {
    const first = contextOf([
      { type: 'open', actId: 'a', cwd: '/' },
      { type: 'send', actId: 'b', content: 'hello', options: { messageId: 'message' } },
    ]);
    const object = conversationObject(processHub);
    await object.handlers.hold?.(first.context);
    const state = new Map([...first.state, ...Object.entries(change)]);
    const second = contextOf([{ type: 'rename', actId: 'c', title: 'another' }], state);
    const before = JSON.stringify([...state]);
    await object.handlers.hold?.(second.context);
    expect(second.answers).toMatchObject([{ error: { code } }]);
    expect(JSON.stringify([...state])).toBe(before);
  });

  it('a conversation that is removed removes its sub-agents, and no log of another conversation', async () => {
    const { handlers } = conversationObject(processHub);
    const parent = { conversationId: 'root', callId: 'p' };
    const removedFrom = async (of: string | undefined, first: object, more: [string, unknown][] = []) => {
      const { context, state } = contextOf([], new Map<string, unknown>([['length', 1], ['e/0', first], ...more]));
      const sent: object[] = [];
      const whole = {
        ...context,
        stateKeys: async () => [...state.keys()],
        clearAll: () => state.clear(),
        genericSend: ({ key, method, parameter }: { key: string; method: string; parameter: object }) =>
          void (method === 'remove' && sent.push({ key, parameter })),
      };
      await handlers.remove?.(whole, of === undefined ? undefined : { of });
      return { isRemoved: state.size === 0, sent };
    };
    const child = { type: 'conversation', seq: 0, parent };
    expect(await removedFrom('root', child)).toEqual({ isRemoved: true, sent: [] });
    expect(await removedFrom('other', child)).toEqual({ isRemoved: false, sent: [] });
    expect(await removedFrom('root', { type: 'conversation', seq: 0 })).toEqual({ isRemoved: false, sent: [] });
    expect(await removedFrom(undefined, { type: 'conversation', seq: 0 }, [['s/sub-1', true]])).toEqual({
      isRemoved: true,
      sent: [{ key: 'sub-1', parameter: { of: 'one' } }],
    });
  });

  it('a conversation that asks a sub-agent remembers it, and one that reports to its parent does not', async () => {
    const { context, state } = contextOf([]);
    const attempt = new RestateAttempt({
      sdk,
      ctx: context as never,
      names: objectNames('test'),
      hub: processHub,
      contentsOf: (id) => new ContentStore(undefined, id),
    });
    attempt.tell('parent', { of: 'one', news: { kind: 'rest' } });
    attempt.tell('sub-1', { act: { type: 'cancel', actId: 'a' }, to: 'a', place: {} } as unknown as Waiting);
    await attempt.sent();
    expect([...state.keys()]).toEqual(['s/sub-1']);
  });

  it.each([
    [new Map<string, unknown>(), { length: 0, version: 0, isUnderWay: false }],
    [
      new Map<string, unknown>([
        ['length', 2],
        ['version', 3],
        ['carried', { version: 3, pages: 1 }],
      ]),
      { length: 2, version: 3, isUnderWay: true },
    ],
  ])('the parent of a sub-agent learns whether another invocation continues it', async (state, expected) => {
    const { context } = contextOf([], state);
    expect(await conversationObject(processHub).handlers.state?.(context)).toEqual(expected);
  });

  it('the engine keeps no record of what is over', () => {
    expect(conversationObject(processHub).options.journalRetention).toBe(0);
  });

  it('a reader whose engine is gone for a time continues where it was', async () => {
    let reads = 0;
    const server = createServer(({ socket }, response) => {
      reads += 1;
      if (reads > 1 && reads < 5) return void socket.destroy();
      const entries = reads === 1 ? [{ seq: 0, type: 'conversation' }] : [{ seq: 1, type: 'notice' }];
      response.end(JSON.stringify({ length: entries[0]?.seq === 0 ? 1 : 2, entries }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const ingress = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const items = new RestateStore({ ingress, service: 'test', hub: processHub }).follow('one');
    expect((await items.next()).value).toMatchObject({ seq: 0 });
    expect((await items.next()).value).toMatchObject({ seq: 1 });
    await items.return?.();
    server.close();
    expect(reads).toBe(5);
  });

  it('a live signal asks the engine for nothing', async () => {
    let reads = 0;
    const server = createServer((_, response) => {
      reads += 1;
      const entries = reads === 1 ? [{ seq: 0, type: 'conversation' }] : [];
      response.end(JSON.stringify({ length: 1, entries }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const ingress = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    let receive: (signal: HubSignal) => void = () => {};
    const hub: LiveHub = {
      publish: () => {},
      subscribe: (_, receiver) => {
        receive = receiver;
        return () => {};
      },
    };
    const items = new RestateStore({ ingress, service: 'test', hub }).follow('one');
    await items.next();
    for (let delta = 0; delta < 200; delta += 1) {
      const item = items.next();
      await nextTurn();
      receive({ type: 'live', next: 1, signal: { type: 'text-delta', runId: 'run', text: 'x' } as never });
      await item;
    }
    await items.return?.();
    server.close();
    expect(reads).toBeLessThan(20);
  });
});

function raise(message: string): never {
  throw new Error(message);
}
