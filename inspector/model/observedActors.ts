/**
 * Actors and their moves, folded from the records of the wire. Invariant: each actor keeps a limited path and its
 * current state. The state is copied once for all records of a batch, so the cost grows linearly with the log.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Chart, ChartState } from '../../src/inspect/chart.ts';
import { innermostActive, transitionKey } from '../../src/inspect/drawing/levels.ts';
import type { ActorStatus, Recorded, StateValue, TakenTransition } from '../../src/inspect/wire.ts';
import type { Move } from './chart/chartPath.ts';

export interface ActorView {
  readonly id: string;
  readonly name: string;
  readonly parent?: string;
  /** The key of its chart. Undefined if it is not a machine. */
  readonly chart?: string;
  readonly isLate: boolean;
  readonly status: ActorStatus;
  /** The innermost active states: one, or one in each parallel region. */
  readonly leaves: readonly string[];
  /** A microstep of its latest event changed the state. */
  readonly hasMoved: boolean;
  readonly path: readonly Move[];
  readonly error?: string;
  /** The state whose last transition stayed in it, and the time. */
  readonly stayed?: { readonly state: string; readonly at: number };
  /** The index of the last entry that the page had when the actor stopped. */
  readonly endedAt?: number;
}

export interface EventRow {
  readonly n: number;
  readonly at: number;
  readonly actor: string;
  readonly from?: string;
  readonly event: { readonly type: string };
  /** Only its type was sent. */
  readonly isPart?: true;
  readonly took: readonly string[];
}

export interface Observed {
  readonly actors: ReadonlyMap<string, ActorView>;
  readonly events: readonly EventRow[];
}

export const NOTHING_OBSERVED: Observed = { actors: new Map(), events: [] };
const MOVES_MAX = 4000;
const EVENTS_MAX = 5000;
/** The latest actors that have ended. Running ones are all kept. */
const ENDED_MAX = 2000;

/** Returns the ids of the innermost states of a state value. */
export function leavesOf(chart: Chart | undefined, value: StateValue | undefined): string[] {
  if (!chart || value === undefined) return [];
  const down = (state: ChartState, inner: StateValue): string[] => {
    if (typeof inner === 'string') {
      const child = state.states.find(({ key }) => key === inner);
      return [child?.id ?? state.id];
    }
    const leaves = Object.entries(inner).flatMap(([key, deeper]) => {
      const child = state.states.find((one) => one.key === key);
      return child ? down(child, deeper) : [];
    });
    return leaves.length > 0 ? leaves : [state.id];
  };
  return down(chart.root, value);
}

export type Fact = Exclude<Recorded, { type: 'chart' | 'conversation' | 'entry' | 'status' | 'closed' }>;

/** Applies a batch of facts. The state before it is copied once for all of them. */
export class ObservedBatch {
  readonly #actors: Map<string, ActorView>;
  readonly #events: EventRow[];
  /** Paths that are already copied. */
  readonly #paths = new Map<string, Move[]>();

  constructor({ actors, events }: Observed) {
    this.#actors = new Map(actors);
    this.#events = [...events];
  }

  /** `lastIndex` is the index of the last entry at that time. */
  applyFact(fact: Fact, charts: ReadonlyMap<string, Chart>, lastIndex: number): void {
    if (fact.type === 'event') return this.#event(fact);
    if (fact.type === 'actor') return this.#actor(fact, charts, lastIndex);
    const view = this.#actors.get(fact.actor);
    if (!view) return;
    if (fact.type === 'stopped') {
      const { status, error } = fact;
      this.#actors.set(view.id, { ...view, status, endedAt: lastIndex, ...(error !== undefined && { error }) });
      return;
    }
    const leaves = leavesOf(view.chart === undefined ? undefined : charts.get(view.chart), fact.value);
    const move: Move = { at: lastIndex, legs: [], leaf: leaves[0] ?? '', leaves, time: fact.at };
    if (fact.type === 'settled') {
      if (view.leaves.join() !== leaves.join()) this.#pathOf(view).push(move);
      this.#actors.set(view.id, { ...view, status: fact.status, leaves });
      return;
    }
    const legs = legsOf(fact.taken, leaves);
    const stay = fact.taken.find(({ source, targets }) => targets.every((target) => target === source));
    const hasMoved = legs.length > 0 || (fact.step > 0 && view.hasMoved);
    const stayed = stay && { state: stay.source, at: fact.at };
    this.#actors.set(view.id, { ...view, leaves, hasMoved, ...(stayed && { stayed }) });
    if (legs.length === 0) return;
    const path = this.#pathOf(view);
    // Microsteps of one event form one step.
    const before = fact.step > 0 && view.hasMoved ? path.pop() : undefined;
    path.push({ ...move, legs: before ? [...before.legs, ...legs] : legs });
  }

  result(): Observed {
    for (const [id, path] of this.#paths) {
      const view = this.#actors.get(id);
      if (view) this.#actors.set(id, { ...view, path: path.slice(-MOVES_MAX) });
    }
    this.#dropEnded();
    return { actors: this.#actors, events: this.#events.slice(-EVENTS_MAX) };
  }

  /** An app may start an actor for each request. Exceeds the limit by a small amount, so that this is rare. */
  #dropEnded(): void {
    if (this.#actors.size <= ENDED_MAX * 1.25) return;
    const ended = [...this.#actors.values()].filter(({ status }) => status !== 'active');
    if (ended.length <= ENDED_MAX * 1.25) return;
    for (const { id } of ended.slice(0, -ENDED_MAX)) this.#actors.delete(id);
  }

  #event({ n, at, actor, from, event, isPart }: Extract<Fact, { type: 'event' }>): void {
    const more = { ...(from !== undefined && { from }), ...(isPart && { isPart }) };
    this.#events.push({ n, at, actor, event, took: [], ...more });
    if (this.#events.length > 2 * EVENTS_MAX) this.#events.splice(0, EVENTS_MAX);
  }

  #actor(fact: Extract<Fact, { type: 'actor' }>, charts: ReadonlyMap<string, Chart>, lastIndex: number): void {
    const drawn = fact.chart === undefined ? undefined : charts.get(fact.chart);
    // An actor that starts during the observation begins in its initial state.
    const first =
      drawn && fact.late !== true && fact.value === undefined ? innermostActive(drawn.root).map(({ id }) => id) : [];
    const leaves = fact.value === undefined ? first : leavesOf(drawn, fact.value);
    const path = leaves.length === 0 ? [] : [{ at: lastIndex, legs: [], leaf: leaves[0] ?? '', leaves, time: fact.at }];
    const { actor: id, name, parent, chart } = fact;
    this.#paths.delete(id);
    this.#actors.set(id, {
      id,
      name,
      isLate: fact.late === true,
      status: 'active',
      leaves,
      hasMoved: false,
      path,
      ...(parent !== undefined && { parent }),
      ...(chart !== undefined && { chart }),
    });
  }

  #pathOf({ id, path }: ActorView): Move[] {
    let own = this.#paths.get(id);
    if (!own) {
      own = [...path];
      this.#paths.set(id, own);
    }
    if (own.length > 2 * MOVES_MAX) own.splice(0, MOVES_MAX);
    return own;
  }
}

/**
 * Returns the legs of one microstep: several if several regions take the event, or if one transition has several
 * targets.
 */
function legsOf(list: readonly TakenTransition[], leaves: readonly string[]): Move['legs'] {
  const legs = list.flatMap((taken) => {
    const { source, event, targets } = taken;
    return targets.map((target) => ({ key: transitionKey(source, taken), source, target, event }));
  });
  return legs.map((leg, place) => (place < legs.length - 1 ? { ...leg, isPart: true } : { ...leg, leaves }));
}

/** The parts of a conversation that grow while it runs. */
export interface GrowingConversation {
  readonly entries: readonly LogEntry[];
  readonly inFlight?: { readonly text: string; readonly reasoning: string };
  readonly observed?: Observed;
}

interface Draft<Conversation> {
  conversation: Conversation;
  /** A copy, made with the first new entry. */
  entries?: LogEntry[];
  observing?: ObservedBatch;
}

export class Arrivals<Conversation extends GrowingConversation> {
  readonly #current: (id: string) => Conversation;
  readonly #drafts = new Map<string, Draft<Conversation>>();

  /** `current` returns the conversation as it is, or an empty one. */
  constructor(current: (id: string) => Conversation) {
    this.#current = current;
  }

  change(id: string, change: Partial<Conversation>): void {
    const draft = this.#draft(id);
    draft.conversation = { ...draft.conversation, ...change };
  }

  /** The observation of a conversation begins again: the end of actors that ran before may have been missed. */
  begin(id: string): void {
    const draft = this.#draft(id);
    const { actors, events } = draft.observing?.result() ?? draft.conversation.observed ?? NOTHING_OBSERVED;
    const ended = [...actors].filter(([, { status }]) => status !== 'active');
    if (ended.length < actors.size) draft.observing = new ObservedBatch({ actors: new Map(ended), events });
  }

  /** Ignores an entry that is already there. A first entry with another time starts another log of the same name. */
  entry(id: string, entry: LogEntry): void {
    const draft = this.#draft(id);
    const [first] = draft.entries ?? draft.conversation.entries;
    if (entry.seq === 0 && first && first.at !== entry.at) draft.entries = [];
    const existing = draft.entries ?? draft.conversation.entries;
    if (entry.seq <= (existing.at(-1)?.seq ?? -1)) return;
    draft.entries ??= [...existing];
    draft.entries.push(entry);
    // The streamed text is durable now.
    if (entry.type === 'agent-output' || entry.type === 'model-reply') this.addStreamed(id, undefined);
  }

  /** Adds streamed text of the reply in flight. Undefined ends it. */
  addStreamed(id: string, more: { text?: string; reasoning?: string } | undefined): void {
    const draft = this.#draft(id);
    const { inFlight } = draft.conversation;
    const { text = '', reasoning = '' } = inFlight ?? {};
    if (more) {
      const extended = { text: text + (more.text ?? ''), reasoning: reasoning + (more.reasoning ?? '') };
      draft.conversation = { ...draft.conversation, inFlight: extended };
    } else if (inFlight) {
      const { inFlight: _, ...rest } = draft.conversation;
      draft.conversation = rest as Conversation;
    }
  }

  fact(id: string, fact: Fact, charts: ReadonlyMap<string, Chart>): void {
    const draft = this.#draft(id);
    draft.observing ??= new ObservedBatch(draft.conversation.observed ?? NOTHING_OBSERVED);
    draft.observing.applyFact(fact, charts, (draft.entries ?? draft.conversation.entries).length - 1);
  }

  /** Returns the changed conversations. */
  result(): Map<string, Conversation> {
    const made = [...this.#drafts].map(([id, { conversation, entries, observing }]): [string, Conversation] => [
      id,
      { ...conversation, ...(entries && { entries }), ...(observing && { observed: observing.result() }) },
    ]);
    return new Map(made);
  }

  #draft(id: string): Draft<Conversation> {
    let draft = this.#drafts.get(id);
    if (!draft) {
      draft = { conversation: this.#current(id) };
      this.#drafts.set(id, draft);
    }
    return draft;
  }
}
