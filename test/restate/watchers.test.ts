/** Signals of a reply for its watchers, and the conversations of an engine as a store: each request, answer and end. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Live } from '../../src/live.ts';
import { type HubSignal, lossy, processHub } from '../../src/restate/liveHub.ts';
import { INDEX_SHARDS, objectNames, shardOf, storedEntries } from '../../src/restate/objectCalls.ts';
import { RestateStore } from '../../src/restate/restateStore.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

let ids = 0;
const freshId = () => `watched-${ids++}`;
const delta = (text: string, next = 1): HubSignal => ({
  ...{ type: 'live', next, signal: { type: 'text-delta', runId: 'r', text } },
});
const reset = (next = 1): HubSignal => ({ type: 'live', next, signal: { type: 'reset', runId: 'r' } });

describe('the hub of one process', () => {
  function watching(id: string) {
    const received: HubSignal[] = [];
    return { received, leave: processHub.subscribe(id, (signal) => void received.push(signal)) };
  }

  it('carries each signal to all who watch that conversation, until they leave', () => {
    const [id, other] = [freshId(), freshId()];
    const [one, two, elsewhere] = [watching(id), watching(id), watching(other)];
    processHub.publish(id, delta('a'));
    one.leave();
    one.leave();
    processHub.publish(id, delta('b'));
    two.leave();
    processHub.publish(id, delta('c'));
    expect([one.received, two.received, elsewhere.received]).toEqual([[delta('a')], [delta('a'), delta('b')], []]);
  });

  it('carries signals to who watches after another has left, however often that one leaves', () => {
    const id = freshId();
    const first = watching(id);
    first.leave();
    const second = watching(id);
    first.leave();
    processHub.publish(id, delta('a'));
    second.leave();
    expect([first.received, second.received]).toEqual([[], [delta('a')]]);
  });

  it('gives a reset and the reply so far to whoever begins to watch during it, and nothing of an earlier one', () => {
    const id = freshId();
    processHub.publish(id, delta('a', 3));
    processHub.publish(id, delta('b', 3));
    expect(watching(id).received).toEqual([reset(3), delta('a', 3), delta('b', 3)]);
    processHub.publish(id, reset(3));
    expect(watching(id).received).toEqual([]);
    processHub.publish(id, delta('c', 3));
    expect(watching(id).received).toEqual([reset(3), delta('c', 3)]);
    processHub.publish(id, { type: 'appended', length: 4 });
    expect(watching(id).received).toEqual([]);
  });

  it('keeps the reply after an entry that does not end it, and what follows the entry that does', () => {
    const id = freshId();
    processHub.publish(id, delta('a', 3));
    processHub.publish(id, { type: 'appended', length: 4, isReplyOpen: true });
    processHub.publish(id, delta('b', 4));
    expect(watching(id).received).toEqual([reset(4), delta('a', 4), delta('b', 4)]);
    processHub.publish(id, delta('c', 5));
    processHub.publish(id, { type: 'appended', length: 5 });
    expect(watching(id).received).toEqual([reset(5), delta('c', 5)]);
  });

  it('keeps no signal that belongs to no run', () => {
    const id = freshId();
    for (const signal of [
      { type: 'status', status: 'idle' },
      { type: 'state', state: {} },
    ] as Live[])
      processHub.publish(id, { type: 'live', next: 1, signal });
    expect(watching(id).received).toEqual([]);
  });

  it('keeps the first 10,000 signals of a reply', () => {
    const id = freshId();
    for (let at = 0; at < 10_002; at += 1) processHub.publish(id, delta(String(at)));
    const { received } = watching(id);
    expect([received.length, received[0], received.at(-1)]).toEqual([10_001, reset(), delta('9999')]);
  });
});

it.each(['throws', 'rejects'])('a hub that %s loses its signal, with a warning', async (how) => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const error = new Error('no hub');
  const publish = () => {
    if (how === 'throws') throw error;
    return Promise.reject(error);
  };
  lossy({ publish, subscribe: () => () => {} }).publish('c', delta('a'));
  await Promise.resolve();
  await Promise.resolve();
  expect(warn.mock.calls).toEqual([[{ event: 'hub-failed', error }]]);
  warn.mockRestore();
});

describe('the names of an engine', () => {
  it('are those of the service', () => {
    expect(objectNames('mine')).toEqual({ conversation: 'mine', inbox: 'mineInbox', index: 'mineIndex' });
  });

  it('spread conversations over all shards, each always in the same one', () => {
    const shards = Array.from({ length: 400 }, (_, at) => shardOf(`conversation ${at}`));
    expect(new Set(shards)).toEqual(new Set(Array.from({ length: INDEX_SHARDS }, (_, shard) => String(shard))));
    expect([shardOf(''), shardOf('a')]).toEqual(['0', String(97 % INDEX_SHARDS)]);
  });

  it('of entries are asked for at once, from the first to before the last, without those that are missing', async () => {
    const asked: string[] = [];
    const get = async (key: string) => {
      asked.push(key);
      return key === 'e/3' ? null : key;
    };
    const read = (from: number, upTo: number) => storedEntries({ get } as never, from, upTo);
    expect(await read(2, 5)).toEqual(['e/2', 'e/4']);
    expect(asked).toEqual(['e/2', 'e/3', 'e/4']);
    expect([await read(5, 5), await read(9, 5)]).toEqual([[], []]);
  });
});

interface Asked {
  path: string;
  body: unknown;
  headers: Record<string, string>;
}
/** A store whose server is `answer`. */
function storeWith(answer: (asked: Asked) => unknown, ingress = 'http://engine:8080/') {
  const asked: Asked[] = [];
  const request = async (url: string, { body, headers }: { body?: string; headers: Record<string, string> }) => {
    const one = { path: url.replace('http://engine:8080', ''), body: body && JSON.parse(body), headers };
    asked.push(one);
    const value = answer(one);
    if (value instanceof Response) return value;
    return new Response(value === undefined ? '' : JSON.stringify(value));
  };
  vi.stubGlobal('fetch', request);
  return { asked, store: new RestateStore({ ingress, service: 'mine', hub: processHub }) };
}
const failed = (status: number, text: string) => new Response(text, { status });

describe('the conversations of an engine as a store', () => {
  it('cannot be opened here', async () => {
    const { store } = storeWith(() => undefined);
    await expect(store.open('a')).rejects.toMatchObject({ code: 'session_busy' });
  });

  it('send an act under its id, to a path in which no id is anything else', async () => {
    const { asked, store } = storeWith(() => ({ value: 5 }), 'http://engine:8080///');
    const act = { type: 'send', actId: 'act-1' };
    expect(await store.act('a/b?c', act as never)).toBe(5);
    const headers = { 'idempotency-key': 'act-1', 'content-type': 'application/json' };
    expect(asked).toEqual([{ path: '/mine/a%2Fb%3Fc/ask', body: act, headers }]);
  });

  it.each([
    ['agent_busy', 'AgentBusyError'],
    ['cancellation_in_progress', 'AgentBusyError'],
    ['invalid_decision', 'InvalidDecisionError'],
    ['decision_refused', 'DecisionRefusedError'],
    ['limit', 'LimitError'],
    ['session_busy', 'SessionBusyError'],
    ['not_found', 'RunchartError'],
    ['closed', 'RunchartError'],
  ])('reject an act with the error of the worker: %s', async (code, name) => {
    const { store } = storeWith(() => ({ error: { code, message: 'no' } }));
    await expect(store.act('a', { type: 'send', actId: '1' } as never)).rejects.toMatchObject({
      code,
      name,
      message: 'no',
    });
  });

  it('are deleted by a request without a body, and an empty answer is one', async () => {
    const { asked, store } = storeWith(() => undefined);
    expect(await store.delete('a')).toBeUndefined();
    expect(asked).toEqual([{ path: '/mine/a/remove', body: undefined, headers: {} }]);
  });

  it('have the length that the engine answers, and a holder always', async () => {
    const { asked, store } = storeWith(() => ({ length: 7, entries: [] }));
    expect(await store.stateOf('a')).toEqual({ length: 7, isHeld: true });
    expect(asked[0]?.body).toEqual({ from: Number.MAX_SAFE_INTEGER, isWhole: true });
  });

  it('are listed from all shards, as active while a run is not over, without those of sub-agents', async () => {
    const row = (id: string, cycle: string, more: object = {}) => ({
      ...{ id, length: 3, cycle, createdAt: 1, updatedAt: id.charCodeAt(0), ...more },
    });
    const rows: Record<string, object[]> = {
      '0': [row('a', 'ended'), row('b', 'running')],
      '15': [row('c', 'suspended'), row('d', 'ended', { parentId: 'a' })],
    };
    const { asked, store } = storeWith(({ path }) => rows[path.split('/')[2] ?? ''] ?? []);
    const listed = await store.list();
    expect(asked.map(({ path }) => path).sort()).toEqual(
      Array.from({ length: 16 }, (_, shard) => `/mineIndex/${shard}/list`).sort(),
    );
    expect(listed.map(({ id, status }) => [id, status]).sort()).toEqual([
      ['a', 'idle'],
      ['b', 'active'],
      ['c', 'waiting'],
    ]);
    expect((await store.list({ status: 'active' })).map(({ id }) => id)).toEqual(['b']);
    expect(await store.list({ limit: 1 })).toHaveLength(1);
  });

  it('are listed by the store where it has a list, and the engine is not asked', async () => {
    const { asked } = storeWith(() => []);
    const options = { owner: 'ada', limit: 2 };
    const listRows = vi.fn(async () => [{ id: 'a' }]);
    const nothing = async () => expect.unreachable();
    const blobs = { put: nothing, get: nothing, delete: nothing, putRow: nothing, listRows } as never;
    const store = new RestateStore({ ingress: 'http://engine', service: 'mine', hub: processHub, store: blobs });
    expect(await store.list(options)).toEqual([{ id: 'a' }]);
    expect([listRows.mock.calls, asked]).toEqual([[['mine', options]], []]);
  });

  it.each([
    ['refuses', () => failed(500, 'x'.repeat(300)), `500 ${'x'.repeat(200)}`],
    ['does not know the service', () => failed(404, 'service not found'), '404 service not found'],
    ['cannot be reached', () => raise('no route'), 'no route'],
    ['answers no JSON', () => failed(200, '<html>'), 'JSON'],
  ])('are unavailable where the engine %s', async (_, answer, words) => {
    const { store } = storeWith(answer);
    for (const act of [() => store.list(), () => store.stateOf('a'), () => store.delete('a')]) {
      const error = await act().then(
        () => undefined,
        (thrown: Error & { code: string }) => thrown,
      );
      expect(error?.code).toBe('unavailable');
      expect(error?.message).toContain(`the engine at http://engine:8080 does not answer mine`);
      expect(error?.message).toContain(words);
      expect(error?.message).not.toContain('x'.repeat(201));
    }
  });
});

function raise(message: string): never {
  throw new Error(message);
}

describe('a reader of a conversation', () => {
  const entry = (seq: number, type = 'notice') => ({ seq, type });

  /** An engine whose log the test changes, and the times at which it was read. */
  function engine(types: string[], pageMax = 500) {
    vi.useFakeTimers();
    const log = types.map((type, seq) => entry(seq, type));
    const reads: number[] = [];
    const { store } = storeWith(({ body }) => {
      const { from } = body as { from: number };
      reads.push(from);
      return { length: log.length, entries: log.slice(from, from + pageMax) };
    });
    const id = freshId();
    return { log, reads, store, id };
  }
  const seqs = async (items: AsyncIterator<unknown>, count: number) => {
    const read: unknown[] = [];
    for (let at = 0; at < count; at += 1) read.push(((await items.next()).value as { seq: number }).seq);
    return read;
  };

  it.each([
    [0, 0],
    [2, 2],
    [1.2, 2],
    [-3, 0],
    [Number.NaN, 0],
  ])('begins at the entry %s, which is %i', async (from, first) => {
    const { reads, store, id } = engine(Array(4).fill('notice'));
    const items = store.follow(id, from);
    expect(await seqs(items, 1)).toEqual([first]);
    expect(reads).toEqual([first]);
    await items.return?.();
  });

  it('gets each entry once, over pages of any size', async () => {
    for (const pageMax of [1, 2, 5]) {
      const { reads, store, id } = engine(Array(5).fill('notice'), pageMax);
      const items = store.follow(id);
      expect(await seqs(items, 5)).toEqual([0, 1, 2, 3, 4]);
      expect(reads).toHaveLength(Math.ceil(5 / pageMax));
      await items.return?.();
    }
  });

  it('of no conversation is refused, and ends when its conversation is deleted', async () => {
    const { log, store, id } = engine([]);
    await expect(store.follow(id).next()).rejects.toMatchObject({ code: 'not_found' });
    log.push(entry(0), entry(1));
    const items = store.follow(id);
    await seqs(items, 2);
    const next = items.next();
    log.length = 1;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it.each([
    ['idle', ['notice'], [5, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]],
    ['active', ['run-started'], [5, 10, 20, 40, 80, 100, 100, 100, 100, 100]],
    ['resumed', ['run-stop', 'run-resumed'], [5, 10, 20, 40, 80, 100, 100, 100, 100, 100]],
    ['over', ['run-started', 'run-stop'], [5, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]],
    ['suspended', ['run-started', 'run-suspended'], [5, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]],
  ])('asks again at growing intervals while the run is %s', async (_, types, waits) => {
    const { reads, store, id } = engine(types);
    const items = store.follow(id);
    await seqs(items, types.length);
    const next = items.next();
    await vi.advanceTimersByTimeAsync(0);
    for (const wait of waits) {
      const before = reads.length;
      await vi.advanceTimersByTimeAsync(wait - 1);
      expect([wait, reads.length]).toEqual([wait, before]);
      await vi.advanceTimersByTimeAsync(1);
      expect([wait, reads.length]).toEqual([wait, before + 1]);
    }
    await items.return?.();
    expect([await next, vi.getTimerCount()]).toEqual([{ done: true, value: undefined }, 0]);
  });

  it('asks at once, and then often, for an entry that a worker has announced', async () => {
    const { log, reads, store, id } = engine(['notice']);
    const items = store.follow(id);
    await seqs(items, 1);
    const next = items.next();
    await vi.advanceTimersByTimeAsync(3_000);
    const before = reads.length;
    processHub.publish(id, { type: 'appended', length: 2 });
    await vi.advanceTimersByTimeAsync(0);
    expect(reads.length).toBe(before + 1);
    await vi.advanceTimersByTimeAsync(100);
    expect(reads.length).toBeGreaterThanOrEqual(before + 5);
    log.push(entry(1));
    await vi.advanceTimersByTimeAsync(20);
    expect((await next).value).toMatchObject({ seq: 1 });
    await items.return?.();
  });

  it('gets a signal after the entries before it, and none that is late', async () => {
    const { log, store, id } = engine(['notice']);
    const items = store.follow(id);
    await seqs(items, 1);
    const next = items.next();
    await vi.advanceTimersByTimeAsync(0);
    processHub.publish(id, delta('late', 0));
    processHub.publish(id, delta('early', 2));
    processHub.publish(id, delta('too early', 9));
    await vi.advanceTimersByTimeAsync(0);
    log.push(entry(1));
    await vi.advanceTimersByTimeAsync(2_000);
    expect([(await next).value, (await items.next()).value]).toMatchObject([{ seq: 1 }, { text: 'early' }]);
    await items.return?.();
  });

  it('leaves the hub and its timer when it is returned, also while it waits for the engine', async () => {
    const { store, id } = engine(['notice']);
    const leave = vi.fn();
    const subscribe = vi.spyOn(processHub, 'subscribe').mockImplementation(() => leave);
    const items = store.follow(id);
    await seqs(items, 1);
    const next = items.next();
    await vi.advanceTimersByTimeAsync(0);
    await items.return?.();
    expect([await next, leave.mock.calls.length, vi.getTimerCount()]).toEqual([{ done: true, value: undefined }, 1, 0]);
    subscribe.mockRestore();
  });

  it.each([
    ['a first answer', 0],
    ['a later answer', 1],
  ])('waits for an engine that is gone only after %s', async (_, answers) => {
    vi.useFakeTimers();
    let reads = 0;
    const { store } = storeWith(() => {
      reads += 1;
      return reads > answers ? raise('gone') : { length: 1, entries: [entry(0)] };
    });
    const items = store.follow(freshId());
    if (answers === 0) return expect(items.next()).rejects.toMatchObject({ code: 'unavailable' });
    await seqs(items, 1);
    const next = items.next().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(5 + 100 + 200 + 400 + 800 + 1_000);
    expect(reads).toBe(1 + 6);
    await items.return?.();
    await next;
    const atEnd = reads;
    await vi.advanceTimersByTimeAsync(5_000);
    expect([reads, vi.getTimerCount()]).toEqual([atEnd, 0]);
  });
});
