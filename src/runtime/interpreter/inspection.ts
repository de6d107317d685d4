/**
 * Observations of the compiled interpreter in the form of XState's inspection events, so that whatever understands those
 * understands both. Rule: transitions are XState's own definitions, and snapshots are made by XState, copied when they
 * are told.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import type { ChartActor, Observer } from './chartActor.ts';
import { compiled } from './chartActor.ts';
import type { Interpreter } from './interpreter.ts';
import type { Transition } from './plan.ts';
import { machineOf } from './xstate.ts';

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

function snapshotOf(actor: ChartActor, refOf: (actor: ChartActor) => InspectedActor): unknown {
  const machine = machineOf(actor.plan.machine);
  const { status, value, context, output, error, children } = actor.getSnapshot();
  const refs = Object.fromEntries(Object.entries(children).map(([id, child]) => [id, refOf(child)]));
  const resolved = machine.resolveState({ value, context, status: 'active' } as never);
  return Object.assign(resolved, { status, output, error, children: refs });
}

/** Runs the charts by their plans, and tells `inspect`. */
export const inspected: Interpreter = (options) => compiled(options, options.inspect && inspectionOf(options.inspect));

function inspectionOf(inspect: (event: unknown) => void): Observer {
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
      getSnapshot: () => snapshotOf(actor, refOf),
    };
    refs.set(actor, ref);
    return ref;
  };
  let rootId: string | undefined;
  return (observation) => {
    const { type, actor } = observation;
    const actorRef = refOf(actor);
    rootId ??= actor.sessionId;
    const shared = { actorRef, rootId };
    switch (type) {
      case 'actor':
        return inspect({ ...shared, type: '@xstate.actor' });
      case 'event': {
        const { event, sender } = observation;
        return inspect({ ...shared, type: '@xstate.event', event, sourceRef: sender && refOf(sender) });
      }
      case 'transition': {
        const { event, transition } = observation;
        const _transitions = transition ? [definitionOf(machineOf(actor.plan.machine), transition)] : [];
        return inspect({
          ...shared,
          type: '@xstate.microstep',
          event,
          snapshot: snapshotOf(actor, refOf),
          _transitions,
        });
      }
      case 'settled':
        return inspect({
          ...shared,
          type: '@xstate.snapshot',
          event: observation.event,
          snapshot: snapshotOf(actor, refOf),
        });
      default:
        return undefined;
    }
  };
}
