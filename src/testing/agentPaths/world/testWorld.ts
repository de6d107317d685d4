/**
 * The world of an agent under test: its model, its clock, its ids, its store and its journal. Invariant: nothing
 * happens outside the script, except for the agent's own work. The store and the recorded answers outlive the process.
 */
import type { EffectRequest, Journal, Settings } from '../../../../machines/internal.ts';
import type { Ports } from '../../../runtime/hostPorts.ts';
import { compiled } from '../../../runtime/interpreter/chartActor.ts';
import type { InterpreterOptions, RootChart } from '../../../runtime/interpreter/interpreter.ts';
import type { During } from '../../../scripts/moves.ts';
import type { LogStore } from '../../../stores/logStore.ts';
import { AgentProcesses, SurvivingStore } from '../../world/agentProcesses.ts';
import type { AgentWorld } from '../../world/agentWorld.ts';
import { isTimeUp } from '../cycleTime.ts';
import { isDuring } from '../search/callBehaviour.ts';
import { coveredBy } from '../search/takenTransitions.ts';
import { HeldModel } from './heldModel.ts';
import { HoldingJournal, type HoldingOptions } from './holdingJournal.ts';
import { type Outside, ToolWatch } from './toolWatch.ts';

export interface TestWorldOptions {
  outside?: Outside | undefined;
  stubs?: 'all' | readonly string[] | undefined;
  /** Returns arguments for the calls of sub-agents. */
  argsFor?(tool: string): unknown;
  madeEnd?(callId: string): 'fail' | 'timeOut' | undefined;
  /** Receives each transition that the conversation's charts take. */
  taken?: ((key: string) => void) | undefined;
  /** Receives every answer in the conversation itself. */
  answered?: HoldingOptions['answered'] | undefined;
}

/** The id of the conversation under test. */
export const TESTED = 'tested';
/** The longest real time that a released gate, phase or tool may take. */
const PATIENCE_MS = 10_000;
/** The longest real time that the agent may act without a move. */
const RESTLESS_MS = 30_000;
/** After this many turns of the event loop without a change, the test waits in real time. */
const TURNS = 20;

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
export const realTime = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

export class TestWorld extends AgentProcesses {
  readonly model: HeldModel;
  readonly tools: ToolWatch;
  /** The agent's policies and phases, as its charts receive them. */
  settings: Settings | undefined;
  /** The agent uses this world's store. */
  isStoring = false;
  readonly #options: TestWorldOptions;
  readonly #store = new SurvivingStore();
  #journals = new Map<string, HoldingJournal>();
  /** Conversations with a starting model call, in order. */
  #asking: string[] = [];
  #during: During | undefined;
  /** The request under test has used up the time that `limits.runMs` gives. */
  #isTimeUp = false;
  #stirs = 0;

  constructor(options: TestWorldOptions) {
    super();
    this.#options = options;
    const stirred = (): void => this.#stir();
    const { stubs = [], outside, argsFor, madeEnd } = options;
    this.model = new HeldModel({
      isSubAgents: () => (this.#asking.shift() ?? TESTED) !== TESTED,
      argsFor: (tool) => argsFor?.(tool) ?? {},
      stirred,
    });
    this.tools = new ToolWatch({
      ...{ clock: this.clock, outside, stirred },
      isStub: (name) => stubs === 'all' || stubs.includes(name),
      isOwn: (id) => id === TESTED,
      madeEnd: (callId) => madeEnd?.(callId),
    });
  }

  /** Returns the world for the current process. */
  around(): AgentWorld {
    return {
      model: this.model,
      store: this.#ownStore(),
      ports: this.#ports(),
      inspect: () => undefined,
    };
  }

  /** The journal of the conversation under test, once it is open. */
  get journal(): HoldingJournal | undefined {
    return this.#journals.get(TESTED);
  }

  /** Ends the process. Only its running tools continue. */
  override crash(): void {
    super.crash();
    this.tools.cutOff();
    this.model.forget();
    this.#asking = [];
    this.#journals = new Map();
    this.#store.crashed();
  }

  /** From now on, pauses the agent in this kind of activity. Resumes it where it was paused before. */
  stopIn(during: During | undefined): void {
    this.#during = during;
    this.journal?.letGo();
  }

  /** Resolves when the agent acts no more without a move. Rejects if that takes too long. */
  async settled(): Promise<void> {
    const until = Date.now() + PATIENCE_MS;
    const end = Date.now() + RESTLESS_MS;
    for (let still = 0, turns = 0; still < 2; turns++) {
      if (Date.now() > end) throw this.#restless(RESTLESS_MS);
      const before = this.#stirs;
      await (turns < TURNS ? turn() : realTime(1));
      if (this.#stirs !== before) [still, turns] = [0, 0];
      else if (this.#isBusy) still = this.#sleepers() ? 0 : this.#wait(until);
      else if (!this.journal?.isHolding && this.clock.ring((owner) => owner === 'retry')) still = 0;
      else still += 1;
    }
  }

  /** Resolves when `isOver` returns true, or after `ms` of real time. */
  async until(isOver: () => boolean, ms: number): Promise<void> {
    const end = Date.now() + ms;
    for (let turns = 0; !isOver() && Date.now() < end; turns++) await (turns < TURNS ? turn() : realTime(1));
  }

  /** Resolves when no tool runs any more. Rejects if that takes too long. */
  async toolsEnd(): Promise<void> {
    const { tools } = this;
    const until = Date.now() + PATIENCE_MS;
    for (let still = 0, turns = 0; still < 2; turns++) {
      await (turns < TURNS ? turn() : realTime(1));
      if (this.#sleepers()) [still, turns] = [0, 0];
      else if (tools.underWay.some(({ cutOff }) => !cutOff)) still = this.#wait(until);
      else still += 1;
    }
  }

  #wait(until: number): 0 {
    if (Date.now() <= until) return 0;
    throw this.#restless(PATIENCE_MS);
  }

  #restless(ms: number): Error {
    const open = [...this.#journals.values()].flatMap((journal) => [...journal.open.values()]);
    const underWay = open.length > 0 ? `; under way are ${open.map(requestInWords).join(', ')}` : '';
    return new Error(`the agent has not come to rest within ${ms} ms${underWay}`);
  }

  /** Wakes a tool that sleeps on this clock. Returns false if there is none. */
  #sleepers(): boolean {
    return this.clock.ring((owner) => owner.startsWith('sleep '));
  }

  get #isBusy(): boolean {
    for (const [id, journal] of this.#journals) {
      if (journal.isBusy) return true;
      const asks = [...journal.open.values()].some(asksModel);
      if (asks && (id !== TESTED || !this.model.open)) return true;
    }
    return false;
  }

  #stir(): void {
    this.#stirs += 1;
  }

  #ports(): Partial<Ports> {
    const lives = this.lifeline();
    return {
      ...this.timePorts(),
      random: () => 0.5,
      journal: (embedded, id) => this.#journal(embedded, id, lives),
      execute: this.tools.execute,
      interpreter: (options) => this.#interpreted(options),
    };
  }

  #interpreted(options: InterpreterOptions): RootChart {
    const { settings } = options.input as { settings: Settings };
    if (settings.conversationId !== TESTED) return compiled(options);
    this.settings ??= settings;
    const { taken } = this.#options;
    return taken ? coveredBy(taken)(options) : compiled(options);
  }

  #journal(embedded: Journal, id: string, lives: () => boolean): HoldingJournal {
    const isTested = id === TESTED;
    const journal = new HoldingJournal(embedded, {
      lives,
      holdsTools: isTested,
      holds: (request) => isTested && this.#during !== undefined && isDuring(request, this.#during),
      stirred: () => this.#stir(),
      starting: (request, start) => this.#starting(id, request, start),
      appending: (entries) => {
        if (isTested) this.#isTimeUp = entries.reduce(isTimeUp, this.#isTimeUp);
      },
      answered: (request, completion) => {
        if (isTested) this.#options.answered?.(request, completion);
      },
    });
    this.#journals.set(id, journal);
    return journal;
  }

  #starting(id: string, request: EffectRequest, start: (request: EffectRequest) => void): void {
    if (asksModel(request)) this.#asking.push(id);
    if (request.kind !== 'timer') return start(request);
    if (!request.ofCycle) return this.clock.as('retry', () => start(request));
    // The clock has moved for other waits too, which the journal counts.
    const ms = id === TESTED && this.#isTimeUp ? 0 : request.ms + this.clock.elapsedMs;
    this.clock.as('deadline', () => start({ ...request, ms }));
  }

  #ownStore(): LogStore {
    const store = this.#store;
    return {
      open: (id) => {
        this.isStoring = true;
        return store.open(id);
      },
      list: () => store.list(),
      delete: (id) => store.delete(id),
    };
  }
}

const asksModel = ({ kind }: EffectRequest): boolean => kind === 'model' || kind === 'summary';

const requestInWords = (request: EffectRequest): string =>
  'callId' in request ? `${request.kind} of ${request.callId}` : request.kind;
