/**
 * The runs of a conversation as handles, and the receipts of its messages. Rule: a handle and a receipt are settled by
 * what the log says and by nothing else, each exactly once.
 */
import type { Subscription } from 'rxjs';
import { type LogEntry, type RunOutput, runOf } from '../machines/index.ts';
import type { Act } from './acts.ts';
import type { Receipt } from './conversation.ts';
import type { Live } from './live.ts';
import { RunHandle, type RunSource } from './run.ts';
import { runResult } from './runResult.ts';
import type { Runtime } from './runtime.ts';

type Sent = Extract<Act, { type: 'message.sent' }>;
type Take = (item: LogEntry | Live) => void;
const GO_ON = 'Go on where you stopped.';

export class Runs implements RunSource {
  readonly #runtime: Runtime;
  readonly #handles = new Map<string, RunHandle>();
  readonly #receipts = new Map<string, (how: 'delivered' | 'returned') => void>();
  readonly #followers = new Map<string, Set<Take>>();
  /** Messages that wait for their turn, by run. */
  readonly #waiting = new Map<RunHandle, Sent>();
  /** Those who wait for a cycle that is being closed. */
  #closing: (() => void)[] = [];
  /** Live signals are taken only while somebody follows a run. */
  #signals: Subscription | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    runtime.log.listen((entry) => this.#hear(entry));
    runtime.onEnded = (output) => this.#ended(output);
    runtime.onStatus = (status) => {
      if (status !== 'cancelling') for (const resolve of this.#closing.splice(0)) resolve();
    };
  }

  /** The run under way; a handle that is already over where there is none. */
  get current(): RunHandle {
    return this.open(this.#runtime.known.runId);
  }

  open(runId: string): RunHandle {
    const known = this.#handles.get(runId);
    if (known) return known;
    const handle = new RunHandle(runId, this);
    this.#handles.set(runId, handle);
    return handle;
  }

  receipt(messageId: string): Receipt {
    const delivered = new Promise<'delivered' | 'returned'>((resolve) => this.#receipts.set(messageId, resolve));
    return { messageId, delivered };
  }

  send(message: Sent, handle: RunHandle, signal?: AbortSignal): void {
    const act: Sent = signal?.aborted ? { ...message, aborted: true } : message;
    this.#waiting.set(handle, act);
    if (signal && !signal.aborted) {
      const cancel = (): void => void this.cancel(handle);
      signal.addEventListener('abort', cancel, { once: true });
      handle.onEnd(() => signal.removeEventListener('abort', cancel));
    }
    const delivered = (): boolean => this.#waiting.delete(handle);
    // Where the message could not be stored its run ends with the error; nothing else is to be told.
    this.#runtime.act(act).then(delivered, delivered);
  }

  /** Continues the last cycle, or promotes a queued followUp, or has nothing to do. */
  resume(id: string): RunHandle {
    const { known, transcript, status } = this.#runtime;
    const unfinished = known.cycle === 'stopped' && known.stop?.reason !== 'completed';
    const open = [...known.calls.values()].some((call) => call.settled === 'retry' && call.status === 'ended');
    if (status === 'waiting' || unfinished || open || known.open.size > 0) {
      const handle = this.open(runOf(id));
      const continuation = transcript.endsWithAssistant() && status !== 'waiting' ? { continuation: GO_ON } : {};
      this.#put({ type: 'resume.requested', runId: handle.id, ...continuation });
      return handle;
    }
    const next = known.queue.find(({ kind }) => kind === 'followUp');
    if (!next) return this.nothing(runOf(id));
    const handle = this.open(runOf(next.messageId));
    this.#put({ type: 'promotion.requested' });
    return handle;
  }

  /** A run that had nothing to do. */
  nothing(runId: string): RunHandle {
    const handle = this.open(runId);
    this.#finish(handle, { runId, termination: 'NaturalEnd', cause: 'end_turn', durable: true });
    return handle;
  }

  /** A run that could not begin. */
  over(code: string, message: string): RunHandle {
    const handle = new RunHandle('', this);
    const output: RunOutput = {
      runId: '',
      termination: 'Error',
      cause: code,
      error: { code, message },
      durable: false,
    };
    this.#finish(handle, output);
    return handle;
  }

  /** Ends a run, or without one whatever there is to end; resolves when its stop is durable. */
  async cancel(handle?: RunHandle): Promise<void> {
    if (handle?.ended) return;
    const messageId = handle && this.#queuedAs(handle);
    if (messageId !== undefined) {
      await this.#runtime.act({ type: 'message.returned', messageId, why: 'cancelled' }).catch(() => undefined);
      return;
    }
    const waiting = handle && this.#waiting.get(handle);
    if (handle && waiting && handle.since === undefined) {
      waiting.aborted = true;
      await handle.result;
      return;
    }
    const busy = this.#runtime.status !== 'waiting';
    const target = handle ?? (busy ? this.current : undefined);
    const stopped = new Promise<void>((resolve) => {
      if (target) target.onEnd(resolve);
      else this.#closing.push(resolve);
    });
    this.#runtime.cancel();
    await stopped;
  }

  close(): void {
    for (const resolve of this.#receipts.values()) resolve('returned');
    this.#receipts.clear();
    for (const handle of [...this.#handles.values()]) {
      this.#finish(handle, { runId: handle.id, termination: 'Cancelled', cause: 'cancelled', durable: true });
    }
  }

  entriesOf({ id, since, until }: RunHandle): readonly LogEntry[] {
    if (since === undefined) return [];
    return this.#runtime.log.entries.slice(since, until).filter((entry) => entry.runId === id);
  }

  follow({ id }: RunHandle, take: Take): () => void {
    const followers = this.#followers.get(id) ?? new Set<Take>();
    this.#followers.set(id, followers);
    followers.add(take);
    this.#signals ??= this.#runtime.live.subscribe((signal) => {
      if ('runId' in signal) this.#tell(signal.runId, signal);
    });
    return () => {
      followers.delete(take);
      if (followers.size === 0) this.#followers.delete(id);
      if (this.#followers.size > 0) return;
      this.#signals?.unsubscribe();
      this.#signals = undefined;
    };
  }

  /** The queued message that would start this run. */
  #queuedAs(handle: RunHandle): string | undefined {
    return this.#runtime.known.queue.find(({ messageId }) => runOf(messageId) === handle.id)?.messageId;
  }

  #tell(runId: string, item: LogEntry | Live): void {
    const followers = this.#followers.get(runId);
    if (followers) for (const take of followers) take(item);
  }

  #hear(entry: LogEntry): void {
    const { runId } = entry;
    if (entry.type === 'run-started' || entry.type === 'run-resumed') this.open(runId ?? '').since = entry.seq;
    if (runId !== null) this.#tell(runId, entry);
    if (entry.type !== 'user-message' && entry.type !== 'message-returned') return;
    const returned = entry.type === 'message-returned';
    this.#receipts.get(entry.messageId)?.(returned ? 'returned' : 'delivered');
    this.#receipts.delete(entry.messageId);
    const handle = returned ? this.#handles.get(runOf(entry.messageId)) : undefined;
    if (handle) {
      this.#finish(handle, { runId: handle.id, termination: 'Cancelled', cause: 'cancelled', durable: true });
    }
  }

  #ended(output: RunOutput): void {
    this.#finish(this.open(output.runId), output);
  }

  /** What cannot be stored ends the run that it starts; that run tells. */
  #put(act: Act): void {
    this.#runtime.act(act).catch(() => undefined);
  }

  #finish(handle: RunHandle, output: RunOutput): void {
    handle.until = this.#runtime.log.entries.length;
    this.#handles.delete(handle.id);
    this.#waiting.delete(handle);
    handle.finish(runResult(output, this.entriesOf(handle), this.#runtime.known));
  }
}
