/**
 * What the actors of one actor system do, as records: of runchart's own interpreter, and of XState's. Rule: it is called in
 * the middle of a step, so it keeps references and copies nothing; an actor is on record before all that it does, parents
 * before children, whenever the observer came.
 */
import type { AnyActorRef, AnyStateMachine, AnyTransitionDefinition, InspectionEvent } from 'xstate';
import type { ChartActor, Observer } from '../runtime/interpreter/chartActor.ts';
import { machineOf } from '../runtime/interpreter/xstate.ts';
import { type Chart, chartOf, transitionLists } from './chart.ts';
import { CONTEXT, excerpt } from './excerpt.ts';
import type { NewRecord, RecordLog, Taken } from './recordLog.ts';
import type { ActorStatus, StateValue, TakenTransition } from './wire.ts';

type Redact = (value: object) => unknown;
type MadeFact = Extract<NewRecord, { type: 'actor' }>;
type StoppedFact = Extract<NewRecord, { type: 'stopped' }>;

/** Of each machine, once a process. */
const drawings = new WeakMap<object, { drawn: Chart; text: string }>();

/** The charts that were told already, by their machines. */
export class ChartCatalog {
  readonly #records: RecordLog;
  readonly #keys = new WeakMap<object, string>();
  /** By what is drawn: an app may build the same machine for each actor. */
  readonly #drawn = new Map<string, string>();

  constructor(records: RecordLog) {
    this.#records = records;
  }

  /** The key of a machine's chart; nothing for what is no machine. */
  keyOf(logic: unknown): string | undefined {
    const machine = logic as AnyStateMachine | undefined;
    const known = machine && this.#keys.get(machine);
    if (known !== undefined) return known;
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
    const known = this.#drawn.get(text);
    if (known !== undefined) return known;
    const key = `${drawn.name}#${this.#drawn.size}`;
    this.#drawn.set(text, key);
    this.#records.add({ type: 'chart', chart: key, drawn });
    return key;
  }
}

interface KnownActor {
  readonly id: string;
  readonly parent: KnownActor | undefined;
  /** How many below it have not stopped. */
  children: number;
  value: StateValue | undefined;
  status: ActorStatus;
  step: number;
}

/** How an actor ended: with what it threw, or with an output; a run's says whether it failed. */
interface End {
  error?: unknown;
  output?: unknown;
}

/** What went wrong, with its code where it has one. An app's output may throw when it is read: that is no end of the app. */
function wordsOf({ error, output }: End): string | undefined {
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
  /** Unique within the inspector. */
  nextId(): string;
  redact: Redact;
}

export class Actors {
  readonly #options: ActorsOptions;
  readonly #known = new Map<object, KnownActor>();
  /** The one that did something last is mostly the one that does the next thing. */
  #latest: object | undefined;
  #latestKnown: KnownActor | undefined;

  constructor(options: ActorsOptions) {
    this.#options = options;
  }

  made(actor: object, about: { name: string; parent: object | undefined; logic: unknown; late: boolean }): void {
    if (this.#known.has(actor)) return;
    const { records, charts, conversation, nextId } = this.#options;
    const chart = charts.keyOf(about.logic);
    const parent = about.parent && this.#known.get(about.parent);
    const known: KnownActor = {
      id: nextId(),
      parent,
      children: 0,
      value: undefined,
      status: 'active',
      step: 0,
    };
    this.#known.set(actor, known);
    if (parent) parent.children += 1;
    // Made field by field: to spread what may be missing costs more than all the rest.
    const fact: MadeFact = { n: 0, at: 0, type: 'actor', actor: known.id, conversation, name: about.name };
    if (parent) fact.parent = parent.id;
    if (chart !== undefined) fact.chart = chart;
    if (about.late) fact.late = true;
    records.add(fact);
  }

  event(actor: object, event: { type: string }, sender: object | undefined): void {
    const known = this.#of(actor);
    if (!known) return;
    const from = sender && this.#known.get(sender);
    this.#options.records.event(known.id, from?.id, event, this.#options.redact);
  }

  transition(actor: object, event: string, taken: Taken, value: StateValue): void {
    const known = this.#of(actor);
    if (!known) return;
    known.value = value;
    this.#options.records.transition(known.id, known.step, event, taken, value);
    known.step += 1;
  }

  settled(actor: object, event: string, value: StateValue, status: ActorStatus): void {
    const known = this.#of(actor);
    if (!known) return;
    known.step = 0;
    // XState makes a new value object for each snapshot.
    const isSame = known.value === value || JSON.stringify(known.value) === JSON.stringify(value);
    if (isSame && known.status === status) return;
    known.value = value;
    known.status = status;
    this.#options.records.settled(known.id, event, value, status);
  }

  /** Those below it that did not say so themselves have stopped with it. */
  stopped(actor: object, status: Exclude<ActorStatus, 'active'>, end: End = {}): void {
    const known = this.#known.get(actor);
    if (!known) return;
    if (known.children > 0)
      for (const [child, { parent }] of this.#known) if (parent === known) this.stopped(child, 'stopped');
    this.#known.delete(actor);
    if (known.parent) known.parent.children -= 1;
    // What is over is held by nobody here.
    this.#latest = undefined;
    this.#latestKnown = undefined;
    const fact: StoppedFact = { n: 0, at: 0, type: 'stopped', actor: known.id, status };
    const error = wordsOf(end);
    if (error !== undefined) fact.error = `${excerpt(Object(this.#options.redact({ error })).error, CONTEXT)}`;
    this.#options.records.add(fact);
  }

  /** The actor with this id, while it lives. */
  find(id: string): object | undefined {
    for (const [actor, known] of this.#known) if (known.id === id) return actor;
    return undefined;
  }

  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  #of(actor: object): KnownActor | undefined {
    if (actor === this.#latest) return this.#latestKnown;
    const known = this.#known.get(actor);
    this.#latest = actor;
    this.#latestKnown = known;
    return known;
  }
}

/** What a conversation wants to know of its own chart: that it moved, and that it is over. */
interface Heard {
  moved(): void;
  over(): void;
}

/** Observes charts run by their plans; told of those that live already first. */
export function planObserver(actors: Actors, { moved, over }: Heard): { observer: Observer; begun(): void } {
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
      // What a conversation says of itself is read from its own chart; where its runs begin and end the log tells.
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
/** Where a definition of XState's stands in its chart. */
function placeOf(definition: AnyTransitionDefinition): TakenTransition {
  const known = definitions.get(definition);
  if (known) return known;
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

/** Values of actors that are no machines are their own business. */
const stateOf = (snapshot: SomeSnapshot | undefined): StateValue => snapshot?.value ?? '';

/** Tells of the actors of an XState system what its inspection tells. */
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
      // What is entered at the start is no transition that one could look up.
      const list = (event._transitions ?? []).map(placeOf).filter(({ index }) => index >= 0);
      if (list.length === 0 && event.event.type === 'xstate.init') return;
      return actors.transition(actor, event.event.type, list, stateOf(snapshot));
    }
    const status = snapshot.status ?? 'active';
    actors.settled(actor, event.event.type, stateOf(snapshot), status);
    if (status !== 'active') actors.stopped(actor, status, snapshot);
  };
}

/** Those that lived before anybody inspected, parents before children. */
export function livingActors(actors: Actors, root: AnyActorRef): void {
  const { id, _parent: parent } = root;
  actors.made(root, { name: id, parent, logic: (root as { logic?: unknown }).logic, late: true });
  const snapshot = root.getSnapshot() as SomeSnapshot & { children?: { [id: string]: AnyActorRef | undefined } };
  actors.settled(root, '', stateOf(snapshot), snapshot.status ?? 'active');
  for (const child of Object.values(snapshot.children ?? {})) if (child) livingActors(actors, child);
}
