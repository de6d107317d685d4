/**
 * A chart built again with one part of its configuration changed. Invariant: all other parts are the chart's own,
 * implementations included.
 */
import { type AnyStateMachine, createMachine } from 'xstate';

type Node = AnyStateMachine['root'];
export type Part = { [key: string]: unknown };
export type Place = readonly (string | number)[];

/** An endless chain of arrows becomes an error instead of a hang. */
const MICROSTEPS_MAX = 200;

function edited(part: unknown, place: Place, edit: (part: unknown) => unknown): unknown {
  const [key, ...rest] = place;
  if (key === undefined) return edit(part);
  const copy = (Array.isArray(part) ? [...part] : { ...(part as Part) }) as { [key: string | number]: unknown };
  copy[key] = edited(copy[key], rest, edit);
  return copy;
}

export function rebuilt(machine: AnyStateMachine, place: Place = [], edit = (part: unknown): unknown => part) {
  const config = edited(machine.config, place, edit) as Part;
  const options = { maxIterations: MICROSTEPS_MAX };
  return createMachine({ ...config, options } as never, machine.implementations as never) as AnyStateMachine;
}

/** The path of a state in the configuration. */
export const placeOfState = (node: Node): Place => node.path.flatMap((key) => ['states', key]);

/** The path of a state's transitions for one event. The empty event means `always`. */
export const placeOfList = (node: Node, event: string): Place => [
  ...placeOfState(node),
  ...(event === '' ? ['always'] : ['on', event]),
];

/** The configuration at this path, as a list. */
export function listAt(machine: AnyStateMachine, place: Place): readonly Part[] {
  const value = place.reduce<unknown>((part, key) => (part as Part)[key], machine.config);
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  return list.map((part) => (typeof part === 'string' ? { target: part } : (part as Part)));
}
