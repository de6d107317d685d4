/**
 * The entries and signals of a conversation that another process holds, with the same folds as a conversation in this process.
 * Invariant: entries have no gap and no repetition. An entry that cannot be used changes nothing and throws. After a reset
 * everything begins anew at entry 0. A subscriber that throws affects nobody else.
 */
import { type Observable, Subject } from 'rxjs';
import {
  deepFreeze,
  type Json,
  type LogEntry,
  type Message,
  type PendingCall,
  type QueuedMessage,
} from '../../machines/internal.ts';
import { unsettledCalls } from '../conversation/run.ts';
import type { ConversationOverview } from '../conversation/served/conversationOverview.ts';
import { waitingCalls } from '../conversation/waitingCalls.ts';
import { RunchartError } from '../errors.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import { emptyFolds, foldEntry, type LogFolds } from '../log/conversationLog.ts';
import { nextEntry } from '../log/entryShape.ts';
import { guarded } from '../log/isolatedObservable.ts';
import { type ConversationView, createProjector, type Projector } from '../projector/index.ts';
import { StreamedReply } from './streamedReply.ts';

type Report = (error: unknown) => void;
/** The error for an entry that cannot be used. */
type Unusable = (expected: string, cause: unknown) => RunchartError;
type Ending = { error: RunchartError } | { error?: undefined };

const STATUSES: ReadonlySet<unknown> = new Set(['idle', 'active', 'waiting', 'cancelling', 'error']);

export class RemoteLog {
  readonly id: string;
  /** The same array also after a reset. */
  readonly entries: LogEntry[] = [];
  readonly live$: Observable<Live>;
  readonly view$: Observable<ConversationView>;
  /** Called while the entries that a reset drops are still here. */
  beforeReset: () => void = () => {};
  readonly #report: Report;
  readonly #unusable: Unusable;
  readonly #reply = new StreamedReply();
  readonly #listeners: ((entry: LogEntry) => void)[] = [];
  readonly #entries$ = new Subject<LogEntry>();
  readonly #resets$ = new Subject<void>();
  readonly #views$ = new Subject<ConversationView>();
  #folds: LogFolds = emptyFolds();
  #projector: Projector = createProjector();
  /** The calls that have sub-agents. */
  readonly #spawns = new Set<string>();
  #overview: ConversationOverview | undefined;
  #status: ConversationStatus = 'idle';
  #statusChanges = 0;
  #refreshing: Promise<void> = Promise.resolve();
  #nextRefresh: Promise<void> | undefined;
  #state: { readonly [key: string]: Json } | undefined;
  #ending: Ending | undefined;

  constructor(id: string, report: Report, unusable: Unusable) {
    this.id = id;
    this.#unusable = unusable;
    // `connection$` reports a failed connection.
    this.#report = (error) => {
      if (error !== this.#ending?.error) report(error);
    };
    this.live$ = guarded(this.#report, (subscriber) => this.#reply.signals$.subscribe(subscriber));
    this.view$ = guarded(this.#report, (subscriber) => {
      subscriber.next(this.view());
      return this.#views$.subscribe(subscriber);
    });
  }

  get log(): Pick<RemoteLog, 'entries' | 'listen'> {
    return this;
  }

  get live(): { readonly signals$: Observable<Live> } {
    return this.#reply;
  }

  get logState(): LogFolds['logState'] {
    return this.#folds.logState;
  }

  /** The active run. */
  get runId(): string | undefined {
    const { cycle, runId } = this.logState;
    return cycle === 'running' ? runId : undefined;
  }

  get inFlight(): InFlight | null {
    return this.#reply.inFlight;
  }

  get status(): ConversationStatus {
    return this.#ending?.error ? 'error' : this.#status;
  }

  /** The number of statuses that the server has reported: the answer to an older request does not change a later status. */
  get statusChanges(): number {
    return this.#statusChanges;
  }

  get owner(): string | null {
    const [first] = this.entries;
    return (first?.type === 'conversation' && first.owner) || null;
  }

  get state(): { readonly [key: string]: Json } {
    this.#state ??= Object.freeze(Object.fromEntries(this.logState.state));
    return this.#state;
  }

  get queue(): readonly QueuedMessage[] {
    return this.logState.queue.slice();
  }

  /** The waiting calls, including those of sub-agents that wait while other work runs: only the server has the latter. */
  get pending(): readonly PendingCall[] {
    const { calls, open } = this.logState;
    const waiting = waitingCalls(this.logState, this.#spawns);
    const isElsewhere = ({ path: [callId = '', inner] }: PendingCall): boolean =>
      inner !== undefined && open.has(callId) && calls.get(callId)?.status !== 'suspended';
    return [...waiting, ...(this.#overview?.pending ?? []).filter(isElsewhere)];
  }

  get unsettled(): readonly PendingCall[] {
    const within = (this.#overview?.unsettled ?? []).filter(({ path }) => path.length > 1);
    return [...unsettledCalls(this.logState), ...within];
  }

  get hasSubAgents(): boolean {
    return this.#spawns.size > 0;
  }

  view(): ConversationView {
    return this.#projector.view();
  }

  messages(): Message[] {
    return this.#folds.transcript.messages();
  }

  /** Called for each entry before a subscriber receives it. */
  listen(listener: (entry: LogEntry) => void): void {
    this.#listeners.push(listener);
  }

  log$(from: number): Observable<LogEntry> {
    return guarded(this.#report, (subscriber) => {
      const first = Math.max(0, Math.ceil(from) || 0);
      let next = first;
      // A reset during the replay makes the list shorter.
      while (next < this.entries.length && !subscriber.closed) {
        subscriber.next(this.entries[next] as LogEntry);
        next += 1;
      }
      const resets = this.#resets$.subscribe(() => {
        next = first;
      });
      const following = this.#entries$.subscribe({
        next: (entry) => {
          if (entry.seq < next) return;
          next = entry.seq + 1;
          subscriber.next(entry);
        },
        error: (error) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
      return () => {
        resets.unsubscribe();
        following.unsubscribe();
      };
    });
  }

  /** Takes an entry as it was sent. Throws the error of an entry that cannot be used. */
  takeEntry(value: unknown): void {
    const entry = this.#readEntry(value);
    if (!entry) return;
    this.entries.push(entry);
    this.#projector.push(entry);
    if (entry.type === 'sub-agent') this.#spawns.add(entry.callId);
    if (entry.type === 'state-changed') this.#state = undefined;
    this.#reply.takeEntry(entry);
    // The server's last overview includes earlier entries.
    if (entry.seq >= (this.#overview?.entries ?? 0)) this.#takeTurn(entry);
    for (const listener of this.#listeners) listener(entry);
    this.#entries$.next(entry);
  }

  /** Takes a live signal as the server sent it. A signal of another version is ignored. */
  takeSignal(value: unknown): void {
    const signal = value as Live;
    if (signal.type === 'reset' && signal.runId === '') return this.reset();
    // Not that of a sub-agent.
    if (signal.type === 'status' && !signal.path) {
      this.#statusChanges += 1;
      return this.#setStatus(signal.status);
    }
    this.#reply.takeSignal(signal);
  }

  /** The status after the beginning or the end of a run. The server's own status may arrive later than the result of the run. */
  #takeTurn(entry: LogEntry): void {
    if (entry.type === 'run-started' || entry.type === 'run-resumed') return this.#setStatus('active');
    if (entry.type !== 'checkpoint' || entry.boundary !== 'RunFinished') return;
    const { queue } = this.logState;
    // A queued followUp may begin at once, and then nothing ends in between.
    if (queue.some(({ kind }) => kind === 'followUp')) return;
    this.#statusChanges += 1;
    this.settleStatus();
  }

  /** One view for the entries that arrived together. */
  showView(): void {
    this.#views$.next(this.view());
  }

  /** Takes the overview of an answer. `statusChanges`: their number when the request was sent. */
  takeOverview(overview: ConversationOverview, statusChanges: number): void {
    // A later entry or signal is more recent.
    if (overview.entries < (this.#overview?.entries ?? 0)) return;
    this.#overview = overview;
    const isLast = statusChanges === this.#statusChanges && overview.entries > this.entries.length;
    if (isLast || overview.entries === this.entries.length) this.#setStatus(overview.status);
  }

  /**
   * Resolves when `take` has taken an overview that was asked for after this call, or has failed. It receives `statusChanges`. Calls that
   * come while an answer is on its way share the next request.
   */
  refresh(take: (statusChanges: number) => Promise<void>): Promise<void> {
    this.#nextRefresh ??= this.#refreshing.then(() => {
      this.#nextRefresh = undefined;
      this.#refreshing = take(this.#statusChanges).catch(() => undefined);
      return this.#refreshing;
    });
    return this.#nextRefresh;
  }

  /** The status according to the log alone, if no run is active. */
  settleStatus(): void {
    const { cycle, stop } = this.logState;
    if (cycle === 'running') return;
    if (cycle === 'suspended') return this.#setStatus('waiting');
    this.#setStatus(stop?.reason === 'error' ? 'error' : 'idle');
  }

  /** The connection was lost: the text streamed until now may be incomplete. */
  interrupt(): void {
    this.#reply.interrupt();
  }

  /** The server has another log under this id now, or a shorter one. */
  reset(): void {
    this.beforeReset();
    this.entries.length = 0;
    this.#folds = emptyFolds();
    this.#projector = createProjector();
    this.#spawns.clear();
    this.#state = undefined;
    this.#overview = undefined;
    this.#setStatus('idle');
    this.#resets$.next();
    this.#reply.takeSignal({ type: 'reset', runId: '' });
  }

  /** Ends all streams, with an error or by a close. */
  end(error?: RunchartError): void {
    if (this.#ending) return;
    this.#ending = error ? { error } : {};
    for (const subject of [this.#entries$, this.#views$]) {
      if (error) subject.error(error);
      else subject.complete();
    }
    this.#reply.end(error);
  }

  #setStatus(status: ConversationStatus): void {
    if (status === this.#status || !STATUSES.has(status)) return;
    this.#status = status;
    this.#reply.takeSignal({ type: 'status', status });
  }

  #readEntry(value: unknown): LogEntry | undefined {
    const { seq, conversationId } = Object(value) as Partial<LogEntry>;
    // The server may send items again that were on their way when the connection was lost.
    if (typeof seq === 'number' && seq < this.entries.length) return undefined;
    try {
      if (conversationId !== this.id) throw new RunchartError('corrupt', `it is of ${String(conversationId)}`);
      const entry = deepFreeze(nextEntry(value as LogEntry, this.id, this.entries.length));
      foldEntry(this.#folds, entry);
      return entry;
    } catch (error) {
      throw this.#unusable(`entry ${this.entries.length} of conversation "${this.id}"`, error);
    }
  }
}
