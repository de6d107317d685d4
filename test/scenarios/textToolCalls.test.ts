/** Calls that a model writes into its text. If the policy permits them, they are treated like any other. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, createAgent, defineTool, presets } from '../../src/index.ts';
import { type BenchOptions, bench, only, resultText } from '../support/agentBench.ts';
import { call, finish, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';

const all = ['tool_call', 'function', 'fence', 'json'] as const;
const TAGGED = '<tool_call>{"name": "read_file", "arguments": {"filepath": "a.ts"}}</tool_call>';

function reader() {
  const read: string[] = [];
  const tool = defineTool({
    name: 'read_file',
    description: 'Reads a file.',
    parameters: z.object({ filepath: z.string() }),
    execute: ({ filepath }) => {
      read.push(filepath);
      return 'text of the file';
    },
  });
  return { tool, read };
}

async function runReplies(replies: readonly Reply[], policies: BenchOptions['policies'] = { textToolCalls: all }) {
  const { tool, read } = reader();
  const on = await bench({ replies, tools: [tool], policies });
  const result = await on.conversation.send('hi').result;
  return { ...on, result, read, log: on.conversation.log() };
}

describe('calls in text', () => {
  it.each([
    ['tool_call', TAGGED],
    ['function', '<function=read_file>{"filepath": "a.ts"}</function>'],
    ['fence', '```json\n{"name": "read_file", "arguments": {"filepath": "a.ts"}}\n```'],
    ['fence', '```\n{"name": "read_file", "arguments": {"filepath": "a.ts"}}\n```'],
    ['json', 'I will {"name": "read_file", "parameters": {"filepath": "a.ts"}} now.'],
    ['json', '{"tool": "read_file", "args": {"filepath": "a.ts"}}'],
  ])('LOOP-7, S004-14: %s in %j is run; the text is unchanged, and the call follows it', async (_, text) => {
    const { result, read, log, model } = await runReplies([text, 'done']);
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done', turns: 2 });
    expect(read).toEqual(['a.ts']);
    expect(only(log, 'agent-output', 'tool-result', 'diagnostic')).toEqual([
      `agent-output ${text}`,
      'agent-output call_1',
      'tool-result call_1 succeeded',
      'agent-output done',
    ]);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual([
      'user hi',
      `assistant ${text} +call_1`,
      'call_1 text of the file',
    ]);
  });

  it('LOOP-7, S004-16: if a reply has a structured call, only that one is run', async () => {
    const { read, log } = await runReplies([[t(TAGGED), call('c1', 'read_file', { filepath: 'b.ts' })], 'done']);
    expect(read).toEqual(['b.ts']);
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 succeeded']);
  });

  it('S004-16: with the policy off, which is the default, none is run', async () => {
    for (const policies of [{}, { textToolCalls: false as const }, { textToolCalls: [] }]) {
      const { result, read } = await runReplies([TAGGED], policies);
      expect(result).toMatchObject({ termination: 'NaturalEnd', text: TAGGED, calls: [] });
      expect(read).toEqual([]);
    }
  });

  it('S004-17: of a tag and a fence only the tag is read, and every call has a separate id', async () => {
    const fence = '```json\n{"name": "read_file", "arguments": {"filepath": "fenced"}}\n```';
    const { read, log } = await runReplies([`${fence} ${TAGGED} ${TAGGED}`, TAGGED, 'done'], presets.requestLoop);
    expect(read).toEqual(['a.ts', 'a.ts', 'a.ts']);
    expect(only(log, 'tool-started')).toEqual(['call_1', 'call_2', 'call_3'].map((id) => `tool-started ${id}`));
  });

  it('a reply with such a call is not final, whatever its finish reason is', async () => {
    const { result } = await runReplies([[t(TAGGED), finish('stop')], [t(TAGGED), finish('length')], 'done']);
    expect(result).toMatchObject({ termination: 'NaturalEnd', turns: 3 });
  });

  it('calls in reasoning are not run', async () => {
    const { read } = await runReplies([[{ type: 'reasoning-delta', text: TAGGED }, t('done')]]);
    expect(read).toEqual([]);
  });

  it('an unknown tool is reported as usual, and calls beyond the limit are not run', async () => {
    const unknown = await runReplies(['{"name": "nobody", "arguments": {}}', 'done']);
    expect(only(unknown.log, 'tool-result')).toEqual(['tool-result call_1 failed unknown_tool']);
    const limits = { toolCallsPerTurn: 1 };
    const two = await runReplies([`${TAGGED}${TAGGED}`, 'done'], { textToolCalls: all, limits });
    expect(only(two.log, 'tool-result').sort()).toEqual([
      'tool-result call_1 succeeded',
      'tool-result call_2 failed too_many_calls',
    ]);
  });

  it('streaming is unchanged: the text is shown as it arrives', async () => {
    const { tool } = reader();
    const on = await bench({
      replies: [[t(TAGGED.slice(0, 9)), t(TAGGED.slice(9))], 'done'],
      tools: [tool],
      policies: { textToolCalls: all },
    });
    const shown: string[] = [];
    on.conversation.live$.subscribe((signal) => void (signal.type === 'text-delta' && shown.push(signal.text)));
    await on.conversation.send('hi').result;
    expect(shown).toEqual([TAGGED.slice(0, 9), TAGGED.slice(9), 'done']);
  });
});

describe('arguments in text', () => {
  const written = (args: string) => runReplies([`{"name": "read_file", "arguments": ${args}}`, 'done']);

  it('S004-19: a string of JSON is parsed', async () => {
    expect((await written('"{\\"filepath\\":\\"b\\"}"')).read).toEqual(['b']);
  });

  it('S004-19: a value that is not an object is a validation error', async () => {
    const { log, read } = await written('"[1]"');
    expect(read).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result call_1 failed invalid_arguments']);
  });

  it('S004-19: invalid JSON is a validation error that contains at most 200 characters of it', async () => {
    const { log, read } = await written(`"{bad${'d'.repeat(1_000)}"`);
    expect(read).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result call_1 failed invalid_arguments']);
    const shown = resultText(log, 'call_1').match(/bad+/)?.[0] ?? '';
    expect(shown.length).toBeGreaterThan(100);
    expect(shown.length).toBeLessThanOrEqual(200);
  });

  it('__proto__ is not an argument', async () => {
    const { read, log } = await written('{"__proto__": {"filepath": "x"}, "filepath": "own"}');
    expect(read).toEqual(['own']);
    const made = log.find((entry) => entry.type === 'agent-output' && entry.item.type === 'tool-call');
    expect(JSON.stringify(made)).not.toContain('__proto__');
  });
});

describe('the policy', () => {
  it.each([[['xml']], ['all'], [true]])('%j is refused at the start', (textToolCalls) => {
    const agent = () => createAgent({ model: scripted([]), policies: { textToolCalls: textToolCalls as never } });
    expect(agent).toThrow(ConfigurationError);
    expect(agent).toThrow(/policies\.textToolCalls must be false or a list of tool_call, function, fence, json/);
  });
});
