/** The pure transition of a conversation (docs/internals/contracts.md, REQ-BED-001 and REQ-BED-007). */
import { describe, expect, it } from 'vitest';
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import {
  type ChartEffect,
  chartCases,
  compactionMachine,
  conversationMachine,
  type EffectRequest,
  modelCallMachine,
  nextState,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { awaited } from '../../machines/nextState.ts';
import { coverPaths } from '../../src/testing/chartPaths/coverPaths.ts';
import { answered, isAnswer, openAfter, stillOpen } from '../../src/testing/chartPaths/effectAnswers.ts';
import type { PathState, TestPath } from '../../src/testing/chartPaths/testPath.ts';
import { sampled, volume } from '../support/tier.ts';

const [fresh] = chartCases.conversation.inputs;
const sent = { type: 'message.sent', messageId: 'm', content: [{ type: 'text', text: 'hi' }], kind: 'direct' };
/** Names of the effects: the types of entries, the kinds of requests. */
const namesOf = (effects: readonly ChartEffect[]): string[] =>
  effects.flatMap((effect) => {
    if (effect.type === 'log') return effect.entries.map(({ type }) => type);
    return effect.type === 'ask' ? [`ask ${effect.request.kind}`] : [effect.type];
  });

const charts: readonly [AnyStateMachine, keyof typeof chartCases][] = [
  [conversationMachine, 'conversation'],
  [runMachine, 'run'],
  [toolRoundMachine, 'toolRound'],
  [toolCallMachine, 'toolCall'],
  [resumeToolCallMachine, 'resumeToolCall'],
  [modelCallMachine, 'modelCall'],
  [compactionMachine, 'compaction'],
];
interface Stop extends PathState {
  /** Ids of requests that are open here, and of those that were. */
  open: string[];
  gone: string[];
}
/** The requests that are open after a step. */
function openBehind(asked: EffectRequest[], { event, effects = [] }: TestPath['steps'][number]): EffectRequest[] {
  const request = isAnswer(event) ? answered(asked, event) : undefined;
  const open = stillOpen(asked, event).filter((each) => each !== request);
  return openAfter(open, effects);
}
/** Every state at the end of a step of the generated paths, once, with its open requests. */
function stopsOf(machine: AnyStateMachine, chart: keyof typeof chartCases): Stop[] {
  const { inputs: all, cases, projection } = chartCases[chart];
  // A sample of the starts is enough. Other tests take the paths of all of them.
  const inputs = all.filter((_, index) => index % Math.ceil(all.length / volume.spread) === 0);
  const stops = new Map<AnyMachineSnapshot, Stop>();
  const some = inputs.flatMap((input) => {
    const paths = coverPaths(machine, { input, cases, projection });
    return sampled(paths, Math.ceil(paths.length / volume.pathsMost));
  });
  for (const path of some) {
    let asked: EffectRequest[] = [];
    const seen = new Set<string>();
    const rest = (at: PathState): void => {
      for (const { id } of asked) seen.add(id);
      const open = asked.filter(({ kind }) => kind !== 'timer').map(({ id }) => id);
      const gone = [...seen].filter((id) => !open.includes(id));
      if (!stops.has(at.state)) stops.set(at.state, { ...at, open, gone });
    };
    if (path.start) {
      asked = openAfter([], path.start.effects ?? []);
      rest(path.start);
    }
    for (const step of path.steps) {
      asked = openBehind(asked, step);
      rest(step);
    }
  }
  return [...stops.values()];
}
const stopsByMachine = new Map<AnyStateMachine, Stop[]>();
function stops(machine: AnyStateMachine, chart: keyof typeof chartCases): Stop[] {
  const stops = stopsByMachine.get(machine) ?? stopsOf(machine, chart);
  stopsByMachine.set(machine, stops);
  return stops;
}

describe('S003-01: a message to an idle conversation', () => {
  it('is in the log, with its checkpoint, before the first model call', () => {
    const idle = nextState(conversationMachine, undefined, { input: fresh });
    expect(idle.effects).toEqual([]);
    const busy = nextState(conversationMachine, idle.state, sent);
    expect(busy.state.value).toEqual({ busy: 'active' });
    const [spawn] = busy.effects;
    if (spawn?.type !== 'spawn') throw new Error('a message starts a run');
    const run = nextState(runMachine, undefined, { input: spawn.input });
    expect(namesOf(run.effects)).toEqual(['run-started', 'user-message', 'checkpoint', 'ask commit']);
    const [id = ''] = awaited(run.state);
    const asking = nextState(runMachine, run.state, { type: 'effect.done', id, value: { kind: 'committed' } });
    expect(asking.state.matches({ active: 'LlmCall' } as never)).toBe(true);
    expect(asking.effects).toMatchObject([{ type: 'ask', request: { kind: 'model', turn: 1, attempt: 1 } }]);
  });
});

const kinds = ['committed', 'done', 'reply', 'allow', 'succeeded'];
describe.each(charts)('$id', (machine, chart) => {
  it('S003-04: on every generated path the entries of a step come before the effects that it starts', () => {
    let recorded = 0;
    for (const { effects = [] } of stops(machine, chart)) {
      const types = effects.map(({ type }) => type);
      const first = types.findIndex((type) => type === 'ask' || type === 'spawn');
      if (first < 0 || !types.includes('log')) continue;
      recorded += 1;
      expect(types.lastIndexOf('log'), namesOf(effects).join()).toBeLessThan(first);
    }
    // The calls of a round log its entries, and the run logs those of a model call.
    if (chart !== 'modelCall' && chart !== 'toolRound') expect(recorded).toBeGreaterThan(0);
  });

  it('accepts the answers to its open requests in every state, and none to requests that were answered before', () => {
    for (const { state, open, gone } of stops(machine, chart)) {
      if (state.status !== 'active') continue;
      const taken = awaited(state);
      expect(open.filter((id) => !taken.includes(id))).toEqual([]);
      // An abandoned stop may still become durable.
      if (chart !== 'conversation') expect(gone.filter((id) => taken.includes(id))).toEqual([]);
    }
  });

  it('S003-08: an answer without an open request changes no state and has no effect', () => {
    let tried = 0;
    for (const { state, gone } of stops(machine, chart)) {
      if (state.status !== 'active') continue;
      const taken = awaited(state);
      for (const id of ['nobody/asked', ...gone].filter((each) => !taken.includes(each))) {
        const kind = kinds[tried % kinds.length];
        const after = nextState(machine, state, { type: 'effect.done', id, value: { kind } });
        expect(after.state).toBe(state);
        expect([after.effects, after.through]).toEqual([[], []]);
        tried += 1;
      }
    }
    expect(tried).toBeGreaterThan(0);
  });
});
