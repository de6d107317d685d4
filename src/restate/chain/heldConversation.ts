/**
 * A conversation in an attempt of an engine: it takes acts, gives the items of the chain, and applies them after they are recorded. A
 * tool that an earlier attempt may have started, and that must not be repeated, is treated as after a crash: its outcome is unknown, and
 * the run is resumed.
 */
import type { Delivery, LogEntry } from '../../../machines/internal.ts';
import type { EngineAgent } from '../../agent.ts';
import { type Conversation, resumeAs } from '../../conversation/conversation.ts';
import { openConversation } from '../../conversation/open.ts';
import type { RunHandle } from '../../conversation/run.ts';
import { RunchartError } from '../../errors.ts';
import { platformPorts } from '../../runtime/hostPorts.ts';
import type { Act, ActAnswer } from '../../stores/logStore.ts';
import { nextTurn } from '../../timeLimit.ts';
import type { ContinuedAttempt } from './continuedAttempt.ts';
import {
  type ChainItem,
  type EngineTimer,
  isNews,
  type SubAgentPlace,
  type Waiting,
  type WaitingAct,
} from './engineAttempt.ts';
import { HeldActs } from './heldActs.ts';
import { HeldSubAgents } from './heldSubAgents.ts';
import { MemberConversation, type MemberSurroundings } from './memberConversation.ts';
import { ParentConversation } from './parentConversation.ts';
import type { FollowLive } from './remoteSubAgent.ts';

const SETTLING_MS = 5;
/** The longest time for repeating the events before an item. */
const REPEAT_TURNS = 2000;
const REPEAT_MS = 10_000;

interface HeldOptions {
  agent: EngineAgent;
  attempt: ContinuedAttempt;
  opened: ((conversation: Conversation) => void) | undefined;
  followLive: FollowLive;
  /** The model replies of a run after which another invocation continues it. */
  repliesMost: number;
  /** After this time without news, the engine receives a sign of life. */
  beatMs: number;
}

const beginsRun = ({ type }: LogEntry): boolean => type === 'run-started' || type === 'run-resumed';
const lastRunOf = (log: readonly LogEntry[]): string => log.filter(beginsRun).at(-1)?.runId ?? '';

export class HeldConversation {
  readonly #options: HeldOptions;
  readonly #log: LogEntry[];
  readonly #inbox: HeldActs;
  #at: number;
  #isLive = false;
  /** The number of openings of the conversation. */
  #openings = 0;
  /** The model replies that this invocation recorded. */
  #replies = 0;
  #member: MemberConversation;
  /** Of a sub-agent whose parent has asked something. */
  #parent: ParentConversation | undefined;
  readonly #subAgents: HeldSubAgents;
  readonly #with: MemberSurroundings;
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
      append: (entries) => this.#append(entries),
      now: () => (this.#isLive && !this.#subAgents.isOpening ? Math.max(platformPorts.now(), this.#at) : this.#at),
      isLive: () => this.#isLive,
      mayWait: () => this.#replies >= options.repliesMost,
      tell: () => this.#tell(),
    };
    this.#inbox = new HeldActs({
      log,
      conversation: () => this.#member.conversation,
      parent: () => this.#parent,
      ofContinued: (act) => this.#ofContinued(act),
      tell: () => this.#tell(),
    });
    const { costUsd, tokens } = options.agent.profile.policies.limits;
    this.#subAgents = new HeldSubAgents({
      attempt: options.attempt,
      followLive: options.followLive,
      log,
      tell: () => this.#tell(),
      logState: () => this.#member.runtime?.logState,
      prefix: () => this.#prefix,
      hasBudget: costUsd !== false || tokens !== false,
    });
    this.#member = new MemberConversation(this.#with, log);
  }

  /** Of the ids that this opening makes, which are the same in each attempt. */
  get #prefix(): string {
    const own = this.#parent ? `${this.#options.attempt.conversationId}-` : '';
    return `opened-${own}${this.#log.length}-${this.#openings}`;
  }

  /** The parent of a sub-agent has a copy of the log. */
  #append(entries: readonly LogEntry[]): void {
    this.#options.attempt.append(entries);
    this.#parent?.report({ kind: 'entries', entries });
  }

  /** `left`: acts without an answer, of a run whose chain this version cannot repeat. Such a run is treated as after a crash. */
  async open(opening?: Act, left?: readonly WaitingAct[], place?: SubAgentPlace): Promise<void> {
    this.#linkTo(place);
    const lost = lastRunOf(this.#log);
    await this.#openLog(opening);
    if (!left) return;
    this.#inbox.addReceived(left);
    this.#resume(lost, left);
  }

  async #openLog({ owner, cwd }: Partial<Act> = {}): Promise<void> {
    const { agent, attempt, opened } = this.#options;
    this.#openings += 1;
    const member = new MemberConversation(this.#with, this.#log);
    this.#member = member;
    const environment = agent.inEngine({ ...member.place(this.#prefix), below: this.#subAgents.belowNow() });
    const opening = this.#parent
      ? this.#parent.open(agent, environment)
      : openConversation(
          environment,
          agent.profile,
          agent.openingOf({
            id: attempt.conversationId,
            ...(this.#log.length === 0 && typeof owner === 'string' && { owner }),
            ...(typeof cwd === 'string' && { cwd }),
          }),
        );
    // Its sub-agents are opened one after the other.
    const isOpen = opening.then(() => true);
    while (!(await Promise.race([isOpen, this.#subAgents.requested().then(() => false)]))) {
      const { next } = this.#subAgents;
      if (next !== undefined) await this.#subAgents.read(next);
    }
    const open = await opening;
    member.opened(open);
    open.runtime.subAgents?.endLeft();
    opened?.(open.conversation);
  }

  #linkTo(place: SubAgentPlace | undefined): void {
    if (place) this.#parent = new ParentConversation(this.#options.attempt, this.#log, place);
  }

  /** What the inbox had, as the engine has recorded it. */
  add(acts: readonly Waiting[]): void {
    this.#inbox.add(acts);
    this.#tell();
  }

  /** True if something waits that the conversation has not received. */
  get hasWaitingActs(): boolean {
    return !this.#inbox.isEmpty;
  }

  /** The next item, determined by the first attempt that needs it. */
  async next(): Promise<ChainItem> {
    this.#isLive = true;
    this.#member.journal?.goLive();
    await this.#member.begun();
    for (;;) {
      this.#options.attempt.signal.throwIfAborted();
      this.#hasNews = false;
      this.#inbox.give(this.#inbox.length);
      const item = this.#due() ?? (await this.#atRest()) ?? this.#handingOver();
      if (item) return item;
      const isSettling = this.#isSettling;
      if (this.#hasNews || (await this.#woken(isSettling ? SETTLING_MS : this.#options.beatMs)) || isSettling) continue;
      return this.#item({ kind: this.#isTimed ? 'waiting' : 'beat' });
    }
  }

  /** Applies an item that is recorded. */
  async apply(item: ChainItem): Promise<void> {
    if (!this.#isLive) await this.#repeatUntil(item);
    this.#at = Math.max(this.#at, item.at);
    switch (item.kind) {
      case 'delivery':
        this.#deliver(item.delivery);
        break;
      case 'asked':
        this.#subAgents.ask(item.ids);
        break;
      case 'news':
        for (const { of, news } of this.#inbox.giveNews(item.acts)) {
          this.#subAgents.take(of, news);
          // The conversation has taken each before the next one arrives.
          await nextTurn();
        }
        break;
      case 'opening':
        await this.#subAgents.read(item.of);
        break;
      case 'answers':
        for (const { to, answer } of item.answers) this.#answer(to, answer);
        break;
      case 'parent':
        await this.#reopen();
        break;
      case 'lost':
        await this.#continueLost();
        break;
      case 'rest':
        this.#parent?.report({ kind: 'rest', ...(item.end && { end: item.end }) });
        break;
      default:
    }
    // What follows from the news of its sub-agents is the same in each attempt.
    if (!this.#isLive || this.#subAgents.isOpen) await nextTurn();
    await this.#member.journal?.ready();
    await this.#intend();
  }

  #answer(to: string, answer: ActAnswer): void {
    this.#inbox.answered(to);
    if (this.#parent && this.#inbox.isOfParent(to)) this.#parent.report({ kind: 'answer', to, answer });
    else this.#options.attempt.answer(to, answer);
  }

  #deliver(delivery: Delivery): void {
    const { journal } = this.#member;
    if (this.#options.attempt.isOwn && journal?.isReply(delivery)) this.#replies += 1;
    journal?.deliver(delivery);
  }

  /** Records the intent of tools that must not be repeated. */
  async #intend(): Promise<void> {
    const { attempt } = this.#options;
    const { journal } = this.#member;
    if (!journal?.hasUnintended) return;
    const { by } = await attempt.step('intent', () => ({ by: attempt.attempt }));
    journal.intend(by === attempt.attempt);
  }

  /** Another invocation continues with the model call that waits. Where other work is under way, the call begins here. */
  #handingOver(): ChainItem | undefined {
    const { journal } = this.#member;
    if (!journal?.isHeldBack) return undefined;
    if (journal.isWaiting && this.#subAgents.next === undefined && !this.#subAgents.isWorking)
      return this.#item({ kind: 'continued' });
    journal.release();
    return undefined;
  }

  /** Abandons the conversation without writing anything. */
  async leave(): Promise<void> {
    this.#subAgents.leave();
    await this.#member.leave();
  }

  #item<Item>(item: Item): Item & { acts: number; at: number } {
    return { ...item, acts: this.#inbox.received, at: Math.max(platformPorts.now(), this.#at) };
  }

  #due(): ChainItem | undefined {
    const { journal } = this.#member;
    if (journal?.isLost) return this.#item({ kind: 'lost' });
    const answers = this.#inbox.takeAnswers();
    if (answers.length > 0) return this.#item({ kind: 'answers', answers });
    const { next, asked } = this.#subAgents;
    if (asked.length > 0) return this.#item({ kind: 'asked', ids: asked });
    const waiting = this.#inbox.next;
    if (waiting && isNews(waiting)) return { ...this.#item({ kind: 'news' }), acts: this.#inbox.newsUpTo };
    if (waiting && !this.#inbox.isBusy && this.#member.isQuiet) return this.#item({ kind: 'parent' });
    const delivery = journal?.arrived();
    if (delivery) return { ...this.#item({ kind: 'delivery', delivery }), at: delivery.at };
    return next === undefined ? undefined : this.#item({ kind: 'opening', of: next });
  }

  async #atRest(): Promise<ChainItem | undefined> {
    for (let turn = 0; turn < 3; turn += 1) {
      if (!this.#isQuiet()) return undefined;
      await nextTurn();
      this.#inbox.give(this.#inbox.length);
      const due = this.#due();
      if (due) return due;
    }
    const end = await this.#parent?.end();
    return this.#isQuiet() ? this.#item({ kind: 'rest', ...(end && { end }) }) : undefined;
  }

  #isQuiet(): boolean {
    if (this.#inbox.isBusy || this.hasWaitingActs) return false;
    return this.#member.isQuiet && this.#subAgents.next === undefined && !this.#subAgents.isOpening;
  }

  /** Nothing but timers and sub-agents is under way, so no process is needed until they report. */
  get #isTimed(): boolean {
    if (this.#inbox.isBusy || this.hasWaitingActs || this.#subAgents.next !== undefined) return false;
    const { journal } = this.#member;
    return journal?.isTimed === true && (journal.hasTimer || this.#subAgents.isWorking);
  }

  /** The engine has measured the time of a timer. */
  elapsed({ id }: EngineTimer): void {
    this.#member.journal?.elapsed(id);
  }

  #tell(): void {
    this.#hasNews = true;
    this.#wake();
  }

  /** Only sub-agents are ending, and no signal reports their end. */
  get #isSettling(): boolean {
    const { runtime, journal } = this.#member;
    return runtime?.subAgents !== undefined && journal?.isQuiet === true && !this.#subAgents.isWorking;
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
    await this.#member.begun();
    this.#inbox.give(item.acts);
    const hasCome = (): boolean => {
      const { journal } = this.#member;
      journal?.keep();
      if (item.kind === 'opening') return this.#subAgents.next === item.of;
      if (item.kind === 'asked') return item.ids.every((id) => this.#subAgents.asked.includes(id));
      return item.kind !== 'delivery' || journal?.hasCome(item.delivery.completion) === true;
    };
    for (let turn = 0; turn < REPEAT_TURNS && !hasCome(); turn += 1) await nextTurn();
    if (item.kind !== 'opening' && item.kind !== 'asked') return;
    // A plugin of the parent may take its time, and so may the check of a decision.
    const end = platformPorts.now() + REPEAT_MS;
    while (!hasCome() && platformPorts.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
    if (!hasCome()) throw new RunchartError('replay', `the conversation does not repeat ${JSON.stringify(item)}`);
  }

  /**
   * As after the end of a process: the log is repaired, acts without an answer are carried out again, and the run continues unless
   * one of them cancels it.
   */
  async #continueLost(): Promise<void> {
    const lost = lastRunOf(this.#log);
    await this.#reopen();
    this.#resume(lost, this.#inbox.unanswered);
  }

  async #reopen(): Promise<void> {
    await this.leave();
    this.#inbox.leave();
    const isLive = this.#isLive;
    // A repair has the time of the record in each attempt.
    this.#isLive = false;
    const { next } = this.#inbox;
    if (next && !isNews(next) && !this.#parent) this.#linkTo(next.place);
    await this.#openLog();
    this.#isLive = isLive;
    if (isLive) this.#member.journal?.goLive();
  }

  #resume(lost: string, unanswered: readonly WaitingAct[]): void {
    const isCancelled = unanswered.some(
      ({ act }) => act.type === 'cancel' && (this.#ofContinued(act).runId ?? lost) === lost,
    );
    const { conversation, runtime } = this.#member;
    // It may have been resumed by its opening already.
    if (conversation && !(isCancelled && runtime?.commands.isIdle)) {
      const run = resumeAs(conversation, `resumed-${this.#log.length}`);
      this.#continued.set(lost, run.id);
      this.#parent?.follow(run as RunHandle);
    }
    for (const waiting of unanswered) void this.#inbox.carryOut(waiting);
  }

  /** A cancel of a run that had lost a tool applies to the run that continues it. */
  #ofContinued(act: Act): Act {
    const next = act.type === 'cancel' ? this.#continued.get(String(act.runId)) : undefined;
    return next === undefined ? act : this.#ofContinued({ ...act, runId: next });
  }
}
