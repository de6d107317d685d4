/**
 * Projects a log to a view, whole or entry by entry (request-cycle-model). Rule: pure and total: the same entries give
 * the same view however they are split, and nothing that is pushed makes it throw. Entries count in the order of their
 * seq: an early one waits, within a window, until the gap is given up with a note; a repeat changes nothing. A view
 * costs a constant: long lists are built when they are first read, from lists that no later change touches.
 */
import type { GroupName, QueuedMessage } from '../../machines/vocabulary.ts';
import { apply, branchProjection, emptyProjection, noteIn, type Policy, type Projection } from './apply.ts';
import { cycleViews } from './cycles.ts';
import { type Entry, readEntry, UNREADABLE } from './readEntry.ts';
import { notesView, queueView } from './records.ts';
import type { ConversationView, RequestCycle } from './view.ts';

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
  const incremental = new IncrementalProjection(policyOf(options));
  return { push: (entry) => incremental.push(readEntry(entry)), view: () => incremental.view() };
}

/** Takes any iterable; one that throws ends the list there, with a note. */
export function project(entries: Iterable<unknown>, options: ProjectorOptions = {}): ConversationView {
  const incremental = new IncrementalProjection(policyOf(options));
  try {
    for (const entry of entries) incremental.push(readEntry(entry));
  } catch {
    incremental.push(UNREADABLE);
  }
  return incremental.view();
}

const policyOf = (options: ProjectorOptions): Policy => ({
  groupOf: typeof options.groupOf === 'function' ? (name) => options.groupOf?.(name) : undefined,
  whileActive: options.whileActive === 'steer' ? 'steer' : 'followUp',
});

/** One list of entries on its way into one projection. */
class IncrementalProjection {
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
    if (entry.badSeq) this.noteIn('bad_seq');
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
    this.projection.records.owner = ++this.owner;
    this.projection.records.shown = true;
    return this.current;
  }

  /** The projection as it were if nothing more came for the gaps. */
  private ahead(): Projection {
    const ahead = branchProjection(this.projection, ++this.owner);
    this.order.peek(
      (entry) => apply(ahead, entry.reading, entry),
      (from, to) => noteIn(ahead, 'gap', from, { from, to }),
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
    noteIn(this.projection, 'gap', from, { from, to });
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
    this.noteIn('conversation_missing', seq);
    return false;
  }

  private noteIn(code: string, seq?: number): void {
    this.current = undefined;
    noteIn(this.projection, code, seq);
  }
}

const EAGER_MAX = 64;

function snapshot({ phase: state, records: growing, queue: waiting, notes }: Projection): ConversationView {
  const records = { ...growing };
  const diagnostics = notesView(notes);
  let cycles: readonly RequestCycle[] | undefined;
  if (waiting.size <= EAGER_MAX) {
    return Object.freeze({
      state,
      get cycles() {
        cycles ??= cycleViews(records);
        return cycles;
      },
      queued: queueView(waiting),
      diagnostics,
    });
  }
  const queue = { ...waiting };
  return Object.freeze({
    state,
    get cycles() {
      cycles ??= cycleViews(records);
      return cycles;
    },
    get queued(): readonly QueuedMessage[] {
      return queueView(queue);
    },
    diagnostics,
  });
}

const WINDOW = 64;

type Hand = (entry: Entry) => void;
/** Told of the first and the last seq that are missing. */
type Miss = (from: number, to: number) => void;

class Order {
  /** Undefined until the start is fixed. */
  private next: number | undefined;
  private readonly held = new Map<number, Entry>();

  get holds(): boolean {
    return this.held.size > 0;
  }

  /** Hands on what is in order now: this entry and those it held up, or behind a full window those after the gap. */
  take(seq: number, entry: Entry, hand: Hand, miss: Miss): void {
    if (seq === 0) this.next ??= 0;
    if (this.next !== undefined && seq < this.next) return;
    if (seq === this.next) {
      this.next++;
      hand(entry);
    } else {
      if (!this.held.has(seq)) this.held.set(seq, entry);
      if (this.held.size <= WINDOW) return;
      this.skip(miss);
    }
    this.release(hand);
  }

  /** Hands on what waits as if the gaps were closed; it goes on waiting. */
  peek(hand: Hand, miss: Miss): void {
    let { next } = this;
    for (const [seq, entry] of [...this.held].sort(([a], [b]) => a - b)) {
      if (next !== undefined && seq > next) miss(next, seq - 1);
      next = seq + 1;
      hand(entry);
    }
  }

  private skip(miss: Miss): void {
    const first = Math.min(...this.held.keys());
    if (this.next !== undefined) miss(this.next, first - 1);
    this.next = first;
  }

  private release(hand: Hand): void {
    if (this.next === undefined || this.held.size === 0) return;
    for (let entry = this.held.get(this.next); entry !== undefined; entry = this.held.get(this.next)) {
      this.held.delete(this.next++);
      hand(entry);
    }
  }
}
