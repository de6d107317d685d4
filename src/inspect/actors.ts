/**
 * Records the behaviour of the actors of one system, for runchart's interpreter and for XState. Invariant: the methods run in
 * the middle of a step, so they keep references and copy nothing. An actor is recorded before its events, and a parent
 * before its children. This also holds for an observer that starts late.
 */
import type { AnyActorRef, AnyStateMachine, AnyTransitionDefinition, InspectionEvent } from 'xstate';
import type { ChartActor, Observer } from '../runtime/interpreter/chartActor.ts';
import { machineOf } from '../runtime/interpreter/xstate.ts';
import { type Chart, chartOf, transitionLists } from './chart.ts';
import { CONTEXT, excerpt } from './excerpt.ts';
import type { NewRecord, RecordLog, Taken } from './recordLog.ts';
import type { ActorState, ActorStatus, StateValue, TakenTransition } from './wire.ts';

type Redact = (value: object) => unknown;
type MadeFact = Extract<NewRecord, { type: 'actor' }>;
type StoppedFact = Extract<NewRecord, { type: 'stopped' }>;

/** Each machine is drawn once per process. */
const drawings = new WeakMap<object, { drawn: Chart; text: string }>();

/** The charts that were already recorded, by machine. */
export class ChartCatalog {
  readonly #records: RecordLog;
  readonly #keys = new WeakMap<object, string>();
  /** The key is the drawn text: an app may build the same machine for each actor. */
  readonly #drawn = new Map<string, string>();

  constructor(records: RecordLog) {
    this.#records = records;
  }

  /** Returns the key of a machine's chart, or undefined if the logic is not a machine. */
  keyOf(logic: unknown): string | undefined {
    const machine = logic as AnyStateMachine | undefined;
    const existingKey = machine && this.#keys.get(machine);
    if (existingKey !== undefined) return existingKey;
    if (!machine?.root?.states || !machine.root.transitions) return undefined;
    let drawing = drawings.get(machine);
    if (!drawing) {
      const drawn = chartOf(machine);
      drawing = { drawn, text: JSON.stringify(drawn) };
      drawings.set(machine, drawing);
    }
    const key = this.add(drawing.drawn, drawing.text);
    this.#keys.set(machine, key);
    return key;
  }

  add(drawn: Chart, text: string = JSON.stringify(drawn)): string {
    const existingKey = this.#drawn.get(text);
    if (existingKey !== undefined) return existingKey;
    const key = `${drawn.name}#${this.#drawn.size}`;
    this.#drawn.set(text, key);
    this.#records.add({ type: 'chart', chart: key, drawn });
    return key;
  }
}

interface RecordedActor {
  readonly id: string;
  readonly parent: RecordedActor | undefined;
  /** The number of children that have not stopped. */
  children: number;
  value: StateValue | undefined;
  status: ActorStatus;
  step: number;
}

/** The end of an actor: an error or an output. The output of a run contains its failure. */
interface End {
  error?: unknown;
  output?: unknown;
}

/**
 * Returns the error's message, with its code if there is one. Reading an app's output may throw, and that must not stop
 * the app.
 */
function errorTextOf({ error, output }: End): string | undefined {
  try {
    if (error instanceof Error) return error.message;
    const { code, message } = Object(Object(Object(output).end).error) as { code?: unknown; message?: unknown };
    return typeof code === 'string' && typeof message === 'string' ? `${code}: ${message}` : undefined;
  } catch {
    return undefined;
  }
}

export interface ActorsOptions {
  records: RecordLog;
  charts: ChartCatalog;
  conversation: string;
  /** Returns an id that is unique within the inspector. */
  nextId(): string;
  redact: Redact;
}

export class Actors {
  readonly #options: ActorsOptions;
  readonly #actors = new Map<object, RecordedActor>();
  /** Most calls concern the same actor as the call before, so it is cached. */
  #latestRef: object | undefined;
  #latestActor: RecordedActor | undefined;

  constructor(options: ActorsOptions) {
    this.#options = options;
  }

  made(actor: object, about: { name: string; parent: object | undefined; logic: unknown; late: boolean }): void {
    if (this.#actors.has(actor)) return;
    const { records, charts, conversation, nextId } = this.#options;
    const chart = charts.keyOf(about.logic);
    const parent = about.parent && this.#actors.get(about.parent);
    const recorded: RecordedActor = {
      id: nextId(),
      parent,
      children: 0,
      value: undefined,
      status: 'active',
      step: 0,
    };
    this.#actors.set(actor, recorded);
    if (parent) parent.children += 1;
    // Fields are set one by one, because spreading optional fields is much slower.
    const fact: MadeFact = { n: 0, at: 0, type: 'actor', actor: recorded.id, conversation, name: about.name };
    if (parent) fact.parent = parent.id;
    if (chart !== undefined) fact.chart = chart;
    if (about.late) fact.late = true;
    records.add(fact);
  }

  event(actor: object, event: { type: string }, sender: object | undefined): void {
    const recorded = this.#find(actor);
    if (!recorded) return;
    const from = sender && this.#actors.get(sender);
    this.#options.records.event(recorded.id, from?.id, event, this.#options.redact);
  }

  transition(actor: object, event: string, taken: Taken, value: StateValue): void {
    const recorded = this.#find(actor);
    if (!recorded) return;
    recorded.value = value;
    this.#options.records.transition(recorded.id, recorded.step, event, taken, value);
    recorded.step += 1;
  }

  settled(actor: object, event: string, value: StateValue, status: ActorStatus): void {
    const recorded = this.#find(actor);
    if (!recorded) return;
    recorded.step = 0;
    // XState creates a new value object for each snapshot.
    const isSame = recorded.value === value || JSON.stringify(recorded.value) === JSON.stringify(value);
    if (isSame && recorded.status === status) return;
    recorded.value = value;
    recorded.status = status;
    this.#options.records.settled(recorded.id, event, value, status);
  }

  /** Stops its children first if they have not reported their stop. */
  stopped(actor: object, status: Exclude<ActorStatus, 'active'>, end: End = {}): void {
    const recorded = this.#actors.get(actor);
    if (!recorded) return;
    if (recorded.children > 0)
      for (const [child, { parent }] of this.#actors) if (parent === recorded) this.stopped(child, 'stopped');
    this.#actors.delete(actor);
    if (recorded.parent) recorded.parent.children -= 1;
    // Release references to the stopped actor.
    this.#latestRef = undefined;
    this.#latestActor = undefined;
    const fact: StoppedFact = { n: 0, at: 0, type: 'stopped', actor: recorded.id, status };
    const error = errorTextOf(end);
    if (error !== undefined) fact.error = `${excerpt(Object(this.#options.redact({ error })).error, CONTEXT)}`;
    this.#options.records.add(fact);
  }

  /** Returns the running actor with this id. */
  find(id: string): object | undefined {
    for (const [actor, recorded] of this.#actors) if (recorded.id === id) return actor;
    return undefined;
  }

  /** Yields the states of the running actors, as they were recorded last. */
  *states(): Generator<ActorState> {
    for (const { id, value, status } of this.#actors.values()) {
      if (value !== undefined) yield { actor: id, value, status };
    }
  }

  get isEmpty(): boolean {
    return this.#actors.size === 0;
  }

  #find(actor: object): RecordedActor | undefined {
    if (actor === this.#latestRef) return this.#latestActor;
    const recorded = this.#actors.get(actor);
    this.#latestRef = actor;
    this.#latestActor = recorded;
    return recorded;
  }
}

/** Called when a conversation's chart changes its state, and when it ends. */
interface ChartCallbacks {
  moved(): void;
  over(): void;
}

/** Observes charts that run compiled plans. Actors that already run are recorded first, marked as late. */
export function planObserver(actors: Actors, { moved, over }: ChartCallbacks): { observer: Observer; begun(): void } {
  let late = true;
  const observer: Observer = {
    actor(actor) {
      actors.made(actor, { name: actor.id, parent: actor.parent, logic: machineOf(actor.plan.machine), late });
      if (late) actors.settled(actor, '', actor.value, actor.status);
    },
    event: (actor, event, sender) => actors.event(actor, event, sender),
    transition: (actor, { type }, transition) => actors.transition(actor, type, transition, actor.value),
    settled(actor, { type }) {
      actors.settled(actor, type, actor.value, actor.status);
      // The root chart determines the status of a conversation. The log contains the beginning and end of its runs.
      if (!actor.parent) moved();
    },
    stopped(actor) {
      actors.stopped(actor, endOf(actor), actor);
      if (!actor.parent) over();
    },
  };
  return {
    observer,
    begun: () => {
      late = false;
    },
  };
}

const endOf = ({ status }: ChartActor): Exclude<ActorStatus, 'active'> => (status === 'active' ? 'stopped' : status);

const definitions = new WeakMap<AnyTransitionDefinition, TakenTransition>();
/** Returns the position of an XState transition in its chart. */
function placeOf(definition: AnyTransitionDefinition): TakenTransition {
  const existing = definitions.get(definition);
  if (existing) return existing;
  const source = definition.source as AnyStateMachine['root'];
  const [event = '', list = []] = [...transitionLists(source)].find(([, each]) => each.includes(definition)) ?? [];
  const { guard } = definition as { guard?: unknown };
  const name = typeof guard === 'string' ? guard : (guard as { type?: unknown; name?: unknown } | undefined)?.type;
  const place: TakenTransition = {
    source: source.id,
    event,
    index: list.indexOf(definition),
    targets: (definition.target ?? []).map(({ id }) => id),
    ...(typeof name === 'string' && { guard: name }),
  };
  definitions.set(definition, place);
  return place;
}

interface SomeSnapshot {
  value?: StateValue;
  status?: ActorStatus;
  error?: unknown;
  output?: unknown;
}

/** Actors that are not machines have no state value. */
const stateOf = (snapshot: SomeSnapshot | undefined): StateValue => snapshot?.value ?? '';

/** Records the inspection events of an XState system. */
export function inspectedActors(actors: Actors): (event: InspectionEvent) => void {
  return (event) => {
    const actor = event.actorRef as AnyActorRef & { logic?: unknown };
    if (event.type === '@xstate.actor') {
      actors.made(actor, { name: actor.id, parent: actor._parent, logic: actor.logic, late: false });
      return;
    }
    if (event.type === '@xstate.event') return actors.event(actor, event.event, event.sourceRef);
    if (event.type !== '@xstate.microstep' && event.type !== '@xstate.snapshot') return;
    const snapshot = event.snapshot as SomeSnapshot;
    if (event.type === '@xstate.microstep') {
      // The initial transition is not in the chart, so there is nothing to look up.
      const list = (event._transitions ?? []).map(placeOf).filter(({ index }) => index >= 0);
      if (list.length === 0 && event.event.type === 'xstate.init') return;
      return actors.transition(actor, event.event.type, list, stateOf(snapshot));
    }
    const status = snapshot.status ?? 'active';
    actors.settled(actor, event.event.type, stateOf(snapshot), status);
    if (status !== 'active') actors.stopped(actor, status, snapshot);
  };
}

/** Records the actors that ran before the inspection began, parents before children. */
export function recordRunningActors(actors: Actors, root: AnyActorRef): void {
  const { id, _parent: parent } = root;
  actors.made(root, { name: id, parent, logic: (root as { logic?: unknown }).logic, late: true });
  const snapshot = root.getSnapshot() as SomeSnapshot & { children?: { [id: string]: AnyActorRef | undefined } };
  actors.settled(root, '', stateOf(snapshot), snapshot.status ?? 'active');
  for (const child of Object.values(snapshot.children ?? {})) if (child) recordRunningActors(actors, child);
}
