/** The compiled plans compared with the machines that XState creates from the same charts. */
import { describe, expect, it } from 'vitest';
import { type AnyStateMachine, setup } from 'xstate';
import { compactionChart } from '../../machines/compaction/compaction.machine.ts';
import { conversationChart } from '../../machines/conversation/conversation.machine.ts';
import {
  compactionMachine,
  conversationMachine,
  modelCallMachine,
  responseStateMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { modelCallChart } from '../../machines/modelCall.machine.ts';
import { runChart } from '../../machines/run/run.machine.ts';
import { resumeToolCallChart } from '../../machines/tools/resumeToolCall.machine.ts';
import { toolCallChart } from '../../machines/tools/toolCall.machine.ts';
import { toolRoundChart } from '../../machines/tools/toolRound.machine.ts';
import { type Chart, VERBS } from '../../machines/verbs.ts';
import { verbs } from '../../machines/xstateVerbs.ts';
import { listsOf, nodesOf } from '../../src/diagrams/chartNodes.ts';
import { type PlanState, planOf, type Transition } from '../../src/runtime/interpreter/plan.ts';
import { machineOf } from '../../src/runtime/interpreter/xstate.ts';
import { compactingConversation } from '../../src/runtime/summary.ts';

const charts: AnyStateMachine[] = [
  conversationMachine,
  runMachine,
  toolRoundMachine,
  toolCallMachine,
  resumeToolCallMachine,
  modelCallMachine,
  responseStateMachine,
  compactionMachine,
] as unknown as AnyStateMachine[];

function* statesOf(state: PlanState): Generator<PlanState> {
  yield state;
  for (const inner of state.states.values()) yield* statesOf(inner);
}
const arrowOf = ({ source, eventType, index, guardName, target, reenter, actions }: Transition) => ({
  source: source.id,
  event: eventType,
  index,
  guard: guardName,
  target: target?.id,
  reenter,
  acts: actions.length,
});

/** The actions of a plan, with the functions that it calls. */
const contentOf = (chart: Chart): unknown => {
  const states = [...statesOf(planOf(chart).root)].map(({ id, entry, exit, initial, always, on, output }) => {
    const arrows = [...always, ...[...on.values()].flat()];
    const content = arrows.map((arrow) => ({ ...arrowOf(arrow), calls: arrow.guard, does: arrow.actions }));
    return { id, entry, exit, initial: initial?.id, output, content };
  });
  const actors = Object.entries(chart.implementations.actors).map(([src, child]) => [src, (child as Chart).id]);
  return { id: chart.id, states, actors };
};
/** The plan starts an invoked child with an act of its own. */
const invokes = (_: string, value: unknown): unknown => (typeof value === 'function' ? value.name : value);

describe('the chart that conversations run', () => {
  const pairs: [Chart, AnyStateMachine | undefined][] = [
    compactingConversation,
    compactingConversation.implementations.actors.run as Chart,
    compactionChart,
    toolRoundChart,
    toolCallChart,
    resumeToolCallChart,
    modelCallChart,
  ].map((chart) => [chart, charts.find(({ id }) => id === chart.id)]);

  it.each(pairs.map(([chart, machine]) => [chart.id, chart, machine] as const))(
    'is for %s the configuration of its XState machine',
    (_, chart, machine) => {
      const content = JSON.stringify(contentOf(chart), invokes);
      expect(JSON.stringify(contentOf(machine as AnyStateMachine), invokes)).toBe(content);
      expect(JSON.stringify(contentOf(machineOf(chart)), invokes)).toBe(content);
      expect(machine?.implementations.guards).toEqual(chart.implementations.guards);
      expect(machineOf(chart).implementations.guards).toEqual(chart.implementations.guards);
      expect(content).toContain('"calls":"');
    },
  );
});

/** RESPONSE_STATE does nothing. */
const acting = charts.filter((chart) => chart !== (responseStateMachine as unknown as AnyStateMachine));
it.each(acting.map((chart) => [chart.id, chart] as const))(
  'the machine %s has every verb, so XState runs its acts',
  (_, machine) => {
    expect(Object.keys(machine.implementations.actions).sort()).toEqual([...VERBS].sort());
  },
);

describe('a conversation without compaction', () => {
  it('runs the same charts, without COMPACTION', () => {
    const { run } = compactingConversation.implementations.actors as { run: Chart };
    const { compaction: _, ...actors } = run.implementations.actors;
    expect(conversationChart.config).toBe(compactingConversation.config);
    expect(conversationChart.implementations.actors).toEqual({ run: runChart });
    expect(runChart.config).toBe(run.config);
    expect(runChart.implementations).toEqual({ ...run.implementations, actors });
  });
});

describe('the plan of a chart', () => {
  it.each(charts.map((chart) => [chart.id, chart] as const))(
    'has for %s the states and transitions that XState resolved',
    (_, machine) => {
      const nodes = [...nodesOf(machine.root)];
      const states = [...statesOf(planOf(machine).root)];
      expect(states.map(({ id, entry, exit, initial }) => [id, entry.length, exit.length, initial?.id])).toEqual(
        nodes.map(({ id, entry, exit, invoke, initial, type }) => {
          const first = type === 'compound' ? initial.target?.[0]?.id : undefined;
          return [id, entry.length + invoke.length, exit.length + invoke.length, first];
        }),
      );
      const arrows = states.flatMap(({ on, always }) => [...[...on.values()].flat(), ...always].map(arrowOf));
      const resolved = nodes.flatMap((node) =>
        [...listsOf(node)].flatMap(([event, list]) =>
          list.map(({ guard, target, reenter, actions }, index) => ({
            source: node.id,
            event,
            index,
            guard,
            target: target?.[0]?.id,
            reenter,
            acts: actions.length,
          })),
        ),
      );
      expect(arrows).toEqual(resolved);
      expect(arrows.length).toBeGreaterThan(3);
    },
  );

  const config = { id: 'X', initial: 'a', states: { a: { on: { go: { target: 'b' } } }, b: {} } };
  const made = (change: object): AnyStateMachine =>
    setup({ actions: verbs() as never }).createMachine({ ...config, ...change } as never) as unknown as AnyStateMachine;

  it.each([
    ['a delayed transition', { states: { a: { after: { 10: 'b' } }, b: {} } }, /after is not supported/],
    ['parallel states', { type: 'parallel', initial: undefined }, /it is parallel/],
    ['an action that is no verb', { entry: 'greet' }, /an act is \{ type, params \}/],
    ['a function as an action', { entry: () => {} }, /an act is \{ type, params \}/],
    [
      'an action with another field',
      { entry: { type: 'drop', params: 'x', delay: 1 } },
      /an act is \{ type, params \}/,
    ],
    [
      'a guard that is not declared',
      { on: { go: { guard: 'missing', target: '.b' } } },
      /the guard "missing" is unknown/,
    ],
    [
      'a final state inside another',
      { states: { a: { initial: 'c', states: { c: { type: 'final' } } } } },
      /stands at the top/,
    ],
    ['an eventless transition to nowhere', { always: { actions: [] } }, /needs a target/],
    ['an invoke without an id', { invoke: { src: 'b' } }, /invoke names src and id/],
    ['an invoke of a chart instead of its name', { invoke: { src: {}, id: 'b' } }, /invoke names src and id/],
    ['several targets', { on: { go: { target: ['.a', '.b'] } } }, /one target at most/],
  ])('is refused when it is compiled where the chart has %s', (_, change, message) => {
    let machine: AnyStateMachine | undefined;
    expect(() => {
      machine = made(change);
      planOf(machine);
    }).toThrow(message);
  });

  it.each([
    ['an event leads to no state', { on: { go: '.nowhere' } }, /the target .nowhere is unknown/],
    [
      'a condition leads to no state',
      { always: { guard: () => true, target: '.nowhere' } },
      /the target .nowhere is unknown/,
    ],
    [
      'an event of an inner state leads to no state',
      { states: { a: { on: { go: 'c' } }, b: {} } },
      /the target c is unknown/,
    ],
    ['two states have one id', { states: { a: {}, b: { id: 'X.a' } } }, /X\.a .*two states have this id/],
  ])('is refused for a chart that no XState machine was made of, where %s', (_, change, message) => {
    const chart = { id: 'X', config: { ...config, ...change }, implementations: { guards: {}, actors: {} } };
    expect(() => planOf(chart)).toThrow(message);
  });

  it.each(['atomic', 'compound', 'final', undefined])('takes the type %s of a state, in words of XState', (type) => {
    const inner = type === 'compound' ? { initial: 'c', states: { c: {} } } : {};
    const states = { a: { type, ...inner }, b: {} };
    const chart = { id: 'X', config: { ...config, states }, implementations: { guards: {}, actors: {} } };
    expect(planOf(chart).root.states.get('a')).toMatchObject({ isFinal: type === 'final' });
  });

  it('names a guard that is a function by its own name, as XState does', () => {
    function isReady(): boolean {
      return true;
    }
    const states = { a: { on: { go: { guard: isReady, target: 'b' } } }, b: {} };
    const chart = { id: 'X', config: { ...config, states }, implementations: { guards: {}, actors: {} } };
    expect(planOf(chart).root.states.get('a')?.on.get('go')).toMatchObject([{ guardName: 'isReady', guard: isReady }]);
  });
});
