/** The index of conversations that also writes the list of a store, and a database that is down or refuses a row. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { engineAgentOf } from '../../src/agent.ts';
import { createAgent } from '../../src/index.ts';
import { engineObjects } from '../../src/restate/engineObjects.ts';
import { processHub } from '../../src/restate/liveHub.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { sdk, TerminalError } from './objectSdk.ts';

type Handler = (context: object, input?: unknown) => Promise<unknown>;
type Written = [service: string, id: string, row: unknown];

/** One shard of the index. `failures`: the writes that fail first. */
function shard({ isListing = true, failures = 0 } = {}) {
  const written: Written[] = [];
  const attempts: number[] = [];
  const later: { method: string; delay: number; parameter: object }[] = [];
  let failing = failures;
  const blobs = { put: async () => {}, get: async () => new Uint8Array(), delete: async () => {} };
  const listing = {
    ...blobs,
    listRows: async () => [],
    putRow: async (...row: Written) => {
      failing -= 1;
      if (failing >= 0) throw new Error('the database is down');
      written.push(row);
    },
  };
  const agent = engineAgentOf(createAgent({ model: scriptedModel([]) }));
  if (!agent) throw new Error('the agent is not of this process');
  const store = isListing ? listing : blobs;
  const made = engineObjects({ sdk, agent, service: 'test', hub: processHub, store })[2];
  const { handlers } = made as unknown as { handlers: Record<string, Handler> };
  const state = new Map<string, unknown>();
  /** As the SDK: an error is terminal after the last attempt. */
  const run = async (_: string, act: () => Promise<unknown>, { maxRetryAttempts = Number.POSITIVE_INFINITY } = {}) => {
    for (let attempt = 1; ; attempt += 1) {
      if (attempt > 50) throw new Error('the shard is held up');
      attempts.push(attempt);
      try {
        return await act();
      } catch (error) {
        if (attempt >= maxRetryAttempts) throw new TerminalError((error as Error).message);
      }
    }
  };
  const context = {
    ...{ key: '3', run },
    get: async (key: string) => state.get(key) ?? null,
    set: (key: string, value: unknown) => state.set(key, value),
    clear: (key: string) => state.delete(key),
    genericSend: (request: (typeof later)[number]) => void later.push(structuredClone(request)),
  };
  const put = (parameter: object) => handlers.put?.(context, structuredClone(parameter));
  /** The object receives what it sent to itself. */
  const putAgain = async (): Promise<number> => {
    const [request] = later.splice(0, 1);
    if (!request) throw new Error('nothing was sent');
    await handlers[request.method]?.(context, request.parameter);
    return request.delay;
  };
  const fail = (times: number): void => {
    failing = times;
  };
  return { state, written, attempts, later, put, putAgain, fail };
}

const row = (length: number) => ({ id: 'a', cycle: 'ended', length });
const DOWN = Number.POSITIVE_INFINITY;

beforeEach(() => void vi.spyOn(console, 'warn').mockImplementation(() => {}));
afterEach(() => void vi.restoreAllMocks());

describe('the index of conversations', () => {
  it.each([true, false])('writes its rows into the list of the store too, if it has one: %s', async (isListing) => {
    const { state, written, attempts, put } = shard({ isListing });
    await put({ id: 'a', row: row(1) });
    expect(state.get('a')).toEqual(row(1));
    await put({ id: 'a' });
    expect([state.size, attempts.length]).toEqual([0, isListing ? 2 : 0]);
    const expected = [
      ['test', 'a', row(1)],
      ['test', 'a', undefined],
    ];
    expect(written).toEqual(isListing ? expected : []);
  });

  it('repeats a write at once, and is not held up by one that fails again and again', async () => {
    const { state, written, later, put, fail } = shard({ failures: 2 });
    await put({ id: 'a', row: row(1) });
    expect([written, later]).toEqual([[['test', 'a', row(1)]], []]);
    fail(DOWN);
    await put({ id: 'a', row: row(2) });
    expect(console.warn).toHaveBeenCalledWith(
      expect.objectContaining({ event: 'list-failed', conversationId: 'a', error: expect.any(TerminalError) }),
    );
    expect(state.get('a')).toEqual(row(2));
    fail(0);
    await put({ id: 'b', row: { ...row(1), id: 'b' } });
    expect(written.at(-1)?.[1]).toBe('b');
  });

  it('writes a row again later, with longer and longer waits, until the database takes it', async () => {
    const { written, attempts, later, put, putAgain, fail } = shard({ failures: DOWN });
    await put({ id: 'a', row: row(1) });
    attempts.length = 0;
    const delays: number[] = [];
    for (let time = 0; time < 5; time += 1) delays.push(await putAgain());
    expect(delays).toEqual([1, 2, 4, 8, 10].map((minutes) => minutes * 60_000));
    expect(attempts).toEqual([1, 1, 1, 1, 1]);
    fail(0);
    await putAgain();
    expect([written, later]).toEqual([[['test', 'a', row(1)]], []]);
  });

  it.each([
    ['a later row', { id: 'a', row: row(2) }],
    ['the removal of the conversation', { id: 'a' }],
  ])('writes no row again after %s', async (_, next) => {
    const { written, later, put, putAgain, fail } = shard({ failures: DOWN });
    await put({ id: 'a', row: row(1) });
    fail(0);
    await put(next);
    await putAgain();
    expect([written, later]).toEqual([[['test', 'a', 'row' in next ? next.row : undefined]], []]);
  });

  it.each([
    ['none', []],
    ['another one that has the same id', [row(1)]],
  ])('removes a row again later, and keeps the conversation that came after it: %s', async (_, rows) => {
    const { written, later, put, putAgain, fail } = shard({ failures: DOWN });
    await put({ id: 'a' });
    fail(0);
    for (const each of rows) await put({ id: 'a', row: each });
    written.length = 0;
    await putAgain();
    expect([written.map((write) => write[2]), later]).toEqual([[undefined, ...rows], []]);
  });
});
