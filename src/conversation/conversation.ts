/**
 * The public face of one conversation, and its streams. Rule: every verb becomes a command that is judged in order; an answer is
 * true once it is durable; nothing accepted is lost. Streams have no gap and no repeat, and a subscriber that throws harms nobody.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Observable } from 'rxjs';
import type {
  Decision,
  DecisionReceipt,
  Json,
  LogEntry,
  Message,
  PendingCall,
  QueuedMessage,
  Settlement,
} from '../../machines/internal.ts';
import { type Content, type ReadPart, readContent } from '../content/content.ts';
import { AgentBusyError, ConfigurationError, LimitError, RunchartError } from '../errors.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import { guarded } from '../log/isolatedObservable.ts';
import { onDemand } from '../onDemand.ts';
import type { AgentOptions } from '../options.ts';
import type { Policies } from '../policies.ts';
import { type ConversationView, createProjector } from '../projector/index.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { checkOptionsOf, choice, hasMethods, object, standardSchema } from '../validation.ts';
import { closeConversation } from './close.ts';
import type { Receipt } from './receipts.ts';
import { pendingCalls, type Run, unsettledCalls } from './run.ts';
import { Runs } from './runs.ts';

/** For a conversation whose agent has tools, or that exists already. */
export const loadDecisions = onDemand(() => import('./decisions.ts'));

/** A conversation from inside, for who observes it. */
export let runtimeOf: (conversation: Conversation) => Runtime;

export class Conversation {
  static {
    runtimeOf = (conversation) => conversation.#runtime;
  }
  readonly id: string;
  readonly cwd: string;
  readonly live$: Observable<Live>;
  readonly view$: Observable<ConversationView>;
  readonly #streams: Streams;
  readonly #options: ConversationOptions;
  readonly #runtime: Runtime;
  readonly #runs: Runs;
  #closed = false;
  #closing: Promise<void> | undefined;

  constructor(options: ConversationOptions) {
    const { runtime } = options;
    this.id = options.id;
    this.cwd = options.cwd;
    this.#options = options;
    this.#runtime = runtime;
    this.#runs = new Runs(runtime);
    this.#streams = new Streams(runtime);
    this.live$ = this.#streams.live$;
    this.view$ = this.#streams.view$;
  }

  get status(): ConversationStatus {
    return this.#runtime.hostStatus.status;
  }

  /** What tools and plugins wrote with `state`; frozen. */
  get state(): { readonly [key: string]: Json } {
    return this.#runtime.state;
  }

  /** Suspended and undecided. */
  get pending(): readonly PendingCall[] {
    return pendingCalls(this.#runtime.logState, this.#runtime.subAgents);
  }

  /** Calls whose outcome is unknown and not settled. */
  get unsettled(): readonly PendingCall[] {
    return unsettledCalls(this.#runtime.logState, this.#runtime.subAgents);
  }

  get queue(): readonly QueuedMessage[] {
    return this.#runtime.logState.queue.slice();
  }

  /** Sends a message. Throws AgentBusyError by policy, LimitError where the queue is full. */
  send(content: Content, options: SendOptions = {}): Run {
    this.#mustBeOpen();
    const read = readContent(content);
    const kind = kindAsked(options) ?? kindNow(this.status, this.#options.policies);
    const { handle } = this.#put(read, kind, options);
    return handle;
  }

  /** A message for the run under way: it is delivered before its next model call. */
  steer(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(readContent(content), 'steer').receipt;
  }

  /** A message for after the work under way: it becomes the next request. */
  followUp(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(readContent(content), 'followUp').receipt;
  }

  /** Makes a decision durable, then answers. Rejects with InvalidDecisionError, DecisionRefusedError or LimitError. */
  async decide(decision: Decision): Promise<DecisionReceipt> {
    this.#mustBeOpen();
    const { runtime, authorize, policies } = this.#options;
    const mustBeOpen = (): void => this.#mustBeOpen();
    const { decide, readDecision } = this.#options.decisions ?? (await loadDecisions());
    return decide({ runtime, authorize, most: policies.limits.decisions, mustBeOpen }, readDecision(decision));
  }

  /** Continues what waits or was interrupted, in the same cycle. Never throws. */
  resume(): Run {
    if (this.#closed) return this.#runs.over('closed', 'the conversation is closed');
    if (this.#options.parentId !== undefined)
      return this.#runs.over('configuration', 'a sub-agent is resumed by its parent');
    return this.#runs.resume(this.#options.newId());
  }

  /**
   * Settles a call whose outcome is unknown after a crash, of this conversation or of a sub-agent that has not ended.
   * Rejects with InvalidDecisionError for what is no call id or no settlement.
   */
  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    this.#mustBeOpen();
    const { settle } = this.#options.decisions ?? (await loadDecisions());
    return settle(this.#runtime, callId, how);
  }

  /** Ends the run under way, or the cycle that waits; resolves when its stop is durable. */
  async cancel(): Promise<void> {
    const { status } = this;
    if (status === 'idle' || status === 'error') return;
    // A close ends what runs, and leaves what waits as it is.
    if (status === 'waiting') this.#mustBeOpen();
    this.#mustBeOwn();
    await this.#runs.cancelAll();
  }

  log(from = 0): readonly LogEntry[] {
    return this.#runtime.log.entries.slice(from);
  }

  /** Stored entries from `from` (inclusive), then live ones: no gap, no repeat. */
  log$(from = 0): Observable<LogEntry> {
    return this.#streams.log$(from);
  }

  /** What the reply under way has streamed, whole; null between replies. */
  get inFlight(): InFlight | null {
    return this.#runtime.inFlight;
  }

  view(): ConversationView {
    return this.#streams.view();
  }

  /** What the model would be sent now. */
  messages(): Message[] {
    return this.#runtime.transcript.messages();
  }

  /**
   * Ends a run as interrupted, gives queued messages back, and lets go of the store. Rejects with RunchartError, code
   * `store`, where the store says nothing for 5 s, and with what it says where it does not let go.
   */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#closed = true;
    try {
      await closeConversation(this.#runtime, this.#runs);
    } finally {
      this.#options.closed();
    }
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new RunchartError('closed', `the conversation ${this.id} is closed; open it again`);
    this.#mustBeOwn();
  }

  #mustBeOwn(): void {
    const { parentId } = this.#options;
    if (parentId === undefined) return;
    throw new ConfigurationError(`${this.id} is a sub-agent of ${parentId}: act there; here it can only be read`);
  }

  /** Messages that the chart has not delivered, and those whose delivery or return the log has not heard of. */
  #queued(): number {
    const { queue, logState } = this.#runtime;
    return new Set([...queue, ...logState.queue].map(({ messageId }) => messageId)).size;
  }

  #put(read: readonly ReadPart[], kind: 'direct' | 'steer' | 'followUp', { signal, output }: SendOptions = {}) {
    const { policies, newId, schemas } = this.#options;
    const { status } = this;
    const { queue } = policies.limits;
    const { queueing } = this.#runtime.commands;
    // A message on its way before it may start a run.
    const supersedes = status === 'waiting' && kind === 'direct' && !queueing;
    const starts = status === 'idle' || status === 'error' || supersedes;
    if (!starts && this.#queued() + queueing >= queue) {
      throw new LimitError(`the queue holds ${queue} messages (policies.limits.queue)`);
    }
    const messageId = newId();
    const receipt = this.#runs.receipt(messageId);
    if (output) schemas.set(messageId, output);
    const content = this.#runtime.images.keep(read);
    const stored = Array.isArray(content) ? { content } : { content: [], kept: content };
    const handle = this.#runs.send({ type: 'message.sent', messageId, ...stored, kind }, signal);
    return { handle, receipt };
  }
}

export interface ConversationOptions {
  id: string;
  cwd: string;
  runtime: Runtime;
  policies: Policies;
  newId(): string;
  authorize: AgentOptions['authorize'] | undefined;
  /** Where a call can wait: a decision is read in the order in which it is given. */
  decisions?: typeof import('./decisions.ts') | undefined;
  /** Whose sub-agent this is, where somebody else opened it: it can be read, and nothing else. */
  parentId?: string | undefined;
  /** Schemas of final answers, by the message that came with each; under no id the agent's own. */
  schemas: Map<string, StandardSchemaV1>;
  closed(): void;
}

export interface SendOptions {
  signal?: AbortSignal;
  kind?: 'steer' | 'followUp';
  /** What the final answer must fit, in place of the agent's own schema. */
  output?: StandardSchemaV1;
}

const sendValidator = object({
  kind: choice('steer', 'followUp'),
  output: standardSchema,
  signal: { expected: 'an AbortSignal', test: (value) => hasMethods(value, 'addEventListener'), secret: true },
});

/** What the caller asked for. Throws ConfigurationError for an option that is unknown, or is no kind or no signal: it would reach the log. */
export function kindAsked(options: SendOptions): 'steer' | 'followUp' | undefined {
  checkOptionsOf('send', options, sendValidator);
  return options.kind;
}

/** Throws AgentBusyError where the policy is to reject. */
export function kindNow(
  status: ConversationStatus,
  { whileActive, whileSuspended }: Pick<Policies, 'whileActive' | 'whileSuspended'>,
): 'direct' | 'steer' | 'followUp' {
  switch (status) {
    case 'active':
      if (whileActive !== 'reject') return whileActive;
      throw new AgentBusyError('agent_busy', 'agent is busy: cancel() the run, or use steer() or followUp()');
    case 'cancelling':
      if (whileActive !== 'reject') return whileActive;
      throw new AgentBusyError('cancellation_in_progress', 'cancellation in progress: wait for cancel() to resolve');
    case 'waiting':
      if (whileSuspended === 'denyAndRun') return 'direct';
      if (whileSuspended === 'followUp') return 'followUp';
      throw new AgentBusyError(
        'agent_busy',
        'agent is busy: a call waits for a decision; decide() it and resume(), or cancel()',
      );
    default:
      return 'direct';
  }
}

export class Streams {
  readonly live$: Observable<Live>;
  readonly view$: Observable<ConversationView>;
  readonly #runtime: Runtime;
  #projector: ReturnType<typeof createProjector> | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    const { log, live, observerFailed } = runtime;
    this.live$ = guarded(observerFailed, (subscriber) => live.signals$.subscribe(subscriber));
    this.view$ = guarded(observerFailed, (subscriber) => {
      // Before the first view is shown: who is shown it may act at once.
      const from = log.entries.length;
      subscriber.next(this.view());
      return log.stream(from, observerFailed).subscribe({
        // One view an append: what stands between its entries is no state that ever was durable.
        next: ({ seq }) => {
          if (seq === log.entries.length - 1) subscriber.next(this.view());
        },
        complete: () => subscriber.complete(),
      });
    });
  }

  log$(from: number): Observable<LogEntry> {
    return this.#runtime.log.stream(from, this.#runtime.observerFailed);
  }

  /** The projector is made when somebody asks for a view, and fed from then on. */
  view(): ConversationView {
    if (!this.#projector) {
      const projector = createProjector();
      for (const entry of this.#runtime.log.entries) projector.push(entry);
      this.#runtime.log.listen((entry) => projector.push(entry));
      this.#projector = projector;
    }
    return this.#projector.view();
  }
}
