/** Tests the effects of single entries, parts, errors and messages on a request, as pure functions. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LogEntry, type Message, PRUNED_RESULT, zeroUsage } from '../../machines/internal.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { agentRun, sessionMessages } from '../../src/requestLoop/agentRun.ts';
import { CallFollower } from '../../src/requestLoop/followLog.ts';
import { cleanHistory, createStateManager, prepareHistory, pruneToolOutputs } from '../../src/requestLoop/index.ts';
import { NodeFold, type Part } from '../../src/requestLoop/nodes.ts';
import { observeReturns } from '../../src/requestLoop/observation.ts';
import * as errors from '../../src/requestLoop/requestErrors.ts';
import { OpenSession } from '../../src/requestLoop/session.ts';
import { volume } from '../support/tier.ts';

const text = (words: string) => [{ type: 'text' as const, text: words }];
const { usage } = zeroUsage;
/** Entries of one run, without the fields that no fold reads. */
const entries = (...items: object[]): LogEntry[] => items as LogEntry[];
const assistantText = (words: string, more = {}) => ({
  type: 'agent-output',
  item: { type: 'assistant', text: words, ...more },
});
const called = (callId: string, more: object = { args: {} }) => ({
  type: 'agent-output',
  item: { type: 'tool-call', callId, name: 'read', ...more },
});
const ended = (callId: string, outcome: string, words = outcome) => ({
  ...{ type: 'tool-result', callId, outcome, content: text(words) },
});
const reply = { type: 'model-reply', usage };
const committed = { type: 'checkpoint', boundary: 'ToolResultsCommitted' };
const stop = (reason: string) => ({ type: 'run-stop', reason });
const session = () => new OpenSession({ resolveModel: () => undefined as never, tools: [] });

const folded = (...items: object[]) => {
  const fold = new NodeFold();
  for (const entry of entries(...items)) fold.take(entry);
  return fold.nodes;
};

describe('nodes', () => {
  it('have the library’s text for the model in their request, as the user’s', () => {
    const nodes = folded(
      ...[{ type: 'user-message', content: text('hi') }, assistantText(''), reply],
      ...[{ type: 'continuation', text: 'go on' }, assistantText('there'), reply, stop('completed')],
    );
    const prompts = nodes.map(({ request }) => request?.parts.map(({ partKind, content }) => [partKind, content]));
    expect(prompts).toEqual([[['user-prompt', 'hi']], [['user-prompt', 'go on']]]);
  });

  it.each([
    ['succeeded', 'tool-return'],
    ['failed', 'retry-prompt'],
    ['cancelled', 'retry-prompt'],
    ['unknown', 'retry-prompt'],
  ])('have a result that %s as a %s', (outcome, partKind) => {
    const nodes = folded(called('a'), reply, ended('a', outcome), committed, assistantText('x'), reply);
    expect(nodes[1]?.request?.parts).toEqual([{ partKind, toolCallId: 'a', toolName: 'read', content: outcome }]);
  });

  it('have the arguments of a call as the model wrote them, where they are no object', () => {
    const calls = [called('a', { args: { n: 1 } }), called('b', { args: null, argsText: '{"n"' })];
    expect(folded(...calls, reply)[0]?.modelResponse?.parts.map(({ args }) => args)).toEqual([{ n: 1 }, '{"n"']);
  });

  it('have a last one for what no model has received: results before their commit, after it, and a message', () => {
    const begin = [called('a'), called('b'), reply, ended('b', 'succeeded')];
    const ids = (...more: object[]) => folded(...begin, ...more)[1]?.request?.parts.map((part) => part.toolCallId);
    expect(ids()).toEqual(['b']);
    expect(ids(ended('a', 'failed'))).toEqual(['a', 'b']);
    expect(ids(ended('a', 'failed'), committed)).toEqual(['a', 'b']);
    expect(ids(committed, ended('a', 'failed'))).toEqual(['b', 'a']);
    expect(ids(ended('a', 'failed'), committed, { type: 'user-message', content: text('x') })).toEqual([
      ...['a', 'b', undefined],
    ]);
  });

  it.each([
    [
      'all texts of the last reply',
      [assistantText('a'), assistantText('b'), reply, stop('completed')],
      { output: 'ab' },
    ],
    [
      'no text of another reply',
      [assistantText('a'), reply, assistantText('b'), reply, stop('completed')],
      { output: 'b' },
    ],
    ['none without text', [assistantText(''), reply, stop('completed')], undefined],
    ['none where the run was cut off', [assistantText('a'), reply, stop('interrupted')], undefined],
    ['none of a run that failed', [assistantText('a'), reply, stop('error')], undefined],
  ])('have an answer: %s', (_, items, result) => {
    expect(folded(...items).at(-1)?.result).toEqual(result);
  });
});

describe('messages of the session', () => {
  const par: Message = { role: 'assistant', content: text('par'), toolCalls: [] };
  it.each([
    ['marked where the log ends in the middle of a reply', [assistantText('par', { flag: 'interrupted' })], true],
    [
      'marked, whatever was called before',
      [ended('a', 'succeeded'), assistantText('par', { flag: 'interrupted' })],
      true,
    ],
    [
      'not marked where a result came after it',
      [assistantText('par', { flag: 'interrupted' }), ended('a', 'cancelled')],
      false,
    ],
    [
      'not marked where another reply came after it',
      [assistantText('par', { flag: 'interrupted' }), assistantText('b')],
      false,
    ],
    ['not marked where the reply was refused', [assistantText('par', { flag: 'refusal' })], false],
    ['not marked without a log', [], false],
  ])('are %s', (_, log, isMarked) => {
    const messages = sessionMessages([par], entries(...log));
    expect(messages).toEqual([
      isMarked
        ? { ...par, content: text('[INTERRUPTED]\n\npar'), extra: { provider: 'runchart', flag: 'interrupted' } }
        : par,
    ]);
  });

  it('are a list of the caller’s own', () => {
    const run = agentRun([], [], [par]);
    run.allMessages().pop();
    expect(run.allMessages()).toEqual([par]);
  });
});

describe('the registry of a run', () => {
  const follow = (...items: object[]) => {
    const own = session();
    const started: string[] = [];
    const follower = new CallFollower(own, { toolStartCallback: (label) => void started.push(label) });
    for (const entry of entries(...items)) follower.take(entry);
    const { toolRegistry, batchCounter } = own.session.runtime;
    return { calls: toolRegistry.list(), started, batchCounter };
  };

  it.each([
    [{ args: { n: 1 } }, { n: 1 }],
    [{ args: null, argsText: '{"n"' }, '{"n"'],
    [{ args: null }, {}],
  ])('has of a call with %j the arguments %j', (fields, args) => {
    expect(follow(called('a', fields)).calls).toEqual([{ callId: 'a', name: 'read', args, status: 'pending' }]);
  });

  it.each([
    ['succeeded', { status: 'running' }],
    ['failed', { status: 'failed', error: 'why' }],
    ['cancelled', { status: 'cancelled', reason: 'why' }],
    ['unknown', { status: 'cancelled', reason: 'why' }],
  ])('has a call that %s, before its return is observed, as %j', (outcome, expected) => {
    const { calls } = follow(called('a'), { type: 'tool-started', callId: 'a' }, ended('a', outcome, 'why'));
    expect(calls).toEqual([{ callId: 'a', name: 'read', args: {}, ...expected }]);
  });

  it('announces a batch when its first tool starts, and never one of which no tool started', () => {
    const start = (callId: string) => ({ type: 'tool-started', callId });
    const first = [called('a'), called('b'), reply, ended('a', 'failed'), ended('b', 'failed'), committed];
    const second = [called('c'), reply, start('c'), ended('c', 'succeeded'), committed];
    const third = [called('d'), called('e'), reply, start('e'), start('d')];
    expect(follow(...first, ...second, ...third)).toMatchObject({ started: ['read', 'read, read'], batchCounter: 2 });
  });

  it('hands out copies, and keeps nothing of an earlier state', () => {
    const { toolRegistry: calls } = session().session.runtime;
    calls.register('a', 'read', {});
    calls.fail('a', 'broke');
    calls.complete('a', 'text');
    const expected = { callId: 'a', name: 'read', args: {}, status: 'completed', result: 'text' };
    for (const call of [calls.get('a'), calls.list()[0]]) {
      expect(call).toEqual(expected);
      Object.assign(call ?? {}, { status: 'pending' });
    }
    expect([calls.get('a'), calls.list()]).toEqual([expected, [expected]]);
  });
});

describe('a return', () => {
  const observe = (status: string, part: Partial<Part>, args: unknown = { n: 1 }) => {
    const own = session();
    const { toolRegistry: calls } = own.session.runtime;
    calls.register('a', 'read', args);
    if (status === 'running') calls.start('a');
    if (status === 'completed') calls.complete('a', 'before');
    if (status === 'cancelled') calls.cancel('a', 'before');
    const returns: unknown[] = [];
    const whole: Part = { partKind: 'tool-return', toolCallId: 'a', content: 'text', ...part };
    observeReturns([whole], own, (...received) => void returns.push(received));
    return [calls.get('a')?.status, returns];
  };

  it.each([
    ['pending', 'failed'],
    ['running', 'failed'],
    ['completed', 'completed'],
    ['cancelled', 'cancelled'],
  ])('that did not succeed, of a call that is %s, leaves it %s', (status, then) => {
    const returns = [['read', then, { n: 1 }, 'text', null]];
    expect(observe(status, { partKind: 'retry-prompt' })).toEqual([then, returns]);
  });

  it.each([
    ['text', 'text'],
    [{ a: [1] }, '{"a":[1]}'],
    [0, '0'],
    ['', ''],
    [null, null],
    [undefined, null],
  ])('with the content %j has the result %j', (content, result) => {
    expect(observe('running', { content })).toEqual(['completed', [['read', 'completed', { n: 1 }, result, null]]]);
  });

  it.each([null, undefined])('of a call whose arguments are %s is an error', (args) => {
    expect(() => observe('pending', {}, args ?? null)).toThrow(errors.UnregisteredCallError);
  });

  it('of another kind of part is none', () => {
    for (const partKind of ['text', 'user-prompt', 'tool-call', 'thinking'] as const) {
      expect(observe('pending', { partKind })).toEqual(['pending', []]);
    }
  });
});

describe('an error after which no tool is executed again', () => {
  class ModelRetry extends Error {}
  class Foreign extends errors.ToolExecutionError {}
  const named = (name: string) => Object.assign(new Error('x'), { name });

  it.each<[string, unknown, boolean]>([
    ['an abort of the user', new errors.UserAbortError(), true],
    ['a wish for another call', new errors.ModelRetry('x'), true],
    ['wrong arguments', new errors.ValidationError('x'), true],
    ['a wrong configuration', new ConfigurationError('x'), true],
    ['a wrong configuration of another library', named('ConfigurationError'), true],
    ['a tool that failed for good', new errors.ToolExecutionError('x'), true],
    ['a file that cannot be used', new errors.FileOperationError('x'), true],
    ['a class of its own of one of these', new Foreign('x'), true],
    ['another class of the same name', new ModelRetry('x'), true],
    ['an error of that name', named('UserAbortError'), true],
    ['a plain object of that name', { name: 'FileOperationError' }, true],
    ['another error', new Error('UserAbortError'), false],
    ['a time-out', new errors.GlobalRequestTimeoutError(1), false],
    ['a call that is not registered', new errors.UnregisteredCallError('x'), false],
    ['a text', 'UserAbortError', false],
    ['nothing', undefined, false],
    ['null', null, false],
  ])('%s: %s', (_, error, isFinal) => {
    expect(errors.isFinalError(error)).toBe(isFinal);
  });
});

describe('a prepared history', () => {
  const user = (words: string): Message => ({ role: 'user', content: text(words) });
  const says = (words: string, ...callIds: string[]): Message => ({
    role: 'assistant',
    content: words === '' ? [] : text(words),
    toolCalls: callIds.map((callId) => ({ callId, name: 'read', args: {} })),
  });
  const result = (callId: string, words = 'r'): Message => ({
    role: 'tool',
    callId,
    content: text(words),
    isError: false,
  });
  const image: Message = { ...says(''), content: [{ type: 'image', mediaType: 'image/png', data: 'aGk=' }] } as Message;

  it('keeps all results of a reply with many calls, in whatever order they came', () => {
    const history = [user('a'), says('', 'x', 'y', 'z'), result('z'), result('x'), result('y'), says('done')];
    expect(cleanHistory(history).messages).toBe(history);
    const stray = [user('a'), says('', 'x'), result('x'), result('x2'), says('done')];
    expect(cleanHistory(stray).messages).toHaveLength(4);
  });

  it('keeps a reply of an image alone, and none of blank words', () => {
    expect(cleanHistory([user('a'), image, user('b'), says(' \n'), says('c')]).messages).toEqual([
      ...[user('a'), image, user('b'), says('c')],
    ]);
  });

  it('prunes no result that is shorter than what would stand in its place', () => {
    const large = 'abcd'.repeat(70_000);
    const history = [user('a'), says('', 'x', 'y'), result('x', 'tiny'), result('y', large), user('b')];
    history.push(says('', 'z'), result('z', large), says('done'), user('c'));
    const texts = pruneToolOutputs(history).messages.flatMap((message) =>
      message.role === 'tool' ? message.content.map((part) => ('text' in part ? part.text.length : 0)) : [],
    );
    expect(texts).toEqual([4, PRUNED_RESULT.length, PRUNED_RESULT.length]);
  });

  it('has nothing more to clean or to drop: every call has its result, every result its call, and no two requests follow each other', () => {
    const id = fc.constantFrom('x', 'y', 'z');
    const message = fc.oneof(
      fc.constantFrom(user('a'), user('b'), says('c'), says(''), image),
      fc
        .tuple(fc.constantFrom('', 'w'), fc.uniqueArray(id, { maxLength: 3 }))
        .map(([words, ids]) => says(words, ...ids)),
      id.map((callId) => result(callId)),
    );
    const histories = fc.array(message, { maxLength: 12 });
    fc.assert(
      fc.property(histories, (history) => {
        const { messages } = prepareHistory(history);
        expect(prepareHistory(messages)).toMatchObject({ changed: false, removedCalls: [] });
        expect(messages.at(-1)?.role).not.toBe('user');
      }),
      { numRuns: 5 * volume.anything },
    );
  });
});

it('the usage of a session is its own', () => {
  const [one, other] = [0, 1].map(
    () => createStateManager({ resolveModel: () => undefined as never, tools: [] }).session,
  );
  if (one) Object.assign(one.usage.lastCallUsage, { inputTokens: 5 });
  expect(other?.usage.lastCallUsage.inputTokens).toBe(0);
});
