/**
 * The results of a chart's functions (guards, parameters of its acts, context, output) for many drawn moments.
 * Invariant: each function is called with every event of its chart. An event of another kind changes nothing.
 */
import { type AnyActorRef, type AnyStateMachine, assign, createActor, createMachine, spawnChild } from 'xstate';
import type { Replay, RoundCall, ToolCallOutput } from '../../machines/calls.ts';
import { compactionChart, compactionMachine } from '../../machines/compaction/compaction.machine.ts';
import { modelCallChart } from '../../machines/modelCall.machine.ts';
import { awaited, nextState } from '../../machines/nextState.ts';
import { defaultPolicies } from '../../machines/policies.ts';
import { resumeToolCallChart } from '../../machines/tools/resumeToolCall.machine.ts';
import { toolCallChart } from '../../machines/tools/toolCall.machine.ts';
import { toolRoundChart } from '../../machines/tools/toolRound.machine.ts';
import { type Chart, type Message, tell, withActors } from '../../machines/verbs.ts';
import { verbs } from '../../machines/xstateVerbs.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { answered, BREAKS, type Clause, drawn, type Fold, functionsOf, json, type Moment } from './drawnResults.ts';
import { hold } from './invariants.ts';
import { callOf, decisionsOf, outputOfCall, some, spentOf, text } from './runFunctions.ts';

const withImage = [...text('see'), { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }];
const retryOf = (draw: Chance, attempts = 1 + draw.below(3)) => ({
  ...defaultPolicies.modelRetry,
  attempts,
  jitter: 0.5,
  respectRetryAfter: draw.odds(0.7),
});

const BLOCKED = { code: 'denied', text: 'not here' };
function failedOf(draw: Chance): object {
  const { usage, costUsd } = spentOf(draw);
  return {
    kind: 'failed',
    model: 'z',
    code: 'network',
    message: 'gone',
    retryable: draw.odds(0.8),
    random: draw.below(3) / 2,
    ...(draw.odds(0.6) && { retryAfterMs: draw.one([0, 10, 60_000, 60_001]) }),
    ...(draw.odds(0.5) && { kept: 'The last message' }),
    ...(draw.odds(0.5) && { spent: { usage, costUsd } }),
  };
}

/** Returns an answer of each kind, with and without optional fields. */
function answerOf(draw: Chance): object {
  const perhaps = (part: object): object => (draw.odds(0.5) ? part : {});
  const { usage, costUsd } = spentOf(draw);
  const payload = perhaps({ payload: { q: 1 } });
  return draw.one<() => object>([
    () => ({ kind: 'committed' }),
    () => ({ kind: 'done' }),
    () => ({ kind: 'terminate', by: 'guard', reason: 'enough' }),
    () => ({ kind: 'compact', ...perhaps({ instructions: 'Keep names.' }) }),
    () => ({ kind: 'compact', block: { by: 'guard', reason: 'not now' } }),
    () => ({ kind: 'summary', text: 'before', usage, costUsd, model: 'm' }),
    () => failedOf(draw),
    () => ({ kind: 'reply', items: [], calls: [], finish: 'stop', empty: true, model: 'm', usage, costUsd }),
    () => ({ kind: 'allow', ...perhaps({ by: 'rule' }), ...perhaps({ args: { path: 'z' } }) }),
    () => ({ kind: draw.one(['block', 'refuse']), ...BLOCKED }),
    () => ({ kind: 'suspend', reason: 'permission', ...payload, ...perhaps({ args: { path: 'y' } }) }),
    () => ({ kind: 'pending', reason: 'form', ...payload, ...perhaps({ within: true }), args: { path: 'y' } }),
    () => ({
      kind: 'succeeded',
      content: draw.one([text('done'), withImage, []]),
      ...perhaps({ writes: { mode: 1 } }),
    }),
    () => ({
      kind: 'erred',
      code: 'error',
      content: draw.one([text('broke'), [...text('x'.repeat(1_001)), ...withImage], [...text('a'), ...text('b')]]),
      ...perhaps({ retry: { random: draw.below(3) / 2 } }),
    }),
    () => ({ kind: 'shown', content: draw.one([text('as told'), withImage]) }),
  ])();
}

type Events = readonly ((draw: Chance) => object)[];
const ANSWERED: Events = [(draw) => ({ type: 'effect.done', id: 'r/', value: answerOf(draw) })];
const FAILED: Events = [(draw) => ({ type: 'effect.done', id: 'r/', value: failedOf(draw) })];
const RUNG: Events = [
  (draw) => ({ type: 'timer.elapsed', id: draw.one(['r/t2/wait/2', 'r/t2/compaction/wait/2', 'r/t2/a/wait/2', 'x']) }),
];
/** The call has a result, and plugins still handle it. */
const CONCLUDED: Events = [
  (draw) => {
    const { result, ...output } = outputOfCall(draw, draw.one(['a', 'b', 'c']));
    return { type: 'call.concluded', output: { ...output, ...(result && draw.odds(0.5) && { result }) } };
  },
];
const REPLAYED: Events = [
  (draw) => ({ type: 'xstate.done.actor.replay', actorId: 'replay', output: outputOfCall(draw, 'a') }),
];
const COLLECTED: Events = [
  (draw) => {
    const index = draw.below(3);
    const actorId = `call-${index}`;
    return { type: `xstate.done.actor.${actorId}`, actorId, output: outputOfCall(draw, 'abc'.charAt(index)) };
  },
];
const ENDED: Events = [() => ({ type: 'round.stopped' }), () => ({ type: 'round.steered', messageId: 'm1' })];

const attemptsOf = (draw: Chance) => ({ attempt: 1 + draw.below(3), model: draw.below(2), ofModel: 1 + draw.below(3) });
const modelCallOf = (draw: Chance) => ({
  runId: 'r',
  turn: 2,
  attempts: attemptsOf(draw),
  models: draw.one([['m'], ['m', 'n'], ['m', 'n', 'o']]),
  retry: retryOf(draw),
});
const ofTools = (draw: Chance) => ({
  conversationId: draw.one(['c', 'c/1', 'c%']),
  runId: 'r',
  id: 'r/t2/a',
  suspensionsMax: 1 + draw.below(3),
  retry: draw.odds(0.3) ? (false as const) : retryOf(draw, 2),
});
const phasesOf = (draw: Chance) => ({ beforeToolExecute: draw.odds(0.5), afterToolExecute: draw.odds(0.5) });
const decisionOf = (draw: Chance, callId: string): object =>
  draw.one<() => object>([
    () => ({}),
    () => ({ decision: { callId, action: 'deny' } }),
    () => ({ decision: { callId, action: 'deny', reason: 'no' } }),
    () => ({ decision: decisionsOf(draw, [callId])[0]?.decision ?? { callId, action: 'approve' } }),
  ])();

function replaysOf(draw: Chance): Replay[] {
  return some(draw, 0.7, ['a', 'b', 'c', 'd']).map((id, index) => ({
    call: callOf(draw, id),
    suspension: draw.below(3),
    ...decisionOf(draw, id),
    ...(draw.odds(0.3) && { idempotencyKey: `o/${id}` }),
    ...(index > 0 && draw.odds(0.5) && { behind: draw.one(['a', 'b', 'x']) }),
  }));
}

function slotsOf(draw: Chance): object[] {
  return ['a', 'b', 'c'].slice(0, 1 + draw.below(3)).map((id) => {
    const call: RoundCall = callOf(draw, id);
    const status = draw.one(['queued', 'running', 'running', 'done', 'suspended', 'skipped'] as const);
    const output = status === 'done' || draw.odds(0.2) ? { output: outputOfCall(draw, id) } : {};
    return { call, status, ...output };
  });
}

/** The charts with their events, and a context for each. */
const CHARTS: readonly (readonly [chart: Chart, takes: Events, of: (draw: Chance) => object])[] = [
  [
    modelCallChart,
    [...FAILED, ...FAILED, ...ANSWERED, ...RUNG],
    (draw) => ({ ...modelCallOf(draw), ...(draw.odds(0.2) && { within: '/x' }) }),
  ],
  [
    compactionChart,
    [...FAILED, ...ANSWERED, ...ANSWERED, ...RUNG],
    (draw) => ({
      ...modelCallOf(draw),
      within: '/compaction',
      upToSeq: 7,
      heard: draw.odds(0.5),
      instructions: draw.one([undefined, 'Be short.']),
      spent: draw.one([undefined, spentOf(draw)]),
    }),
  ],
  [
    toolCallChart,
    [...ANSWERED, ...ANSWERED, ...ANSWERED, ...ANSWERED, ...RUNG],
    (draw) => ({
      ...ofTools(draw),
      call: callOf(draw, draw.one(['a', 'a/b', 'a%'])),
      suspension: draw.below(4),
      after: draw.odds(0.6),
      ...(draw.odds(0.3) && { idempotencyKey: 'o/a' }),
      ...decisionOf(draw, 'a'),
      attempt: 1 + draw.below(3),
      output: draw.odds(0.5) ? outputOfCall(draw, 'a') : undefined,
    }),
  ],
  [
    resumeToolCallChart,
    [...ANSWERED, ...CONCLUDED, ...REPLAYED],
    (draw) => ({
      ...ofTools(draw),
      phases: phasesOf(draw),
      replays: replaysOf(draw),
      rest: replaysOf(draw),
      outputs: some(draw, 0.5, ['a', 'b']).map((id): ToolCallOutput => outputOfCall(draw, id)),
    }),
  ],
  [
    toolRoundChart,
    [...CONCLUDED, ...COLLECTED, ...COLLECTED, ...ENDED],
    (draw) => ({
      ...ofTools(draw),
      phases: phasesOf(draw),
      window: 1 + draw.below(3),
      sequential: draw.odds(0.4),
      calls: some(draw, 0.6, ['a', 'b', 'c', 'd']).map((id) => callOf(draw, id)),
      slots: slotsOf(draw),
      next: draw.below(4),
      live: draw.below(3),
      steered: draw.one([undefined, undefined, 'm1']),
    }),
  ],
];

/** The moments of each chart, in its order. */
type Moments = readonly Moment[];
const functionsByChart = CHARTS.map(([chart]) => functionsOf(chart));
const FOLDS: Record<string, Fold<Moments>> = Object.fromEntries(
  CHARTS.map(([chart], index) => [
    chart.id,
    ({ [index]: moment }: Moments) => moment && functionsByChart[index]?.map((one) => json(answered(one, moment))),
  ]),
);

type Count = { context: { n: number } };
const next = assign(({ context }: Count) => ({ n: context.n + 1 }));
/**
 * A foreign chart. Its requests are plain values or read the event, it stays in its state, and its child has no name.
 */
const foreign = createMachine({
  id: 'FOREIGN',
  context: { n: 0 },
  initial: 'a',
  states: {
    a: {
      entry: [
        { type: 'ask', params: { kind: 'commit', id: 'plain' } },
        {
          type: 'ask',
          params: ({ event }: { event: { type: string } }) => ({ kind: 'commit', id: `on ${event.type}` }),
        },
        { type: 'ask', params: { kind: 'timer', id: 'wait' } },
        { type: 'ask', params: { kind: 'ended', id: 'end' } },
      ],
      on: { 'effect.done': { actions: [next, spawnChild(createMachine({}), { id: 'child' })] }, go: 'b' },
      always: { guard: ({ context }: Count) => context.n === 1, actions: next },
    },
    b: { entry: { type: 'ask', params: { kind: 'commit', id: 'nobody takes it' } } },
  },
} as never) as AnyStateMachine;
function foreignSteps(): unknown {
  const { state, effects } = nextState(foreign, undefined, {});
  const events = ['plain', 'on ', 'wait', 'end', '', undefined].map((id) => ({ type: 'effect.done', id }));
  const steps = [...events, { type: 'go' }].map((event) => {
    const step = nextState(foreign, state, event);
    return [step.state.value, step.state.context, step.effects, step.through, awaited(step.state)];
  });
  return [effects, awaited(state), steps];
}

/** A single chart: an answer without a request, and children that the test provides. */
function aloneOf(input: object, event: object): unknown {
  const { state } = nextState(compactionMachine, undefined, { input });
  const stray = nextState(compactionMachine, state, { ...event, id: 'nobody' });
  const { config, implementations } = withActors(toolRoundChart, { other: compactionChart });
  const { actors, guards } = implementations;
  return [
    [stray.state === state, stray.effects, stray.through, awaited(state)],
    [Object.keys(actors), Object.keys(guards), config === toolRoundChart.config],
    foreignSteps(),
  ];
}
const ALONE: Record<string, Fold<Moments>> = {
  // The second chart of the moments, at only a few of them.
  alone: ([, moment], draw) => draw.odds(0.1) && moment && aloneOf(moment.context, moment.event),
};

/** Forwards its events to its parent. */
const forwarding = createMachine(
  { on: { '*': { actions: tell(({ event }: { event: Event }) => ({ to: 'parent', event })) } } } as never,
  { actions: verbs<object, Event, never, Message>() } as never,
);
type Event = Moment['event'];
/** Returns the event that a chart forwards to its parent. */
function handedOn(event: Event): Event[] {
  const heard: Event[] = [];
  const parent = createMachine({
    invoke: { id: 'child', src: forwarding },
    on: { '*': { actions: ({ event }: { event: Event }) => heard.push(event) } },
  } as never);
  const actor = createActor(parent).start();
  (actor.getSnapshot().children as Record<string, AnyActorRef>).child?.send(event);
  actor.stop();
  return heard;
}

const clauses: readonly Clause<Moments>[] = [
  {
    says: 'run-lifecycle, RESUME_TOOL_CALL: the parent receives the outcome of a call unchanged, as an event of the same name',
    holds: (moments) => {
      for (const { event } of moments) {
        if (event.type !== 'call.concluded') continue;
        hold(json(handedOn(event)) === json([event]), `${json(event)} is not handed on`);
      }
    },
  },
  {
    says: 'B24: no function of a chart throws on any event of the chart',
    holds: (moments) => {
      for (const [index, moment] of moments.entries()) {
        // Without remaining calls nothing is requested.
        if ('rest' in moment.context && json(moment.context.rest) === '[]') continue;
        const broken = (functionsByChart[index] ?? []).filter((one) => answered(one, moment) === BREAKS);
        hold(broken.length === 0, `${broken.map(({ name }) => name)} of ${CHARTS[index]?.[0].id} at ${json(moment)}`);
      }
    },
  },
];

function momentsAt(seed: number): Moments {
  const draw = chance(seed * 15_485_863);
  return CHARTS.map(([, [first, ...others], of]) => {
    const event = first ? draw.one([first, ...others])(draw) : {};
    return { context: of(draw), event: event as Moment['event'] };
  });
}
export const acts = drawn('ACTS', momentsAt, { ...FOLDS, ...ALONE }, clauses);
