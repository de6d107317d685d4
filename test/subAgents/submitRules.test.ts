/** The rules of a sub-agent's turns, replies and request, each by a table. */
import { describe, expect, it } from 'vitest';
import type { CycleRequest, LogEntry } from '../../machines/internal.ts';
import { subAgents } from '../../src/index.ts';
import type { SpawnProfile } from '../../src/subAgents/spawnProfile.ts';
import { requestBelow } from '../../src/subAgents/subAgent.ts';
import { aloneRule, OUT_OF_BUDGET, SUBMIT, submitTool, turnRules } from '../../src/subAgents/submitTool.ts';
import { definitionOf, ownGateOf } from '../../src/tools/tool.ts';

describe('the request of a sub-agent', () => {
  const whole: CycleRequest = {
    ...{ messageId: 'm', by: 'ann', context: { a: 1 }, model: 'big' },
    ...{ settings: { maxOutputTokens: 5 }, tools: ['read'], output: 'answer' },
  };
  const origin = { messageId: 'm', by: 'ann', context: { a: 1 } };
  it.each<[string, object, boolean, object]>([
    ['everything but settings and output', {}, false, { ...origin, model: 'big', tools: ['read', SUBMIT] }],
    ['no model, where it has its own', {}, true, { ...origin, tools: ['read', SUBMIT] }],
    ['no model, where the request chose none', { model: undefined }, false, { ...origin, tools: ['read', SUBMIT] }],
    ['all tools, where the request chose none', { tools: undefined }, false, { ...origin, model: 'big' }],
    [
      'only its own tool, where the request chose no tool',
      { tools: [] },
      false,
      { ...origin, model: 'big', tools: [SUBMIT] },
    ],
    [
      'nobody, where nobody is named',
      { by: undefined, context: undefined },
      true,
      { messageId: 'm', tools: ['read', SUBMIT] },
    ],
  ])('has %s', (_, change, hasOwnModel, expected) => {
    const request = { ...whole, ...change } as CycleRequest;
    const before = structuredClone(request);
    expect(requestBelow(request, { hasOwnModel } as SpawnProfile)).toEqual(expected);
    expect(request).toEqual(before);
  });
});

describe('the turns of a sub-agent', () => {
  const answersAt = (turn: number, state: { submitted?: boolean; isOverBudget?: boolean }) => {
    const rules = turnRules({
      turns: 3,
      submitted: () => state.submitted === true,
      isOverBudget: () => state.isOverBudget === true,
    });
    return rules.map(({ name, beforeInference }) => [name, beforeInference?.({ turn } as never)]);
  };
  const ROLE = expect.stringMatching(/one task.*submit_result/);

  it.each([1, 2])('turn %i of 3 has all tools and the task', (turn) => {
    expect(answersAt(turn, {})).toEqual([
      [SUBMIT, undefined],
      [OUT_OF_BUDGET, { context: ROLE }],
    ]);
  });

  it.each([3, 4, 9])('turn %i of 3 is the last one, with one tool', (turn) => {
    expect(answersAt(turn, {})).toEqual([
      [SUBMIT, undefined],
      [
        OUT_OF_BUDGET,
        {
          context: expect.stringMatching(/one task.*last turn/s),
          request: { tools: [expect.objectContaining({ name: SUBMIT })] },
        },
      ],
    ]);
  });

  it.each([1, 3, 4])('turn %i ends after the result, and otherwise where the budget is spent', (turn) => {
    expect(answersAt(turn, { submitted: true })[0]).toEqual([SUBMIT, { terminate: 'the result was handed in' }]);
    expect(answersAt(turn, { isOverBudget: true })).toEqual([
      [SUBMIT, undefined],
      [OUT_OF_BUDGET, { terminate: 'the budget is spent' }],
    ]);
  });
});

describe('a reply with submit_result', () => {
  const makes = (callId: string, name: string) =>
    ({ type: 'agent-output', item: { type: 'tool-call', callId, name, args: {} } }) as LogEntry;
  const says = { type: 'agent-output', item: { type: 'assistant', text: 'a' } } as LogEntry;
  const replied = { type: 'model-reply' } as LogEntry;
  const over = { type: 'tool-result', callId: 'x' } as LogEntry;

  it.each<[string, LogEntry[], string, boolean]>([
    ['alone', [makes('s', SUBMIT), replied], 's', false],
    ['with words', [says, makes('s', SUBMIT), says, replied], 's', false],
    ['beside another call', [makes('x', 'read'), makes('s', SUBMIT), replied], 's', true],
    ['beside another call, for that one', [makes('x', 'read'), makes('s', SUBMIT), replied], 'x', true],
    ['before another call', [makes('s', SUBMIT), makes('x', 'read'), replied], 'x', true],
    ['twice', [makes('s', SUBMIT), makes('t', SUBMIT), replied], 't', true],
    [
      'after a reply with other calls',
      [makes('x', 'read'), makes('y', 'read'), replied, over, makes('s', SUBMIT), replied],
      's',
      false,
    ],
    ['before a reply with another call', [makes('s', SUBMIT), replied, over, makes('x', 'read'), replied], 's', false],
    [
      'before a reply with another call, for that one',
      [makes('s', SUBMIT), replied, over, makes('x', 'read'), replied],
      'x',
      false,
    ],
    ['which is not complete yet', [makes('x', 'read'), makes('s', SUBMIT)], 's', true],
    [
      'alone after a crowded reply',
      [makes('x', 'read'), makes('t', SUBMIT), replied, over, makes('s', SUBMIT), replied],
      's',
      false,
    ],
    ['none, of two other calls', [makes('x', 'read'), makes('y', 'read'), replied], 'x', false],
    ['of a log without the call', [makes('x', 'read'), replied], 's', false],
  ])('%s: none of its calls runs where it is crowded', (_, log, callId, isCrowded) => {
    const why = ownGateOf(submitTool)?.(callId, log);
    const answer = aloneRule.beforeToolExecute?.({ call: { callId }, log: () => log } as never);
    const reason = isCrowded ? expect.stringContaining('must be the only call') : undefined;
    expect([why, answer]).toEqual([reason, isCrowded ? { block: reason } : undefined]);
  });

  it.each<[unknown, unknown]>([
    [{ result: 'r' }, { result: 'r' }],
    [{ result: '' }, { result: '' }],
    [{ result: null }, { result: null }],
    [{ result: { a: [1] }, more: 1 }, { result: { a: [1] } }],
    [{}, undefined],
    [{ result: undefined }, undefined],
    [{ results: 'r' }, undefined],
    [Object.create({ result: 'r' }), undefined],
  ])('hands in %j as %j', async (args, expected) => {
    const read = await definitionOf(submitTool)?.parameters['~standard'].validate(args);
    if (expected) expect(read).toEqual({ value: expected });
    else expect(read).toEqual({ issues: [{ message: 'expected your result', path: ['result'] }] });
  });
});

describe('the tool that spawns', () => {
  it.each([
    [undefined, 'spawn_agents', /^Gives tasks to sub-agents/],
    [{}, 'spawn_agents', /^Gives tasks to sub-agents/],
    [{ name: 'crew' }, 'crew', /^Gives tasks/],
    [{ description: 'For reading.' }, 'spawn_agents', /^For reading\.\n\nGives tasks to sub-agents/],
    [{ description: '' }, 'spawn_agents', /^\n\nGives tasks/],
  ])('with %j is named %s', (options, name, description) => {
    const tool = subAgents(options);
    expect([tool.name, tool.description]).toEqual([name, expect.stringMatching(description)]);
  });

  it.each([
    { maxSubAgents: 0 },
    { maxSubAgents: 1.5 },
    { limits: { turns: 0 } },
    { limits: { runMs: -1 } },
    { limits: { turn: 1 } },
    { limits: { costUsd: 1 } },
    { tools: 'read' },
    { model: {} },
    { name: 7 },
    { instructions: 7 },
    { prompt: 'x' },
  ])('refuses the options %j', (options) => {
    expect(() => subAgents(options as never)).toThrow(expect.objectContaining({ code: 'configuration' }));
  });
});
