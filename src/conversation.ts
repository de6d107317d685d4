/**
 * The public face of one conversation. Rule: every verb becomes an act that is judged in order; what it answers is
 * true once it is durable; nothing accepted is lost.
 */
import type { Observable } from 'rxjs';
import {
  type Decision,
  type DecisionReceipt,
  type Json,
  type LogEntry,
  type Message,
  type PendingCall,
  type QueuedMessage,
  runOf,
  type Settlement,
} from '../machines/index.ts';
import { type Content, storedContent } from './content.ts';
import { AgentBusyError, DecisionRefusedError, LimitError, RunchartError } from './errors.ts';
import { guarded } from './guard.ts';
import { readDecision } from './inbox.ts';
import type { ConversationStatus, Live } from './live.ts';
import type { Policies } from './options.ts';
import { type ConversationView, createProjector } from './projector/index.ts';
import type { Run, RunHandle } from './run.ts';
import { pendingCalls } from './runResult.ts';
import { Runs } from './runs.ts';
import type { Runtime } from './runtime.ts';

/** What became of a queued message; resolves once. */
export interface Receipt {
  readonly messageId: string;
  readonly delivered: Promise<'delivered' | 'returned'>;
}

export interface ConversationOptions {
  id: string;
  cwd: string;
  runtime: Runtime;
  policies: Policies;
  newId(): string;
  authorize: ((decision: Decision, call: PendingCall) => boolean | Promise<boolean>) | undefined;
  closed(): void;
}

export class Conversation {
  readonly id: string;
  readonly cwd: string;
  readonly live$: Observable<Live>;
  readonly view$: Observable<ConversationView>;
  readonly #options: ConversationOptions;
  readonly #runtime: Runtime;
  readonly #runs: Runs;
  #projector: ReturnType<typeof createProjector> | undefined;
  #closed = false;

  constructor(options: ConversationOptions) {
    const { runtime } = options;
    this.id = options.id;
    this.cwd = options.cwd;
    this.#options = options;
    this.#runtime = runtime;
    this.#runs = new Runs(runtime);
    this.live$ = guarded(runtime.observerFailed, (subscriber) => runtime.live.subscribe(subscriber));
    this.view$ = guarded(runtime.observerFailed, (subscriber) => {
      subscriber.next(this.view());
      return runtime.log.stream(runtime.log.entries.length, runtime.observerFailed).subscribe({
        next: () => subscriber.next(this.view()),
        complete: () => subscriber.complete(),
      });
    });
  }

  get status(): ConversationStatus {
    const { status } = this.#runtime;
    return this.#runtime.expecting && (status === 'idle' || status === 'error') ? 'active' : status;
  }

  /** What tools and plugins wrote with `state`; frozen. */
  get state(): { readonly [key: string]: Json } {
    return this.#runtime.state;
  }

  /** Suspended and undecided. */
  get pending(): readonly PendingCall[] {
    return pendingCalls(this.#runtime.known);
  }

  /** Calls whose outcome is unknown and not settled. */
  get unsettled(): readonly PendingCall[] {
    const { unsettled, calls } = this.#runtime.known;
    return [...unsettled].flatMap((callId) => {
      const record = calls.get(callId);
      if (!record) return [];
      const { name, args, suspension } = record;
      return [{ callId, name, args, reason: 'unknown', suspension, path: [callId] }];
    });
  }

  get queue(): readonly QueuedMessage[] {
    return this.#runtime.known.queue.slice();
  }

  /** Sends a message. Throws AgentBusyError by policy, LimitError where the queue is full. */
  send(content: Content, options: { signal?: AbortSignal; kind?: 'steer' | 'followUp' } = {}): Run {
    this.#mustBeOpen();
    const stored = storedContent(content);
    const kind = options.kind ?? this.#kindNow();
    const { handle } = this.#put(stored, kind, options.signal);
    return handle;
  }

  /** A message for the run under way: it is delivered before its next model call. */
  steer(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(storedContent(content), 'steer').receipt;
  }

  /** A message for after the work under way: it becomes the next request. */
  followUp(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(storedContent(content), 'followUp').receipt;
  }

  /** Makes a decision durable, then answers. Rejects with InvalidDecisionError, DecisionRefusedError or LimitError. */
  async decide(decision: Decision): Promise<DecisionReceipt> {
    this.#mustBeOpen();
    const read = readDecision(decision);
    const { authorize, policies } = this.#options;
    const record = this.#runtime.known.calls.get(read.callId);
    if (record && authorize) {
      const { callId, name, args, reason, suspension } = record;
      const allowed = await authorize(read, { callId, name, args, reason, suspension, path: [callId] });
      if (allowed !== true)
        throw new DecisionRefusedError(`authorize refused the decision on ${callId}; nothing was changed`);
    }
    if (record && record.decisions.size >= policies.limits.decisions) {
      throw new LimitError(`a call takes at most ${policies.limits.decisions} decisions (policies.limits.decisions)`);
    }
    return (await this.#runtime.act({ type: 'decision.proposed', decision: read })) as DecisionReceipt;
  }

  /** Continues what waits or was interrupted, in the same cycle. Never throws. */
  resume(): Run {
    if (this.#closed) return this.#runs.over('closed', 'the conversation is closed');
    if (this.status === 'active' || this.status === 'cancelling') return this.#runs.current;
    return this.#runs.resume(this.#options.newId());
  }

  /** Settles a call whose outcome is unknown after a crash. */
  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    this.#mustBeOpen();
    return (await this.#runtime.act({ type: 'settlement.proposed', callId, how })) as 'applied' | 'unknown';
  }

  /** Ends the run under way, or the cycle that waits; resolves when its stop is durable. */
  async cancel(): Promise<void> {
    const { status } = this.#runtime;
    if (status === 'idle' || status === 'error') return;
    await this.#runs.cancel();
  }

  log(from = 0): readonly LogEntry[] {
    return this.#runtime.log.entries.slice(from);
  }

  /** Stored entries from `from` (inclusive), then live ones: no gap, no repeat. */
  log$(from = 0): Observable<LogEntry> {
    return this.#runtime.log.stream(from, this.#runtime.observerFailed);
  }

  view(): ConversationView {
    if (!this.#projector) {
      const projector = createProjector();
      for (const entry of this.#runtime.log.entries) projector.push(entry);
      this.#runtime.log.listen((entry) => projector.push(entry));
      this.#projector = projector;
    }
    return this.#projector.view();
  }

  /** What the model would be sent now. */
  messages(): Message[] {
    return this.#runtime.transcript.messages();
  }

  /** Ends a run as interrupted, gives queued messages back, and lets go of the store. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#runtime.status === 'active' || this.#runtime.status === 'cancelling') await this.#runs.cancel();
    for (const { messageId } of this.queue) await this.#return(messageId);
    await this.#runtime.close();
    this.#runs.close();
    this.#options.closed();
  }

  async #return(messageId: string): Promise<void> {
    // A store that fails now keeps the message queued in the log; the next opening finds it.
    await this.#runtime.act({ type: 'message.returned', messageId, why: 'closed' }).catch(() => undefined);
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new RunchartError('closed', `the conversation ${this.id} is closed; open it again`);
  }

  /** What a plain message is now, by state and policy. */
  #kindNow(): 'direct' | 'steer' | 'followUp' {
    const { whileActive, whileSuspended } = this.#options.policies;
    switch (this.status) {
      case 'active':
        if (whileActive !== 'reject') return whileActive;
        throw new AgentBusyError('agent_busy', 'agent is busy: cancel() the run, or use steer() or followUp()');
      case 'cancelling':
        if (whileActive !== 'reject') return whileActive;
        throw new AgentBusyError('cancellation_in_progress', 'cancellation in progress: wait for cancel() to resolve');
      case 'waiting':
        if (whileSuspended !== 'reject') return 'followUp';
        throw new AgentBusyError('agent_busy', 'agent is busy: a call waits for a decision; decide() it or cancel()');
      default:
        return 'direct';
    }
  }

  #put(content: ReturnType<typeof storedContent>, kind: 'direct' | 'steer' | 'followUp', signal?: AbortSignal) {
    const { policies, newId } = this.#options;
    const { status } = this;
    const waits = status !== 'idle' && status !== 'error';
    if (waits && this.#runtime.known.queue.length >= policies.limits.queue) {
      throw new LimitError(`the queue holds ${policies.limits.queue} messages (policies.limits.queue)`);
    }
    const messageId = newId();
    const steers = kind === 'steer' && (status === 'active' || status === 'cancelling');
    const handle: RunHandle = steers ? this.#runs.current : this.#runs.open(runOf(messageId));
    const receipt = this.#runs.receipt(messageId);
    this.#runs.send({ type: 'message.sent', messageId, content, kind }, handle, steers ? undefined : signal);
    return { handle, receipt };
  }
}
