/** A chart reacts only to the timer that it requested. */
import { describe, expect, it } from 'vitest';
import {
  chartCases,
  defaultPolicies,
  type NextState,
  nextState,
  type RunInput,
  runMachine,
  toolCallMachine,
} from '../../machines/index.ts';

const elapsed = (id: string) => ({ type: 'timer.elapsed', id });
const done = (value: object) => ({ type: 'effect.done', id: '', value });
/** The last step of these events, from this input. */
const after = (machine: typeof runMachine | typeof toolCallMachine, input: unknown, events: readonly object[]) =>
  events.reduce<NextState>(
    (next, event) => nextState(machine, next.state, event),
    nextState(machine, undefined, { input }),
  );

const nobody = {
  runStart: false,
  stepStart: false,
  beforeInference: false,
  afterInference: false,
  stepEnd: false,
  naturalEnd: false,
  preCompact: false,
};
const input: RunInput = {
  runId: 'r',
  settings: {
    conversationId: 'c',
    policies: { ...defaultPolicies, limits: { ...defaultPolicies.limits, runMs: 60_000 } },
    phases: { ...nobody, beforeToolExecute: false, afterToolExecute: false, runEnd: false },
    models: ['m'],
  },
  trigger: { kind: 'message', message: { messageId: 'm', kind: 'direct', content: [] } },
  counters: { turns: 0, emptyReplies: 0, streaks: [], rounds: [], tokens: 0, costUsd: 0, unpriced: 0 },
  steers: [],
  ...{ suspended: [], kept: [], reruns: [], decisions: [] },
};
const callsA = chartCases.run.cases['effect.done']?.find(
  (event) => (event as { value: { calls?: unknown[] } }).value.calls?.length === 1,
) as object;
const stored = done({ kind: 'committed' });

describe('RUN', () => {
  it.each([
    ['CommitUser', []],
    ['LlmCall', [stored]],
    ['CommitAssistant', [stored, callsA]],
    ['ToolRound', [stored, callsA, stored]],
  ])('in %s ends at its deadline, and at no other timer', (name, events) => {
    const { state } = after(runMachine, input, events);
    expect(JSON.stringify(state.value)).toContain(name);
    const other = nextState(runMachine, state, elapsed('r/t1/wait/9'));
    expect([other.state.value, other.effects, other.state.context.end]).toEqual([state.value, [], state.context.end]);
    const { context } = nextState(runMachine, state, elapsed('r/deadline')).state;
    expect(context.end).toEqual({ termination: 'Cancelled', cause: 'timeout' });
  });
});

describe('TOOL_CALL', () => {
  it('executes again after the wait that it requested, and after no other', () => {
    const retry = { attempts: 3, baseMs: 100, factor: 2, capMs: 150, jitter: 0.1 };
    const erred = done({ kind: 'erred', content: [], code: 'error', retry: { random: 0 } });
    const { state, effects } = after(toolCallMachine, { ...(chartCases.toolCall.inputs[0] as object), retry }, [erred]);
    const [wait] = effects.flatMap((effect) => (effect.type === 'ask' ? [effect.request] : []));
    expect([state.value, wait?.kind]).toEqual([{ ExecuteTool: 'backingOff' }, 'timer']);
    const other = nextState(toolCallMachine, state, elapsed(`${wait?.id}0`));
    expect([other.state.value, other.effects]).toEqual([state.value, []]);
    const again = nextState(toolCallMachine, state, elapsed(wait?.id ?? ''));
    expect(again.effects).toMatchObject([{ type: 'ask', request: { kind: 'tool' } }]);
  });
});
