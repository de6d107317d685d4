/**
 * The messages that a run receives from the charts inside it. Invariant: each message is sent once, in order, and there
 * are no others.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ToolCallOutput } from '../../machines/calls.ts';
import type { Invariant } from '../../src/testing/chartPaths/drive.ts';
import type { Seen } from '../../src/testing/chartPaths/drivenChart.ts';
import { everywhere, hold } from './invariants.ts';

const outputsOf = (events: readonly { readonly type: string }[], type: string): ToolCallOutput[] =>
  events.filter((event) => event.type === type).map((event) => (event as unknown as { output: ToolCallOutput }).output);
const outputsSent = ({ sent }: Seen, type: string): ToolCallOutput[] =>
  outputsOf(
    sent.flatMap(({ to, event }) => (to === 'parent' ? [event] : [])),
    type,
  );
const endsOf = ({ events }: Seen): ToolCallOutput[] =>
  events.flatMap((event) => (event.type.startsWith('xstate.done.actor.') ? outputsOf([event], event.type) : []));
const same = (actual: readonly unknown[], due: readonly unknown[], what: string): void =>
  hold(isDeepStrictEqual(actual, due), `${what}: sent was ${JSON.stringify(actual)}, due is ${JSON.stringify(due)}`);

/** The run receives a waiting call as soon as it waits. */
const suspensionsAreSent: Invariant = (_, seen) =>
  same(
    outputsSent(seen, 'call.suspended'),
    endsOf(seen).filter(({ outcome }) => outcome === 'suspended'),
    'suspensions',
  );
export const ofRound: readonly Invariant[] = [...everywhere, suspensionsAreSent];

/** The run receives each call of a gate when it is settled. A denied call is settled when it has its result. */
const replaysAreSent: Invariant = (state, seen) => {
  const { outputs } = state.context as { outputs: readonly ToolCallOutput[] };
  const settled = state.value === 'ReplayCancel' ? outputs.slice(0, -1) : outputs;
  same(outputsSent(seen, 'call.settled'), settled, 'replays');
};
export const ofGate: readonly Invariant[] = [...everywhere, replaysAreSent];
