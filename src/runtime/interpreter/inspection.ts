/**
 * Observations of the compiled interpreter in the form of XState's inspection events, so that whatever understands those
 * understands both. Rule: transitions are XState's own definitions; a snapshot is that of the moment it was told at, and
 * is made by XState when somebody looks at it.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { ConfigurationError } from '../../errors.ts';
import type { ChartActor, ChartSnapshot, Observer } from './chartActor.ts';
import { compiled } from './chartActor.ts';
import type { Interpreter } from './interpreter.ts';
import type { Transition } from './plan.ts';
import { machineOf } from './xstate.ts';

type Observe = (event: unknown) => void;

/** An actor as inspectors know it. */
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

/** Runs the charts by their plans, and tells `inspect`. */
export const inspected: Interpreter = (options) => compiled(options, options.inspect && inspectionOf(options.inspect));

const OPENED = Symbol('opened');
/** An observer that wants to hear of opened conversations alone, and looks into them by itself: it costs charts nothing. */
export const ofOpened = (observe: Observe): Observe => Object.assign(observe, { [OPENED]: true });
const isOfOpened = (given: object): boolean => OPENED in given;

/** An event whose snapshot is made when it is asked for. */
function withSnapshot(event: object, made: () => unknown): object {
  let snapshot: unknown;
  return Object.defineProperty(event, 'snapshot', { enumerable: true, get: () => (snapshot ??= made()) });
}

/** The observer that tells `inspect` in XState's words. */
export function inspectionOf(inspect: (event: unknown) => void): Observer {
  const refs = new WeakMap<ChartActor, InspectedActor>();
  const refOf = (actor: ChartActor): InspectedActor => {
    const known = refs.get(actor);
    if (known) return known;
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
  /** With the snapshot of now. */
  const tell = (actor: ChartActor, told: object): void => {
    const now = actor.getSnapshot();
    inspect(withSnapshot({ ...about(actor), ...told }, () => snapshotOf(now, refOf)));
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

/** An inspector of XState's is shown ids that differ between conversations, and each root by the name of its own. */
function namedBy(id: string, next: Observe): Observe {
  const shown = new WeakMap<Ref, object>();
  const shownAs = (ref: Ref | undefined): object | undefined => {
    if (ref === undefined) return undefined;
    const known = shown.get(ref);
    if (known) return known;
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
    // Its reader warns of what it does not know.
    if (!String(type).startsWith('@xstate.')) return;
    const from = sourceRef ? { sourceRef: shownAs(sourceRef as Ref) } : {};
    const told = Object.getOwnPropertyDescriptors(event as object);
    const renamed = { actorRef: shownAs(actorRef as Ref), rootId: `${id}/${String(rootId)}`, ...from };
    next(Object.defineProperties({}, { ...told, ...Object.getOwnPropertyDescriptors(renamed) }));
  };
}

/** Who is told of a conversation that was opened, and who of what its charts do. */
export interface ConversationObserver {
  readonly opened: Observe;
  readonly charts: Observe | undefined;
  /** What runs the plans so that it is told. */
  readonly interpreter: Interpreter | undefined;
}

/**
 * Whoever was given as `inspect`, for one conversation. It sees everything and can stop nothing: it never throws.
 * Throws ConfigurationError for what cannot observe.
 */
export function observerOf(
  given: Observe | NextObserver | { inspect: NextObserver },
  id: string,
): ConversationObserver {
  const observe = typeof given === 'function' ? given : namedBy(id, nextOf(given));
  const opened: Observe = (event) => {
    try {
      observe(event);
    } catch {
      // What it throws is its own affair: it is called in the middle of a step.
    }
  };
  const isTold = !isOfOpened(given);
  return { opened, charts: isTold ? opened : undefined, interpreter: isTold ? inspected : undefined };
}

function nextOf(given: NextObserver | { inspect: NextObserver }): Observe {
  const observer = 'inspect' in given ? given.inspect : given;
  if (typeof observer?.next === 'function') return (event) => observer.next?.(event);
  throw new ConfigurationError('inspect needs a function, an observer with next, or an inspector that has one');
}
