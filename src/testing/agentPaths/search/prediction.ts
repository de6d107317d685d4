/**
 * What the charts say of a script: the real CONVERSATION with its real runs, rounds and calls, under the real driver, with
 * answers as the agent was seen to give them. Rule: what may come is what the charts ask for; nothing of the agent's own
 * code runs here.
 */
import {
  applyEntry,
  conversationMachine,
  createTranscript,
  type EffectRequest,
  type EffectValue,
  emptyLogState,
  isUnfinished,
  type LogEntry,
  type LogState,
  type NewEntry,
  reconcile,
  repairs,
  restored,
  runOf,
  type Settings,
  sizeOfTranscript,
} from '../../../../machines/internal.ts';
import { pendingCalls, unsettledCalls } from '../../../conversation/run.ts';
import { admitCommand, type Command } from '../../../runtime/commands.ts';
import { Driver } from '../../../runtime/driver.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';
import type { Interpreter } from '../../../runtime/interpreter/interpreter.ts';
import { ChartStatus } from '../../../runtime/status.ts';
import { ScriptedJournal } from '../../scriptedJournal.ts';
import { type During, duringOf, filling, type Move, type MoveOf } from '../moves.ts';
import type { Standing } from '../scriptRun.ts';
import { type AgentModel, answerFor, type Behaviour, isDuring } from './behaviour.ts';
import { coveredBy } from './coverage.ts';
import { duringsOf, nextByItself, ownAnswer, type Passage, passageOf } from './ownAnswers.ts';

const GO_ON = 'Go on where you stopped.';
const STEPS_MAX = 400;
/** A conversation has more characters than this only where a message fills the window. */
const FEW = 100_000;
const noUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const SUMMARY: EffectValue = { kind: 'summary', text: 'so far', usage: noUsage, costUsd: 0, model: 'scripted' };
const numberOf = (callId: string): number => Number(callId.slice('call'.length));

export class Prediction {
  /** Transitions that the last move took. */
  taken = new Set<string>();
  /** What the agent did by itself behind the last move. */
  readonly passed = new Map<During, Passage>();
  readonly logState: LogState = emptyLogState();
  readonly entries: LogEntry[] = [];
  readonly #transcript = createTranscript();
  readonly calls: Behaviour[] = [];
  readonly #model: AgentModel;
  readonly #interpreter: Interpreter;
  /** The charts can be looked into. */
  readonly #looks: boolean;
  #journal = new ScriptedJournal();
  #chart = new ChartStatus();
  #driver: Driver | undefined;
  #folded = 0;
  #ids = 0;
  /** Messages in the order in which they came. */
  #sent: string[] = [];
  #broken: unknown;

  constructor(model: AgentModel, interpreter?: Interpreter) {
    this.#model = model;
    this.#looks = interpreter === undefined;
    this.#interpreter = interpreter ?? coveredBy((key) => this.taken.add(key));
    this.#open();
  }

  /** The root chart, with its children under it. */
  get root(): ChartActor {
    return this.#driver?.root as unknown as ChartActor;
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
      // For a host a run is over once its end is in the log.
      status: this.#chart.settledStatus(this.logState) ?? this.#chart.status,
      model: this.requests.some(({ kind }) => kind === 'model'),
      summary: this.requests.some(({ kind }) => kind === 'summary'),
      running: running.sort((a, b) => a - b),
      waiting: waiting.sort((a, b) => a - b),
      queued: this.logState.queue.length,
    };
  }

  /** Whether `resume()` would begin a run. */
  get isResumable(): boolean {
    const { status } = this.#chart;
    if (status === 'waiting') return true;
    if (status !== 'idle' && status !== 'error') return false;
    return isUnfinished(this.logState) || this.logState.queue.some(({ kind }) => kind === 'followUp');
  }

  get unsettled(): readonly number[] {
    return unsettledCalls(this.logState).map(({ callId }) => numberOf(callId));
  }

  get isSummedUp(): boolean {
    return this.entries.some(({ type }) => type === 'compaction');
  }

  /** What the next look at the window depends on. */
  get fill(): readonly unknown[] {
    const { characters } = sizeOfTranscript(this.#transcript);
    return [
      this.isSummedUp,
      this.logState.warned,
      characters > FEW,
      this.#transcript.messages().length > 1 && characters > FEW,
    ];
  }

  get hasDeadline(): boolean {
    return this.requests.some((request) => request.kind === 'timer' && request.ofCycle);
  }

  /** A reply with calls names them by their behaviours; `next` is the move that may come in the middle of what follows. */
  move(move: Move, made: readonly Behaviour[] = [], next?: Move): void {
    this.taken = new Set();
    this.passed.clear();
    const during = duringOf(move);
    if (during !== undefined && !this.requests.some((request) => isDuring(request, during)))
      throw new Error(`nothing is under way in ${during}`);
    this.#do(move, made);
    this.#goOn(duringOf(next));
    if (this.#broken !== undefined) throw this.#broken;
  }

  /** Each move in turn; `behind` looks at what has come of it. */
  tell(script: readonly Move[], made: readonly Behaviour[], behind?: () => void): this {
    let count = 0;
    for (const [index, move] of script.entries()) {
      const calls = move.do === 'reply' ? (move.calls?.length ?? 0) : 0;
      this.move(move, made.slice(count, count + calls), script[index + 1]);
      count += calls;
      behind?.();
    }
    return this;
  }

  stop(): void {
    this.#driver?.stop();
  }

  #open(): void {
    const { settings } = this.#model;
    const journal = new ScriptedJournal();
    this.#journal = journal;
    this.#folded = 0;
    this.#chart = new ChartStatus();
    const driver = new Driver({
      machine: conversationMachine,
      input: restored(this.logState, settings),
      journal,
      setTimer: () => () => {},
      admit: (command) => {
        this.#fold();
        const { events, note } = admitCommand(command, this.logState, this.#chart, true);
        if (note) this.#keep(note);
        return events;
      },
      broke: (error) => {
        this.#broken = error;
      },
      interpreter: this.#interpreter,
    });
    this.#driver = driver;
    this.#chart.root = driver.root;
    driver.start(0);
  }

  /** What the charts logged since the last time. */
  #fold(): void {
    const fresh = this.#journal.entries.slice(this.#folded);
    this.#folded = this.#journal.entries.length;
    this.#keep(reconcile(this.logState, fresh, this.#transcript.endsWithAssistant()));
  }

  #keep(made: readonly NewEntry[]): void {
    for (const entry of made) {
      const kept = { at: 0, conversationId: 'predicted', ...entry, seq: this.entries.length } as LogEntry;
      this.entries.push(kept);
      applyEntry(this.logState, kept);
      this.#transcript.push(kept);
    }
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
        return this.#fail(move);
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
    if (this.logState.queue.some(({ kind }) => kind === 'followUp')) this.#act({ type: 'promotion.requested' });
  }

  #crash(): void {
    this.#driver?.stop();
    this.#fold();
    this.#keep(repairs(this.logState, (name) => this.#model.idempotent.has(name)));
    this.#open();
    const { onRestart } = this.settings.policies;
    const decided = this.logState.held > 0 && this.#chart.status === 'waiting';
    const cutOff = this.logState.stop?.cause === 'crash' && this.logState.cycle === 'stopped';
    if (onRestart !== 'idle' && (decided || (onRestart === 'resume' && cutOff))) this.#resume();
  }

  #reply({ text, calls = [], finish }: MoveOf<'reply'>, made: readonly Behaviour[]): void {
    const words = text ?? (calls.length > 0 ? '' : 'done');
    const from = this.calls.length;
    this.calls.push(...made);
    const ids = made.map((_, index) => `call${from + index + 1}`);
    this.#answer(({ kind }) => kind === 'model', {
      kind: 'reply',
      items: [
        ...(words === '' ? [] : [{ type: 'assistant' as const, text: words }]),
        ...made.map(({ tool, args }, index) => ({
          type: 'tool-call' as const,
          callId: ids[index] ?? '',
          name: tool,
          args,
        })),
      ],
      calls: made.map(({ call }, index) => ({ ...call, callId: ids[index] ?? '' })),
      finish: finish ?? (calls.length > 0 ? 'tool-calls' : 'stop'),
      empty: words.trim() === '' && calls.length === 0,
      usage: noUsage,
      costUsd: 0,
      model: 'scripted',
    });
  }

  #fail({ retryable }: MoveOf<'modelFails'>): void {
    const code = retryable ? 'server' : 'auth';
    const failed = { kind: 'failed' as const, code, message: 'made', retryable, random: 0.5, model: 'scripted' };
    this.#answer(({ kind }) => kind === 'model' || kind === 'summary', failed);
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
    this.#answer(wanted, made ? this.#madeUp(made) : answerFor(behaviour, request));
  }

  #madeUp(made: 'fail' | 'timeOut'): EffectValue {
    const content = [{ type: 'text' as const, text: 'made' }];
    if (made === 'timeOut') return { kind: 'erred', content, code: 'timeout' };
    const { toolRetry } = this.settings.policies;
    return { kind: 'erred', content, code: 'error', ...(toolRetry !== false && { retry: { random: 0.5 } }) };
  }

  #decide({ call, action, args, payload }: MoveOf<'decide'>): void {
    const callId = `call${call}`;
    const record = this.logState.calls.get(callId);
    const tool = this.#behaviourOf(callId);
    const within = [...(tool?.answers.values() ?? [])].some((value) => value.kind === 'pending' && value.within);
    const suspension = record?.suspension ?? 1;
    const base = { callId, suspension, by: 'script' };
    const own = record?.args ?? null;
    // A decision within a call is an answer to the call itself.
    if (within || action === 'answer')
      return this.#propose({ ...base, action: 'answer', payload: payload ?? 'answer' });
    return this.#propose(action === 'edit' ? { ...base, action, args: args ?? own } : { ...base, action });
  }

  #propose(decision: Extract<Command, { type: 'decision.proposed' }>['decision']): void {
    this.#act({ type: 'decision.proposed', decision });
  }

  #settle({ call, how, result }: MoveOf<'settle'>): void {
    const settlements = {
      ran: { ran: result ?? 'done' },
      didNotRun: { didNotRun: true },
      retry: { retry: true },
    } as const;
    this.#act({ type: 'settlement.proposed', callId: `call${call}`, how: settlements[how] });
  }

  #answer(wanted: (request: EffectRequest) => boolean, value: EffectValue | undefined): void {
    const request = this.requests.find(wanted);
    if (!request) throw new Error('nothing that is open takes this answer');
    this.#journal.answer(request, value ? { type: 'effect.done', value } : { type: 'timer.elapsed' });
    this.#fold();
  }

  /** The agent does what it does by itself, in the order in which it is asked, up to what the next move comes into. */
  #goOn(during: During | undefined): void {
    for (let step = 0; step < STEPS_MAX; step++) {
      this.#fold();
      const { next, isHeld } = nextByItself(this.requests, during);
      if (next) {
        if (!during && this.#looks) this.#pass(next);
        this.#journal.answer(next, { type: 'effect.done', value: this.#ownAnswer(next) });
      } else if (isHeld || !this.#ring()) return;
    }
    throw new Error('the agent does not come to rest by itself');
  }

  #pass(request: EffectRequest): void {
    const fresh = duringsOf(request).filter((during) => !this.passed.has(during));
    for (const during of fresh) this.passed.set(during, passageOf(this.root, this.#chart, this.logState));
  }

  /** The wait before the next attempt is over. */
  #ring(): boolean {
    const wait = this.requests.find((request) => request.kind === 'timer' && !request.ofCycle);
    if (wait) this.#journal.answer(wait, { type: 'timer.elapsed' });
    return wait !== undefined;
  }

  #ownAnswer(request: EffectRequest): EffectValue {
    const behaviour = 'callId' in request ? this.#behaviourOf(request.callId) : undefined;
    const scope = { transcript: this.#transcript, entries: this.entries, logState: this.logState };
    return ownAnswer(request, behaviour, { ...scope, surroundings: this.#model.surroundings });
  }
}
