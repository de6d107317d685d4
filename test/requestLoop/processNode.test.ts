/**
 * Nodes of another engine, one by one: returns, thought, usage and calls (docs/internals/contracts.md, 1.2 and 2.5).
 */
import { describe, expect, it } from 'vitest';
import { zeroUsage } from '../../machines/internal.ts';
import {
  type Node,
  normalizeArgs,
  type Part,
  processNode,
  type RequestCallbacks,
} from '../../src/requestLoop/index.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { loopBench } from './sessionBench.ts';

const replied = (...parts: Part[]): Node => ({ modelResponse: { parts, usage: zeroUsage.usage } });
const returned = (part: Omit<Part, 'partKind'>): Node => ({
  request: { parts: [{ partKind: 'tool-return', ...part }] },
});
const text = (content: string): Part => ({ partKind: 'text', content });
const callPart = (toolCallId: string, toolName: string, args: Part['args']): Part => ({
  ...{ partKind: 'tool-call', toolCallId, toolName },
  ...(args !== undefined && { args }),
});

/** Returns a session whose callback records its executions, in virtual time. */
function nodes() {
  const on = loopBench({ tools: [echoTool().tool] });
  const executed: string[] = [];
  const callbacks: RequestCallbacks = {
    ...on.note,
    async toolCallback({ callId, name, args }) {
      executed.push(`${name} ${JSON.stringify(args)}`);
      return callId;
    },
  };
  const process = async (node: Node, nodeCallbacks = callbacks) => {
    const done = processNode(node, on.state, nodeCallbacks);
    await on.clock.until(done, 100_000);
    return done;
  };
  const { toolRegistry } = on.session.runtime;
  return { ...on, executed, callbacks, process, registry: toolRegistry };
}

describe('a node of another engine', () => {
  it('section 1.2: is empty where its response has neither visible text nor a structured call', async () => {
    const on = nodes();
    expect(await on.process(replied(text(' \n')))).toEqual({ isEmpty: true, reason: 'empty' });
    expect(on.session.runtime.consecutiveEmptyResponses).toBe(1);
    expect(await on.process(replied({ partKind: 'thinking', content: 'hm' }))).toMatchObject({ isEmpty: true });
    expect(await on.process(replied(text('hello')))).toEqual({ isEmpty: false, reason: null });
    expect(await on.process(replied(callPart('a', 'echo', { m: '' })))).toMatchObject({ isEmpty: false });
    expect(await on.process({})).toEqual({ isEmpty: false, reason: null });
    expect(on.session.runtime.consecutiveEmptyResponses).toBe(0);
  });

  it('section 2.5: records its thought and its usage; S004-29: without cached tokens there are none, without a price no cost', async () => {
    const on = nodes();
    const usage = { inputTokens: 5, outputTokens: 2 } as never;
    await on.process({ thought: 'which?', modelResponse: { parts: [text('a')], usage } });
    await on.process({ thought: 'that', modelResponse: { parts: [text('b')], usage } });
    expect(on.session.conversation.thoughts).toEqual(['which?', 'that']);
    const { lastCallUsage, sessionTotalUsage } = on.session.usage;
    expect(lastCallUsage).toEqual({ ...zeroUsage.usage, inputTokens: 5, outputTokens: 2 });
    expect(sessionTotalUsage).toEqual({ ...zeroUsage.usage, inputTokens: 10, outputTokens: 4, costUsd: null });
  });

  it('section 7.2: a call is registered, started and executed by the callback; its return completes it with its arguments', async () => {
    const on = nodes();
    await on.process(replied(callPart('c1', 'echo', '{"m":"a"}')));
    expect(on.executed).toEqual(['echo {"m":"a"}']);
    expect(on.registry.list()).toEqual([{ callId: 'c1', name: 'echo', args: { m: 'a' }, status: 'running' }]);
    await on.process(returned({ toolCallId: 'c1', toolName: 'echo', content: { found: 1 } }));
    expect(on.events).toEqual(['start echo', 'completed echo {"m":"a"} {"found":1} null']);
    expect(on.registry.get('c1')).toMatchObject({ status: 'completed', result: '{"found":1}' });
  });

  it('without a callback its calls are registered and the other engine runs them; the return completes them all the same', async () => {
    const on = nodes();
    await on.process(replied(callPart('c1', 'echo', { m: 'a' })), {});
    expect([on.executed, on.registry.get('c1')?.status]).toEqual([[], 'pending']);
    await on.process(returned({ toolCallId: 'c1', toolName: 'echo', content: 'a' }), {});
    expect(on.registry.get('c1')).toMatchObject({ status: 'completed', result: 'a' });
  });

  it('a tool that only the other engine has is executed by the callback, and fails where that asks for run()', async () => {
    const on = nodes();
    await on.process(replied(callPart('c1', 'theirs', { any: 1 })));
    expect(on.executed).toEqual(['theirs {"any":1}']);
    await on.process(replied(callPart('c2', 'theirs', {})), { toolCallback: (_, node) => node.run() });
    expect(on.registry.get('c2')).toMatchObject({ status: 'failed', error: expect.stringContaining('"theirs"') });
  });

  it('S004-07, S004-10: its calls are repeated as a request’s are, and under failRun the very error is thrown', async () => {
    const error = new Error('the line is dead');
    let executions = 0;
    const fails: RequestCallbacks = {
      async toolCallback() {
        executions += 1;
        throw error;
      },
    };
    const on = nodes();
    await on.process(replied(callPart('c1', 'echo', { m: '' })), fails);
    expect([executions, on.registry.get('c1')?.status]).toEqual([3, 'failed']);
    const strict = loopBench({ tools: [echoTool().tool], policies: { onToolFailure: 'failRun' } });
    const done = processNode(replied(callPart('c1', 'echo', { m: '' })), strict.state, fails);
    await strict.clock.until(done, 100_000);
    await expect(done).rejects.toBe(error);
  });

  it('a node that was processed is not counted or executed again', async () => {
    const on = nodes();
    const node = { ...replied(callPart('c1', 'echo', { m: 'a' })), thought: 'once' };
    await on.process(node);
    expect(await on.process(node)).toEqual({ isEmpty: false, reason: null });
    expect([on.executed.length, on.session.conversation.thoughts]).toEqual([1, ['once']]);
  });

  it('the nodes of a run were processed by their request', async () => {
    const on = loopBench({ replies: ['hello'] });
    const run = await on.request('hi');
    const before = structuredClone(on.session.usage);
    for await (const node of run) await processNode(node, on.state, {});
    expect(on.session.usage).toEqual(before);
  });
});

describe('returns that nobody can place', () => {
  it('S004-05: one without registered arguments is an error that names the call id', async () => {
    const on = nodes();
    await expect(on.process(returned({ toolCallId: 'c9', toolName: 'echo', content: 'a' }))).rejects.toThrow(/"c9"/);
  });

  it('S004-05: one without an id is an error', async () => {
    const on = nodes();
    await expect(on.process(returned({ toolName: 'echo', content: 'a' }))).rejects.toThrow(/no call id/);
  });
});

describe('calls that stand in the text of a response', () => {
  const PLAIN = '{"name": "read_file", "arguments": {"filepath": "a.ts"}}';
  const READ = 'read_file {"filepath":"a.ts"}';
  const TAGGED = `<tool_call>${PLAIN}</tool_call>`;

  it.each([
    ['tagged JSON', `I look. ${TAGGED}`],
    ['a tagged function', '<function=read_file>{"filepath": "a.ts"}</function>'],
    ['a json fence', `\`\`\`json\n${PLAIN}\n\`\`\``],
    ['a plain fence', `\`\`\`\n${PLAIN}\n\`\`\``],
    ['JSON inside prose', `I look: ${PLAIN}, then more.`],
    ['tool and args', '{"tool": "read_file", "args": {"filepath": "a.ts"}}'],
  ])('S004-14: %s is one call', async (_, content) => {
    const on = nodes();
    await on.process(replied(text(content)));
    expect(on.executed).toEqual([READ]);
  });

  it('S004-16: with a structured call only that one runs, and with the policy off none does', async () => {
    const on = nodes();
    await on.process(replied(text(TAGGED), callPart('c1', 'echo', { m: 'a' })));
    expect(on.executed).toEqual(['echo {"m":"a"}']);
    const off = loopBench({ policies: { textToolCalls: false } });
    await processNode(replied(text(TAGGED)), off.state, { toolCallback: async () => expect.fail('executed') });
    expect(off.session.runtime.toolRegistry.list()).toEqual([]);
  });

  it('text is text if nobody executes calls', async () => {
    const on = nodes();
    await on.process(replied(text(TAGGED)), {});
    expect(on.registry.list()).toEqual([]);
  });

  it('S004-17: the first format with a hit is taken alone, under fresh ids', async () => {
    const on = nodes();
    const content = `\`\`\`json\n{"name": "other", "arguments": {}}\n\`\`\`\n${TAGGED}`;
    await on.process(replied(text(content)));
    await on.process(replied(text(content)));
    expect(on.executed).toEqual([READ, READ]);
    expect(new Set(on.registry.list().map(({ callId }) => callId)).size).toBe(2);
  });
});

describe('arguments', () => {
  it('S004-19: are a JSON object, as text or as it is', () => {
    expect(normalizeArgs('{"a":1}')).toEqual({ a: 1 });
    expect(normalizeArgs({ a: 1 })).toEqual({ a: 1 });
    expect([normalizeArgs(''), normalizeArgs(undefined), normalizeArgs(null)]).toEqual([{}, {}, {}]);
  });

  it.each(['[1]', '{bad', '"text"', `{"a": ${'x'.repeat(1_000)}`])(
    'S004-19: %j is a validation error with at most 200 characters of it',
    (args) => {
      const shown = (): unknown => normalizeArgs(args);
      expect(shown).toThrow(expect.objectContaining({ name: 'ValidationError', code: 'invalid_arguments' }));
      expect(shown).toThrow(args.slice(0, 200));
      expect(shown).not.toThrow(args.slice(0, 200) + (args[200] ?? 'never'));
    },
  );

  it('S004-19: of a node that are none are the error of the node, and nothing was executed', async () => {
    const on = nodes();
    await expect(on.process(replied(callPart('c1', 'echo', '{bad')))).rejects.toThrow('{bad');
    expect(on.executed).toEqual([]);
  });
});
