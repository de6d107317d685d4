/**
 * Runs one conversation inside an invocation of a durable engine. Invariant: whatever reaches the conversation is one chain of
 * recorded items, so each attempt of the invocation repeats the same log. What an earlier attempt recorded is repeated without any
 * effect; then this attempt continues. A tool that an earlier attempt may have started, and that must not be repeated, is found as
 * after the end of a process: its outcome is unknown, and the run is resumed.
 */
import type { Delivery, LogEntry } from '../../machines/internal.ts';
import type { EngineAgent } from '../agent.ts';
import { type Conversation, resumeAs } from '../conversation/conversation.ts';
import type { OpenConversation } from '../conversation/open.ts';
import { carryOutHere } from '../conversation/served/remoteActs.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { platformPorts } from '../runtime/hostPorts.ts';
import { type Act, type ActAnswer, type LogHandle, noConversation, refuseOtherOwner } from '../stores/logStore.ts';
import { nextTurn } from '../timeLimit.ts';
import { EngineJournal } from './engineJournal.ts';

/** An act, and where its answer goes. */
export interface WaitingAct {
  readonly act: Act;
  readonly to: string;
}

/** What an engine does for one attempt of an invocation that holds a conversation. */
export interface EngineAttempt {
  readonly conversationId: string;
  /** Another id for each attempt. */
  readonly attempt: string;
  /** Aborted when another attempt takes the place of this one. */
  readonly signal: AbortSignal;
  /**
   * Executes `act` and records what it gives, as JSON; a later attempt receives the record. `rung` is called when acts wait
   * meanwhile. Rejects if this attempt is over.
   */
  step<T>(name: string, act: () => T | Promise<T>, rung?: () => Promise<void>): Promise<T>;
  /** Takes the acts that wait, in order. `isListening`: the next step is told of further ones. */
  takeActs(isListening: boolean): Promise<readonly WaitingAct[]>;
  readLog(): Promise<LogEntry[]>;
  append(entries: readonly LogEntry[]): void;
  answer(to: string, answer: ActAnswer): void;
}

/** One recorded item. `acts`: how many acts the conversation had been given before it. */
type ChainItem = { acts: number; at: number } & (
  | { kind: 'delivery'; delivery: Delivery }
  | { kind: 'answers'; answers: readonly { to: string; answer: ActAnswer }[] }
  /** An earlier attempt may have started a tool that must not be repeated. */
  | { kind: 'lost' }
  /** Nothing has happened for a while. The engine sees that the attempt is alive. */
  | { kind: 'beat' }
  /** Nothing is under way. */
  | { kind: 'rest' }
);

const BEAT_MS = 20_000;
/** How long a repeated act may take to be sent. */
const REPEAT_TURNS = 2000;

export interface HeldOptions {
  agent: EngineAgent;
  invocation: EngineAttempt;
  /** Receives each conversation as it is opened, to show its live signals. */
  opened?(conversation: Conversation): void;
}

/** Carries out the acts that wait, and resolves when nothing is under way. Rejects if this attempt is over. */
export async function holdConversation(options: HeldOptions): Promise<void> {
  const { invocation } = options;
  const acts = await invocation.takeActs(true);
  if (acts.length === 0) return;
  const log = await invocation.readLog();
  const opening = acts.find(({ act }) => act.type === 'open');
  if (log.length === 0 && !opening) {
    const { code, message } = noConversation();
    for (const { to } of acts) invocation.answer(to, { error: { code, message } });
    return;
  }
  const { at } = await invocation.step('begin', () => ({ at: platformPorts.now() }));
  const held = new HeldConversation(options, log, at);
  // An engine may leave the steps of an attempt that is over without an answer.
  const leave = (): void => void held.leave();
  invocation.signal.addEventListener('abort', leave);
  try {
    await held.open(opening?.act);
    held.add(acts);
    for (;;) {
      const item = await invocation.step(
        'next',
        () => held.next(),
        async () => held.add(await invocation.takeActs(true)),
      );
      await held.apply(item);
      // Acts may have come while the rest was being recorded.
      if (item.kind !== 'rest' || held.hasWaitingActs) continue;
      const late = await invocation.takeActs(false);
      if (late.length === 0) return;
      held.add(late);
      held.add(await invocation.takeActs(true));
    }
  } finally {
    invocation.signal.removeEventListener('abort', leave);
    await held.leave();
  }
}

const beginsRun = ({ type }: LogEntry): boolean => type === 'run-started' || type === 'run-resumed';
const lastRunOf = (log: readonly LogEntry[]): string => log.filter(beginsRun).at(-1)?.runId ?? '';

class HeldConversation {
  readonly #options: HeldOptions;
  readonly #log: LogEntry[];
  readonly #acts: WaitingAct[] = [];
  readonly #answered = new Set<string>();
  #answers: { to: string; answer: ActAnswer }[] = [];
  /** How many acts the conversation has been given, and how many of them have not ended. */
  #given = 0;
  #underWay = 0;
  #at: number;
  #isLive = false;
  /** An item is being recorded; acts wait until it is applied, so that they meet the same state in each attempt. */
  #isRecording = false;
  /** How often the conversation was opened. */
  #openings = 0;
  #open: OpenConversation | undefined;
  #journal: EngineJournal | undefined;
  #wake: () => void = () => {};
  /** Runs that had lost a tool, and what continues them. */
  readonly #continued = new Map<string, string>();
  /** Something has come since it was last looked. */
  #hasNews = false;

  constructor(options: HeldOptions, log: LogEntry[], at: number) {
    this.#options = options;
    this.#log = log;
    this.#at = at;
  }

  async open(opening?: Act): Promise<void> {
    const { agent, invocation, opened } = this.#options;
    const owner = opening?.owner;
    const cwd = opening?.cwd;
    this.#openings += 1;
    const { length } = this.#log;
    let ids = 0;
    this.#open = await agent.openIn({
      id: invocation.conversationId,
      store: { open: async () => this.#handle(), list: async () => [] },
      ports: {
        now: () => (this.#isLive ? Math.max(platformPorts.now(), this.#at) : this.#at),
        // The same in each attempt.
        newId: () => {
          ids += 1;
          return `opened-${length}-${this.#openings}-${ids}`;
        },
        journal: (embedded) => {
          this.#journal = new EngineJournal(embedded, {
            now: platformPorts.now,
            mayRepeat: (request) => request.kind !== 'tool' || this.#isIdempotent(request.callId),
            wake: () => this.#tell(),
            isLive: this.#isLive,
          });
          return this.#journal;
        },
      },
      ...(this.#log.length === 0 && typeof owner === 'string' && { owner }),
      ...(typeof cwd === 'string' && { cwd }),
    });
    opened?.(this.#open.conversation);
  }

  /** Acts that the engine has recorded. */
  add(acts: readonly WaitingAct[]): void {
    this.#acts.push(...acts);
    this.#tell();
  }

  /** Acts that the conversation has not been given. */
  get hasWaitingActs(): boolean {
    return this.#given < this.#acts.length;
  }

  /** What comes next, in the first attempt that asks. */
  async next(): Promise<ChainItem> {
    this.#isLive = true;
    this.#isRecording = false;
    this.#journal?.goLive();
    for (;;) {
      this.#options.invocation.signal.throwIfAborted();
      this.#hasNews = false;
      this.#give(this.#acts.length);
      const item = this.#due() ?? (await this.#atRest());
      if (item) {
        this.#isRecording = true;
        return item;
      }
      if (this.#hasNews || (await this.#woken())) continue;
      return this.#item({ kind: 'beat' });
    }
  }

  /** The item is recorded. */
  async apply(item: ChainItem): Promise<void> {
    const { invocation } = this.#options;
    if (!this.#isLive) await this.#repeatActs(item);
    this.#at = Math.max(this.#at, item.at);
    switch (item.kind) {
      case 'delivery':
        this.#journal?.deliver(item.delivery);
        break;
      case 'answers':
        for (const { to, answer } of item.answers) {
          this.#answered.add(to);
          invocation.answer(to, answer);
        }
        break;
      case 'lost':
        await this.#reopen();
        break;
      default:
    }
    if (!this.#isLive) await nextTurn();
    if (!this.#journal?.hasUnintended) return;
    const { by } = await invocation.step('intent', () => ({ by: invocation.attempt }));
    this.#journal.intend(by === invocation.attempt);
  }

  /** Lets go of the conversation, and writes nothing. */
  async leave(): Promise<void> {
    const runtime = this.#open?.runtime;
    this.#open = undefined;
    runtime?.stop();
    await runtime?.closed();
  }

  #item<Item>(item: Item): Item & { acts: number; at: number } {
    return { ...item, acts: this.#given, at: Math.max(platformPorts.now(), this.#at) };
  }

  #due(): ChainItem | undefined {
    if (this.#journal?.isLost) return this.#item({ kind: 'lost' });
    const answers = this.#answers.splice(0).filter(({ to }) => !this.#answered.has(to));
    if (answers.length > 0) return this.#item({ kind: 'answers', answers });
    const delivery = this.#journal?.arrived();
    return delivery && { ...this.#item({ kind: 'delivery', delivery }), at: delivery.at };
  }

  async #atRest(): Promise<ChainItem | undefined> {
    for (let turn = 0; turn < 3; turn += 1) {
      if (!this.#isQuiet()) return undefined;
      await nextTurn();
      this.#give(this.#acts.length);
      const due = this.#due();
      if (due) return due;
    }
    return this.#isQuiet() ? this.#item({ kind: 'rest' }) : undefined;
  }

  #isQuiet(): boolean {
    const { runtime } = this.#open ?? {};
    if (!runtime || this.#underWay > 0 || this.hasWaitingActs || !this.#journal?.isQuiet) return false;
    const { status, commands } = runtime;
    return status !== 'active' && status !== 'cancelling' && commands.isIdle && !runtime.isCancelling;
  }

  #tell(): void {
    this.#hasNews = true;
    this.#wake();
  }

  /** False when nothing has happened for a while. */
  #woken(): Promise<boolean> {
    const { signal } = this.#options.invocation;
    return new Promise((resolve) => {
      const stop = platformPorts.setTimer(BEAT_MS, () => done(false));
      const woken = (): void => done(true);
      const done = (isWoken: boolean): void => {
        stop();
        signal.removeEventListener('abort', woken);
        this.#wake = () => {};
        resolve(isWoken);
      };
      this.#wake = woken;
      signal.addEventListener('abort', woken);
    });
  }

  /** Gives the conversation the acts that it had before this item, and waits until the repeated one is sent again. */
  async #repeatActs(item: ChainItem): Promise<void> {
    this.#give(item.acts);
    if (item.kind !== 'delivery' || item.delivery.completion.type !== 'act') return;
    const { completion } = item.delivery;
    for (let turn = 0; turn < REPEAT_TURNS && !this.#journal?.hasEarly(completion); turn += 1) await nextTurn();
  }

  #give(upTo: number): void {
    if (this.#isRecording) return;
    while (this.#given < upTo) {
      const waiting = this.#acts[this.#given];
      this.#given += 1;
      if (waiting) void this.#carryOut(waiting);
    }
  }

  async #carryOut({ act, to }: WaitingAct): Promise<void> {
    const { conversation } = this.#open ?? {};
    if (!conversation) return;
    const opening = this.#openings;
    this.#underWay += 1;
    const answer = await this.#answerTo(conversation, act);
    if (opening !== this.#openings) return;
    this.#underWay -= 1;
    this.#answers.push({ to, answer });
    this.#tell();
  }

  async #answerTo(conversation: Conversation, act: Act): Promise<ActAnswer> {
    try {
      // Nothing is held once nothing is under way.
      if (act.type === 'close') return { value: {} };
      if (act.type === 'open') {
        if (typeof act.owner === 'string') refuseOtherOwner(this.#log[0], act.owner);
        return { value: { entries: this.#log.length } };
      }
      return { value: await carryOutHere(conversation, this.#ofContinued(act)) };
    } catch (error) {
      const code = RunchartError.isRunchartError(error) ? error.code : 'internal';
      return { error: { code, message: thrownMessage(error) } };
    }
  }

  /**
   * As after the end of a process: the log is repaired, acts without an answer are carried out again, and the run continues unless
   * one of them cancels it.
   */
  async #reopen(): Promise<void> {
    const lost = lastRunOf(this.#log);
    await this.leave();
    const isLive = this.#isLive;
    this.#underWay = 0;
    this.#answers = [];
    // The repair has the time of the record in each attempt.
    this.#isLive = false;
    await this.open();
    this.#isLive = isLive;
    if (isLive) this.#journal?.goLive();
    const unanswered = this.#acts.slice(0, this.#given).filter(({ to }) => !this.#answered.has(to));
    const isCancelled = unanswered.some(
      ({ act }) => act.type === 'cancel' && (this.#ofContinued(act).runId ?? lost) === lost,
    );
    const { conversation, runtime } = this.#open ?? {};
    // It may have been resumed by its opening already.
    if (conversation && !(isCancelled && runtime?.commands.isIdle))
      this.#continued.set(lost, resumeAs(conversation, `resumed-${this.#log.length}`).id);
    for (const waiting of unanswered) void this.#carryOut(waiting);
  }

  /** Who cancels a run that had lost a tool means what continues it. */
  #ofContinued(act: Act): Act {
    const next = act.type === 'cancel' ? this.#continued.get(String(act.runId)) : undefined;
    return next === undefined ? act : this.#ofContinued({ ...act, runId: next });
  }

  #isIdempotent(callId: string): boolean {
    const { runtime } = this.#open ?? {};
    const name = runtime?.logState.calls.get(callId)?.name;
    return name !== undefined && runtime?.toolbox.isIdempotent(name) === true;
  }

  #handle(): LogHandle {
    const entries = this.#log.slice();
    const appendNow = (appended: readonly LogEntry[]): void => {
      this.#log.push(...appended);
      this.#options.invocation.append(appended);
    };
    return {
      async *read() {
        yield* entries;
      },
      appendNow,
      append: async (appended) => appendNow(appended),
      close: async () => {},
    };
  }
}
