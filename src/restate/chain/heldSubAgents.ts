/**
 * The sub-agents of a held conversation. They run in the same attempt, and their deliveries are in the same chain. Invariant: a log is
 * read only at the place that the chain records, and nothing else happens until its sub-agent is open. So each attempt opens the same
 * ones in the
 * same order.
 */
import type { OpenBelow } from '../../conversation/open.ts';
import { awaitAll, nextTurn } from '../../timeLimit.ts';
import type { ContinuedAttempt } from './continuedAttempt.ts';
import { MemberConversation, type MemberSurroundings } from './memberConversation.ts';

interface Opening {
  readonly id: string;
  /** Resolves when the sub-agent is open or could not be opened. */
  begin(member: MemberConversation): Promise<void>;
  refuse(error: unknown): void;
}

export class HeldSubAgents {
  readonly #members = new Map<string, MemberConversation>();
  readonly #with: MemberSurroundings & { attempt: Pick<ContinuedAttempt, 'readLog'> };
  /** Sub-agents whose logs nobody has read yet. */
  #openings: Opening[] = [];
  #isOpening = false;
  /** The number of sub-agents that were opened. */
  #opened = 0;
  #requested: () => void = () => {};

  constructor(surroundings: MemberSurroundings & { attempt: Pick<ContinuedAttempt, 'readLog'> }) {
    this.#with = surroundings;
  }

  /** Those with open logs. */
  get members(): readonly MemberConversation[] {
    return [...this.#members.values()];
  }

  find(id: string): MemberConversation | undefined {
    return this.#members.get(id);
  }

  /** A log is being read: the time is that of the record. */
  get isOpening(): boolean {
    return this.#isOpening;
  }

  /** The sub-agent that waits for its log. */
  get next(): string | undefined {
    return this.#openings[0]?.id;
  }

  /** Resolves when a sub-agent waits for its log. */
  async requested(): Promise<void> {
    if (this.#openings.length > 0) return;
    await new Promise<void>((resolve) => {
      this.#requested = resolve;
    });
  }

  /** Opens sub-agents for the conversation that is open now, until it is left. Its run may request one while it ends. */
  belowNow(): OpenBelow {
    const opening = this.#openings;
    return (id, open) =>
      opening === this.#openings ? this.#below(id, open) : Promise.reject(new Error('the attempt is over'));
  }

  readonly #below: OpenBelow = (id, open) =>
    new Promise((resolve, reject) => {
      const begin = async (member: MemberConversation): Promise<void> => {
        this.#opened += 1;
        const prefix = `opened-${id}-${member.log.length}-${this.#opened}`;
        try {
          const opened = await open(member.place(prefix, () => this.#members.delete(id)));
          member.opened(opened);
          resolve(opened);
        } catch (error) {
          reject(error);
        }
      };
      this.#openings.push({ id, begin, refuse: reject });
      this.#requested();
      this.#with.tell();
    });

  /** Reads the log of the sub-agent that waits for it, and resolves when the sub-agent is open. */
  async read(id: string): Promise<void> {
    const index = this.#openings.findIndex((opening) => opening.id === id);
    const [opening] = index < 0 ? [] : this.#openings.splice(index, 1);
    this.#isOpening = true;
    try {
      const { entries } = await this.#with.attempt.readLog(id);
      const member = new MemberConversation(this.#with, entries, id);
      this.#members.set(id, member);
      await opening?.begin(member);
      await nextTurn();
    } finally {
      this.#isOpening = false;
    }
  }

  get isQuiet(): boolean {
    return this.#openings.length === 0 && !this.#isOpening && this.members.every((member) => member.isQuiet);
  }

  async leave(): Promise<void> {
    const left = this.members.map((member) => member.leave());
    const openings = this.#openings;
    this.#openings = [];
    for (const { refuse } of openings) refuse(new Error('the attempt is over'));
    this.#members.clear();
    await awaitAll(left);
  }
}
