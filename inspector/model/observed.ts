/**
 * Actors and what they did, as the wire tells it. Rule: a fold of records: it keeps of each actor its path, bounded, and
 * where it stands. What was there is copied once for all that came together, so a long log costs as much as it is long.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Chart, ChartState } from '../../src/inspect/chart.ts';
import { innermostInitial, transitionKey } from '../../src/inspect/drawing/levels.ts';
import type { ActorStatus, Recorded, StateValue, TakenTransition } from '../../src/inspect/wire.ts';
import type { Move } from './chartPath.ts';

export interface ActorView {
  readonly id: string;
  readonly name: string;
  readonly parent?: string;
  /** Key of its chart; none for what is no machine. */
  readonly chart?: string;
  readonly isLate: boolean;
  readonly status: ActorStatus;
  readonly leaves: readonly string[];
  readonly path: readonly Move[];
  readonly error?: string;
  /** The state whose last transition led nowhere else, and when. */
  readonly stayed?: { readonly state: string; readonly at: number };
  /** Index of the last entry that was known when it stopped. */
  readonly endedAt?: number;
}

export interface EventRow {
  readonly n: number;
  readonly at: number;
  readonly actor: string;
  readonly from?: string;
  readonly event: { readonly type: string };
  /** Its type alone was told. */
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

/** Ids of the innermost states of a value. */
export function leavesOf(chart: Chart | undefined, value: StateValue | undefined): string[] {
  if (!chart || value === undefined) return [];
  const down = (state: ChartState, inner: StateValue): string[] => {
    if (typeof inner === 'string') {
      const child = state.states.find(({ key }) => key === inner);
      return [child?.id ?? state.id];
    }
    const found = Object.entries(inner).flatMap(([key, deeper]) => {
      const child = state.states.find((one) => one.key === key);
      return child ? down(child, deeper) : [];
    });
    return found.length > 0 ? found : [state.id];
  };
  return down(chart.root, value);
}

export type Fact = Exclude<Recorded, { type: 'chart' | 'conversation' | 'entry' | 'status' | 'closed' }>;

/** Takes facts that came together: what was seen before is copied once for all of them. */
export class Observing {
  readonly #actors: Map<string, ActorView>;
  readonly #events: EventRow[];
  /** Paths that are our own copies. */
  readonly #paths = new Map<string, Move[]>();

  constructor({ actors, events }: Observed) {
    this.#actors = new Map(actors);
    this.#events = [...events];
  }

  /** `behind`: index of the last entry that was known then. */
  take(fact: Fact, charts: ReadonlyMap<string, Chart>, behind: number): void {
    if (fact.type === 'event') return this.#event(fact);
    if (fact.type === 'actor') return this.#actor(fact, charts, behind);
    const known = this.#actors.get(fact.actor);
    if (!known) return;
    if (fact.type === 'stopped') {
      const { status, error } = fact;
      this.#actors.set(known.id, { ...known, status, endedAt: behind, ...(error !== undefined && { error }) });
      return;
    }
    const leaves = leavesOf(known.chart === undefined ? undefined : charts.get(known.chart), fact.value);
    const move: Move = { at: behind, legs: [], leaf: leaves[0] ?? '', time: fact.at };
    if (fact.type === 'settled') {
      if (known.leaves.join() !== leaves.join()) this.#pathOf(known).push(move);
      this.#actors.set(known.id, { ...known, status: fact.status, leaves });
      return;
    }
    const legs = legsOf(fact.taken);
    const stay = fact.taken.find(({ source, targets }) => targets.every((target) => target === source));
    if (stay) this.#actors.set(known.id, { ...known, stayed: { state: stay.source, at: fact.at } });
    if (legs.length === 0) return;
    const path = this.#pathOf(known);
    // Microsteps of one event are one step.
    const before = fact.step > 0 ? path.pop() : undefined;
    path.push({ ...move, legs: before ? [...before.legs, ...legs] : legs });
    this.#actors.set(known.id, { ...(this.#actors.get(known.id) ?? known), leaves });
  }

  result(): Observed {
    for (const [id, path] of this.#paths) {
      const known = this.#actors.get(id);
      if (known) this.#actors.set(id, { ...known, path: path.slice(-MOVES_MAX) });
    }
    return { actors: this.#actors, events: this.#events.slice(-EVENTS_MAX) };
  }

  #event({ n, at, actor, from, event, isPart }: Extract<Fact, { type: 'event' }>): void {
    const more = { ...(from !== undefined && { from }), ...(isPart && { isPart }) };
    this.#events.push({ n, at, actor, event, took: [], ...more });
    if (this.#events.length > 2 * EVENTS_MAX) this.#events.splice(0, EVENTS_MAX);
  }

  #actor(fact: Extract<Fact, { type: 'actor' }>, charts: ReadonlyMap<string, Chart>, behind: number): void {
    const drawn = fact.chart === undefined ? undefined : charts.get(fact.chart);
    // One that begins under the observer's eyes begins in its first state.
    const first = drawn && fact.late !== true && fact.value === undefined ? [innermostInitial(drawn.root).id] : [];
    const leaves = fact.value === undefined ? first : leavesOf(drawn, fact.value);
    const path = leaves.length === 0 ? [] : [{ at: behind, legs: [], leaf: leaves[0] ?? '', time: fact.at }];
    const { actor: id, name, parent, chart } = fact;
    this.#paths.delete(id);
    this.#actors.set(id, {
      id,
      name,
      isLate: fact.late === true,
      status: 'active',
      leaves,
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

const legsOf = (list: readonly TakenTransition[]): Move['legs'] =>
  list.flatMap((taken) =>
    taken.targets.slice(0, 1).map((target) => {
      const { source, event } = taken;
      return { key: transitionKey(source, taken), source, target, event };
    }),
  );

/** What of a conversation grows. */
export interface Growing {
  readonly entries: readonly LogEntry[];
  readonly inFlight?: { readonly text: string; readonly reasoning: string };
  readonly observed?: Observed;
}

interface Draft<Conversation> {
  conversation: Conversation;
  /** Our own copy, once there is an entry. */
  entries?: LogEntry[];
  observing?: Observing;
}

export class Arrivals<Conversation extends Growing> {
  readonly #known: (id: string) => Conversation;
  readonly #drafts = new Map<string, Draft<Conversation>>();

  /** `known`: the conversation as it is, or a blank one. */
  constructor(known: (id: string) => Conversation) {
    this.#known = known;
  }

  change(id: string, change: Partial<Conversation>): void {
    const draft = this.#draft(id);
    draft.conversation = { ...draft.conversation, ...change };
  }

  /** One that is there already is left out. */
  entry(id: string, entry: LogEntry): void {
    const draft = this.#draft(id);
    const there = draft.entries ?? draft.conversation.entries;
    if (entry.seq <= (there.at(-1)?.seq ?? -1)) return;
    draft.entries ??= [...there];
    draft.entries.push(entry);
    // What was streamed is durable now.
    if (entry.type === 'agent-output' || entry.type === 'model-reply') this.streamed(id, undefined);
  }

  /** What a reply in flight has said further; nothing: it is over. */
  streamed(id: string, more: { text?: string; reasoning?: string } | undefined): void {
    const draft = this.#draft(id);
    const { inFlight } = draft.conversation;
    const { text = '', reasoning = '' } = inFlight ?? {};
    if (more) {
      const said = { text: text + (more.text ?? ''), reasoning: reasoning + (more.reasoning ?? '') };
      draft.conversation = { ...draft.conversation, inFlight: said };
    } else if (inFlight) {
      const { inFlight: _, ...rest } = draft.conversation;
      draft.conversation = rest as Conversation;
    }
  }

  fact(id: string, fact: Fact, charts: ReadonlyMap<string, Chart>): void {
    const draft = this.#draft(id);
    draft.observing ??= new Observing(draft.conversation.observed ?? NOTHING_OBSERVED);
    draft.observing.take(fact, charts, (draft.entries ?? draft.conversation.entries).length - 1);
  }

  /** The conversations that something came for. */
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
      draft = { conversation: this.#known(id) };
      this.#drafts.set(id, draft);
    }
    return draft;
  }
}
