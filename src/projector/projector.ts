/**
 * Projects a log to a view, whole or entry by entry (docs/internals/model.md, Determinism). Invariant: pure and total.
 * The same entries give the same view however they are split, and no value makes it throw. The order is the order of
 * `seq`: an early entry waits within a window, until the gap is given up with a note. A repeated entry changes nothing.
 * A view has a constant cost: long lists are built at the first read, from lists that never change later.
 */
import type { GroupName, QueuedMessage } from '../../machines/vocabulary.ts';
import { cycleViews } from './cycles.ts';
import { apply, branchProjection, emptyProjection, noteIn, type Policy, type Projection } from './projectionState.ts';
import { type Entry, readEntry, UNREADABLE } from './readEntry.ts';
import { notesView, queueView } from './records.ts';
import type { ConversationView, RequestCycle } from './view.ts';

/** The options of `project` and `createProjector`. */
export interface ProjectorOptions {
  /** Chooses the group of a tool, before the tool's own group and its name. An error or an unknown group is ignored. */
  groupOf?(toolName: string): GroupName | undefined;
  /** The kind of a user message without a valid kind while a cycle is open. Default: `followUp`. */
  whileActive?: 'steer' | 'followUp';
}

/** An incremental fold from entries to a view. */
export interface Projector {
  /** Constant cost. Accepts any value and never throws. */
  push(entry: unknown): void;
  /** Constant cost until `cycles` is read. Entries that wait for a gap are shown as if the gap were closed. */
  view(): ConversationView;
}

/** Creates a projector. Push each entry once; `view()` is the view of the entries so far. */
export function createProjector(options: ProjectorOptions = {}): Projector {
  const incremental = new IncrementalProjection(policyOf(options));
  return { push: (entry) => incremental.push(readEntry(entry)), view: () => incremental.view() };
}

/** Accepts any iterable. If it throws, the list ends there with a diagnostic. */
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

/** Applies one list of entries to one projection. */
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
      this.applyEntry(entry);
      return;
    }
    // Waiting entries are in the view, so the view changes when an entry begins to wait and when it stops.
    if (this.order.hasWaiting) this.current = undefined;
    this.order.accept(entry.seq, entry, this.applyEntry, this.noteGap);
    if (this.order.hasWaiting) this.current = undefined;
  }

  view(): ConversationView {
    this.current ??= snapshot(this.order.hasWaiting ? this.projectionWithGapsClosed() : this.projection);
    // From now on a new owner changes the records, so later reads of this view, also through a branch, see no change.
    this.projection.records.owner = ++this.owner;
    this.projection.records.shown = true;
    return this.current;
  }

  /** Returns the projection as if no more entries came for the gaps. */
  private projectionWithGapsClosed(): Projection {
    const ahead = branchProjection(this.projection, ++this.owner);
    this.order.peek(
      (entry) => apply(ahead, entry.reading, entry),
      (from, to) => noteIn(ahead, 'gap', from, { from, to }),
    );
    return ahead;
  }

  private readonly applyEntry = (entry: Entry): void => {
    if (entry.reading.type === 'ignored') return;
    this.current = undefined;
    apply(this.projection, entry.reading, entry);
  };

  private readonly noteGap = (from: number, to: number): void => {
    this.current = undefined;
    noteIn(this.projection, 'gap', from, { from, to });
  };

  /**
   * Entries of a sub-agent belong to its own view. An entry without an id could be a sub-agent's if others have one.
   * A parent's entry about a sub-agent is an exception: sub-agents have none of their own.
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

type EntryHandler = (entry: Entry) => void;
/** Receives the first and the last missing seq. */
type GapHandler = (from: number, to: number) => void;

class Order {
  /** Undefined until the first seq is fixed. */
  private next: number | undefined;
  private readonly waiting = new Map<number, Entry>();

  get hasWaiting(): boolean {
    return this.waiting.size > 0;
  }

  /** Passes on all entries that are in order now. If the window is full, it skips the gap first. */
  accept(seq: number, entry: Entry, hand: EntryHandler, miss: GapHandler): void {
    if (seq === 0) this.next ??= 0;
    if (this.next !== undefined && seq < this.next) return;
    if (seq === this.next) {
      this.next++;
      hand(entry);
    } else {
      if (!this.waiting.has(seq)) this.waiting.set(seq, entry);
      if (this.waiting.size <= WINDOW) return;
      this.skipGap(miss);
    }
    this.release(hand);
  }

  /** Passes on the waiting entries as if the gaps were closed. They keep waiting. */
  peek(hand: EntryHandler, miss: GapHandler): void {
    let { next } = this;
    for (const [seq, entry] of [...this.waiting].sort(([a], [b]) => a - b)) {
      if (next !== undefined && seq > next) miss(next, seq - 1);
      next = seq + 1;
      hand(entry);
    }
  }

  private skipGap(miss: GapHandler): void {
    const first = Math.min(...this.waiting.keys());
    if (this.next !== undefined) miss(this.next, first - 1);
    this.next = first;
  }

  private release(hand: EntryHandler): void {
    if (this.next === undefined || this.waiting.size === 0) return;
    for (let entry = this.waiting.get(this.next); entry !== undefined; entry = this.waiting.get(this.next)) {
      this.waiting.delete(this.next++);
      hand(entry);
    }
  }
}
