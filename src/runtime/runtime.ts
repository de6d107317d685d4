/**
 * One living conversation without its public interface: log, folds, executors and driver, connected. Invariant: it reads
 * durable entries only. Acts of hosts enter through the journal and are judged at their delivery.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  type CycleRequest,
  conversationChart,
  type GivenUpBy,
  type HostAct,
  type Journal,
  type Json,
  type LogEntry,
  type LogState,
  type NewEntry,
  type QueuedMessage,
  type RunOutput,
  restored,
  type StoredPart,
  type Transcript,
} from '../../machines/internal.ts';
import { settingsOf } from '../agentPolicies.ts';
import { Attachments } from '../content/content.ts';
import { RunchartError, thrownText } from '../errors.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import { ConversationLog, foldEntry, type LogFolds } from '../log/conversationLog.ts';
import type { Redact } from '../log/redact.ts';
import type { TextCalls } from '../models/textCalls.ts';
import type { PhaseRunner } from '../plugins/phases.ts';
import type { WorkObserver, workObserverOf } from '../plugins/workObserver.ts';
import { hostError, type LogHandle } from '../stores/logStore.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import type { retryOf } from '../tools/toolRetry.ts';
import { type Answer, admitCommand, type Command, CommandQueue, diagnostic, lateResult } from './commands.ts';
import { CurrentRequest, windowOf } from './currentRequest.ts';
import { Driver } from './driver.ts';
import { Effects, type EffectsOptions, type RuntimeScope } from './effects.ts';
import type { Ports } from './hostPorts.ts';
import type { ConversationObserver } from './interpreter/inspection.ts';
import type { Interpreter } from './interpreter/interpreter.ts';
import { EmbeddedJournal } from './journal.ts';
import { type ContextUse, NextRequest, type Summaries } from './modelTurn.ts';
import { ChartStatus, HostStatus, LiveFeed } from './status.ts';
import type { OwnProfile, SubAgents } from './subAgentPort.ts';

export class Runtime {
  readonly log: ConversationLog;
  readonly logState: LogState;
  readonly transcript: Transcript;
  readonly live: LiveFeed = new LiveFeed(() => this.inFlight);
  readonly attachments: Attachments;
  readonly request: CurrentRequest;
  /** Follows the runs and their work, where a plugin asks for that. */
  readonly workObserver: WorkObserver | undefined;
  readonly #options: RuntimeOptions;
  readonly #effects: Effects;
  readonly #journal: Journal;
  #driver: Driver | undefined;
  readonly chart: ChartStatus = new ChartStatus();
  readonly commands: CommandQueue = new CommandQueue(
    this.chart,
    (command, isUrgent) => this.#put(command, isUrgent),
    ({ part, message }) => this.diagnose(`${part}_not_stored`, { message }),
  );
  /** Called after each change of the status. With them alone, no live signal is made. */
  readonly statusWatchers = new Set<() => void>();
  readonly hostStatus: HostStatus = new HostStatus(this.chart, this.commands);
  #state: { readonly [key: string]: Json } | undefined;
  #onCancelled: (() => void)[] = [];
  /** The defect that stopped the chart. A stopped chart answers no act. */
  #broken: { error: unknown } | undefined;
  /** Set during the opening, where the conversation can have sub-agents. */
  subAgents: SubAgents | undefined;
  /** Called when a run is over. */
  onEnded: (output: RunOutput) => void = () => {};

  constructor(options: RuntimeOptions) {
    const { id, handle, entries, folds, redact, ports } = options;
    const { logState, transcript } = folds;
    const { toolbox } = options;
    this.#options = { ...options, toolbox: toolbox.ofConversation?.() ?? toolbox };
    this.logState = logState;
    this.transcript = transcript;
    this.log = new ConversationLog({
      id,
      handle,
      entries,
      redact,
      logState,
      transcript,
    });
    this.log.listen((entry) => this.#fold(entry));
    this.log.watch((entry) => this.#show(entry));
    const { models, named, above } = options;
    this.request = new CurrentRequest({ logState, models, named, above });
    this.attachments = new Attachments(handle, options.policies.limits.fileBytes, ports.scaleImage);
    this.workObserver = this.#observer(options);
    this.#effects = this.#makeEffects();
    this.log.listen((entry) => this.#effects.landed(entry));
    this.#journal = this.#makeJournal();
  }

  #observer({ id, plugins, redact }: RuntimeOptions): WorkObserver | undefined {
    const { logState, log } = this;
    const note = (runId: string, name: string, value: Json) => this.#note([{ runId, type: 'extension', name, value }]);
    const observer = this.#options.workObserverOf?.(plugins, { id, entries: log.entries, logState, redact, note });
    if (observer) log.listen((entry) => observer.logged(entry));
    return observer;
  }

  /** Executors receive the folds of the conversation and never its chart. */
  #makeEffects(): Effects {
    const { log, logState, transcript, live, attachments, request, workObserver } = this;
    const { id, cwd, instructions, toolbox, ports, redact } = this.#options;
    const around: RuntimeScope = {
      conversationId: id,
      cwd,
      entries: log.entries,
      partials: log.partials,
      transcript,
      logState,
      request,
      next: new NextRequest({ instructions, toolbox, transcript, request, redact }),
      reply: undefined,
      setTimer: ports.setTimer,
      diagnose: (code, detail) => this.diagnose(code, detail),
    };
    const send = (signal: Live): void => live.next(signal);
    return new Effects({
      ...this.#options,
      around,
      attachments,
      live: () => (live.observed ? send : undefined),
      workObserver,
      state: () => this.state,
      subAgents: () => this.subAgents,
    });
  }

  /** The journal that the host put around the embedded one, or the embedded one itself. */
  #makeJournal(): Journal {
    const { id, ports } = this.#options;
    const embedded = new EmbeddedJournal({
      ...ports,
      execute: this.#effects.execute,
      append: (batch, at) => this.log.follow(batch, at),
      cycleMs: () => this.logState.cycleMs,
      report: (report) => (report.kind === 'ended' ? this.#over(report.result) : this.commands.answer(report)),
      late: (request, completion) => this.#note(lateResult(request, completion)),
    });
    return ports.journal?.(embedded, id) ?? embedded;
  }

  /** Starts the chart from the current log. */
  start(): void {
    const { id, policies, plugins, models, named, ports, observer, interpreter, summaries } = this.#options;
    this.#driver = new Driver({
      machine: summaries?.compactingConversation ?? conversationChart,
      input: restored(this.logState, settingsOf(id, policies, plugins, models, windowOf(models, named))),
      journal: this.#journal,
      setTimer: ports.setTimer,
      admit: (command) => this.#admit(command as Command),
      fold: () => this.log.fold(),
      announce: () => this.log.announce(),
      settled: () => this.#settled(),
      cancelling: () => this.isCancelling,
      uncancelled: () => this.#endCancels(),
      refused: (actId, error) => this.commands.refuse({ actId }, hostError('append', error)),
      broke: (error) => this.#broke(error),
      inspect: observer?.charts,
      interpreter,
    });
    this.chart.root = this.#driver.root;
    this.hostStatus.changed();
    this.#driver.start(ports.now());
  }

  /** The status of the chart. Hosts read `hostStatus`. */
  get status(): ConversationStatus {
    return this.chart.status;
  }
  get state(): { readonly [key: string]: Json } {
    this.#state ??= Object.freeze(Object.fromEntries(this.logState.state));
    return this.#state;
  }

  /** Takes a command; resolves when its entries are durable, rejects where it is refused or cannot be stored. */
  submit(command: Command, attachments?: Promise<StoredPart[]>): Promise<Answer> {
    return this.commands.send(command, attachments);
  }

  /** The text of the current attempt of a model call, until its reply is durable. */
  get inFlight(): InFlight | null {
    return this.#effects.inFlight;
  }

  /** The current run, durable or not yet. */
  get runId(): string | undefined {
    return this.chart.runId;
  }

  /** Accepted messages that are not delivered, durable or not yet. */
  get queue(): readonly QueuedMessage[] {
    return this.chart.queue;
  }

  /**
   * The number of messages that wait, or will wait again if the store loses their delivery or their return. Each keeps its place
   * until then.
   */
  get queueLength(): number {
    const { queue, logState } = this;
    const unstored = this.#driver?.unstored ?? [];
    const queued = unstored.flatMap((entry) => (entry.type === 'message-queued' ? [entry] : []));
    return new Set([...queue, ...logState.queue, ...queued].map(({ messageId }) => messageId)).size;
  }

  /** Ends the run before everything that waits; resolves when its entries are durable. */
  cancel(): Promise<Answer> {
    return this.#sendCancel('cancel.requested');
  }

  /** Returns the queue and ends the run; resolves when its entries are durable. */
  close(): Promise<Answer> {
    return this.#sendCancel('close.requested');
  }

  #sendCancel(type: 'cancel.requested' | 'close.requested'): Promise<Answer> {
    const partial = this.#options.policies.partialReply === 'keep' ? this.#effects.partial : '';
    const answered = this.commands.send({ type, ...(partial && { partial }) });
    if (this.commands.closed) return answered;
    if (type === 'cancel.requested' || this.isCancelling) this.#driver?.beginCancel();
    this.#tell();
    return answered;
  }

  /** A run is being cancelled, or is about to be. */
  get isCancelling(): boolean {
    return this.status === 'cancelling' || this.commands.cancelling;
  }

  /** Gives up acts that the chart has not taken. */
  giveUp(by: GivenUpBy): void {
    this.commands.giveUp(by);
    if (this.commands.cancelling) this.#driver?.beginCancel();
  }

  /** Resolves when no cancel is under way. */
  async uncancelled(): Promise<void> {
    if (this.status === 'cancelling') await new Promise<void>((resolve) => void this.#onCancelled.push(resolve));
  }

  diagnose(code: string, detail?: Json): void {
    this.#note([diagnostic(this.logState.runId, code, detail)]);
  }

  /** `urgent`: before everything that waits. */
  #put(event: Command, urgent = false): void {
    this.#journal.put({ type: 'act', event, ...(urgent && { priority: 'cancel' }) });
  }

  /** `actId`: the act that is answered when the entries are durable. */
  #note(entries: readonly NewEntry[], { actId }: HostAct = {}): void {
    if (entries.length > 0) this.#journal.put({ type: 'note', entries, ...(actId !== undefined && { actId }) });
  }

  /** Nothing runs, waits or is being stored, so there is nothing to wait for. */
  get isAtRest(): boolean {
    const { status } = this;
    const isQuiet = (status === 'idle' || status === 'waiting') && this.queue.length === 0 && !this.subAgents;
    return isQuiet && this.commands.isIdle && this.#driver?.isLogged === true && !this.log.hasPendingAppend;
  }

  /** Resolves when nothing is being stored. */
  async settled(): Promise<void> {
    await this.#driver?.settled();
    await this.log.settled();
  }

  /**
   * A subscriber threw. The error becomes a message without secrets here. Whether it ends the current run is judged in order
   * with everything else, so that no step stays incomplete.
   */
  readonly observerFailed = (error: unknown): void => {
    const { policies, redact } = this.#options;
    const message = redact(thrownText(error));
    if (policies.observerErrors === 'isolate') this.diagnose('observer_error', { message });
    else this.#put({ type: 'observer.failed', error: { code: 'observer', message } });
  };

  /** Takes nothing more: commands are refused as closed. */
  stop(): void {
    const { isIdle } = this.commands;
    const { id } = this.#options;
    const why = isIdle ? undefined : new RunchartError('closed', `the conversation ${id} is closed; open it again`);
    this.commands.close(why);
    this.#driver?.stop();
    this.#endCancels();
    this.live.complete();
  }

  get toolbox(): Toolbox {
    return this.#options.toolbox;
  }

  get setTimer(): Ports['setTimer'] {
    return this.#options.ports.setTimer;
  }

  #fold(entry: LogEntry): void {
    foldEntry(this.#options.folds, entry);
    if (entry.type === 'state-changed') this.#state = undefined;
  }

  #show({ type }: LogEntry): void {
    if (type === 'state-changed' && this.live.observed) this.live.next({ type: 'state', state: { ...this.state } });
  }

  #settled(): void {
    if (this.status !== 'cancelling') this.#endCancels();
    this.#tell();
  }

  #endCancels(): void {
    for (const resolve of this.#onCancelled.splice(0)) resolve();
  }

  #tell(): void {
    const status = this.hostStatus.changed();
    if (!status) return;
    if (this.live.observed) this.live.next({ type: 'status', status });
    for (const changed of this.statusWatchers) changed();
  }

  #admit(command: Command): { type: string } | undefined {
    if (command.returned) return undefined;
    const log = { logState: this.logState, entries: this.log.entries };
    const { event, refused, note } = admitCommand(command, log, this.chart, this.#driver?.isLogged === true);
    this.commands.take(command);
    const why = this.#broken ?? (refused && { error: refused });
    if (why) this.commands.refuse(command, why.error);
    this.#note(note ?? [], command);
    return event;
  }

  #broke(error: unknown): void {
    const failure = { code: 'internal', message: thrownText(error) };
    this.#broken = { error };
    this.commands.refuseTaken(error);
    this.#over({ runId: this.logState.runId, termination: 'Error', cause: 'internal', error: failure, durable: false });
  }

  /** Resolves when the plugins are closed. Undefined without plugins. */
  closed(): Promise<void> | undefined {
    return this.#effects.closed();
  }

  /** Text that a finished run streamed and that no entry contains never counts. */
  #over(output: RunOutput): void {
    this.#effects.forget();
    this.onEnded(output);
  }
}

/** Parts of the library that were loaded for this conversation. */
export interface OnDemand {
  /** Where the policy `textToolCalls` names a format. */
  textCalls?: TextCalls;
  /** Runs the phases; present where the agent has plugins. */
  PhaseRunner?: typeof PhaseRunner;
  workObserverOf?: typeof workObserverOf;
  /** Runs calls and their gates; present where the agent has tools, or the log exists already. */
  tools?: NonNullable<EffectsOptions['tools']>;
  /** Where the policy `toolRetry` repeats failing tools. */
  retryOf?: typeof retryOf;
  /** Where earlier messages may become a summary: the charts with COMPACTION, and its executor. */
  summaries?: Summaries;
  /** Where the model declares the size of its window, and something happens as it fills up. */
  contextUse?: ContextUse;
  /** Present where it is not the compiled one. */
  interpreter?: Interpreter | undefined;
  /** Undefined without an inspector. */
  observer?: Pick<ConversationObserver, 'charts'> | undefined;
}

export interface RuntimeOptions extends OnDemand, OwnProfile {
  /** The request of the parent, for a sub-agent. */
  above?: (() => CycleRequest) | undefined;
  id: string;
  cwd: string;
  handle: LogHandle;
  entries: LogEntry[];
  /** Of the entries. */
  folds: LogFolds;
  ports: Ports;
  redact: Redact;
  attended: boolean;
  /** Schemas of final answers, by message id; the agent's own under the empty id. */
  schemas: ReadonlyMap<string, StandardSchemaV1>;
}
