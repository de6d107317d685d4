/**
 * The connection of a remote conversation: its events and its acts. Invariant: an act is answered once this log contains all entries that
 * the server had written at the answer, so a caller reads its own writes.
 */
import { BehaviorSubject, type Observable } from 'rxjs';
import type { ConversationOverview } from '../conversation/served/conversationOverview.ts';
import type { RunchartError } from '../errors.ts';
import { guarded } from '../log/isolatedObservable.ts';
import type { RemoteActName, RemoteAnswer, RemoteLink } from '../remote/remoteConversation.ts';
import { RemoteLog } from '../remote/remoteLog.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { EventReader, type EventTarget, RESTART } from './eventReader.ts';
import { badAnswer, closedClient, type ServerCalls } from './serverCalls.ts';

/**
 * The connection to the server. `failed`: no repetition helps, and `error` contains the reason. With `connecting`, it contains the reason
 * why the last connection was lost.
 */
export interface ConnectionState {
  /** The state of the connection. */
  readonly state: 'connecting' | 'open' | 'failed' | 'closed';
  /** Why the connection failed or was lost. */
  readonly error?: RunchartError;
}

interface ConnectionOptions {
  id: string;
  calls: ServerCalls;
  silenceMs: number;
  setTimer: Ports['setTimer'];
  newId: Ports['newId'];
  report(error: unknown): void;
}

export class RemoteConnection implements EventTarget, RemoteLink {
  readonly log: RemoteLog;
  readonly state$: Observable<ConnectionState>;
  readonly #options: ConnectionOptions;
  readonly #state = new BehaviorSubject<ConnectionState>({ state: 'connecting' });
  readonly #abort = new AbortController();
  /** Acts that wait until the log that began at this time has a certain number of entries. */
  #waiting: { createdAt?: number | undefined; entries: number; resolve(): void }[] = [];
  #reading: Promise<void> = Promise.resolve();
  #hasNewEntries = false;
  #ended: (error: RunchartError) => void = () => {};

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.log = new RemoteLog(options.id, options.report, badAnswer);
    this.state$ = guarded(options.report, (subscriber) => this.#state.subscribe(subscriber));
  }

  get state(): ConnectionState {
    return this.#state.value;
  }

  get wanted(): number {
    return this.log.entries.length;
  }

  begin(): void {
    const { calls, silenceMs, setTimer } = this.#options;
    const { signal } = this.#abort;
    const reader = new EventReader(this, { calls, silenceMs, setTimer, signal, path: `${this.#path}/events?overview` });
    this.#reading = reader.read();
  }

  /** Resolves when the log, or another log that has replaced it, has this number of entries, or when the connection has ended. */
  upTo(entries: number, createdAt?: number): Promise<void> {
    if (this.log.entries.length >= entries || this.#abort.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push({ createdAt, entries, resolve }));
  }

  /** Asks the server for something; resolves with its answer when the effect is in this log. */
  async act(name: RemoteActName, body: object): Promise<RemoteAnswer> {
    const { signal } = this.#abort;
    if (signal.aborted) throw this.state.error ?? closedClient();
    // The server acts once on a request with this id.
    const path = `${this.#path}/${name}?overview&request=${encodeURIComponent(this.#options.newId())}`;
    const changes = this.log.statusChanges;
    const answer = await this.#options.calls.call('POST', path, { body, signal });
    await this.#takeAnswer(answer, changes);
    return answer as RemoteAnswer;
  }

  /** The error of a failed run; undefined if the server no longer has it. */
  async errorOf(runId: string): Promise<{ code: string; message: string } | undefined> {
    const { signal } = this.#abort;
    const path = `${this.#path}/runs/${encodeURIComponent(runId)}`;
    const result = await this.#options.calls.call('GET', path, { signal });
    const { error } = result as { error?: unknown };
    if (!isRecord(error) || typeof error.code !== 'string' || typeof error.message !== 'string') return undefined;
    return { code: error.code, message: error.message };
  }

  async close(): Promise<void> {
    this.#end({ state: 'closed' });
    await this.#reading;
  }

  whenEnded(act: (error: RunchartError) => void): void {
    this.#ended = act;
  }

  connected(): void {
    this.#state.next({ state: 'open' });
  }

  lost(error: RunchartError | undefined): void {
    this.log.interrupt();
    this.#state.next({ state: 'connecting', ...(error && { error }) });
  }

  failed(error: RunchartError): void {
    this.#end({ state: 'failed', error });
  }

  take(event: string, value: unknown): void {
    if (event === 'overview') return this.#begun(overviewIn(value));
    if (event === 'live') {
      this.log.takeSignal(value);
      // After a failure, the next connection begins with an overview.
      if (this.log.hasSubAgents && tellsOfWaiting(value))
        void this.log.refresh((changes) => this.#takeCurrent(changes));
      return;
    }
    const { length } = this.log.entries;
    this.log.takeEntry(value);
    this.#hasNewEntries ||= this.log.entries.length > length;
  }

  flush(): void {
    if (this.#hasNewEntries) this.log.showView();
    this.#hasNewEntries = false;
    const { length } = this.log.entries;
    this.#waiting = this.#waiting.filter(({ entries, resolve }) => {
      if (entries <= length) resolve();
      return entries > length;
    });
  }

  get #path(): string {
    return `/conversations/${encodeURIComponent(this.log.id)}`;
  }

  /** The first event of a connection. */
  #begun(overview: ConversationOverview): void {
    const { createdAt, entries } = overview;
    for (const each of this.#waiting) if (each.createdAt !== createdAt) Object.assign(each, { createdAt, entries });
    if (this.#isOther(overview)) {
      this.log.reset();
      throw RESTART;
    }
    this.log.takeOverview(overview, this.log.statusChanges);
  }

  async #takeAnswer(answer: unknown, changes: number): Promise<void> {
    const overview = overviewIn((answer as { overview?: unknown }).overview);
    await this.upTo(overview.entries, overview.createdAt);
    // The status of an earlier log does not apply to this one.
    if (!this.#isOther(overview)) this.log.takeOverview(overview, changes);
  }

  /** The overview is that of another log under this id. */
  #isOther({ createdAt }: ConversationOverview): boolean {
    const [first] = this.log.entries;
    return first?.type === 'conversation' && first.createdAt !== createdAt;
  }

  /** While other work runs, only the server has the waiting calls of sub-agents. */
  async #takeCurrent(changes: number): Promise<void> {
    const { signal } = this.#abort;
    await this.#takeAnswer(await this.#options.calls.call('GET', `${this.#path}?overview`, { signal }), changes);
  }

  #end(state: ConnectionState): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#state.next(state);
    this.#state.complete();
    this.log.end(state.error);
    for (const { resolve } of this.#waiting.splice(0)) resolve();
    this.#ended(state.error ?? closedClient());
  }
}

const isRecord = (value: unknown): value is { [key: string]: unknown } => typeof value === 'object' && value !== null;

/** The overview as the server sent it. Throws RunchartError `bad_answer`. */
export function overviewIn(value: unknown): ConversationOverview {
  if (isRecord(value) && Array.isArray(value.pending) && Array.isArray(value.unsettled)) {
    const { createdAt, entries, status } = value;
    if (typeof createdAt === 'number' && typeof entries === 'number' && typeof status === 'string')
      return value as unknown as ConversationOverview;
  }
  throw badAnswer('the overview of a conversation; server and client must have the same version of runchart');
}

/** The progress of a call whose sub-agents wait. */
const tellsOfWaiting = (signal: unknown): boolean =>
  isRecord(signal) && signal.type === 'tool-progress' && isRecord(signal.update) && 'waiting' in signal.update;
