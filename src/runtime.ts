/**
 * One living conversation under its public face: log, folds, effects and driver, wired together. Rule: what it knows
 * it learned from durable entries; what hosts do enters as acts through the journal, judged when they are delivered.
 */
import { Subject } from 'rxjs';
import {
  type Completion,
  conversationMachine,
  createTranscript,
  type EffectRequest,
  type Json,
  type Knowledge,
  type LogEntry,
  learn,
  type NewEntry,
  nothingKnown,
  type RunOutput,
  repairs,
  restored,
  type Transcript,
} from '../machines/index.ts';
import { type Act, admit, diagnostic } from './acts.ts';
import { bound } from './charts.ts';
import { Driver } from './driver.ts';
import { Effects } from './effects.ts';
import { EmbeddedJournal } from './journal.ts';
import type { ConversationStatus, Live } from './live.ts';
import { ConversationLog } from './log.ts';
import type { Model } from './models/model.ts';
import { type Policies, settingsOf } from './options.ts';
import type { Surroundings } from './plugins/phases.ts';
import type { Plugin } from './plugins/plugin.ts';
import type { Ports } from './ports.ts';
import type { Redact } from './redact.ts';
import { NextRequest } from './request.ts';
import type { LogHandle } from './stores/store.ts';
import { definitionOf } from './tools/define.ts';
import { thrownText } from './tools/execute.ts';
import type { Toolbox } from './tools/prepare.ts';

/** Rebuilt once a process with the driver's actions. */
let chart: typeof conversationMachine | undefined;

export interface RuntimeOptions {
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

/** An act on its way: its host is answered when what it logged is durable. */
interface Ticket {
  answer?: unknown;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

export class Runtime {
  readonly log: ConversationLog;
  readonly known: Knowledge = nothingKnown();
  readonly transcript: Transcript = createTranscript();
  readonly live = new Subject<Live>();
  readonly #options: RuntimeOptions;
  readonly #effects: Effects;
  readonly #journal;
  #driver: Driver | undefined;
  /** Acts that wait for their turn, and acts whose entries are not durable yet. */
  readonly #acts = new Map<object, Ticket>();
  #tickets: Ticket[] = [];
  #status: ConversationStatus = 'idle';
  #state: { readonly [key: string]: Json } | undefined;
  /** Called when a run is over and when the status changed. */
  onEnded: (output: RunOutput) => void = () => {};
  onStatus: (status: ConversationStatus) => void = () => {};

  constructor(options: RuntimeOptions) {
    const { id, handle, entries, redact, ports } = options;
    this.#options = options;
    this.log = new ConversationLog({ id, handle, entries, redact });
    this.log.listen((entry) => this.#learn(entry));
    for (const entry of entries) this.#fold(entry);
    this.#effects = this.#makeEffects();
    const embedded = new EmbeddedJournal({
      execute: this.#effects.execute,
      append: (batch, at) => this.log.append(batch, at),
      now: ports.now,
      setTimer: ports.setTimer,
      ended: ({ result }) => this.onEnded(result),
      late: (request, completion) => this.#late(request, completion),
    });
    this.#journal = ports.journal?.(embedded, id) ?? embedded;
  }

  /** Starts the chart from what the log says now. */
  start(): void {
    const { id, policies, plugins, models, ports, inspect } = this.#options;
    chart ??= bound(conversationMachine);
    this.#driver = new Driver({
      machine: chart,
      input: restored(this.known, settingsOf(id, policies, plugins, models)),
      journal: this.#journal,
      setTimer: ports.setTimer,
      admit: (act) => this.#admit(act),
      settled: () => this.#settled(),
      refused: (error) => this.#refused(error),
      broke: (error) => this.#broke(error),
      ...(inspect && { inspect }),
    });
    this.#driver.start(ports.now());
    this.#status = this.status;
  }

  /** The entries that bring the log of a dead process to rest; to be stored before the start. */
  repairs(): NewEntry[] {
    const { toolbox } = this.#options;
    return repairs(this.known, (name) => {
      const tool = toolbox.find(name);
      return (tool && definitionOf(tool)?.idempotent) === true;
    });
  }

  get status(): ConversationStatus {
    const value = this.#driver?.root.getSnapshot().value as string | { [key: string]: string } | undefined;
    if (value === undefined) return 'idle';
    if (typeof value === 'string') return value === 'waiting' ? 'waiting' : value === 'closing' ? 'cancelling' : 'idle';
    if (value.busy) return value.busy === 'cancelling' ? 'cancelling' : 'active';
    return value.idle === 'error' ? 'error' : 'idle';
  }

  get state(): { readonly [key: string]: Json } {
    this.#state ??= Object.freeze(Object.fromEntries(this.known.state));
    return this.#state;
  }

  /** Puts an act; resolves when what it logged is durable, rejects where it is refused or could not be stored. */
  act(event: Act): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#acts.set(event, { resolve, reject });
      this.#journal.put({ type: 'act', event });
    });
  }

  /** A message that waits for its turn would start a run. */
  get expecting(): boolean {
    for (const act of this.#acts.keys()) if ((act as Act).type === 'message.sent') return true;
    return false;
  }

  /** Ends what runs, ahead of everything that waits. */
  cancel(): void {
    const partial = this.#options.policies.partialReply === 'keep' ? this.#effects.partial : '';
    const event = { type: 'cancel.requested', ...(partial && { partial }) };
    this.#journal.put({ type: 'act', event, priority: 'cancel' });
    this.#driver?.hurry();
  }

  diagnose(code: string, detail?: Json): void {
    this.#journal.put({ type: 'note', entries: [diagnostic(this.known.runId, code, detail)] });
  }

  /** What a subscriber threw. */
  readonly observerFailed = (error: unknown): void => this.diagnose('observer_error', { message: thrownText(error) });

  async close(): Promise<void> {
    this.#driver?.stop();
    this.live.complete();
    await this.log.close();
  }

  #fold(entry: LogEntry): void {
    learn(this.known, entry);
    this.transcript.push(entry);
  }

  #learn(entry: LogEntry): void {
    this.#fold(entry);
    if (entry.type !== 'state-changed') return;
    this.#state = undefined;
    if (this.live.observed) this.live.next({ type: 'state', state: { ...this.state } });
  }

  #settled(): void {
    const tickets = this.#tickets;
    this.#tickets = [];
    for (const ticket of tickets) ticket.resolve(ticket.answer);
    const { status } = this;
    if (status === this.#status) return;
    this.#status = status;
    this.onStatus(status);
    if (this.live.observed) this.live.next({ type: 'status', status });
  }

  #refused(error: unknown): void {
    const tickets = this.#tickets;
    this.#tickets = [];
    for (const ticket of tickets) ticket.reject(error);
  }

  #admit(act: { type: string }): readonly { type: string }[] {
    const { events, answer, refused } = admit(act, this.known);
    const ticket = this.#acts.get(act);
    this.#acts.delete(act);
    if (refused) ticket?.reject(refused);
    else if (ticket) this.#tickets.push({ ...ticket, answer });
    return events;
  }

  #broke(error: unknown): void {
    const message = thrownText(error);
    const result = { runId: this.known.runId, termination: 'Error' as const, cause: 'internal', durable: false };
    this.onEnded({ ...result, error: { code: 'internal', message } });
  }

  #late(request: EffectRequest, completion: Completion): void {
    const value = completion.type === 'effect.done' ? completion.value : undefined;
    if (request.kind === 'tool' && value?.kind === 'succeeded')
      this.diagnose('late_result', { callId: request.callId });
  }

  #makeEffects(): Effects {
    const { id, cwd, instructions, models, toolbox, plugins, policies, ports, attended } = this.#options;
    const { transcript, known } = this;
    const around: Surroundings = {
      conversationId: id,
      cwd,
      entries: this.log.entries,
      transcript,
      known,
      next: new NextRequest({ instructions, toolbox, transcript, model: models[0] }),
      reply: undefined,
      setTimer: ports.setTimer,
      diagnose: (code, detail) => this.diagnose(code, detail),
    };
    const send = (signal: Live): void => this.live.next(signal);
    const live = () => (this.live.observed ? send : undefined);
    return new Effects({ models, toolbox, plugins, policies, ports, around, attended, live, state: () => this.state });
  }
}
