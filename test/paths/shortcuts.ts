/**
 * A chart without its shortcuts: transitions that go through several states in one step. Rule: it must do what the
 * chart does, by the single steps.
 */
import type { AnyStateMachine } from 'xstate';
import { viaOf } from '../../src/testing/drawChart.ts';
import { listsOf, nodesOf } from '../../src/testing/transitionCoverage.ts';
import { listAt, placeOfList, rebuilt } from '../support/rebuilt.ts';

/** There is no other way: the state between is entered only where somebody takes part in it. */
const ONLY_WAY: ReadonlySet<unknown> = new Set(['repliesUnheard']);

/** Undefined where the chart has none. */
export function withoutShortcuts(machine: AnyStateMachine): AnyStateMachine | undefined {
  let chart = machine;
  for (const node of nodesOf(machine.root)) {
    for (const [event, list] of listsOf(node)) {
      const stays = list.map((taken) => viaOf(taken).length === 0 || ONLY_WAY.has(taken.guard));
      if (stays.every(Boolean)) continue;
      const place = placeOfList(node, event);
      const rest = listAt(machine, place).filter((_, index) => stays[index]);
      chart = rebuilt(chart, place, () => rest);
    }
  }
  return chart === machine ? undefined : chart;
}
