/**
 * The runs of a conversation as handles, and the receipts of its messages. Rule: only the log settles a handle or a receipt, each exactly
 * once. The chart alone determines which run is active.
 */
import {
  acceptMessage,
  entryOfMessage,
  GO_ON_STOPPED,
  isUnfinished,
  type LogEntry,
  outputInLog,
  type QueuedMessage,
  type Refusal,
  type RunOutput,
  type RunPlace,
  runOf,
  type StoredPart,
} from '../../machines/internal.ts';
import { AgentBusyError, LimitError } from '../errors.ts';
import type { Answer, MessageCommand, StartingCommand } from '../runtime/commands.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Receipt, Receipts, Returns } from './receipts.ts';
import { notBegun, nothingDone, RunFeed, RunHandle, returnedOutput, runResult } from './run.ts';
import type { SendOptions } from './sendOptions.ts';

export interface SentMessage {
  run: RunHandle;
  receipt: Receipt;
}

export class Runs {
  readonly #runtime: Runtime;
  readonly #feed: RunFeed;
  readonly #handles = new Map<string, RunHandle>();
  readonly #receipts = new Receipts(this);
  readonly #returns: Returns;
  /** Runs that were merged into another run. */
  #joined: WeakMap<RunHandle, RunHandle> | undefined;
  /** Messages under ids of the host's own, until their runs are over; from then on the log has them, or they were not accepted. */
  readonly #named = new Map<string, SentMessage>();

  /** The last run that failed: the log does not contain its error. */
  #failed: RunHandle | undefined;

  /** The number of cancels that began while no other was under way. */
  #cancels = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    runtime.log.listen((entry) => this.#hear(entry));
    this.#feed = new RunFeed(runtime);
    // V8 makes a function that is written where it is assigned among its old objects: the whole conversation would stay
    // until the next full collection.
    const ended = (output: RunOutput): void => {
      const handle = this.open(output.runId);
      if (handle.since === undefined) void this.#returns.returnUnbegun(output);
      this.#finish(handle, output);
    };
    runtime.onEnded = ended;
    this.#returns = new Returns(runtime, this.#receipts, (output) => {
      const handle = this.#handles.get(output.runId);
      if (handle) this.#finish(handle, output);
    });
  }

  /** The active run, or else the requested run that starts next. */
  get current(): RunHandle | undefined {
    const { runId = this.#runtime.commands.nextRunId } = this.#runtime;
    return runId === undefined ? undefined : this.open(runId);
  }

  open(runId: string): RunHandle {
    const existing = this.#handles.get(runId);
    if (existing) return existing;
    const handle = this.#made(runId);
    this.#handles.set(runId, handle);
    return handle;
  }

  receipt(messageId: string): Receipt {
    return this.#receipts.open(messageId);
  }

  /** Returns the run of the message. A steer belongs to the active run; any other message starts its own run. */
  send(message: MessageCommand, signal?: AbortSignal, attachments?: Promise<StoredPart[]>): RunHandle {
    const { messageId, kind } = message;
    // A message whose signal is already aborted joins no other run.
    const steered = kind === 'steer' && !signal?.aborted ? this.current : undefined;
    const handle = steered ?? this.open(runOf(messageId));
    if (!steered) this.#runtime.workObserver?.requested(handle.id);
    // The caller of a steer does not own the run. Its signal only withdraws the message, while the message waits.
    handle.bindSignal(signal, () => void (steered ? this.#takeBack(message) : this.cancel(handle)));
    const command = signal?.aborted ? { ...message, withdrawn: true } : message;
    this.#runtime.submit(command, attachments).then(
      ({ outcome }) => {
        if (outcome === 'returned') this.#returns.returned(messageId);
      },
      (error: unknown) => {
        if (steered) void this.#receipts.rejectMessage(messageId, error, handle, this.#runtime);
        else void this.#returns.rejectMessage(handle, messageId, error);
      },
    );
    return handle;
  }

  /** Keeps the answer for a repetition of this message. */
  keep(message: SentMessage): SentMessage {
    const { messageId } = message.receipt;
    this.#named.set(messageId, message);
    message.run.onFinished(() => void this.#forget(messageId));
    return message;
  }

  /** A run that a cancel ends may end before the message is stored. Until then the log does not say whether it has the message. */
  async #forget(messageId: string): Promise<void> {
    const { commands, log } = this.#runtime;
    if (!commands.isIdle) await commands.allAnswered();
    if (log.hasPendingAppend) await this.#runtime.settled();
    this.#named.delete(messageId);
  }

  /** The answer to the message with this id; undefined for a new message. */
  repeated(messageId: string): SentMessage | undefined {
    const named = this.#named.get(messageId);
    if (named) return named;
    const entry = entryOfMessage(this.#runtime.log.entries, messageId);
    if (!entry) return undefined;
    if (entry.type === 'user-message') {
      const receipt = { messageId, delivered: Promise.resolve('delivered' as const) };
      return { run: this.ofLog(entry.runId ?? ''), receipt };
    }
    if (entry.type === 'message-queued') {
      const steered = entry.kind === 'steer' ? this.current : undefined;
      return { run: steered ?? this.open(runOf(messageId)), receipt: this.#receipts.open(messageId) };
    }
    const run = this.#made(runOf(messageId));
    this.#finish(run, returnedOutput(run.id));
    return { run, receipt: { messageId, delivered: Promise.resolve('returned' as const) } };
  }

  /** The run with this id: active, over, or waiting in the queue. */
  ofLog(runId: string): RunHandle {
    const isToCome = this.#handles.has(runId) || this.#queuedFor({ id: runId }) !== undefined;
    if (runId === this.#runtime.runId || isToCome) return this.open(runId);
    if (this.#failed?.id === runId) return this.#failed;
    const { entries } = this.#runtime.log;
    const run = this.#made(runId);
    run.since = entries.findIndex((entry) => entry.runId === runId);
    this.#finish(run, outputInLog(runId, this.#feed.entriesOf(run)));
    return run;
  }

  /** The run of this id, if there is one already. */
  begun(runId: string): RunHandle | undefined {
    const isKnown = this.#handles.has(runId) || this.#runtime.log.entries.some((entry) => entry.runId === runId);
    return isKnown ? this.ofLog(runId) : undefined;
  }

  /** Continues the last cycle, or promotes a queued followUp, or has nothing to do. */
  resume(id: string): RunHandle {
    const { current } = this;
    if (current) return current;
    const { logState, status } = this.#runtime;
    if (status === 'waiting' || isUnfinished(logState)) {
      const runId = runOf(id);
      // The log decides at the delivery whether the model receives this text.
      return this.#start(runId, { type: 'resume.requested', runId, continuation: GO_ON_STOPPED });
    }
    // Where a store has lost a promotion, only the log has the message.
    const next = logState.queue.find(({ kind }) => kind === 'followUp');
    if (next) return this.#start(runOf(next.messageId), { type: 'promotion.requested', messageId: next.messageId });
    const handle = this.open(runOf(id));
    this.#finish(handle, nothingDone(handle.id));
    return handle;
  }

  /** A run that could not begin. */
  over(code: string, message: string): RunHandle {
    const handle = this.#made('');
    this.#finish(handle, notBegun('', code, message));
    return handle;
  }

  /** Ends a run, also one that has not begun; resolves when its stop is durable. */
  async cancel(wanted: RunHandle): Promise<void> {
    const handle = this.#joined?.get(wanted) ?? wanted;
    if (handle.ended) return;
    const { commands } = this.#runtime;
    const place = commands.placeOf(handle.id);
    this.#runtime.giveUp({ runId: handle.id });
    if (place === 'onItsWay') return void (await handle.result);
    const queued = this.#queuedFor(handle);
    if (queued) await this.#returns.takeBack(queued.messageId);
    // The message may have been promoted before it was returned.
    if (commands.placeOf(handle.id) === 'active') await this.cancelCurrent();
  }

  /** Ends the active run or the waiting cycle. If the store fails, the run's result reports it, and a waiting cycle continues to wait. */
  async cancelCurrent(): Promise<void> {
    const { current } = this;
    const cancelled = this.#runtime.cancel().catch(() => undefined);
    await (current ? current.result : cancelled);
  }

  /** The queue is returned, and an active run ends. Undefined where the store refused the returned messages. */
  async closeCurrent(): Promise<Answer['outcome'] | undefined> {
    const { current } = this;
    const answer = await this.#runtime.close().catch(() => undefined);
    const outcome = answer?.outcome;
    if (outcome === 'cancelled' || outcome === 'joined') await current?.result;
    return outcome;
  }

  /** Ends the active run, the run that starts next, and the waiting cycle. Resolves when all of them have ended. */
  async cancelAll(): Promise<void> {
    // A cancel during another one waits for the same end.
    if (!this.#runtime.isCancelling) this.#cancels += 1;
    const { current } = this;
    const cancel = this.#cancels;
    this.#runtime.giveUp('cancel');
    const place = current && this.#runtime.commands.placeOf(current.id);
    const ended = !current || place === 'active' ? this.cancelCurrent() : this.#cancelNext(current, place);
    const uncancelled = this.#runtime.uncancelled();
    await ended;
    await uncancelled;
    // This cancel does not wait for work that a later cancel ends.
    if (cancel === this.#cancels) await this.#runtime.uncancelled();
  }

  /** The run that starts next was given up. */
  async #cancelNext(next: RunHandle, place: RunPlace | undefined): Promise<void> {
    // A withdrawn message or resumption leaves its cycle waiting, so the cycle is cancelled too.
    if (this.#runtime.status === 'waiting') await this.#runtime.cancel().catch(() => undefined);
    // A followUp stays in the queue if its promotion is given up. Its run starts later.
    if (place !== 'queued') await next.result;
  }

  /** `silence`: the error of a store that did not answer. */
  close(silence?: unknown): void {
    this.#returns.close([...this.#handles.values()], silence);
  }

  #made(runId: string): RunHandle {
    return new RunHandle(runId, this.#feed, (handle) => this.cancel(handle));
  }

  /** The queued message that will start this run. */
  #queuedFor({ id }: Pick<RunHandle, 'id'>): QueuedMessage | undefined {
    return this.#runtime.queue.find(({ messageId }) => runOf(messageId) === id);
  }

  #takeBack(message: MessageCommand): Promise<void> {
    this.#runtime.giveUp({ runId: runOf(message.messageId) });
    return this.#returns.withdraw(message.messageId);
  }

  #start(runId: string, command: StartingCommand): RunHandle {
    const handle = this.open(runId);
    this.#runtime.workObserver?.requested(runId);
    const check = (answer?: Answer): void => this.#check(handle, answer);
    this.#runtime.submit(command).then(check, () => check());
    return handle;
  }

  /** Another command may have come first: then nothing is left to do, or another run does it. */
  #check(handle: RunHandle, answer: Answer | undefined): void {
    if (handle.ended || handle.since !== undefined) return;
    if (this.#queuedFor(handle)) return;
    const { current } = this;
    if (answer?.outcome === 'returned') this.#finish(handle, returnedOutput(handle.id));
    else if (!current) this.#finish(handle, nothingDone(handle.id));
    else if (current !== handle) this.#join(handle, current);
  }

  #join(handle: RunHandle, other: RunHandle): void {
    this.#handles.delete(handle.id);
    this.#runtime.workObserver?.withdrawn(handle.id);
    this.#joined ??= new WeakMap();
    this.#joined.set(handle, other);
    void other.result.then((result) => handle.finish(result));
  }

  #hear(entry: LogEntry): void {
    if (entry.type === 'message-returned') this.#returns.returned(entry.messageId);
    else if (entry.type === 'run-started' || entry.type === 'run-resumed' || entry.type === 'tool-started') {
      const run = this.#living(entry.runId);
      // The log contains no start of a run that only retries calls.
      if (run) run.since ??= entry.seq;
    } else if (entry.type === 'user-message') {
      this.#receipts.settle(entry.messageId, 'delivered');
      // A steer that had to wait belongs to the run that takes it.
      const own = entry.kind === 'steer' ? this.#handles.get(runOf(entry.messageId)) : undefined;
      const run = own && this.#living(entry.runId);
      if (run) this.#join(own, run);
      else if (own) this.#finish(own, returnedOutput(own.id));
    }
  }

  /** An abandoned run may have ended before its entries are stored. */
  #living(runId: string | null): RunHandle | undefined {
    return runId !== null && runId === this.#runtime.runId ? this.open(runId) : this.#handles.get(runId ?? '');
  }

  #finish(handle: RunHandle, output: RunOutput): void {
    const { logState, log, subAgents, workObserver } = this.#runtime;
    handle.until = log.entries.length;
    this.#handles.delete(handle.id);
    if (output.error) this.#failed = handle;
    // The error may be a store's own, which nothing has redacted.
    const { error } = output;
    const end = error ? { ...output, error: { ...error, message: log.redact(error.message) } } : output;
    const result = runResult(end, this.#feed.entriesOf(handle), logState, subAgents);
    workObserver?.ended(result);
    handle.finish(result);
  }
}

/** The kind of a message that is sent now. Throws AgentBusyError or LimitError if it is refused. */
export function acceptedAs(
  { commands: { standing }, queue, queueLength }: Runtime,
  kind: SendOptions['kind'] | undefined,
  whileSuspended: SendOptions['whileSuspended'] | undefined,
): 'direct' | 'steer' | 'followUp' {
  // A message that was just delivered or returned keeps its place in the queue until the log contains that.
  const current = { ...standing, queued: standing.queued - queue.length + queueLength };
  const accepted = acceptMessage(current, { kind, whileSuspended });
  if (!('refused' in accepted)) return accepted.kind;
  if (accepted.refused !== 'full') throw new AgentBusyError(...BUSY[accepted.refused]);
  throw new LimitError(`the queue holds ${standing.policies.limits.queue} messages (policies.limits.queue)`);
}

const BUSY: { readonly [refusal in Exclude<Refusal, 'full'>]: readonly [code: AgentBusyError['code'], why: string] } = {
  busy: ['agent_busy', 'agent is busy: cancel() the run, or use steer() or followUp()'],
  cancelling: ['cancellation_in_progress', 'cancellation in progress: wait for cancel() to resolve'],
  suspended: ['agent_busy', 'agent is busy: a call waits for a decision; decide() it and resume(), or cancel()'],
};
