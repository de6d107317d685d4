/**
 * A conversation that another process holds, with the members of one in this process. Invariant: an act resolves when its effect is
 * in this log too. After `close` nothing of it is left here; runs continue where they are.
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
import type { Content } from '../content/content.ts';
import { toBase64 } from '../content/imageFormat.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Receipt } from '../conversation/receipts.ts';
import { type Run, type RunHandle, returnedOutput } from '../conversation/run.ts';
import type { SendOptions } from '../conversation/sendOptions.ts';
import { ConfigurationError, type RunchartError } from '../errors.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import type { ConversationView } from '../projector/index.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { requestJson } from './errorOfCode.ts';
import type { RemoteLog } from './remoteLog.ts';
import { RemoteRuns } from './remoteRuns.ts';

/** The members of a conversation that work from another process. */
type Face<Output> = Pick<
  Conversation<Output>,
  | ('id' | 'owner' | 'status' | 'state' | 'pending' | 'unsettled' | 'queue' | 'messages' | 'inFlight')
  | ('send' | 'steer' | 'followUp' | 'decide' | 'settle' | 'cancel' | 'resume')
  | ('log' | 'log$' | 'live$' | 'view' | 'view$' | 'close')
>;

export type RemoteActName = 'messages' | 'decisions' | 'settlements' | 'cancel' | 'resume';
export type RemoteAnswer = { [key: string]: unknown; runId?: string };

/** Carries entries from the process that holds a conversation, and acts to it. */
export interface RemoteLink {
  readonly log: RemoteLog;
  /** Resolves with the answer when the effect is in the log. */
  act(name: RemoteActName, body: object): Promise<RemoteAnswer>;
  /** The error of a failed run, which the log does not contain. */
  errorOf(runId: string): Promise<{ code: string; message: string } | undefined>;
  /** Called once when no more entries come. */
  whenEnded(act: (error: RunchartError) => void): void;
  close(): Promise<void>;
}

export interface RemoteOptions {
  link: RemoteLink;
  setTimer: Ports['setTimer'];
  newId: Ports['newId'];
}

/**
 * A conversation that another process holds, with the members of a local one. `Output`: the type of final answers, where
 * the agent has a schema for them.
 */
export class RemoteConversation<Output = unknown> implements Face<Output> {
  /** The id of the conversation. */
  readonly id: string;
  /** Signals of work in progress, such as text deltas. */
  readonly live$: Observable<Live>;
  /** The view of the conversation, after each entry. */
  readonly view$: Observable<ConversationView>;
  readonly #options: RemoteOptions;
  readonly #link: RemoteLink;
  readonly #runs: RemoteRuns;
  /** The answers to the requests for runs. */
  protected readonly answers = new WeakMap<Run, Promise<RemoteAnswer>>();

  constructor(options: RemoteOptions) {
    const { link, setTimer } = options;
    const { log } = link;
    this.id = log.id;
    this.#options = options;
    this.#link = link;
    this.live$ = log.live$;
    this.view$ = log.view$;
    this.#runs = new RemoteRuns(log, setTimer, {
      cancel: (run) => this.#cancelRun(run),
      errorOf: (runId) => link.errorOf(runId),
    });
    link.whenEnded((error) => this.#runs.end(error));
  }

  get owner(): string | null {
    return this.#log.owner;
  }

  /** `error` after an error of the connection that no repetition changes. */
  get status(): ConversationStatus {
    return this.#log.status;
  }

  get state(): { readonly [key: string]: Json } {
    return this.#log.state;
  }

  get pending(): readonly PendingCall[] {
    return this.#log.pending;
  }

  get unsettled(): readonly PendingCall[] {
    return this.#log.unsettled;
  }

  /** Messages that were accepted and are not delivered. */
  get queue(): readonly QueuedMessage[] {
    return this.#log.queue;
  }

  get inFlight(): InFlight | null {
    return this.#log.inFlight;
  }

  messages(): Message[] {
    return this.#log.messages();
  }

  /** Returns the entries that have arrived, from `from` on. */
  log(from = 0): readonly LogEntry[] {
    return this.#log.entries.slice(from);
  }

  log$(from = 0): Observable<LogEntry> {
    return this.#log.log$(from);
  }

  /** Returns the conversation as request cycles, for a page to render. */
  view(): ConversationView {
    return this.#log.view();
  }

  /**
   * Sends a message. Never throws: a refusal is in the run's `result`. A schema as `output` is refused, because it cannot
   * travel: name one of the agent's.
   */
  send<S extends StandardSchemaV1>(
    content: Content,
    options: SendOptions & { output: S },
  ): Run<StandardSchemaV1.InferOutput<S>>;
  send(content: Content, options: SendOptions & { output: string }): Run;
  send(content: Content, options?: SendOptions & { output?: undefined }): Run<Output>;
  send(content: Content, options?: SendOptions): Run;
  send(content: Content, options: SendOptions = {}): Run {
    const { signal, messageId = this.#options.newId() } = options;
    const id = (options.kind === 'steer' ? this.#log.runId : undefined) ?? runOf(messageId);
    if (signal?.aborted) return this.#runs.over(id, returnedOutput(id));
    const accepting = this.#post(content, { ...options, messageId });
    const run = this.#runs.begin(id, accepting);
    this.answers.set(run, accepting);
    run.bindSignal(signal, () => void this.#cancelMessage(run, messageId, options.kind).catch(() => undefined));
    return run;
  }

  /** A message for the current run. `delivered` rejects where the server refuses it. */
  steer(content: Content): Receipt {
    return this.#put(content, 'steer');
  }

  /** A message for later. `delivered` rejects where the server refuses it. */
  followUp(content: Content): Receipt {
    return this.#put(content, 'followUp');
  }

  async decide(decision: Decision): Promise<DecisionReceipt> {
    requestJson(decision, 'invalid_decision');
    const { receipt } = await this.#act('decisions', decision);
    return receipt as DecisionReceipt;
  }

  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    requestJson(how, 'invalid_decision');
    const { receipt } = await this.#act('settlements', { callId, how });
    return receipt as 'applied' | 'unknown';
  }

  /** Ends the current run or the waiting cycle; resolves when its stop is durable. */
  async cancel(): Promise<void> {
    await this.#act('cancel', {});
  }

  /** Continues the cycle that waits or was interrupted. Never throws. */
  resume(): Run<Output>;
  resume(): Run {
    const resumptionId = this.#options.newId();
    const accepting = this.#act('resume', { resumptionId });
    const run = this.#runs.begin(this.#log.runId ?? runOf(resumptionId), accepting);
    this.answers.set(run, accepting);
    return run;
  }

  /** A run that is in the log. */
  protected openRun(runId: string): RunHandle {
    return this.#runs.begin(runId, Promise.resolve({ runId }));
  }

  /** Ends the connection. Runs continue on the server; the `result` of an open one is an Error with the code `closed`. */
  async close(): Promise<void> {
    await this.#link.close();
  }

  get #log(): RemoteLog {
    return this.#link.log;
  }

  #put(content: Content, kind: 'steer' | 'followUp'): Receipt {
    const messageId = this.#options.newId();
    return this.#runs.receipt(messageId, this.#post(content, { kind, messageId }));
  }

  async #post(content: Content, { signal: _, ...options }: SendOptions): Promise<RemoteAnswer> {
    if (options.output !== undefined && typeof options.output !== 'string')
      throw new ConfigurationError("a schema cannot be sent to a server: name one of the agent's outputs");
    return this.#act('messages', { ...options, content: travelling(content) });
  }

  #act(name: RemoteActName, body: object): Promise<RemoteAnswer> {
    return this.#link.act(name, body);
  }

  /** Ends a run, also one that has not begun. */
  async #cancelRun(run: RunHandle): Promise<void> {
    await this.#act('cancel', { runId: run.id });
    await run.result;
  }

  /** The caller of a steer does not own the run that takes it, so only the message is withdrawn. */
  async #cancelMessage(run: RunHandle, messageId: string, kind: SendOptions['kind']): Promise<void> {
    await this.#act('cancel', { runId: kind === 'steer' ? runOf(messageId) : run.id });
  }
}

/** The content as JSON: bytes become base64, and URLs text. */
function travelling(content: Content): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((part) => {
    const { data } = part as { data?: unknown };
    if (data instanceof Uint8Array) return { ...part, data: toBase64(data) };
    return data instanceof URL ? { ...part, data: data.href } : part;
  });
}
