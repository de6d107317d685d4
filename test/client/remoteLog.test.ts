/** The log of a remote conversation: entries that cannot be used, answers that come late, ends, and runs that failed. */
import type { Observable } from 'rxjs';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createAgent, type LogEntry, ModelError, RunchartError } from '../../src/index.ts';
import type { Live } from '../../src/live.ts';
import { RemoteLog } from '../../src/remote/remoteLog.ts';
import { RemoteRuns } from '../../src/remote/remoteRuns.ts';
import { scripted } from '../support/scriptedReplies.ts';

let entries: readonly LogEntry[] = [];
let failed: readonly LogEntry[] = [];
async function logAfter(reply: Parameters<typeof scripted>[0][number]): Promise<readonly LogEntry[]> {
  const agent = createAgent({ model: scripted([reply]) });
  const conversation = await agent.open('c');
  await conversation.send('hi').result;
  const log = conversation.log();
  await agent.close();
  return log;
}
beforeAll(async () => {
  entries = await logAfter('one');
  failed = await logAfter(new ModelError({ code: 'bad-request', message: 'no' }));
});

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
function logOf(taken: readonly LogEntry[] = []) {
  const report = vi.fn();
  const log = new RemoteLog('c', report, (expected, cause) => new RunchartError('bad_answer', expected, { cause }));
  for (const entry of taken) log.takeEntry(copyOf(entry));
  return { log, report };
}
const overview = (length: number, status: string) =>
  ({ createdAt: 1, entries: length, status, pending: [], unsettled: [] }) as never;

describe('an entry', () => {
  it('that cannot be used is an error that names its place, and changes nothing', () => {
    const { log } = logOf(entries.slice(0, 2));
    const seen = vi.fn();
    log.log$(0).subscribe(seen);
    log.listen(seen);
    seen.mockClear();
    const next = copyOf(entries[2]) as LogEntry;
    const unusable: unknown[] = [
      { ...next, conversationId: 'other' },
      { ...next, conversationId: undefined },
      { ...next, seq: 3 },
      { ...next, seq: '2' },
      { ...next, type: 7 },
      {},
      null,
      'text',
      [],
    ];
    for (const value of unusable) {
      const taking = (): void => log.takeEntry(value);
      expect(taking).toThrow(
        expect.objectContaining({ code: 'bad_answer', message: expect.stringContaining('entry 2') }),
      );
      expect([log.entries.length, seen.mock.calls.length]).toEqual([2, 0]);
    }
    log.takeEntry(next);
    expect(log.entries).toEqual(entries.slice(0, 3));
  });

  it('that comes again is ignored, also with other content', () => {
    const { log } = logOf(entries);
    for (const entry of entries) log.takeEntry({ ...copyOf(entry), type: 'checkpoint' });
    expect(log.entries).toEqual(entries);
  });

  it('and the lists that a caller receives cannot change the log', () => {
    const { log } = logOf(entries);
    for (const entry of log.entries) expect(Object.isFrozen(entry)).toBe(true);
    const message = log.entries.find(({ type }) => type === 'user-message');
    expect(() => Object.assign((message as { content: object[] }).content, { 0: 'other' })).toThrow(TypeError);
    (log.queue as unknown[]).push('other');
    expect(log.queue).toEqual([]);
    expect(() => Object.assign(log.state, { other: 1 })).toThrow(TypeError);
  });

  it.each([
    [0, 0],
    [2, 2],
    [1.5, 2],
    [-1, 0],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ])('of the log from %d on: those from seq %d, then those that come', (from, first) => {
    const { log } = logOf(entries.slice(0, -1));
    const seen: number[] = [];
    const subscription = log.log$(from).subscribe(({ seq }) => void seen.push(seq));
    log.takeEntry(copyOf(entries.at(-1)));
    expect(seen).toEqual(entries.map(({ seq }) => seq).filter((seq) => seq >= first));
    subscription.unsubscribe();
  });
});

it('the state of the conversation begins anew with another log', () => {
  const { log } = logOf(entries.slice(0, 2));
  const changed = { ...copyOf(entries[1]), type: 'state-changed', seq: 2, writes: { k: 7 } };
  log.takeEntry(changed);
  expect(log.state).toEqual({ k: 7 });
  log.reset();
  expect(log.state).toEqual({});
});

describe('the status', () => {
  it('of an answer counts unless a signal or entry is newer', () => {
    const { log } = logOf(entries);
    const { length } = entries;
    const asked = log.statusChanges;
    log.takeOverview(overview(length, 'active'), asked);
    expect(log.status).toBe('active');
    log.takeSignal({ type: 'status', status: 'cancelling' } as Live);
    // The answer includes entries that have not arrived here, and is older than the signal.
    log.takeOverview(overview(length + 3, 'idle'), asked);
    expect(log.status).toBe('cancelling');
    log.takeOverview(overview(length + 4, 'waiting'), log.statusChanges);
    expect(log.status).toBe('waiting');
    // An answer that was overtaken.
    log.takeOverview(overview(length, 'idle'), log.statusChanges);
    expect(log.status).toBe('waiting');
  });

  it('of a sub-agent is passed on, and is not that of the conversation', () => {
    const { log } = logOf(entries);
    log.takeSignal({ type: 'status', status: 'active' });
    const asked = log.statusChanges;
    const signals: Live[] = [];
    log.live$.subscribe((signal) => void signals.push(signal));
    const within: Live[] = (['active', 'waiting', 'idle'] as const).map((status) => {
      return { type: 'status', status, path: ['c1'] };
    });
    for (const signal of within) log.takeSignal(signal);
    expect([log.status, log.statusChanges, signals]).toEqual(['active', asked, within]);
  });

  it('of another version is ignored, and each change is signalled once', () => {
    const { log } = logOf(entries);
    const signals: Live[] = [];
    log.live$.subscribe((signal) => void signals.push(signal));
    for (const status of ['active', 'active', 'odd', 7, undefined, 'idle'])
      log.takeSignal({ type: 'status', status } as Live);
    expect([log.status, signals.map((signal) => (signal as { status?: string }).status)]).toEqual([
      'idle',
      ['active', 'idle'],
    ]);
  });
});

describe('the end', () => {
  it.each(['an error', 'a close'])('by %s ends every stream in the same way, once', (how) => {
    const { log, report } = logOf(entries);
    const error = how === 'an error' ? new RunchartError('network', 'gone') : undefined;
    const ends: unknown[] = [];
    const observer = { error: (thrown: unknown) => void ends.push(thrown), complete: () => void ends.push('complete') };
    const streams: readonly Observable<unknown>[] = [log.log$(0), log.live$, log.view$];
    for (const stream of streams) {
      stream.subscribe(observer);
      // A subscriber without an error handler is no fault of the host: the connection's state contains the error.
      stream.subscribe(() => undefined);
    }
    log.takeSignal({ type: 'text-delta', runId: 'r', text: 'half' });
    log.end(error);
    log.end(new RunchartError('network', 'again'));
    expect(ends).toEqual(Array(3).fill(error ?? 'complete'));
    expect([log.status, log.inFlight]).toEqual([error ? 'error' : 'idle', null]);
    expect(report).not.toHaveBeenCalled();
  });
});

describe('the run of a steer that waited', () => {
  it('is the run that takes the message, and has its end', async () => {
    const agent = createAgent({ model: scripted(['one', 'two']) });
    const conversation = await agent.open('c');
    const { id, result } = conversation.send('hi');
    const { messageId } = conversation.steer('more');
    await result;
    const whole = conversation.log();
    await agent.close();
    const at = whole.findIndex((entry) => entry.type === 'user-message' && entry.messageId === messageId);
    const { log } = logOf(whole.slice(0, at));
    const server = { cancel: async () => undefined, errorOf: async () => undefined };
    const runs = new RemoteRuns(log, () => () => undefined, server);
    const run = runs.begin(`run_${messageId}`, Promise.resolve({ runId: undefined }));
    for (const entry of whole.slice(at)) log.takeEntry(copyOf(entry));
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'two', turns: 2 });
    expect(run.id).toBe(id);
  });
});

describe('a run that failed', () => {
  type ErrorOf = ConstructorParameters<typeof RemoteRuns>[2]['errorOf'];
  const runOfLog = (errorOf: ErrorOf) => {
    const { log } = logOf(failed);
    const asked = vi.fn(errorOf);
    const runs = new RemoteRuns(log, () => () => undefined, { cancel: async () => undefined, errorOf: asked });
    const runId = String(failed.find(({ type }) => type === 'run-started')?.runId);
    return { runs, asked, runId, run: runs.begin(runId, Promise.resolve({ runId })) };
  };

  it('has the error that the server names, which is asked for once', async () => {
    const { run, asked, runId, runs } = runOfLog(async () => ({ code: 'server', message: 'down' }));
    expect(await run.result).toMatchObject({ termination: 'Error', error: { code: 'server', message: 'down' } });
    runs.end(new RunchartError('closed', 'over'));
    expect((await run.result).error?.code).toBe('server');
    expect(asked.mock.calls).toEqual([[runId]]);
  });

  it.each<[string, ErrorOf]>([
    ['no longer knows it', async () => undefined],
    ['cannot be asked', async () => Promise.reject(new Error('lost'))],
  ])('has its end without an error where the server %s', async (_, errorOf) => {
    const { run } = runOfLog(errorOf);
    expect(await run.result).toMatchObject({ termination: 'Error', reason: 'error' });
  });

  it('ends with the connection while its error is asked for', async () => {
    const { run, runs, asked } = runOfLog(() => new Promise(() => undefined));
    await vi.waitFor(() => expect(asked).toHaveBeenCalled());
    runs.end(new RunchartError('closed', 'over'));
    expect((await run.result).error?.code).toBe('closed');
  });

  it('by its request keeps that end, whatever the server answers later', async () => {
    const { runs } = runOfLog(async () => undefined);
    let accept = (_: { runId: string }): void => undefined;
    const run = runs.begin('run-x', new Promise((resolve) => (accept = resolve)));
    runs.end(new RunchartError('closed', 'over'));
    accept({ runId: 'run-y' });
    expect((await run.result).error?.code).toBe('closed');
    expect(run.id).toBe('run-x');
  });
});
