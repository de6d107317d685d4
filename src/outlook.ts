/**
 * Where a conversation stands for its host: what its chart says, what waits for its turn, and what the log says already.
 * Rule: a run whose stop can be read is over, also where its chart has yet to hear that the stop is durable; what comes
 * in between is put behind that.
 */
import type { Knowledge } from '../machines/internal.ts';
import type { Act } from './acts.ts';
import type { ConversationStatus } from './live.ts';
import type { Standing } from './standing.ts';
import type { Tickets } from './tickets.ts';

export class Outlook {
  readonly #of: () => Standing | undefined;
  readonly #tickets: Pick<Tickets, 'waiting' | 'waits'>;
  readonly #known: Knowledge;
  #told: ConversationStatus = 'idle';

  /** `standing`: nothing until the chart is started. */
  constructor(standing: () => Standing | undefined, tickets: Pick<Tickets, 'waiting' | 'waits'>, known: Knowledge) {
    this.#of = standing;
    this.#tickets = tickets;
    this.#known = known;
  }

  get status(): ConversationStatus {
    const course = this.#course;
    const { over } = this;
    if (course === 'cancelling' && !over) return course;
    return this.expecting ? 'active' : (over ?? course);
  }

  /** What the signals tell, where it is another status than at the last call: it follows the chart. */
  changed(): ConversationStatus | undefined {
    const course = this.#course;
    if (course === this.#told) return undefined;
    this.#told = course;
    return course;
  }

  /** The stop of what the chart still carries out is durable, and nothing follows it by itself: what is left then. */
  get over(): 'idle' | 'error' | undefined {
    return this.#of()?.restsAs(this.#known);
  }

  /** Whether an act has not been delivered yet, and starts a run when it is. */
  starts(act: Act): boolean {
    if (!this.#tickets.waits(act)) return false;
    if (act.type === 'message.sent') return this.over !== undefined || this.#of()?.isStartedBy(act.kind) === true;
    return act.type === 'resume.requested' || act.type === 'promotion.requested';
  }

  /** What starts a run is put once the chart has heard of the end before it. */
  mustWait(act: Act): boolean {
    return this.over !== undefined && this.starts(act);
  }

  /** Something that waits for its turn starts a run. */
  get expecting(): boolean {
    for (const act of this.#tickets.waiting) if (this.starts(act)) return true;
    return false;
  }

  /** How many messages are on their way to the queue: all but the one that starts a run. */
  get queueing(): number {
    let count = 0;
    let starter: Act | undefined;
    for (const act of this.#tickets.waiting) {
      if (!starter && this.starts(act)) starter = act;
      else if (act.type === 'message.sent') count += 1;
    }
    return count;
  }

  /** A cancel counts from when it is asked for, also where the chart hears of it behind a slow store. */
  get #course(): ConversationStatus {
    const status = this.#of()?.status ?? 'idle';
    if (status !== 'active' && status !== 'waiting') return status;
    for (const { type } of this.#tickets.waiting) if (type === 'cancel.requested') return 'cancelling';
    return status;
  }
}
