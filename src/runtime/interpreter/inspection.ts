/**
 * Observations of the compiled interpreter in the form of XState's inspection events, so that XState inspectors work with
 * both. Invariant: transitions are XState's own definitions. A snapshot describes the moment of its event, and XState makes it
 * when somebody reads it.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { ConfigurationError } from '../../errors.ts';
import { callHarmlessly } from '../../timeLimit.ts';
import type { ChartActor, ChartSnapshot, Observer } from './chartActor.ts';
import { compiled } from './chartActor.ts';
import type { Interpreter } from './interpreter.ts';
import type { Transition } from './plan.ts';
import { machineOf } from './xstate.ts';

type Observe = (event: unknown) => void;

/** An actor as inspectors expect it. */
interface InspectedActor {
  readonly id: string;
  readonly sessionId: string;
  readonly _parent: InspectedActor | undefined;
  readonly logic: AnyStateMachine;
  readonly system: object;
  send(event: { type: string }): void;
  getSnapshot(): unknown;
}

function definitionOf(machine: AnyStateMachine, { source, eventType, index }: Transition): AnyTransitionDefinition {
  const node = machine.getStateNodeById(source.id);
  const list = eventType === '' ? node.always : node.transitions.get(eventType);
  return list?.[index] as AnyTransitionDefinition;
}

function snapshotOf(of: ChartSnapshot, refOf: (actor: ChartActor) => InspectedActor): unknown {
  const machine = machineOf(of.machine);
  const { status, value, context, output, error, children } = of;
  const refs = Object.fromEntries(Object.entries(children).map(([id, child]) => [id, refOf(child)]));
  const resolved = machine.resolveState({ value, context, status: 'active' } as never);
  return Object.assign(resolved, { status, output, error, children: refs });
}

/** Runs the charts by their plans and reports to `inspect`. */
export const inspected: Interpreter = (options) => compiled(options, options.inspect && inspectionOf(options.inspect));

const OPENED = Symbol('opened');
/** An observer that needs only the opened conversations and reads them by itself. It costs charts nothing. */
export const ofOpened = (observe: Observe): Observe => Object.assign(observe, { [OPENED]: true });
const isOfOpened = (observer: object): boolean => OPENED in observer;

/** An event whose snapshot is made on first use. */
function withSnapshot(event: object, made: () => unknown): object {
  let snapshot: unknown;
  return Object.defineProperty(event, 'snapshot', { enumerable: true, get: () => (snapshot ??= made()) });
}

/** The observer that reports to `inspect` in XState's format. */
export function inspectionOf(inspect: (event: unknown) => void): Observer {
  const refs = new WeakMap<ChartActor, InspectedActor>();
  const refOf = (actor: ChartActor): InspectedActor => {
    const existing = refs.get(actor);
    if (existing) return existing;
    const ref: InspectedActor = {
      id: actor.id,
      sessionId: actor.sessionId,
      _parent: actor.parent && refOf(actor.parent),
      logic: machineOf(actor.plan.machine),
      system: actor.system,
      send: (event) => actor.send(event),
      getSnapshot: () => snapshotOf(actor.getSnapshot(), refOf),
    };
    refs.set(actor, ref);
    return ref;
  };
  let rootId: string | undefined;
  const about = (actor: ChartActor): { actorRef: InspectedActor; rootId: string } => {
    rootId ??= actor.sessionId;
    return { actorRef: refOf(actor), rootId };
  };
  /** Contains the current snapshot. */
  const tell = (actor: ChartActor, fields: object): void => {
    const now = actor.getSnapshot();
    inspect(withSnapshot({ ...about(actor), ...fields }, () => snapshotOf(now, refOf)));
  };
  return {
    actor: (actor) => inspect({ ...about(actor), type: '@xstate.actor' }),
    event: (actor, event, sender) =>
      inspect({ ...about(actor), type: '@xstate.event', event, sourceRef: sender && refOf(sender) }),
    transition(actor, event, transition) {
      const _transitions = transition ? [definitionOf(machineOf(actor.plan.machine), transition)] : [];
      tell(actor, { type: '@xstate.microstep', event, _transitions });
    },
    settled: (actor, event) => tell(actor, { type: '@xstate.snapshot', event }),
    stopped: () => {},
  };
}

interface NextObserver {
  next?(event: unknown): void;
}

type Ref = Pick<InspectedActor, 'id' | 'sessionId'> & { readonly _parent?: Ref | undefined };

/** XState inspectors receive ids that differ between conversations, and each root under its own name. */
function namedBy(id: string, next: Observe): Observe {
  const shown = new WeakMap<Ref, object>();
  const shownAs = (ref: Ref | undefined): object | undefined => {
    if (ref === undefined) return undefined;
    const existing = shown.get(ref);
    if (existing) return existing;
    const named = Object.create(ref, {
      id: { get: () => (ref._parent ? ref.id : id) },
      sessionId: { get: () => `${id}/${ref.sessionId}` },
      _parent: { get: () => shownAs(ref._parent) },
    }) as object;
    shown.set(ref, named);
    return named;
  };
  return (event) => {
    const { type, actorRef, sourceRef, rootId } = event as { [field: string]: unknown };
    // The inspector would warn about an unknown field.
    if (!String(type).startsWith('@xstate.')) return;
    const from = sourceRef ? { sourceRef: shownAs(sourceRef as Ref) } : {};
    const descriptors = Object.getOwnPropertyDescriptors(event as object);
    const renamed = { actorRef: shownAs(actorRef as Ref), rootId: `${id}/${String(rootId)}`, ...from };
    next(Object.defineProperties({}, { ...descriptors, ...Object.getOwnPropertyDescriptors(renamed) }));
  };
}

/** Observers of opened conversations and of their charts. */
export interface ConversationObserver {
  readonly opened: Observe;
  readonly charts: Observe | undefined;
  /** The interpreter that reports to them. */
  readonly interpreter: Interpreter | undefined;
}

/**
 * The `inspect` option for one conversation. It can observe everything and stop nothing, and it never throws. Throws
 * ConfigurationError for a value that cannot observe.
 */
export function observerOf(
  option: Observe | NextObserver | { inspect: NextObserver },
  id: string,
): ConversationObserver {
  const observe = typeof option === 'function' ? option : namedBy(id, nextOf(option));
  // It is called during a step.
  const opened: Observe = (event) => callHarmlessly(() => observe(event));
  const observesCharts = !isOfOpened(option);
  return { opened, charts: observesCharts ? opened : undefined, interpreter: observesCharts ? inspected : undefined };
}

function nextOf(option: NextObserver | { inspect: NextObserver }): Observe {
  const observer = 'inspect' in option ? option.inspect : option;
  if (typeof observer?.next === 'function') return (event) => observer.next?.(event);
  throw new ConfigurationError('inspect needs a function, an observer with next, or an inspector that has one');
}
