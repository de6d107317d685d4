/**
 * What the inbox of a held conversation had, in its order, and the acts that are carried out. Invariant: acts begin while an attempt
 * waits for its next item; news, and the first act of a parent, have items of their own.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { carryOutHere } from '../../conversation/served/remoteActs.ts';
import { RunchartError, thrownMessage } from '../../errors.ts';
import { type Act, type ActAnswer, refuseOtherOwner } from '../../stores/logStore.ts';
import { isNews, type Waiting, type WaitingAct, type WaitingNews } from './engineAttempt.ts';
import { type ParentConversation, refuseChange } from './parentConversation.ts';

interface Holder {
  readonly log: readonly LogEntry[];
  conversation(): Conversation | undefined;
  /** Of a sub-agent whose parent has asked something. */
  parent(): ParentConversation | undefined;
  /** The act with the run that continues its run. */
  ofContinued(act: Act): Act;
  /** Called when an act has ended. */
  tell(): void;
}

export class HeldActs {
  readonly #holder: Holder;
  readonly #all: Waiting[] = [];
  #received = 0;
  readonly #answered = new Set<string>();
  #answers: { to: string; answer: ActAnswer }[] = [];
  /** The number of acts that have begun and not ended. */
  #underWay = 0;
  /** The number of times that the conversation was left. */
  #left = 0;

  constructor(holder: Holder) {
    this.#holder = holder;
  }

  add(waiting: readonly Waiting[]): void {
    this.#all.push(...waiting);
  }

  /** Acts that an earlier invocation has carried out. */
  addReceived(acts: readonly WaitingAct[]): void {
    this.#all.push(...acts);
    this.#received = acts.length;
  }

  /** The number of those that the conversation has received. */
  get received(): number {
    return this.#received;
  }

  get length(): number {
    return this.#all.length;
  }

  get isEmpty(): boolean {
    return this.#received >= this.#all.length;
  }

  /** The next one that the conversation receives. */
  get next(): Waiting | undefined {
    return this.#all[this.#received];
  }

  /** Acts have begun and not ended. */
  get isBusy(): boolean {
    return this.#underWay > 0;
  }

  /** Carries out the acts before this place, up to one that has an item of its own. */
  give(upTo: number): void {
    while (this.#received < upTo) {
      const { next } = this;
      if (!next || isNews(next) || (next.place && !this.#holder.parent())) return;
      this.#received += 1;
      void this.carryOut(next);
    }
  }

  async carryOut({ act, to, place }: WaitingAct): Promise<void> {
    const conversation = this.#holder.conversation();
    if (!conversation) return;
    const left = this.#left;
    this.#underWay += 1;
    const parent = this.#holder.parent();
    if (place) parent?.moved(place);
    const answering = this.#answerTo(conversation, act, place !== undefined);
    if (place) parent?.begun(conversation, act);
    const answer = await answering;
    if (left !== this.#left) return;
    this.#underWay -= 1;
    this.#answers.push({ to, answer });
    this.#holder.tell();
  }

  async #answerTo(conversation: Conversation, act: Act, isOfParent: boolean): Promise<ActAnswer> {
    const { log } = this.#holder;
    try {
      if (isOfParent && act.type === 'spent') return { value: {} };
      // A close needs no work, because the engine releases the conversation when nothing is under way.
      if (act.type === 'close') return { value: {} };
      if (act.type === 'open') {
        if (typeof act.owner === 'string') refuseOtherOwner(log[0], act.owner);
        return { value: { entries: log.length } };
      }
      if (!isOfParent) refuseChange(log, act);
      return { value: await carryOutHere(conversation, this.#holder.ofContinued(act)) };
    } catch (error) {
      const code = RunchartError.isRunchartError(error) ? error.code : 'internal';
      return { error: { code, message: thrownMessage(error) } };
    }
  }

  /** The answers that have come since. */
  takeAnswers(): { to: string; answer: ActAnswer }[] {
    return this.#answers.splice(0).filter(({ to }) => !this.#answered.has(to));
  }

  /** The conversation was left: acts under way end without an answer. */
  leave(): void {
    this.#left += 1;
    this.#underWay = 0;
    this.#answers = [];
  }

  /** The place after the news that come next. */
  get newsUpTo(): number {
    const end = this.#all.findIndex((each, index) => index > this.#received && !isNews(each));
    return end < 0 ? this.#all.length : end;
  }

  *giveNews(upTo: number): Generator<WaitingNews> {
    for (const waiting of this.#all.slice(this.#received, upTo)) {
      this.#received += 1;
      if (isNews(waiting)) yield waiting;
    }
  }

  /** True if the parent of a sub-agent has asked, and not a client. */
  isOfParent(to: string): boolean {
    return this.#all.some((waiting) => !isNews(waiting) && waiting.to === to && waiting.place);
  }

  answered(to: string): void {
    this.#answered.add(to);
  }

  /** Acts that have begun and have no answer. */
  get unanswered(): WaitingAct[] {
    const received = this.#all.slice(0, this.#received);
    return received.flatMap((waiting) => (isNews(waiting) || this.#answered.has(waiting.to) ? [] : [waiting]));
  }
}
