/**
 * One living conversation without its public interface: log, folds, executors and driver, connected. Invariant: it reads
 * durable entries only. Acts of hosts enter through the journal and are judged at their delivery.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  applyEntry,
  conversationChart,
  createTranscript,
  emptyLogState,
  type Journal,
  type Json,
  type LogEntry,
  type LogState,
  type NewEntry,
  type QueuedMessage,
  type RunOutput,
  restored,
  type Transcript,
} from '../../machines/internal.ts';
import { settingsOf } from '../agentPolicies.ts';
import { Images } from '../content/content.ts';
import { RunchartError, thrownText } from '../errors.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import { ConversationLog } from '../log/conversationLog.ts';
import type { Redact } from '../log/redact.ts';
import type { TextCalls } from '../models/textCalls.ts';
import type { PhaseRunner } from '../plugins/phases.ts';
import type { LogHandle } from '../stores/logStore.ts';
import type { retryOf } from '../tools/toolRetry.ts';
import {
  type Answer,
  admitCommand,
  type Command,
  CommandQueue,
  diagnostic,
  lateResult,
  type StartingCommand,
} from './commands.ts';
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
  readonly logState: LogState = emptyLogState();
  readonly transcript: Transcript = createTranscript();
  readonly live: LiveFeed = new LiveFeed(() => this.inFlight);
  readonly images: Images;
  readonly #options: RuntimeOptions;
  readonly #effects: Effects;
  readonly #journal: Journal;
  #driver: Driver | undefined;
  readonly chart: ChartStatus = new ChartStatus();
  readonly commands: CommandQueue = new CommandQueue(
    this.chart,
    (command) => this.#put(command, command.type === 'message.returned'),
    (message) => this.diagnose('image_not_stored', { message }),
  );
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
    const { id, handle, entries, redact, ports } = options;
    this.#options = options;
    this.log = new ConversationLog({
      id,
      handle,
      entries,
      redact,
      logState: this.logState,
      transcript: this.transcript,
    });
    this.log.listen((entry) => this.#fold(entry));
    this.log.watch((entry) => this.#show(entry));
    for (const entry of entries) this.#fold(entry);
    this.images = new Images(handle, ports.scaleImage);
    this.#effects = this.#makeEffects();
    this.log.listen((entry) => this.#effects.landed(entry));
    this.#journal = this.#makeJournal();
  }

  /** Executors receive the folds of the conversation and never its chart. */
  #makeEffects(): Effects {
    const { log, logState, transcript, live, images } = this;
    const { id, cwd, instructions, models, toolbox, ports, redact } = this.#options;
    const around: RuntimeScope = {
      conversationId: id,
      cwd,
      entries: log.entries,
      transcript,
      logState,
      next: new NextRequest({ instructions, toolbox, transcript, model: models[0], redact }),
      reply: undefined,
      setTimer: ports.setTimer,
      diagnose: (code, detail) => this.diagnose(code, detail),
    };
    const send = (signal: Live): void => live.next(signal);
    return new Effects({
      ...this.#options,
      around,
      images,
      live: () => (live.observed ? send : undefined),
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
    const { id, policies, plugins, models, ports, observer, interpreter, summaries } = this.#options;
    this.#driver = new Driver({
      machine: summaries?.compactingConversation ?? conversationChart,
      input: restored(this.logState, settingsOf(id, policies, plugins, models)),
      journal: this.#journal,
      setTimer: ports.setTimer,
      admit: (command) => this.#admit(command as Command),
      fold: () => this.log.fold(),
      announce: () => this.log.announce(),
      settled: () => this.#settled(),
      cancelling: () => this.status === 'cancelling' || this.commands.cancelling,
      uncancelled: () => this.#endCancels(),
      refused: (actId, error) => this.commands.refuse({ actId }, error),
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
  submit(command: Command): Promise<Answer> {
    return this.commands.send(command);
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

  /** Ends the run before everything that waits; resolves when its entries are durable. */
  cancel(): Promise<unknown> {
    const partial = this.#options.policies.partialReply === 'keep' ? this.#effects.partial : '';
    const event: Command = { type: 'cancel.requested', ...(partial && { partial }) };
    const answered = this.commands.open(event);
    if (this.commands.closed) return answered;
    this.#put(event, true);
    this.#driver?.beginCancel();
    this.#tell();
    return answered;
  }

  /** Withdraws acts that the chart has not taken. Returns the command of the named run. */
  giveUp(by: 'cancel' | 'close' | { runId: string }): StartingCommand | undefined {
    const command = this.commands.giveUp(by);
    if (this.commands.cancelling) this.#driver?.beginCancel();
    return command;
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

  #note(entries: readonly NewEntry[]): void {
    if (entries.length > 0) this.#journal.put({ type: 'note', entries });
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

  get setTimer(): Ports['setTimer'] {
    return this.#options.ports.setTimer;
  }

  #fold(entry: LogEntry): void {
    applyEntry(this.logState, entry);
    this.transcript.push(entry);
    if (entry.type === 'state-changed') this.#state = undefined;
  }

  #show({ type }: LogEntry): void {
    if (type === 'state-changed' && this.live.observed) this.live.next({ type: 'state', state: { ...this.state } });
  }

  #settled(): void {
    this.commands.flush();
    if (this.status !== 'cancelling') this.#endCancels();
    this.#tell();
  }

  #endCancels(): void {
    for (const resolve of this.#onCancelled.splice(0)) resolve();
  }

  #tell(): void {
    const status = this.hostStatus.changed();
    if (status && this.live.observed) this.live.next({ type: 'status', status });
  }

  #admit(command: Command): { type: string } | undefined {
    // A withdrawn command has its answer already.
    if (command.withdrawn && !this.commands.waits(command)) return undefined;
    const { event, refused, note } = admitCommand(command, this.logState, this.chart, this.#driver?.isLogged === true);
    this.commands.take(command);
    const why = this.#broken ?? (refused && { error: refused });
    if (why) this.commands.refuse(command, why.error);
    this.#note(note ?? []);
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
  id: string;
  cwd: string;
  handle: LogHandle;
  entries: LogEntry[];
  ports: Ports;
  redact: Redact;
  attended: boolean;
  /** Schemas of final answers, by message id; the agent's own under the empty id. */
  schemas: ReadonlyMap<string, StandardSchemaV1>;
}
