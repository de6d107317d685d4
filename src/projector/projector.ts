/**
 * A log to a view, whole or entry by entry (request-cycle-model). Rule: pure and total: the same entries give the same
 * view however they are split, and nothing that is pushed makes it throw.
 */
import type { GroupName } from '../../machines/vocabulary.ts';
import { apply } from './apply.ts';
import { Order } from './order.ts';
import { branchProjection, emptyProjection, type Policy, type Projection, remark } from './projection.ts';
import { type Entry, readEntry, UNREADABLE } from './read.ts';
import { snapshot } from './snapshot.ts';
import type { ConversationView } from './view.ts';

export interface ProjectorOptions {
  /** The group of a tool, before what the tool itself and its name say. A throw or another word does not count. */
  groupOf?(toolName: string): GroupName | undefined;
  /** What a user message without a possible kind is while a cycle is open; `followUp` by default. */
  whileActive?: 'steer' | 'followUp';
}

export interface Projector {
  /** Constant cost. Takes anything, and never throws. */
  push(entry: unknown): void;
  /** Constant cost until `cycles` is read. Entries that wait for others are shown as if the gap were closed. */
  view(): ConversationView;
}

export function createProjector(options: ProjectorOptions = {}): Projector {
  const course = new Course(policyOf(options));
  return { push: (entry) => course.push(readEntry(entry)), view: () => course.view() };
}

/** Takes any iterable; one that throws ends the list there, with a note. */
export function project(entries: Iterable<unknown>, options: ProjectorOptions = {}): ConversationView {
  const course = new Course(policyOf(options));
  try {
    for (const entry of entries) course.push(readEntry(entry));
  } catch {
    course.push(UNREADABLE);
  }
  return course.view();
}

const policyOf = (options: ProjectorOptions): Policy => ({
  groupOf: typeof options.groupOf === 'function' ? (name) => options.groupOf?.(name) : undefined,
  whileActive: options.whileActive === 'steer' ? 'steer' : 'followUp',
});

/** One list of entries on its way into one projection. */
class Course {
  private readonly order = new Order();
  private readonly projection: Projection;
  private owner = 1;
  private conversationId: string | undefined;
  private current: ConversationView | undefined;

  constructor(policy: Policy) {
    this.projection = emptyProjection(policy, this.owner);
  }

  push(entry: Entry): void {
    if (!this.isOwn(entry)) return;
    if (entry.badSeq) this.remark('bad_seq');
    if (entry.seq === undefined) {
      this.hand(entry);
      return;
    }
    // What waits is in the view, so the view changes when it begins and when it ends to wait.
    if (this.order.holds) this.current = undefined;
    this.order.take(entry.seq, entry, this.hand, this.miss);
    if (this.order.holds) this.current = undefined;
  }

  view(): ConversationView {
    this.current ??= snapshot(this.order.holds ? this.ahead() : this.projection);
    // What the view reads later, also by way of a branch, belongs to an owner that is gone.
    this.projection.ledger.owner = ++this.owner;
    this.projection.ledger.shown = true;
    return this.current;
  }

  /** The projection as it were if nothing more came for the gaps. */
  private ahead(): Projection {
    const ahead = branchProjection(this.projection, ++this.owner);
    this.order.peek(
      (entry) => apply(ahead, entry.reading, entry),
      (from, to) => remark(ahead, 'gap', from, { from, to }),
    );
    return ahead;
  }

  private readonly hand = (entry: Entry): void => {
    if (entry.reading.type === 'ignored') return;
    this.current = undefined;
    apply(this.projection, entry.reading, entry);
  };

  private readonly miss = (from: number, to: number): void => {
    this.current = undefined;
    remark(this.projection, 'gap', from, { from, to });
  };

  /**
   * A child's entries belong to its own view. One without an id among others with one could be a child's, but for what
   * a parent's log says of a child: children have none of their own.
   */
  private isOwn({ conversationId, tellsOfChild, reading, seq }: Entry): boolean {
    if (conversationId !== undefined) {
      this.conversationId ??= conversationId;
      return conversationId === this.conversationId;
    }
    if (this.conversationId === undefined || tellsOfChild || reading.type === 'odd') return true;
    this.remark('conversation_missing', seq);
    return false;
  }

  private remark(code: string, seq?: number): void {
    this.current = undefined;
    remark(this.projection, code, seq);
  }
}
