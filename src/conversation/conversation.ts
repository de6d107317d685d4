/**
 * The public interface of one conversation, and its streams. Invariant: every method becomes a command, and commands are judged
 * in order. An answer is true once it is durable. No accepted message is lost. Streams have no gap and no repetition. A
 * subscriber that throws affects nobody else.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Observable } from 'rxjs';
import {
  acceptMessage,
  type Decision,
  type DecisionReceipt,
  type Json,
  type LogEntry,
  type Message,
  type PendingCall,
  type QueuedMessage,
  type Refusal,
  type Settlement,
  type Standing,
} from '../../machines/internal.ts';
import type { Policies } from '../agentPolicies.ts';
import { type Content, type ReadPart, readMessage } from '../content/content.ts';
import { AgentBusyError, ConfigurationError, LimitError, RunchartError } from '../errors.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import { guarded } from '../log/isolatedObservable.ts';
import { onDemand } from '../onDemand.ts';
import type { AgentOptions } from '../options.ts';
import { type ConversationView, createProjector } from '../projector/index.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { checkOptionsOf, choice, hasMethods, object, standardSchema } from '../validation.ts';
import { closeConversation } from './close.ts';
import type { Receipt } from './receipts.ts';
import { pendingCalls, type Run, unsettledCalls } from './run.ts';
import { Runs } from './runs.ts';

/** For a conversation that exists already, or whose agent has tools. */
export const loadDecisions = onDemand(() => import('./decisions.ts'));

/** The runtime of a conversation, for observers. */
export let runtimeOf: (conversation: Conversation) => Runtime;
/** `send`, with the receipt of the message. A run does not name the messages that it takes. */
export let sendWithReceipt: (
  conversation: Conversation,
  content: Content,
  options: SendOptions,
) => { run: Run; receipt: Receipt };
/** A run of the log, active or over. */
export let openRun: (conversation: Conversation, runId: string) => Run;

/** `Output`: the type of final answers, where the agent has a schema for them. */
export class Conversation<Output = unknown> {
  static {
    openRun = (conversation, runId) => conversation.#runs.ofLog(runId);
    runtimeOf = (conversation) => conversation.#runtime;
    sendWithReceipt = (conversation, content, options) => conversation.#send(content, options);
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

  /** Calls that are suspended and have no decision. */
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
  send<S extends StandardSchemaV1>(
    content: Content,
    options: SendOptions & { output: S },
  ): Run<StandardSchemaV1.InferOutput<S>>;
  send(content: Content, options?: SendOptions & { output?: undefined }): Run<Output>;
  send(content: Content, options?: SendOptions): Run;
  send(content: Content, options: SendOptions = {}): Run {
    return this.#send(content, options).run;
  }

  /** A message for the current run, delivered before its next model call. */
  steer(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(readMessage(content), 'steer').receipt;
  }

  /** A message for later: it becomes the next request. */
  followUp(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(readMessage(content), 'followUp').receipt;
  }

  /** Resolves when the decision is durable. Rejects with InvalidDecisionError, DecisionRefusedError or LimitError. */
  async decide(decision: Decision): Promise<DecisionReceipt> {
    this.#mustBeOpen();
    const { runtime, authorize, policies } = this.#options;
    const mustBeOpen = (): void => this.#mustBeOpen();
    const { decide, readDecision } = this.#options.decisions ?? (await loadDecisions());
    return decide({ runtime, authorize, most: policies.limits.decisions, mustBeOpen }, readDecision(decision));
  }

  /** Continues the cycle that waits or was interrupted. Never throws. */
  resume(): Run<Output> {
    return this.#resume() as Run<Output>;
  }

  #resume(): Run {
    if (this.#closed) return this.#runs.over('closed', 'the conversation is closed');
    if (this.#options.parentId !== undefined)
      return this.#runs.over('configuration', 'a sub-agent is resumed by its parent');
    return this.#runs.resume(this.#options.newId());
  }

  /**
   * Settles a call whose outcome is unknown after a crash, of this conversation or of a sub-agent that has not ended.
   * Rejects with InvalidDecisionError for an invalid call id or settlement.
   */
  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    this.#mustBeOpen();
    const { settle } = this.#options.decisions ?? (await loadDecisions());
    return settle(this.#runtime, callId, how);
  }

  /** Ends the current run or the waiting cycle; resolves when its stop is durable. */
  async cancel(): Promise<void> {
    const { status } = this;
    if (status === 'idle' || status === 'error') return;
    // A close ends a run and leaves a waiting cycle as it is.
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

  /** The complete text that the current reply has streamed; null between replies. */
  get inFlight(): InFlight | null {
    return this.#runtime.inFlight;
  }

  view(): ConversationView {
    return this.#streams.view();
  }

  /** The messages that a model call would contain now. */
  messages(): Message[] {
    return this.#runtime.transcript.messages();
  }

  /**
   * Ends a run as interrupted, returns queued messages, and releases the store. Rejects with RunchartError, code `store`,
   * where the store does not answer for 5 s, and with the error of the store where it cannot be released.
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

  /** What a message is judged by. The log may not contain the delivery or return of a queued message yet. */
  get #standing(): Standing {
    const { commands, queue, logState } = this.#runtime;
    const { standing } = commands;
    const isQueued = (messageId: string): boolean => queue.some((message) => message.messageId === messageId);
    const logged = logState.queue.filter(({ messageId }) => !isQueued(messageId)).length;
    return { ...standing, queued: standing.queued + logged };
  }

  #send(content: Content, options: SendOptions) {
    this.#mustBeOpen();
    const read = readMessage(content);
    const kind = kindAsked(options);
    const { messageId } = options;
    const repeated = messageId === undefined ? undefined : this.#runs.repeated(messageId);
    if (repeated) return repeated;
    const sent = this.#put(read, kind, options);
    return messageId === undefined ? sent : this.#runs.keep(sent);
  }

  #put(read: readonly ReadPart[], asked: 'steer' | 'followUp' | undefined, options: SendOptions = {}) {
    const { signal, output, whileSuspended } = options;
    const { newId, schemas } = this.#options;
    const standing = this.#standing;
    const accepted = acceptMessage(standing, { kind: asked, whileSuspended });
    if ('refused' in accepted) throw refusalOf(accepted.refused, standing);
    const { kind } = accepted;
    const { messageId = newId() } = options;
    const receipt = this.#runs.receipt(messageId);
    if (output) schemas.set(messageId, output);
    const content = this.#runtime.images.keep(read);
    const stored = Array.isArray(content) ? { content } : { content: [], kept: content };
    const message = {
      type: 'message.sent',
      messageId,
      ...stored,
      kind,
      ...(whileSuspended && { whileSuspended }),
    } as const;
    const run = this.#runs.send(message, signal);
    return { run, receipt };
  }
}

export interface ConversationOptions {
  id: string;
  cwd: string;
  runtime: Runtime;
  policies: Policies;
  newId(): string;
  authorize: AgentOptions['authorize'] | undefined;
  /** Loaded where a call can wait, so that decisions are read in the order of their arrival. */
  decisions?: typeof import('./decisions.ts') | undefined;
  /** The parent, if somebody else opened this sub-agent: then it can only be read. */
  parentId?: string | undefined;
  /** Schemas of final answers, by message id; the agent's own under the empty id. */
  schemas: Map<string, StandardSchemaV1>;
  closed(): void;
}

export interface SendOptions {
  signal?: AbortSignal;
  kind?: 'steer' | 'followUp';
  /** The schema of the final answer, in place of the agent's own. */
  output?: StandardSchemaV1;
  /** The message's own id. A second message with the same id is the same message: its receipt and run are returned again. */
  messageId?: string;
  /** What the message does while a call waits; default: the policy of the same name. */
  whileSuspended?: Policies['whileSuspended'];
}

/** An id is part of the ids of runs and effects, which `/` separates. */
const messageIdValidator = {
  expected: 'a text of 1 to 200 characters without / and control characters',
  test: (value: unknown) => typeof value === 'string' && /^[^/\p{Cc}]{1,200}$/u.test(value),
};

const sendValidator = object({
  kind: choice('steer', 'followUp'),
  messageId: messageIdValidator,
  output: standardSchema,
  signal: { expected: 'an AbortSignal', test: (value) => hasMethods(value, 'addEventListener'), secret: true },
  whileSuspended: choice('followUp', 'reject', 'denyAndRun'),
});

/** The requested kind. Throws ConfigurationError for an unknown option, kind or signal, because it would reach the log. */
export function kindAsked(options: SendOptions): 'steer' | 'followUp' | undefined {
  checkOptionsOf('send', options, sendValidator);
  return options.kind;
}

const BUSY: { readonly [refusal in Exclude<Refusal, 'full'>]: readonly [code: AgentBusyError['code'], why: string] } = {
  busy: ['agent_busy', 'agent is busy: cancel() the run, or use steer() or followUp()'],
  cancelling: ['cancellation_in_progress', 'cancellation in progress: wait for cancel() to resolve'],
  suspended: ['agent_busy', 'agent is busy: a call waits for a decision; decide() it and resume(), or cancel()'],
};

function refusalOf(refusal: Refusal, { policies }: Standing): AgentBusyError | LimitError {
  if (refusal !== 'full') return new AgentBusyError(...BUSY[refusal]);
  return new LimitError(`the queue holds ${policies.limits.queue} messages (policies.limits.queue)`);
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
      // Before the first view is emitted: its subscriber may act at once.
      const from = log.entries.length;
      subscriber.next(this.view());
      return log.stream(from, observerFailed).subscribe({
        // One view for each append. The states between its entries were never durable.
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

  /** The projector is made on first use and receives every later entry. */
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
