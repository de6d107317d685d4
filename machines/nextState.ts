/**
 * The next state of a chart and its effects (docs/internals/contracts.md, REQ-BED-001). Invariant: nothing is executed. Equal state
 * and event give equal answers. Effects are plain records in the order in which the chart names them.
 */
import { type AnyMachineSnapshot, type AnyStateMachine, getInitialMicrosteps, getMicrosteps } from 'xstate';
import { type EffectRequest, REPORT_KINDS } from './ports.ts';
import type { NewEntry } from './vocabulary.ts';

/** An effect that a chart asks for in one step. */
export type ChartEffect =
  | { type: 'ask'; request: EffectRequest }
  | { type: 'drop'; prefix: string }
  | { type: 'log'; entries: readonly NewEntry[] }
  /** A child chart starts: `src` is its name in the parent, `input` its input. */
  | { type: 'spawn'; id: string; src: string; input: unknown }
  | { type: 'stop'; id: string }
  /** An event for a child chart, or for the chart's own `parent`. */
  | { type: 'send'; to: string; event: { type: string } };

/** The result of `nextState`. */
export interface NextState {
  /** The snapshot after the event. */
  state: AnyMachineSnapshot;
  /** The effects that the charts asked for, in their order. */
  effects: readonly ChartEffect[];
  /** The state values of the step, without repetition. The last one is that of `state`. */
  through: readonly unknown[];
}

type Action = { type: string; params: unknown; info: { self: unknown } };
type Microstep = readonly [AnyMachineSnapshot, readonly Action[]];

function effectOf({ type, params, info }: Action): ChartEffect | undefined {
  switch (type) {
    case 'ask':
      return params === undefined ? undefined : { type, request: params as EffectRequest };
    case 'drop':
      return { type, prefix: params as string };
    case 'log':
      return (params as NewEntry[]).length === 0 ? undefined : { type, entries: params as NewEntry[] };
    case 'xstate.spawnChild': {
      const { id, src, input } = params as { id: string; src: unknown; input: unknown };
      return { type: 'spawn', id, src: typeof src === 'string' ? src : '(inline)', input };
    }
    case 'xstate.stopChild':
      return params === undefined ? undefined : { type: 'stop', id: (params as { id: string }).id };
    case 'xstate.sendTo': {
      const { to, event } = params as { to: { id: string }; event: { type: string } };
      return { type: 'send', to: to === info.self ? 'parent' : to.id, event };
    }
    default:
      return undefined;
  }
}

const sameValue = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

interface Asking {
  type: string;
  params?: unknown;
}
/** The requests of a state on entry. `meta.awaits` contains the requests that transitions into it make. */
function asksOf({ entry, meta }: { entry: unknown; meta?: { awaits?: readonly unknown[] } }): unknown[] {
  const asks = (entry as readonly Asking[]).filter(({ type }) => type === 'ask');
  return [...asks.map(({ params }) => params), ...(meta?.awaits ?? [])];
}

/** Ids of the requests whose answers this state takes, without timers and child requests. */
export function awaited({ _nodes, context }: AnyMachineSnapshot): string[] {
  if (!_nodes.some(({ on }) => 'effect.done' in on)) return [];
  return _nodes.flatMap(asksOf).flatMap((ask) => {
    const resolved: unknown = typeof ask === 'function' ? ask({ context, event: { type: '' } }) : ask;
    const request = resolved as EffectRequest | undefined;
    return request === undefined || request.kind === 'timer' || REPORT_KINDS.has(request.kind) ? [] : [request.id];
  });
}

/** The answer belongs to no request of this chart, or to one that it no longer waits for. An empty id fits any request. */
function isStray(before: AnyMachineSnapshot, event: { type?: unknown; id?: unknown }): boolean {
  return (
    event.type === 'effect.done' &&
    typeof event.id === 'string' &&
    event.id !== '' &&
    !awaited(before).includes(event.id)
  );
}

/**
 * The state that follows `event`, and the effects of the step without those of child charts. Without a state the chart
 * starts: `event.input` is then its input. An answer that the chart does not wait for changes nothing.
 */
export function nextState(machine: AnyStateMachine, state: unknown, event: object): NextState {
  const before = state as AnyMachineSnapshot | undefined;
  if (before !== undefined && isStray(before, event)) return { state: before, effects: [], through: [] };
  const [first, ...steps]: Microstep[] =
    before === undefined
      ? getInitialMicrosteps(machine, (event as { input?: unknown }).input)
      : [[before, []], ...getMicrosteps(machine, before, event as never)];
  const last = steps.at(-1) ?? first;
  if (!first || !last) throw new Error('a chart has a first state');
  const effects = [first, ...steps].flatMap(([, actions]) => actions.flatMap((action) => effectOf(action) ?? []));
  const values = steps.map(([{ value }]) => value);
  const through = values.filter((value, index) => !sameValue(value, values[index - 1]));
  return { state: last[0], effects, through };
}
