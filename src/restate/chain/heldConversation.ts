/**
 * A conversation in an attempt of an engine: it takes acts, gives the items of the chain, and applies them after they are recorded. A
 * tool that an earlier attempt may have started, and that must not be repeated, is treated as after a crash: its outcome is unknown, and
 * the run is resumed.
 */
import type { Delivery, LogEntry } from '../../../machines/internal.ts';
import type { EngineAgent } from '../../agent.ts';
import { type Conversation, resumeAs } from '../../conversation/conversation.ts';
import { carryOutHere } from '../../conversation/served/remoteActs.ts';
import { RunchartError, thrownMessage } from '../../errors.ts';
import { platformPorts } from '../../runtime/hostPorts.ts';
import { type Act, type ActAnswer, refuseOtherOwner } from '../../stores/logStore.ts';
import { awaitAll, nextTurn } from '../../timeLimit.ts';
import type { ContinuedAttempt } from './continuedAttempt.ts';
import type { ChainItem, EngineTimer, WaitingAct } from './engineAttempt.ts';
import { HeldSubAgents } from './heldSubAgents.ts';
import { MemberConversation, type MemberSurroundings } from './memberConversation.ts';

const SETTLING_MS = 5;
/** The longest time for repeating the events before an item. */
const REPEAT_TURNS = 2000;
const REPEAT_MS = 10_000;

interface HeldOptions {
  agent: EngineAgent;
  attempt: ContinuedAttempt;
  opened: ((conversation: Conversation) => void) | undefined;
  /** The model replies of a run after which another invocation continues it. */
  repliesMost: number;
  /** After this time without news, the engine receives a sign of life. */
  beatMs: number;
}

const beginsRun = ({ type }: LogEntry): boolean => type === 'run-started' || type === 'run-resumed';
const lastRunOf = (log: readonly LogEntry[]): string => log.filter(beginsRun).at(-1)?.runId ?? '';

/** A delivery that is too large for the engine becomes a failure. */
function withinLimit(delivery: Delivery, most: number): Delivery {
  const { completion } = delivery;
  if (completion.type !== 'effect.done' || most === Number.POSITIVE_INFINITY) return delivery;
  const { length } = JSON.stringify(completion.value);
  if (length <= most) return delivery;
  const message = `the engine records at most ${most} characters, got ${length}: give serveAgent the option store`;
  const error = { code: 'too_large', message };
  return { ...delivery, completion: { type: 'effect.failed', id: completion.id, cause: 'executor', error } };
}

export class HeldConversation {
  readonly #options: HeldOptions;
  readonly #log: LogEntry[];
  readonly #acts: WaitingAct[] = [];
  readonly #answered = new Set<string>();
  #answers: { to: string; answer: ActAnswer }[] = [];
  /** The number of acts that the conversation received, and of those that have not ended. */
  #given = 0;
  #underWay = 0;
  #at: number;
  #isLive = false;
  /** An item is being recorded; acts wait until it is applied, so that they meet the same state in each attempt. */
  #isRecording = false;
  /** The number of openings of the conversation. */
  #openings = 0;
  /** The model replies that this invocation recorded. */
  #replies = 0;
  #root: MemberConversation;
  readonly #subAgents: HeldSubAgents;
  readonly #with: MemberSurroundings & { attempt: ContinuedAttempt };
  #wake: () => void = () => {};
  /** Runs that had lost a tool, and the runs that continue them. */
  readonly #continued = new Map<string, string>();
  /** Something has arrived since the last check. */
  #hasNews = false;

  constructor(options: HeldOptions, log: LogEntry[], at: number) {
    this.#options = options;
    this.#log = log;
    this.#at = at;
    this.#with = {
      attempt: options.attempt,
      now: () => (this.#isLive && !this.#subAgents.isOpening ? Math.max(platformPorts.now(), this.#at) : this.#at),
      isLive: () => this.#isLive,
      mayWait: () => this.#replies >= options.repliesMost,
      tell: () => this.#tell(),
    };
    this.#subAgents = new HeldSubAgents(this.#with);
    this.#root = new MemberConversation(this.#with, log);
  }

  /** The conversation and its sub-agents. */
  get #members(): MemberConversation[] {
    return [this.#root, ...this.#subAgents.members];
  }

  /** `left`: acts without an answer, of a run whose chain this version cannot repeat. Such a run is treated as after a crash. */
  async open(opening?: Act, left?: readonly WaitingAct[]): Promise<void> {
    const lost = lastRunOf(this.#log);
    await this.#openLog(opening);
    if (!left) return;
    this.#acts.push(...left);
    this.#given = left.length;
    this.#resume(lost, left);
  }

  async #openLog({ owner, cwd }: Partial<Act> = {}): Promise<void> {
    const { agent, attempt, opened } = this.#options;
    this.#openings += 1;
    const root = new MemberConversation(this.#with, this.#log);
    this.#root = root;
    const opening = agent.openIn({
      id: attempt.conversationId,
      // The same in each attempt.
      ...root.place(`opened-${this.#log.length}-${this.#openings}`, () => {}),
      below: this.#subAgents.belowNow(),
      ...(this.#log.length === 0 && typeof owner === 'string' && { owner }),
      ...(typeof cwd === 'string' && { cwd }),
    });
    // Its sub-agents are opened one after the other.
    const isOpen = opening.then(() => true);
    while (!(await Promise.race([isOpen, this.#subAgents.requested().then(() => false)]))) {
      const { next } = this.#subAgents;
      if (next !== undefined) await this.#subAgents.read(next);
    }
    const open = await opening;
    root.opened(open);
    open.runtime.subAgents?.endLeft();
    opened?.(open.conversation);
  }

  /** Acts that the engine has recorded. */
  add(acts: readonly WaitingAct[]): void {
    this.#acts.push(...acts);
    this.#tell();
  }

  /** True if acts wait that the conversation has not received. */
  get hasWaitingActs(): boolean {
    return this.#given < this.#acts.length;
  }

  /** The next item, determined by the first attempt that needs it. */
  async next(): Promise<ChainItem> {
    this.#isLive = true;
    this.#isRecording = false;
    for (const { journal } of this.#members) journal?.goLive();
    for (;;) {
      this.#options.attempt.signal.throwIfAborted();
      this.#hasNews = false;
      this.#give(this.#acts.length);
      const item = this.#due() ?? (await this.#atRest()) ?? this.#handingOver();
      if (item) {
        this.#isRecording = true;
        return item;
      }
      const isSettling = this.#isSettling;
      const ms = isSettling ? SETTLING_MS : this.#options.beatMs;
      if (this.#hasNews || (await this.#woken(ms)) || isSettling) continue;
      this.#isRecording = true;
      return this.#item({ kind: this.#isTimed ? 'waiting' : 'beat' });
    }
  }

  /** Applies an item that is recorded. */
  async apply(item: ChainItem): Promise<void> {
    const { attempt } = this.#options;
    if (!this.#isLive) await this.#repeatUntil(item);
    this.#at = Math.max(this.#at, item.at);
    switch (item.kind) {
      case 'delivery':
        this.#deliver(item.delivery, item.of);
        break;
      case 'opening':
        await this.#subAgents.read(item.of);
        break;
      case 'answers':
        for (const { to, answer } of item.answers) {
          this.#answered.add(to);
          attempt.answer(to, answer);
        }
        break;
      case 'lost':
        await this.#reopen();
        break;
      default:
    }
    // The next items of its sub-agents are the same in each attempt.
    if (!this.#isLive || this.#subAgents.members.length > 0) await nextTurn();
    for (const { journal } of this.#members) await journal?.ready();
    await this.#intend();
  }

  #deliver(delivery: Delivery, of: string | undefined): void {
    const { journal } = this.#memberOf(of) ?? {};
    if (this.#options.attempt.isOwn && journal?.isReply(delivery)) this.#replies += 1;
    journal?.deliver(delivery);
  }

  /** Records the intent of tools that must not be repeated. */
  async #intend(): Promise<void> {
    const { attempt } = this.#options;
    const intending = this.#members.flatMap(({ journal }) => (journal?.hasUnintended ? [journal] : []));
    if (intending.length === 0) return;
    const { by } = await attempt.step('intent', () => ({ by: attempt.attempt }));
    for (const journal of intending) journal.intend(by === attempt.attempt);
  }

  /** Another invocation continues with the model call that waits. Where other work is under way, the call begins here. */
  #handingOver(): ChainItem | undefined {
    const waiting = this.#members.find(({ journal }) => journal?.isHeldBack)?.journal;
    if (!waiting) return undefined;
    const isAlone = this.#members.every(({ journal }) => journal?.isWaiting === true);
    if (isAlone && this.#subAgents.next === undefined) return this.#item({ kind: 'continued' });
    waiting.release();
    return undefined;
  }

  /** Abandons the conversation without writing anything. */
  async leave(): Promise<void> {
    await awaitAll([this.#subAgents.leave(), this.#root.leave()]);
  }

  #item<Item>(item: Item): Item & { acts: number; at: number } {
    return { ...item, acts: this.#given, at: Math.max(platformPorts.now(), this.#at) };
  }

  #due(): ChainItem | undefined {
    if (this.#members.some(({ journal }) => journal?.isLost)) return this.#item({ kind: 'lost' });
    const answers = this.#answers.splice(0).filter(({ to }) => !this.#answered.has(to));
    if (answers.length > 0) return this.#item({ kind: 'answers', answers });
    for (const { journal, subAgent } of this.#members) {
      const arrived = journal?.arrived();
      if (!arrived) continue;
      const delivery = withinLimit(arrived, this.#options.attempt.charactersMost);
      const of = subAgent === undefined ? {} : { of: subAgent };
      return { ...this.#item({ kind: 'delivery', delivery, ...of }), at: delivery.at };
    }
    const { next } = this.#subAgents;
    return next === undefined ? undefined : this.#item({ kind: 'opening', of: next });
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
    if (this.#underWay > 0 || this.hasWaitingActs) return false;
    return this.#root.isQuiet && this.#subAgents.isQuiet;
  }

  /** Nothing but timers is under way, so no process is needed until one of them elapses. */
  get #isTimed(): boolean {
    if (this.#underWay > 0 || this.hasWaitingActs || this.#subAgents.next !== undefined) return false;
    const members = this.#members;
    return members.every(({ journal }) => journal?.isTimed) && members.some(({ journal }) => journal?.hasTimer);
  }

  /** The engine has measured the time of a timer. */
  elapsed({ id, of }: EngineTimer): void {
    this.#memberOf(of)?.journal?.elapsed(id);
  }

  #memberOf(subAgent: string | undefined): MemberConversation | undefined {
    return subAgent === undefined ? this.#root : this.#subAgents.find(subAgent);
  }

  #tell(): void {
    this.#hasNews = true;
    this.#wake();
  }

  /** Only sub-agents are ending, and no signal reports their end. */
  get #isSettling(): boolean {
    return this.#root.runtime?.subAgents !== undefined && this.#members.every(({ journal }) => journal?.isQuiet);
  }

  /** False when nothing has happened for a while. */
  #woken(ms: number): Promise<boolean> {
    const { signal } = this.#options.attempt;
    return new Promise((resolve) => {
      const stop = platformPorts.setTimer(ms, () => done(false));
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

  /** Sends the conversation the acts that it had before this item, and waits until the events before the item are repeated. */
  async #repeatUntil(item: ChainItem): Promise<void> {
    this.#give(item.acts);
    const hasCome = (): boolean => {
      for (const { journal } of this.#members) journal?.keep();
      if (item.kind === 'opening') return this.#subAgents.next === item.of;
      if (item.kind !== 'delivery') return true;
      const { journal } = this.#memberOf(item.of) ?? {};
      return journal?.hasCome(item.delivery.completion) === true;
    };
    for (let turn = 0; turn < REPEAT_TURNS && !hasCome(); turn += 1) await nextTurn();
    if (!('of' in item) || item.of === undefined) return;
    // A plugin of the parent may take its time.
    const end = platformPorts.now() + REPEAT_MS;
    while (!hasCome() && platformPorts.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
    if (!hasCome()) throw new RunchartError('replay', `the sub-agent ${item.of} does not repeat ${item.kind}`);
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
    const { conversation } = this.#root;
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
      // A close needs no work, because the engine releases the conversation when nothing is under way.
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
    await this.#openLog();
    this.#isLive = isLive;
    if (isLive) for (const { journal } of this.#members) journal?.goLive();
    this.#resume(
      lost,
      this.#acts.slice(0, this.#given).filter(({ to }) => !this.#answered.has(to)),
    );
  }

  #resume(lost: string, unanswered: readonly WaitingAct[]): void {
    const isCancelled = unanswered.some(
      ({ act }) => act.type === 'cancel' && (this.#ofContinued(act).runId ?? lost) === lost,
    );
    const { conversation, runtime } = this.#root;
    // It may have been resumed by its opening already.
    if (conversation && !(isCancelled && runtime?.commands.isIdle))
      this.#continued.set(lost, resumeAs(conversation, `resumed-${this.#log.length}`).id);
    for (const waiting of unanswered) void this.#carryOut(waiting);
  }

  /** A cancel of a run that had lost a tool applies to the run that continues it. */
  #ofContinued(act: Act): Act {
    const next = act.type === 'cancel' ? this.#continued.get(String(act.runId)) : undefined;
    return next === undefined ? act : this.#ofContinued({ ...act, runId: next });
  }
}
