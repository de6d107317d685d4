import { describe, expect, it } from 'vitest';
import { chartCases, conversationMachine, nextState, runMachine, toolCallMachine } from '../../machines/index.ts';

const [plain, , , withPlugins] = chartCases.toolCall.inputs;
const [request] = chartCases.run.inputs;
const [fresh] = chartCases.conversation.inputs;
const done = { type: 'effect.done', id: '', value: { kind: 'succeeded', content: [] } };
const sent = { type: 'message.sent', messageId: 'm', content: [], kind: 'direct' };

describe('BED-1 the next state and its effects are a pure function', () => {
  it('without a state, returns the initial state for the input, with its effects', () => {
    const { state, effects } = nextState(toolCallMachine, undefined, { input: plain });
    expect(state.value).toEqual({ ExecuteTool: 'attempting' });
    expect(effects).toEqual([
      { type: 'log', entries: [{ runId: 'r', type: 'tool-started', callId: 'a', idempotencyKey: 'c/a/0' }] },
      {
        type: 'ask',
        request: {
          kind: 'tool',
          id: 'r/t1/call/0/tool',
          runId: 'r',
          callId: 'a',
          suspension: 0,
          idempotencyKey: 'c/a/0',
        },
      },
    ]);
  });

  it('returns the state after an event, and the states between', () => {
    const { state } = nextState(toolCallMachine, undefined, { input: plain });
    const refused = nextState(toolCallMachine, state, {
      ...done,
      value: { kind: 'erred', content: [], code: 'x' },
    });
    expect(refused.through).toEqual(['Failed', 'AfterToolExecute', 'Done']);
    expect(refused.state).toMatchObject({ status: 'done', output: { outcome: 'failed', code: 'x' } });
  });

  it('does not change the state that it receives', () => {
    const { state } = nextState(toolCallMachine, undefined, { input: withPlugins });
    const before = JSON.stringify(state);
    nextState(toolCallMachine, state, { type: 'effect.done', id: '', value: { kind: 'allow' } });
    expect(JSON.stringify(state)).toBe(before);
  });

  it('returns equal results for equal arguments, with effects as JSON', () => {
    const { state } = nextState(conversationMachine, undefined, { input: fresh });
    const answers = [1, 2].map(() => nextState(conversationMachine, state, sent));
    const texts = answers.map(({ state: next, effects }) => JSON.stringify([next, effects]));
    expect(texts[0]).toBe(texts[1]);
    for (const { effects } of answers) expect(JSON.parse(JSON.stringify(effects))).toEqual(effects);
  });

  it('returns the child charts that a step starts and the events that it sends them', () => {
    const { state } = nextState(conversationMachine, undefined, { input: fresh });
    const busy = nextState(conversationMachine, state, sent);
    expect(busy.effects).toMatchObject([{ type: 'spawn', id: 'run', src: 'run', input: { runId: 'run_m' } }]);
    const cancelled = nextState(conversationMachine, busy.state, { type: 'cancel.requested' });
    expect(cancelled.effects).toEqual([{ type: 'send', to: 'run', event: { type: 'run.cancelled' } }]);
  });

  it('returns the effects that a cancelled run drops', () => {
    const { state } = nextState(runMachine, undefined, { input: request });
    const { effects } = nextState(runMachine, state, { type: 'run.cancelled' });
    expect(effects).toContainEqual({ type: 'drop', prefix: 'r/' });
  });
});
