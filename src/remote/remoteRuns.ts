/**
 * The runs and receipts of a remote conversation. Rule: each handle and receipt is settled exactly once: by the log, by a refusal, or by
 * the end of the connection. A request that is repeated names the same message, so
 * nothing runs twice.
 */
import { entryOfMessage, type LogEntry, outputInLog, type RunOutput, runOf } from '../../machines/internal.ts';
import type { Receipt } from '../conversation/receipts.ts';
import { notBegun, RunFeed, RunHandle, type RunResult, returnedOutput, runResult } from '../conversation/run.ts';
import { RunchartError } from '../errors.ts';
import type { Live } from '../live.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import type { RemoteLog } from './remoteLog.ts';

/** The answer to a request that begins or continues a run. `termination`: the run is over, and the log has no end of it. */
export type Accepting = Promise<{ runId?: string | undefined; termination?: unknown; cause?: unknown }>;

type Item = LogEntry | Live;
type Settled = { settle(how: 'delivered' | 'returned'): void; refuse(error: RunchartError): void };

/** A run under an id that is certain once the server has answered. */
class RemoteRun extends RunHandle {
  readonly #answered: Promise<void>;
  readonly #log: RemoteLog;

  constructor(
    id: string,
    feed: RunFeed,
    { log, answered, cancel }: { log: RemoteLog; answered: Promise<void>; cancel(run: RunHandle): Promise<void> },
  ) {
    super(id, feed, cancel);
    this.#log = log;
    this.#answered = answered;
  }

  override async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    await this.#answered;
    const first = this.#log.entries.findIndex((entry) => entry.runId === this.id);
    this.since = first < 0 ? undefined : first;
    yield* { [Symbol.asyncIterator]: () => super[Symbol.asyncIterator]() };
  }
}

interface ServerOfRuns {
  cancel(run: RunHandle): Promise<void>;
  /** The log does not contain the error of a run. */
  errorOf(runId: string): Promise<RunResult['error']>;
}

/** A stop that closes the log of a process that died has no checkpoint after it. */
const LAST_ENTRY_MS = 200;

export class RemoteRuns {
  readonly #log: RemoteLog;
  readonly #feed: RunFeed;
  readonly #setTimer: Ports['setTimer'];
  readonly #server: ServerOfRuns;
  /** Runs that are not over; several calls may have the same one. */
  readonly #open = new Set<RemoteRun>();
  /** Runs that are over and whose error was requested. */
  readonly #failing = new Set<RemoteRun>();
  readonly #receipts = new Map<string, Settled>();
  #stopWaiting: () => void = () => {};

  constructor(log: RemoteLog, setTimer: Ports['setTimer'], server: ServerOfRuns) {
    this.#log = log;
    this.#setTimer = setTimer;
    this.#server = server;
    this.#feed = new RunFeed(log);
    log.listen((entry) => this.#hear(entry));
    log.beforeReset = () => this.#lose();
  }

  /** The run of a message or a resumption that was sent to the server. */
  begin(id: string, accepting: Accepting): RunHandle {
    const answered = accepting.then(
      (answer) => this.#accepted(run, answer),
      (error: RunchartError) => this.#finish(run, notBegun(run.id, error.code, error.message)),
    );
    const run: RemoteRun = new RemoteRun(id, this.#feed, {
      log: this.#log,
      answered,
      cancel: (handle) => this.#server.cancel(handle),
    });
    this.#open.add(run);
    return run;
  }

  /** A run that was not requested. */
  over(id: string, how: ReturnType<typeof returnedOutput>): RunHandle {
    const run = this.begin(id, Promise.resolve({}));
    this.#finish(run as RemoteRun, how);
    return run;
  }

  receipt(messageId: string, accepting: Promise<unknown>): Receipt {
    const delivered = new Promise<'delivered' | 'returned'>((settle, refuse) => {
      this.#receipts.set(messageId, { settle, refuse });
    });
    // Most hosts do not look at most receipts.
    delivered.catch(() => undefined);
    accepting.catch((error: RunchartError) => this.#takeReceipt(messageId)?.refuse(error));
    return { messageId, delivered };
  }

  /** No more entries arrive for these runs and messages; only the log on the server contains their outcome. Default: all. */
  end(error: RunchartError, isLost: (id: string) => boolean = () => true): void {
    this.#stopWaiting();
    for (const messageId of this.#receipts.keys()) if (isLost(messageId)) this.#takeReceipt(messageId)?.refuse(error);
    for (const run of [...this.#open, ...this.#failing])
      if (isLost(run.id)) this.#finish(run, notBegun(run.id, error.code, error.message));
  }

  /** Another log begins. It may contain requests that are under way. */
  #lose(): void {
    const ids = new Set<unknown>();
    for (const entry of this.#log.entries) {
      ids.add(entry.runId);
      if ('messageId' in entry) ids.add(entry.messageId).add(runOf(entry.messageId));
    }
    this.end(new RunchartError('not_found', 'the conversation was deleted'), (id) => ids.has(id));
  }

  #takeReceipt(messageId: string): Settled | undefined {
    const receipt = this.#receipts.get(messageId);
    this.#receipts.delete(messageId);
    return receipt;
  }

  /** The log may contain the whole run already. */
  #accepted(run: RemoteRun, answer: Awaited<Accepting>): void {
    if (run.ended) return;
    if (answer.runId !== undefined) run.id = answer.runId;
    const entries = this.#entriesOf(run);
    if (isOver(entries)) this.#finishInLog(run, entries);
    else if (answer.termination) this.#finish(run, answer as RunOutput, entries);
    else if (entries.length === 0 && this.#isReturned(run)) this.#finish(run, returnedOutput(run.id));
  }

  #entriesOf({ id }: RunHandle): LogEntry[] {
    return this.#log.entries.filter(({ runId }) => runId === id);
  }

  #isReturned({ id }: RunHandle): boolean {
    const messageId = id.slice(runOf('').length);
    return entryOfMessage(this.#log.entries, messageId)?.type === 'message-returned';
  }

  #hear(entry: LogEntry): void {
    if (entry.type === 'user-message') this.#delivered(entry);
    else if (entry.type === 'message-returned') this.#returned(entry.messageId);
    else if (entry.type === 'checkpoint' && entry.boundary === 'RunFinished') this.#over();
    else if (entry.type === 'run-stop' || entry.type === 'run-suspended') {
      this.#stopWaiting();
      this.#stopWaiting = this.#setTimer(LAST_ENTRY_MS, () => this.#over());
    }
  }

  #delivered({ messageId, runId }: Extract<LogEntry, { type: 'user-message' }>): void {
    this.#takeReceipt(messageId)?.settle('delivered');
    // A steer that had to wait belongs to the run that takes it.
    for (const run of this.#open) if (run.id === runOf(messageId) && runId !== null) run.id = runId;
  }

  #returned(messageId: string): void {
    this.#takeReceipt(messageId)?.settle('returned');
    for (const run of this.#open) if (run.id === runOf(messageId)) this.#finish(run, returnedOutput(run.id));
  }

  /** Runs whose last entry has come. */
  #over(): void {
    this.#stopWaiting();
    this.#stopWaiting = () => {};
    for (const run of this.#open) {
      const entries = this.#entriesOf(run);
      if (isOver(entries)) this.#finishInLog(run, entries);
    }
  }

  #finishInLog(run: RemoteRun, entries: readonly LogEntry[]): void {
    const output = outputInLog(run.id, entries);
    if (output.termination !== 'Error') return this.#finish(run, output, entries);
    if (!this.#open.delete(run)) return;
    this.#failing.add(run);
    void this.#server
      .errorOf(run.id)
      .catch(() => undefined)
      .then((error) => this.#finish(run, error ? { ...output, error } : output, entries));
  }

  #finish(run: RemoteRun, output: ReturnType<typeof notBegun>, entries: readonly LogEntry[] = []): void {
    this.#open.delete(run);
    this.#failing.delete(run);
    const result = runResult(output, entries, this.#log.logState, undefined);
    run.finish({ ...result, pending: [...this.#log.pending] });
  }
}

const isOver = (entries: readonly LogEntry[]): boolean =>
  entries.some(({ type }) => type === 'run-stop' || type === 'run-suspended');
