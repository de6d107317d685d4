/**
 * Predicts how the charts handle a script. The real CONVERSATION runs with its real children under the real driver, and
 * gets the observed answers of the agent. Invariant: the charts' requests determine the possible moves, and the agent's
 * own code never runs.
 */
import {
  conversationMachine,
  type EffectRequest,
  type EffectValue,
  isUnfinished,
  type LogEntry,
  type LogState,
  repairs,
  restored,
  runOf,
  type Settings,
} from '../../../../machines/internal.ts';
import { pendingCalls, unsettledCalls } from '../../../conversation/run.ts';
import { admitCommand, type Command } from '../../../runtime/commands.ts';
import { Driver } from '../../../runtime/driver.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';
import type { ChartRef, Interpreter } from '../../../runtime/interpreter/interpreter.ts';
import { ChartStatus } from '../../../runtime/status.ts';
import { type During, duringOf, filling, type Move, type MoveOf } from '../../../scripts/moves.ts';
import { ScriptedJournal } from '../../chartPaths/scriptedJournal.ts';
import type { Standing } from '../scriptRun.ts';
import { type AgentModel, answerFor, type Behaviour, isDuring } from './callBehaviour.ts';
import { decisionOf, failureValue, madeUpEnd, replyValue, SUMMARY, settlementOf, textOf } from './madeAnswers.ts';
import {
  type CallCourse,
  continuationsIn,
  coursesOf,
  duringsOf,
  nextByItself,
  type OwnAnswer,
  ownAnswer,
  type Passage,
  passageOf,
} from './ownAnswers.ts';
import { PredictedLog } from './predictedLog.ts';
import { coveredBy, forkedBy } from './takenTransitions.ts';

const GO_ON = 'Go on where you stopped.';
const STEPS_MAX = 400;
const numberOf = (callId: string): number => Number(callId.slice('call'.length));

export class Prediction {
  /** The transitions that the last move took. */
  taken = new Set<string>();
  /** The agent's own work after the last move. */
  readonly passed = new Map<During, Passage>();
  readonly log: PredictedLog;
  readonly calls: Behaviour[] = [];
  readonly #model: AgentModel;
  readonly #interpreter: Interpreter;
  /** The inspection of the charts is possible. */
  readonly #looks: boolean;
  #journal = new ScriptedJournal();
  /** The actor that waits for the answer to each request. */
  readonly #askers = new Map<string, ChartRef>();
  #chart = new ChartStatus();
  #driver: Driver | undefined;
  #folded = 0;
  #ids = 0;
  /** The messages in order of arrival. */
  #sent: string[] = [];
  /** The text of the last reply. */
  #replied = '';
  #broken: unknown;

  constructor(model: AgentModel, interpreter?: Interpreter, from?: Prediction) {
    this.#model = model;
    this.#looks = interpreter === undefined;
    this.#interpreter = interpreter ?? coveredBy((key) => this.taken.add(key));
    this.log = new PredictedLog(from?.log);
    if (from) this.#copy(from);
    else this.#open();
  }

  /** Returns a copy that continues independently, without a replay of the past. */
  fork(): Prediction {
    return new Prediction(this.#model, undefined, this);
  }

  /** The root chart, with its children under it. */
  get root(): ChartActor {
    return this.#driver?.root as unknown as ChartActor;
  }

  get logState(): LogState {
    return this.log.logState;
  }

  get entries(): readonly LogEntry[] {
    return this.log.entries;
  }

  get requests(): readonly EffectRequest[] {
    return [...this.#journal.open.values()];
  }

  get settings(): Settings {
    return this.#model.settings;
  }

  get standing(): Standing {
    const running = this.requests.flatMap((request) => (request.kind === 'tool' ? [numberOf(request.callId)] : []));
    const waiting = pendingCalls(this.logState).map(({ callId }) => numberOf(callId));
    return {
      status: this.#chart.status,
      model: this.requests.some(({ kind }) => kind === 'model'),
      summary: this.requests.some(({ kind }) => kind === 'summary'),
      running: running.sort((a, b) => a - b),
      waiting: waiting.sort((a, b) => a - b),
      queued: this.logState.queue.length,
    };
  }

  /** True if `resume()` would begin a run. */
  get isResumable(): boolean {
    const { status } = this.#chart;
    if (status === 'waiting') return true;
    if (status !== 'idle' && status !== 'error') return false;
    return isUnfinished(this.logState) || this.logState.queue.some(({ kind }) => kind === 'followUp');
  }

  get courses(): ReadonlyMap<string, CallCourse> {
    return coursesOf(this.logState);
  }

  get unsettled(): readonly number[] {
    return unsettledCalls(this.logState).map(({ callId }) => numberOf(callId));
  }

  /** The results of the schema for the next final answer, and for the last one if a move interrupts its validation. */
  get answered(): readonly unknown[] {
    const { answers } = this.#model.surroundings;
    const { runId } = this.logState;
    const continued = continuationsIn(this.entries, runId, 'stop_hook');
    if (!answers) return [continued];
    return [continued, continuationsIn(this.entries, runId, 'output'), answers.has(this.#replied)];
  }

  get hasDeadline(): boolean {
    return this.requests.some((request) => request.kind === 'timer' && request.ofCycle);
  }

  /** The calls of a reply have these behaviours. `next` is the move that may interrupt the work after this one. */
  move(move: Move, made: readonly Behaviour[] = [], next?: Move): void {
    this.taken = new Set();
    this.passed.clear();
    const during = duringOf(move);
    if (during !== undefined && !this.requests.some((request) => isDuring(request, during)))
      throw new Error(`nothing is under way in ${during}`);
    this.#do(move, made);
    this.#goOn(duringOf(next), next === undefined);
    if (this.#broken !== undefined) throw this.#broken;
  }

  /** Plays each move in turn, and calls `check` with its result. */
  tell(script: readonly Move[], made: readonly Behaviour[], check?: () => void): this {
    let count = 0;
    for (const [index, move] of script.entries()) {
      const calls = move.do === 'reply' ? (move.calls?.length ?? 0) : 0;
      this.move(move, made.slice(count, count + calls), script[index + 1]);
      count += calls;
      check?.();
    }
    return this;
  }

  stop(): void {
    this.#driver?.stop();
  }

  #copy(from: Prediction): void {
    this.calls.push(...from.calls);
    this.#ids = from.#ids;
    this.#sent = [...from.#sent];
    this.#replied = from.#replied;
    const journal = new ScriptedJournal();
    // The clock derives the time from the number of appends.
    journal.appends.push(...from.#journal.appends);
    // The input belongs to the start of a conversation, which a copy does not have.
    this.#begin(journal, undefined, ({ world }) => {
      const root = forkedBy((key) => this.taken.add(key), from.root, world);
      const copies = new Map(actorsWith(from.root, root));
      for (const request of from.requests) {
        const asker = copies.get(from.#askers.get(request.id));
        if (asker) world.ask(asker, request);
      }
      return root;
    });
  }

  #open(): void {
    this.#begin(new ScriptedJournal(), restored(this.logState, this.settings), this.#interpreter);
  }

  #begin(journal: ScriptedJournal, input: unknown, interpreter: Interpreter): void {
    this.#journal = journal;
    this.#folded = 0;
    this.#chart = new ChartStatus();
    const recorded: Interpreter = ({ world, ...options }) => {
      const ask = (asker: ChartRef, request: EffectRequest): void => {
        this.#askers.set(request.id, asker);
        world.ask(asker, request);
      };
      return interpreter({ ...options, world: { ...world, ask } });
    };
    const driver = new Driver({
      machine: conversationMachine,
      input,
      journal,
      setTimer: () => () => {},
      admit: (command) => {
        this.#fold();
        const { event, note } = admitCommand(command, { logState: this.logState, entries: [] }, this.#chart, true);
        if (note) this.log.add(note);
        return event;
      },
      broke: (error) => {
        this.#broken = error;
      },
      interpreter: recorded,
    });
    this.#driver = driver;
    this.#chart.root = driver.root;
    driver.start(0);
  }

  /** Folds the entries that the charts logged since the last call. */
  #fold(): void {
    const { entries } = this.#journal;
    if (entries.length === this.#folded) return;
    const fresh = entries.slice(this.#folded);
    this.#folded = entries.length;
    this.log.addLogged(fresh);
  }

  #act(event: Command, urgent = false): void {
    this.#journal.put({ type: 'act', event, ...(urgent && { priority: 'cancel' as const }) });
    this.#fold();
  }

  #newId(): string {
    this.#ids += 1;
    return `id${this.#ids}`;
  }

  #do(move: Move, made: readonly Behaviour[]): void {
    const { status } = this.#chart;
    switch (move.do) {
      case 'send':
        return this.#say(status === 'idle' || status === 'error' ? 'direct' : this.#kindOfSend(), move.fills);
      case 'steer':
      case 'followUp':
        return this.#say(move.do, move.fills);
      case 'sumUp':
        return this.#answer(({ kind }) => kind === 'summary', SUMMARY);
      case 'takeBack':
        return this.#act({ type: 'message.returned', messageId: this.#sent.pop() ?? '', why: 'cancelled' }, true);
      case 'cancel':
        return status === 'idle' || status === 'error' ? undefined : this.#act({ type: 'cancel.requested' }, true);
      case 'resume':
        return this.#resume();
      case 'crash':
        return this.#crash();
      case 'deadline':
        return this.#answer((request) => request.kind === 'timer' && request.ofCycle === true, undefined);
      case 'reply':
        return this.#reply(move, made);
      case 'modelFails':
        return this.#answer(({ kind }) => kind === 'model' || kind === 'summary', failureValue(move));
      case 'tool':
        return this.#endTool(move);
      case 'decide':
        return this.#decide(move);
      case 'settle':
        return this.#settle(move);
    }
  }

  #kindOfSend(): 'direct' | 'steer' | 'followUp' {
    const { whileActive, whileSuspended } = this.settings.policies;
    if (this.#chart.status === 'waiting') return whileSuspended === 'denyAndRun' ? 'direct' : 'followUp';
    return whileActive === 'steer' ? 'steer' : 'followUp';
  }

  #say(kind: 'direct' | 'steer' | 'followUp', fills?: number): void {
    const messageId = this.#newId();
    this.#sent.push(messageId);
    const text = fills === undefined ? kind : filling(fills);
    this.#act({ type: 'message.sent', messageId, content: [{ type: 'text', text }], kind });
  }

  #resume(): void {
    const { status } = this.#chart;
    if (status === 'active' || status === 'cancelling') return;
    const id = this.#newId();
    if (status === 'waiting' || isUnfinished(this.logState))
      return this.#act({ type: 'resume.requested', runId: runOf(id), continuation: GO_ON });
    const next = this.logState.queue.find(({ kind }) => kind === 'followUp');
    if (next) this.#act({ type: 'promotion.requested', messageId: next.messageId });
  }

  #crash(): void {
    this.#driver?.stop();
    this.#fold();
    this.log.add(repairs(this.logState, (name) => this.#model.idempotent.has(name)));
    this.#open();
    const { onRestart } = this.settings.policies;
    const decided = this.logState.held > 0 && this.#chart.status === 'waiting';
    const cutOff = this.logState.stop?.cause === 'crash' && this.logState.cycle === 'stopped';
    if (onRestart !== 'idle' && (decided || (onRestart === 'resume' && cutOff))) this.#resume();
  }

  #reply(move: MoveOf<'reply'>, made: readonly Behaviour[]): void {
    const from = this.calls.length;
    this.calls.push(...made);
    this.#replied = textOf(move);
    const judged = this.#model.surroundings.answers !== undefined;
    this.#answer(({ kind }) => kind === 'model', replyValue(move, { made, from, judged }));
  }

  #behaviourOf(callId: string): Behaviour | undefined {
    return this.calls[numberOf(callId) - 1];
  }

  #endTool({ call, made }: MoveOf<'tool'>): void {
    const callId = `call${call}`;
    const behaviour = this.#behaviourOf(callId);
    const wanted = (request: EffectRequest): boolean => request.kind === 'tool' && request.callId === callId;
    const request = this.requests.find(wanted);
    if (!behaviour || request?.kind !== 'tool') throw new Error(`call ${call} does not run`);
    this.#answer(wanted, made ? madeUpEnd(made, this.settings, behaviour) : answerFor(behaviour, request));
  }

  #decide(move: MoveOf<'decide'>): void {
    const callId = `call${move.call}`;
    const record = this.logState.calls.get(callId);
    // A spawn call may wait for its own approval first, and later for a call within it.
    const within = record?.reason === 'sub-agent';
    const decision = decisionOf(move, { suspension: record?.suspension ?? 1, own: record?.args ?? null, within });
    this.#act({ type: 'decision.proposed', decision });
  }

  #settle(move: MoveOf<'settle'>): void {
    this.#act({ type: 'settlement.proposed', callId: `call${move.call}`, how: settlementOf(move) });
  }

  #answer(wanted: (request: EffectRequest) => boolean, value: EffectValue | undefined): void {
    const request = this.requests.find(wanted);
    if (!request) throw new Error('nothing that is open takes this answer');
    this.#journal.answer(request, value ? { type: 'effect.done', value } : { type: 'timer.elapsed' });
    this.#fold();
  }

  /** Answers the agent's own requests in order, until the one that the next move interrupts. */
  #goOn(during: During | undefined, isLast: boolean): void {
    for (let step = 0; step < STEPS_MAX; step++) {
      this.#fold();
      const { next, isHeld } = nextByItself(this.requests, during);
      if (this.log.isTimeUp && this.hasDeadline) this.#do({ do: 'deadline' }, []);
      else if (next) {
        if (isLast && this.#looks) this.#pass(next);
        this.#journal.answer(next, this.#ownAnswer(next));
      } else if (isHeld || !this.#ring()) return;
    }
    throw new Error('the agent does not come to rest by itself');
  }

  #pass(request: EffectRequest): void {
    const fresh = duringsOf(request).filter((during) => !this.passed.has(during));
    for (const during of fresh) this.passed.set(during, passageOf(this.root, this.logState));
  }

  /** Ends the wait before the next attempt. */
  #ring(): boolean {
    const wait = this.requests.find((request) => request.kind === 'timer' && !request.ofCycle);
    if (wait) this.#journal.answer(wait, { type: 'timer.elapsed' });
    return wait !== undefined;
  }

  #ownAnswer(request: EffectRequest): OwnAnswer {
    const behaviour = 'callId' in request ? this.#behaviourOf(request.callId) : undefined;
    return ownAnswer(request, behaviour, { ...this.#model, log: this.log, replied: this.#replied });
  }
}

/** Yields each actor with its copy. */
function* actorsWith(actor: ChartActor, copy: ChartActor): Generator<[ChartRef | undefined, ChartActor]> {
  yield [actor, copy];
  for (const [id, child] of actor.children) {
    const twin = copy.children.get(id);
    if (twin) yield* actorsWith(child, twin);
  }
}
