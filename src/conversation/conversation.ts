/**
 * The public interface of one conversation, and its streams. Invariant: every method becomes a command, and commands are judged
 * in order. A promise resolves only after its effect is durable. No accepted message is lost. Streams have no gap and no repetition. A
 * subscriber that throws affects nobody else.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
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
} from '../../machines/internal.ts';
import type { Policies } from '../agentPolicies.ts';
import { type Content, mustAccept, type ReadPart } from '../content/content.ts';
import { AgentBusyError, ConfigurationError, RunchartError } from '../errors.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import { guarded } from '../log/isolatedObservable.ts';
import { onDemand } from '../onDemand.ts';
import type { AgentOptions } from '../options.ts';
import { type ConversationView, createProjector } from '../projector/index.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { invalidOption } from '../validation.ts';
import { closeConversation } from './close.ts';
import type { Receipt } from './receipts.ts';
import { pendingCalls, type Run, unsettledCalls } from './run.ts';
import { acceptedAs, Runs } from './runs.ts';
import { type AgentNames, checkResumptionId, checkSending, choicesIn, type SendOptions } from './sendOptions.ts';

/** Loaded for a conversation that exists already, or whose agent has tools. */
export const loadDecisions = onDemand(() => import('./decisions.ts'));

/** The runtime of a conversation, for observers. */
export let runtimeOf: (conversation: Conversation) => Runtime;
/** `send`, with the receipt of the message. A run does not name the messages that it takes. */
export let sendWithReceipt: (
  conversation: Conversation,
  content: Content,
  options: SendOptions,
) => { run: Run; receipt: Receipt };
/** `resume`, under an id of the client's own. A second resumption with the same id is the same one. */
export let resumeAs: (conversation: Conversation, resumptionId: string) => Run;
/** The entries of the log themselves. A reader that keeps a seq copies nothing, as `log()` does. */
export let entriesOf: (conversation: Conversation) => readonly LogEntry[];
/** Calls `changed` after each change of the status, until the returned function is called. */
export let watchStatus: (conversation: Conversation, changed: () => void) => () => void;
/** A run of the log, active or over. */
export let openRun: (conversation: Conversation, runId: string) => Run;

/**
 * A conversation: its log, its runs and its waiting calls. `Output`: the type of final answers, where the agent has a
 * schema for them.
 */
export class Conversation<Output = unknown> {
  static {
    openRun = (conversation, runId) => conversation.#runs.ofLog(runId);
    runtimeOf = (conversation) => conversation.#runtime;
    entriesOf = (conversation) => conversation.#runtime.log.entries;
    watchStatus = (conversation, changed) => {
      const { statusWatchers } = conversation.#runtime;
      statusWatchers.add(changed);
      return () => void statusWatchers.delete(changed);
    };
    resumeAs = (conversation, resumptionId) => conversation.#resume(resumptionId);
    sendWithReceipt = (conversation, content, options) => conversation.#send(content, options);
  }
  /** The id under which the store keeps the conversation. */
  readonly id: string;
  /** The directory in which its tools start. */
  readonly cwd: string;
  /** The only owner whose requests may open it; null where it has none. */
  readonly owner: string | null;
  /** Signals of work in progress, such as text deltas. They are never stored. */
  readonly live$: Observable<Live>;
  /** The view of the conversation, after each entry. */
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
    this.owner = options.owner;
    this.#options = options;
    this.#runtime = runtime;
    this.#runs = new Runs(runtime);
    this.#streams = new Streams(runtime);
    this.live$ = this.#streams.live$;
    this.view$ = this.#streams.view$;
  }

  /** The state of the conversation: idle, active, waiting for a decision, being cancelled, or broken. */
  get status(): ConversationStatus {
    return this.#runtime.hostStatus.status;
  }

  /** The values that tools and plugins wrote with `state`; frozen. */
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

  /** Messages that were accepted and are not delivered. */
  get queue(): readonly QueuedMessage[] {
    return this.#runtime.logState.queue.slice();
  }

  /**
   * Sends a message. Throws AgentBusyError by policy, LimitError where the queue is full, and MediaTypeError for an image or a
   * file that the model does not accept.
   */
  send<S extends StandardSchemaV1>(
    content: Content,
    options: SendOptions & { output: S },
  ): Run<StandardSchemaV1.InferOutput<S>>;
  send(content: Content, options: SendOptions & { output: string }): Run;
  send(content: Content, options?: SendOptions & { output?: undefined }): Run<Output>;
  send(content: Content, options?: SendOptions): Run;
  send(content: Content, options: SendOptions = NO_OPTIONS): Run {
    return this.#send(content, options).run;
  }

  /** A message for the current run, delivered before its next model call. */
  steer(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(this.#runtime.attachments.read(content), 'steer').receipt;
  }

  /** A message for later: it becomes the next request. */
  followUp(content: Content): Receipt {
    this.#mustBeOpen();
    return this.#put(this.#runtime.attachments.read(content), 'followUp').receipt;
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

  #resume(resumptionId?: string): Run {
    if (this.#closed) return this.#runs.over('closed', 'the conversation is closed');
    if (this.#options.parentId !== undefined)
      return this.#runs.over('configuration', 'a sub-agent is resumed by its parent');
    if (resumptionId === undefined) return this.#runs.resume(this.#options.newId());
    checkResumptionId(resumptionId);
    const repeated = this.#runs.repeated(resumptionId)?.run ?? this.#runs.begun(runOf(resumptionId));
    return repeated ?? this.#runs.resume(resumptionId);
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

  /** Sets the title in lists; resolves when it is durable. Rejects with ConfigurationError for an invalid title. */
  async rename(title: string): Promise<void> {
    this.#mustBeOpen();
    if (!titleValidator.test(title)) throw invalidOption('the title', titleValidator, title);
    await this.#runtime.submit({ type: 'rename.requested', title });
  }

  /**
   * Continues from before a message that began a request: the model no longer receives that message and later ones, and views mark these
   * requests `superseded`. The log keeps everything. A waiting request is cancelled. Resolves when
   * this is durable. Rejects with RunchartError `not_found` for an id that is unknown or superseded, with ConfigurationError
   * for a steer, and with AgentBusyError while a run is active.
   */
  async rewind(messageId: string): Promise<void> {
    this.#mustBeOpen();
    const { outcome } = await this.#runtime.submit({ type: 'rewind.requested', messageId });
    if (outcome !== 'rewound') throw new AgentBusyError('agent_busy', 'agent is busy: cancel() the run first');
  }

  /** Returns the entries of the log from `from` on. */
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

  /** Returns the conversation as request cycles, for a page to render. */
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

  #send(content: Content, unchecked: SendOptions) {
    this.#mustBeOpen();
    const read = this.#runtime.attachments.read(content);
    const options = unchecked === NO_OPTIONS ? unchecked : checkSending(unchecked);
    const { kind, messageId } = options;
    const repeated = messageId === undefined ? undefined : this.#runs.repeated(messageId);
    if (repeated) return repeated;
    const sent = this.#put(read, kind, options);
    return messageId === undefined ? sent : this.#runs.keep(sent);
  }

  #put(read: readonly ReadPart[], asked: 'steer' | 'followUp' | undefined, options: SendOptions = NO_OPTIONS) {
    const { signal, output, whileSuspended } = options;
    const { newId, schemas, available } = this.#options;
    const choices = options === NO_OPTIONS ? {} : choicesIn(options, available);
    const kind = acceptedAs(this.#runtime, asked, whileSuspended);
    const { request, attachments } = this.#runtime;
    mustAccept(read, kind === 'steer' ? request.shownModel : request.modelNamed(choices.model));
    const { messageId = newId() } = options;
    const receipt = this.#runs.receipt(messageId);
    if (output !== undefined && typeof output !== 'string') schemas.set(messageId, output);
    const content = attachments.keepMessage(read);
    const [stored, storing] = Array.isArray(content) ? [content] : [[], content];
    const message = {
      type: 'message.sent',
      messageId,
      content: stored,
      kind,
      ...choices,
      ...(whileSuspended && { whileSuspended }),
    } as const;
    const run = this.#runs.send(message, signal, storing);
    return { run, receipt };
  }
}

export interface ConversationOptions {
  id: string;
  cwd: string;
  owner: string | null;
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
  /** The names that a message may use. */
  available: AgentNames;
  closed(): void;
}

/** Most messages have none, and then there is nothing to check or to copy. */
const NO_OPTIONS: SendOptions = {};

const titleValidator = {
  expected: 'a text of 1 to 200 characters that is not blank',
  test: (value: unknown) => typeof value === 'string' && /^.{1,200}$/su.test(value) && value.trim() !== '',
};

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
