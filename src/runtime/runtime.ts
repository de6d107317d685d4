/**
 * One living conversation under its public face: log, folds, executors and driver, wired together. Rule: it knows what
 * durable entries say; what hosts do enters through the journal and is judged at its delivery.
 */
import {
  conversationMachine,
  createTranscript,
  type Journal,
  type Json,
  type Knowledge,
  type LogEntry,
  learn,
  type NewEntry,
  nothingKnown,
  type QueuedMessage,
  type RunOutput,
  restored,
  type Transcript,
} from '../../machines/internal.ts';
import { Images } from '../content/imageStore.ts';
import { RunchartError, thrownText } from '../errors.ts';
import { type ConversationStatus, type InFlight, type Live, LiveFeed } from '../live.ts';
import { ConversationLog } from '../log/conversationLog.ts';
import type { Redact } from '../log/redact.ts';
import type { Model } from '../models/model.ts';
import type { TextCalls } from '../models/textCalls.ts';
import type { PhaseRunner } from '../plugins/phases.ts';
import type { Plugin } from '../plugins/plugin.ts';
import { type Policies, settingsOf } from '../policies.ts';
import type { LogHandle } from '../stores/store.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import { CommandQueue } from './commandQueue.ts';
import { admitCommand, type Command, diagnostic, lateResult, type StartingCommand } from './commands.ts';
import { Driver } from './driver.ts';
import { Effects, type RuntimeScope } from './effects.ts';
import type { Interpreter } from './interpreter/interpreter.ts';
import { EmbeddedJournal, type JournalOptions } from './journal.ts';
import { NextRequest } from './modelRequest.ts';
import type { Ports } from './ports.ts';
import { ChartStatus, HostStatus } from './status.ts';
import type { SubAgents } from './subAgentPort.ts';

/** Ahead of everything that waits. */
const CANCELS = { priority: 'cancel' } as const;

export class Runtime {
  readonly log: ConversationLog;
  readonly known: Knowledge = nothingKnown();
  readonly transcript: Transcript = createTranscript();
  readonly live: LiveFeed = new LiveFeed(() => this.inFlight);
  readonly images: Images;
  /** What a subscriber threw. */
  readonly observerFailed: (error: unknown) => void;
  readonly #options: RuntimeOptions;
  readonly #effects: Effects;
  readonly #journal: Journal;
  #driver: Driver | undefined;
  readonly chart: ChartStatus = new ChartStatus();
  readonly commands: CommandQueue = new CommandQueue(
    { chart: this.chart, log: this.known },
    (event) => this.#journal.put({ type: 'act', event, ...(event.type === 'message.returned' && CANCELS) }),
    (message) => this.diagnose('image_not_stored', { message }),
  );
  readonly hostStatus: HostStatus = new HostStatus(this.chart, this.commands, this.known);
  #state: { readonly [key: string]: Json } | undefined;
  #onCancelled: (() => void)[] = [];
  /** Set while the conversation is opened, where it can have any. */
  subAgents: SubAgents | undefined;
  /** Called when a run is over. */
  onEnded: (output: RunOutput) => void = () => {};

  constructor(options: RuntimeOptions) {
    const { id, handle, entries, redact, ports } = options;
    this.#options = options;
    this.log = new ConversationLog({ id, handle, entries, redact, known: this.known, transcript: this.transcript });
    this.log.listen((entry) => this.#fold(entry));
    this.log.watch((entry) => this.#show(entry));
    for (const entry of entries) this.#fold(entry);
    this.images = new Images(handle, ports.scaleImage);
    const { log, known, transcript, live, images } = this;
    const diagnose = (code: string, detail?: Json): void => this.diagnose(code, detail);
    this.#effects = wiredEffects(options, {
      log,
      known,
      transcript,
      live,
      images,
      diagnose,
      state: () => this.state,
      subAgents: () => this.subAgents,
    });
    log.listen((entry) => this.#effects.landed(entry));
    this.#journal = wiredJournal(options, log, {
      execute: this.#effects.execute,
      cycleMs: () => known.cycleMs,
      ended: ({ result }) => this.#over(result),
      late: (request, completion) => this.#note(lateResult(request, completion)),
    });
    this.observerFailed = observerErrorHandler(options, (event) => this.#journal.put({ type: 'act', event }), diagnose);
  }

  /** Starts the chart from what the log says now. */
  start(): void {
    const { id, policies, plugins, models, ports, inspect, interpreter } = this.#options;
    this.#driver = new Driver({
      machine: conversationMachine,
      input: restored(this.known, settingsOf(id, policies, plugins, models)),
      journal: this.#journal,
      setTimer: ports.setTimer,
      admit: (command) => this.#admit(command),
      settled: (commands) => this.#settled(commands),
      cancelling: () => this.status === 'cancelling' || this.commands.cancelling,
      refused: (commands, error) => this.commands.refuse(commands, error),
      broke: (error) => this.#broke(error),
      ...(inspect && { inspect }),
      ...(interpreter && { interpreter }),
    });
    this.chart.attach(this.#driver.root);
    this.hostStatus.changed();
    this.#driver.start(ports.now());
  }

  /** What the chart says; `hostStatus` is what a host is told. */
  get status(): ConversationStatus {
    return this.chart.status;
  }
  get state(): { readonly [key: string]: Json } {
    this.#state ??= Object.freeze(Object.fromEntries(this.known.state));
    return this.#state;
  }

  /** Takes a command; resolves when what it logged is durable, rejects where it is refused or could not be stored. */
  submit(command: Command): Promise<unknown> {
    return this.commands.send(command);
  }

  /** What the current attempt of a model call has streamed, until its reply is durable. */
  get inFlight(): InFlight | null {
    return this.#effects.inFlight;
  }

  /** The run under way, durable or not yet. */
  get runId(): string | undefined {
    return this.chart.runId;
  }

  /** Messages that were accepted and are not delivered, durable or not yet. */
  get queue(): readonly QueuedMessage[] {
    return this.chart.queue;
  }

  /** Ends what runs, ahead of everything that waits; resolves when what that logged is durable. */
  cancel(): Promise<unknown> {
    const partial = this.#options.policies.partialReply === 'keep' ? this.#effects.partial : '';
    const event: Command = { type: 'cancel.requested', ...(partial && { partial }) };
    const answered = this.commands.open(event);
    if (this.commands.closed) return answered;
    this.#journal.put({ type: 'act', event, priority: 'cancel' });
    this.#driver?.beginCancel();
    this.#tell();
    return answered;
  }

  /** Gives up what a command would start, whatever it waits for; `unseen`: it leaves nothing in the log. */
  withdraw(command: StartingCommand, unseen: boolean): void {
    this.commands.withdraw(command, !unseen && this.commands.starts(command));
    if (this.commands.cancelling) this.#driver?.beginCancel();
  }

  /** Resolves when no cancel is under way. */
  async uncancelled(): Promise<void> {
    if (this.status === 'cancelling') await new Promise<void>((resolve) => void this.#onCancelled.push(resolve));
  }

  diagnose(code: string, detail?: Json): void {
    this.#note([diagnostic(this.known.runId, code, detail)]);
  }

  #note(entries: readonly NewEntry[]): void {
    if (entries.length > 0) this.#journal.put({ type: 'note', entries });
  }

  /** Resolves when nothing is on its way into the log. */
  async settled(): Promise<void> {
    await this.#driver?.settled();
    await this.log.settled();
  }

  /** Nothing is taken any more: commands are refused as closed. */
  stop(): void {
    this.commands.close(new RunchartError('closed', `the conversation ${this.#options.id} is closed; open it again`));
    this.#driver?.stop();
    for (const resolve of this.#onCancelled.splice(0)) resolve();
    this.live.complete();
  }

  get setTimer(): Ports['setTimer'] {
    return this.#options.ports.setTimer;
  }

  #fold(entry: LogEntry): void {
    learn(this.known, entry);
    this.transcript.push(entry);
    if (entry.type === 'state-changed') this.#state = undefined;
  }

  #show({ type }: LogEntry): void {
    if (type === 'state-changed' && this.live.observed) this.live.next({ type: 'state', state: { ...this.state } });
  }

  #settled(commands: readonly object[]): void {
    this.commands.settle(commands);
    this.commands.flush();
    if (this.status !== 'cancelling') for (const resolve of this.#onCancelled.splice(0)) resolve();
    this.#tell();
  }

  #tell(): void {
    const status = this.hostStatus.changed();
    if (status && this.live.observed) this.live.next({ type: 'status', status });
  }

  #admit(command: { type: string }): readonly { type: string }[] {
    // It was answered as given up already.
    if ('aborted' in command && !this.commands.waits(command as Command)) return [];
    const admitted = admitCommand(command, this.known, this.chart, this.#driver?.isLogged === true);
    this.commands.delivered(command, admitted);
    this.#note(admitted.note ?? []);
    return admitted.events;
  }

  #broke(error: unknown): void {
    const failure = { code: 'internal', message: thrownText(error) };
    this.#over({ runId: this.known.runId, termination: 'Error', cause: 'internal', error: failure, durable: false });
  }

  /** What a run that is over streamed and no entry holds never counts. */
  #over(output: RunOutput): void {
    this.#effects.forget();
    this.onEnded(output);
  }
}

/** Parts of the library that were loaded for it. */
export interface OnDemand {
  /** Where the policy `textToolCalls` names a format. */
  textCalls?: TextCalls;
  /** Runs the phases; there where the agent has plugins. */
  Phases?: typeof PhaseRunner;
  /** Where it is not the compiled one. */
  interpreter?: Interpreter;
}

export interface RuntimeOptions extends OnDemand {
  id: string;
  cwd: string;
  handle: LogHandle;
  entries: LogEntry[];
  instructions: string;
  models: readonly [Model, ...Model[]];
  toolbox: Toolbox;
  plugins: readonly Plugin[];
  policies: Policies;
  ports: Ports;
  redact: Redact;
  attended: boolean;
  inspect?: (event: unknown) => void;
}

export interface Wires {
  log: ConversationLog;
  known: Knowledge;
  transcript: Transcript;
  live: LiveFeed;
  images: Images;
  diagnose(code: string, detail?: Json): void;
  subAgents(): SubAgents | undefined;
  state(): { readonly [key: string]: Json };
}

export function wiredEffects(options: RuntimeOptions, wires: Wires): Effects {
  const { id, cwd, instructions, models, toolbox, plugins, policies, ports, redact, attended, textCalls, Phases } =
    options;
  const { log, known, transcript, live: signals, images, diagnose, state, subAgents } = wires;
  const around: RuntimeScope = {
    conversationId: id,
    cwd,
    entries: log.entries,
    transcript,
    known,
    next: new NextRequest({ instructions, toolbox, transcript, model: models[0] }),
    reply: undefined,
    setTimer: ports.setTimer,
    diagnose,
  };
  const send = (signal: Live): void => signals.next(signal);
  const live = () => (signals.observed ? send : undefined);
  return new Effects({
    models,
    toolbox,
    plugins,
    policies,
    ports,
    around,
    redact,
    attended,
    live,
    state,
    subAgents,
    images,
    textCalls,
    Phases,
  });
}

/** The journal that the host put around the embedded one, or that one itself. */
export function wiredJournal(
  { id, ports }: RuntimeOptions,
  log: ConversationLog,
  wires: Omit<JournalOptions, 'append' | 'now' | 'setTimer'>,
): Journal {
  const { now, setTimer } = ports;
  const embedded = new EmbeddedJournal({ ...wires, append: (batch, at) => log.follow(batch, at), now, setTimer });
  return ports.journal?.(embedded, id) ?? embedded;
}

export function observerErrorHandler(
  { policies, redact }: Pick<RuntimeOptions, 'policies' | 'redact'>,
  put: (event: Command) => void,
  diagnose: (code: string, detail?: Json) => void,
): (error: unknown) => void {
  return (error) => {
    const message = redact(thrownText(error));
    if (policies.observerErrors === 'isolate') diagnose('observer_error', { message });
    else put({ type: 'observer.failed', error: { code: 'observer', message } });
  };
}
