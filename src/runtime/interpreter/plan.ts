/**
 * A chart compiled for the interpreter, once for each chart: the effect of each event in each state, as flat lists of acts.
 * Invariant: it reads `machine.config` and the guards and actors of `machine.implementations`, which XState documents, and
 * refuses everything else. So a chart outside the subset fails when it is compiled, not while it runs.
 */
import { type Chart, VERBS, type Verb } from '../../../machines/verbs.ts';

export interface ChartEvent {
  readonly type: string;
}
export type Context = object;
interface Args {
  context: Context;
  event: ChartEvent;
}
type Guard = (args: Args) => boolean;

/** An act of a chart, or the start of an invoked child. */
export interface Act {
  readonly verb: Verb;
  /** The parameter as the chart gives it: a plain value, or a function of context and event. */
  readonly params: unknown;
}

export interface PlanState {
  readonly id: string;
  readonly key: string;
  readonly parent: PlanState | undefined;
  readonly states: ReadonlyMap<string, PlanState>;
  readonly initial: PlanState | undefined;
  readonly isFinal: boolean;
  /** For a final state. */
  readonly output: unknown;
  /** Entry acts, and the children that the state invokes. */
  readonly entry: readonly Act[];
  readonly exit: readonly Act[];
  readonly always: readonly Transition[];
  readonly on: ReadonlyMap<string, readonly Transition[]>;
  /** In XState's notation: `'idle'`, `{ busy: 'active' }`. */
  readonly value: StateValue;
  /** The tags of the state and of its ancestors. */
  readonly tags: ReadonlySet<string>;
  /** For a state without child states: the transitions to try for an event, innermost first. */
  transitionsFor(type: string): readonly Transition[];
  /** The eventless transitions of the state and of its ancestors, innermost first. */
  readonly eventless: readonly Transition[];
}
export type StateValue = string | { [key: string]: StateValue };

export interface Transition {
  readonly source: PlanState;
  /** The event descriptor; empty for an eventless transition. */
  readonly eventType: string;
  /** Its index in the list of that descriptor. */
  readonly index: number;
  readonly guard: Guard | undefined;
  readonly guardName: string | undefined;
  readonly target: PlanState | undefined;
  readonly reenter: boolean;
  readonly actions: readonly Act[];
  /** Its effect when it is taken in the given innermost state. */
  stepFrom(leaf: PlanState): Step;
}

/** Everything a transition does, in order, and the innermost state that it leads to. */
export interface Step {
  readonly acts: readonly Act[];
  readonly leaf: PlanState;
}

export interface Plan {
  readonly id: string;
  readonly machine: Chart;
  readonly root: PlanState;
  readonly initial: Step;
  contextOf(input: unknown): Context;
  /** The output of a chart that `event` has led to a final state. */
  outputOf(leaf: PlanState, context: Context, event: ChartEvent): unknown;
  childPlan(src: string): Plan;
}

/** Parts of a configuration, as a chart writes them. */
type Part = Record<string, unknown>;

const STATE_KEYS = [
  'id',
  'type',
  'initial',
  'states',
  'on',
  'always',
  'entry',
  'exit',
  'invoke',
  'output',
  'meta',
  'description',
  'tags',
];
/** `setup` adds the last two. */
const ROOT_KEYS = [...STATE_KEYS, 'context', 'version', 'types', 'schemas'];
const TRANSITION_KEYS = ['target', 'guard', 'actions', 'reenter', 'meta', 'description'];

function refuse(place: string, why: string): never {
  throw new Error(`${place} cannot be interpreted: ${why}`);
}
function knows(place: string, part: Part, keys: readonly string[]): void {
  const stray = Object.keys(part).find((key) => part[key] !== undefined && !keys.includes(key));
  if (stray !== undefined) refuse(place, `${stray} is not supported; supported are ${keys.join(', ')}`);
}
const listOf = (value: unknown): unknown[] => (value === undefined ? [] : Array.isArray(value) ? value : [value]);

function actsOf(place: string, value: unknown): Act[] {
  return listOf(value).map((act): Act => {
    const { type, params, ...rest } = act as Part;
    if (!VERBS.includes(type as Verb) || Object.keys(rest).length > 0) {
      refuse(place, `an act is { type, params } with one of ${VERBS.join(', ')}, got ${JSON.stringify(act)}`);
    }
    return { verb: type as Verb, params };
  });
}

/** Whether the descriptor matches the event: by its whole name, or by the part before `.*`. */
export const matchesDescriptor = (type: string, descriptor: string): boolean =>
  descriptor === type ||
  descriptor === '*' ||
  (descriptor.endsWith('.*') && `${type}.`.startsWith(descriptor.slice(0, -1)));

/** From the innermost state outwards, including itself. */
function* outwards(state: PlanState): Generator<PlanState> {
  for (let each: PlanState | undefined = state; each; each = each.parent) yield each;
}
/** The state, and the states that are entered in it by default. */
function* defaultEntry(state: PlanState): Generator<PlanState> {
  for (let each: PlanState | undefined = state; each; each = each.initial) yield each;
}
const isWithin = (state: PlanState, outer: PlanState): boolean => {
  for (let each = state.parent; each; each = each.parent) if (each === outer) return true;
  return false;
};

/** The innermost state that a transition stays inside (SCXML, getTransitionDomain). */
function domainOf({ source, target, reenter }: Transition & { target: PlanState }, root: PlanState): PlanState {
  if (!reenter && (target === source || isWithin(target, source))) return source;
  for (let outer = target.parent; outer; outer = outer.parent) if (isWithin(source, outer)) return outer;
  return root;
}

function stepOf(transition: Transition, leaf: PlanState, root: PlanState): Step {
  const { target, source, reenter, actions } = transition;
  if (!target) return { acts: actions, leaf };
  const domain = domainOf(transition as Transition & { target: PlanState }, root);
  const left = [...outwards(leaf)].filter(
    (state) => isWithin(state, domain) || (reenter && state === domain && state === source),
  );
  const around = [...outwards(target)].slice(1).filter((state) => isWithin(state, domain));
  const isEntered = target !== source || source !== domain || reenter;
  const inside = [...defaultEntry(target)];
  const entered = [...around.reverse(), ...(isEntered ? inside : inside.slice(1))];
  return {
    acts: [...left.flatMap(({ exit }) => exit), ...actions, ...entered.flatMap(({ entry }) => entry)],
    leaf: inside.at(-1) as PlanState,
  };
}

class CompiledTransition implements Transition {
  readonly source: PlanState;
  readonly eventType: string;
  readonly index: number;
  readonly guard: Guard | undefined;
  readonly guardName: string | undefined;
  readonly reenter: boolean;
  readonly actions: readonly Act[];
  readonly #find: () => PlanState | undefined;
  readonly #root: () => PlanState;
  #target: PlanState | undefined | null = null;
  readonly #steps = new Map<PlanState, Step>();

  constructor(chart: ChartCompiler, source: PlanState, eventType: string, index: number, transition: unknown) {
    const part: Part = typeof transition === 'string' ? { target: transition } : (transition as Part);
    const place = `${source.id} on "${eventType}"`;
    knows(place, part, TRANSITION_KEYS);
    const [target, ...others] = listOf(part.target) as string[];
    if (others.length > 0) refuse(place, 'a transition has one target at most');
    if (eventType === '' && target === undefined) refuse(place, 'an eventless transition needs a target');
    if (part.reenter === true && source.parent === undefined) refuse(place, 'the whole chart cannot be entered again');
    this.source = source;
    this.eventType = eventType;
    this.index = index;
    this.reenter = part.reenter === true;
    this.actions = actsOf(place, part.actions);
    [this.guardName, this.guard] = chart.guardOf(place, part.guard);
    this.#find = () => (target === undefined ? undefined : chart.resolve(source, target));
    this.#root = () => chart.root;
  }

  /** Resolved when all states exist. */
  get target(): PlanState | undefined {
    if (this.#target === null) this.#target = this.#find();
    return this.#target;
  }

  stepFrom(leaf: PlanState): Step {
    let step = this.#steps.get(leaf);
    if (!step) {
      step = stepOf(this, leaf, this.#root());
      this.#steps.set(leaf, step);
    }
    return step;
  }
}

class CompiledState implements PlanState {
  readonly id: string;
  readonly key: string;
  readonly parent: PlanState | undefined;
  readonly states = new Map<string, PlanState>();
  readonly isFinal: boolean;
  readonly output: unknown;
  readonly tags: ReadonlySet<string>;
  readonly entry: readonly Act[];
  readonly exit: readonly Act[];
  readonly always: readonly Transition[];
  readonly on: ReadonlyMap<string, readonly Transition[]>;
  readonly initial: PlanState | undefined;
  readonly #byType = new Map<string, readonly Transition[]>();
  #eventless: readonly Transition[] | undefined;
  #value: StateValue | undefined;

  constructor(chart: ChartCompiler, config: Part, key: string, parent: CompiledState | undefined) {
    this.key = key;
    this.parent = parent;
    this.id = (config.id as string | undefined) ?? (parent ? `${parent.id}.${key}` : key);
    const place = this.id;
    knows(place, config, parent ? STATE_KEYS : ROOT_KEYS);
    const { type, initial } = config;
    if (type !== undefined && type !== 'final' && type !== 'atomic' && type !== 'compound')
      refuse(place, `it is ${type}`);
    this.isFinal = type === 'final';
    if (this.isFinal && parent?.parent) refuse(place, 'a final state stands at the top of its chart');
    this.output = config.output;
    this.tags = new Set([...(parent?.tags ?? []), ...(listOf(config.tags) as string[])]);
    chart.add(this);
    const invoked = listOf(config.invoke).map((each) => this.#invoked(each as Part));
    this.entry = [...actsOf(place, config.entry), ...invoked.map(({ start }) => start)];
    this.exit = [...actsOf(place, config.exit), ...invoked.map(({ end }) => end)];
    const transitions = (type: string, list: unknown): Transition[] =>
      listOf(list).map((each, index) => new CompiledTransition(chart, this, type, index, each));
    this.always = transitions('', config.always);
    this.on = new Map(Object.entries((config.on ?? {}) as Part).map(([type, list]) => [type, transitions(type, list)]));
    for (const [name, child] of Object.entries((config.states ?? {}) as Record<string, Part>)) {
      this.states.set(name, new CompiledState(chart, child, name, this));
    }
    if (this.states.size > 0 && typeof initial !== 'string') refuse(place, 'initial names a state');
    this.initial = this.states.size > 0 ? this.states.get(initial as string) : undefined;
  }

  #invoked({ src, id, input, ...rest }: Part): { start: Act; end: Act } {
    if (typeof src !== 'string' || typeof id !== 'string') refuse(this.id, 'invoke names src and id');
    knows(`${this.id} invoke`, rest, []);
    const params = (args: Args) => [{ src, id, input: typeof input === 'function' ? input(args) : input }];
    return { start: { verb: 'spawn', params }, end: { verb: 'stop', params: id } };
  }

  get value(): StateValue {
    this.#value ??= stateValueOf(this);
    return this.#value;
  }

  get eventless(): readonly Transition[] {
    this.#eventless ??= [...outwards(this)].flatMap(({ always }) => always);
    return this.#eventless;
  }

  transitionsFor(type: string): readonly Transition[] {
    let found = this.#byType.get(type);
    if (!found) {
      found = [...outwards(this)].flatMap(({ on }) => candidates(on, type));
      this.#byType.set(type, found);
    }
    return found;
  }
}

function stateValueOf(leaf: PlanState): StateValue {
  let value: StateValue | undefined;
  for (const state of outwards(leaf)) {
    if (state.parent) value = value === undefined ? state.key : { [state.key]: value };
  }
  return value ?? {};
}

/** The whole name first, then wildcards, longer before shorter. */
function candidates(on: PlanState['on'], type: string): Transition[] {
  const wild = [...on.keys()]
    .filter((descriptor) => descriptor !== type && matchesDescriptor(type, descriptor))
    .sort((a, b) => b.length - a.length);
  return [type, ...wild].flatMap((descriptor) => on.get(descriptor) ?? []);
}

/** One chart during compilation: its states by id, and its guards by name. */
class ChartCompiler {
  readonly root: PlanState;
  readonly #machine: Chart;
  readonly #byId = new Map<string, PlanState>();

  constructor(machine: Chart) {
    this.#machine = machine;
    this.root = new CompiledState(this, machine.config as Part, machine.id, undefined);
    for (const state of this.#byId.values()) this.#check(state);
  }

  add(state: PlanState): void {
    if (this.#byId.has(state.id)) refuse(state.id, 'two states have this id');
    this.#byId.set(state.id, state);
  }

  /** Checks that every target and every initial state exists. */
  #check(state: PlanState): void {
    if (state.states.size > 0 && !state.initial) refuse(state.id, 'its initial state is unknown');
    for (const { target } of [...state.always, ...[...state.on.values()].flat()]) void target;
  }

  guardOf(place: string, guard: unknown): [string | undefined, Guard | undefined] {
    if (guard === undefined) return [undefined, undefined];
    if (typeof guard === 'function') return [guard.name || undefined, guard as Guard];
    const found = typeof guard === 'string' ? this.#machine.implementations.guards[guard] : undefined;
    if (typeof found !== 'function') refuse(place, `the guard ${JSON.stringify(guard)} is unknown`);
    return [guard as string, found as unknown as Guard];
  }

  /** `#ID.a.b` from a state with that id, `.a` from the state itself, `a` from its parent. */
  resolve(source: PlanState, target: string): PlanState {
    const [first = '', ...path] = target.split('.');
    const start = first === '' ? source : first.startsWith('#') ? this.#byId.get(first.slice(1)) : source.parent;
    const keys = first === '' || first.startsWith('#') ? path : [first, ...path];
    const found = keys.reduce<PlanState | undefined>((state, key) => state?.states.get(key), start);
    return found ?? refuse(source.id, `the target ${target} is unknown`);
  }
}

const resolved = (value: unknown, args: Args): unknown => (typeof value === 'function' ? value(args) : value);

function compile(machine: Chart): Plan {
  const chart = new ChartCompiler(machine);
  const { root } = chart;
  const { context, output } = machine.config as Part;
  const entered = [...defaultEntry(root)];
  return {
    id: machine.id,
    machine,
    root,
    initial: { acts: entered.flatMap(({ entry }) => entry), leaf: entered.at(-1) as PlanState },
    contextOf: (input) => (typeof context === 'function' ? context({ input }) : (context ?? {})) as Context,
    outputOf(leaf, at, event) {
      if (output === undefined) return undefined;
      const leafOutput = resolved(leaf.output, { context: at, event });
      const done = { type: `xstate.done.state.${leaf.id}`, output: leafOutput };
      return resolved(output, { context: at, event: done });
    },
    childPlan(src) {
      const child = machine.implementations.actors[src];
      if (!child) throw new Error(`${machine.id} knows no actor ${src}`);
      return planOf(child as Chart);
    },
  };
}

const plans = new WeakMap<Chart, Plan>();
/** The plan of a chart, compiled on first use. Throws for a chart outside the subset. */
export function planOf(machine: Chart): Plan {
  const existing = plans.get(machine);
  if (existing) return existing;
  const plan = compile(machine);
  plans.set(machine, plan);
  return plan;
}
