/** The request for a summary: each message is a JSON line, and long ones are cut until all fit. */
import { describe, expect, it } from 'vitest';
import type { Message } from '../../src/index.ts';
import { bench } from '../support/agentBench.ts';
import { boom, echoTool } from '../support/scenarioTools.ts';
import { call, finish, scripted, t } from '../support/scriptedReplies.ts';

const text = (tokens: number): string => 'x'.repeat(tokens * 4);
const summary = [t('Summary of the conversation so far: all is well.'), finish('stop', 0)];
const textOf = ({ content }: Message): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('');

type Line = { [key: string]: unknown };
/** The contents of a message's line. */
function lineFor(message: Message): Line {
  const words = textOf(message);
  if (message.role === 'user') return { user: words };
  if (message.role === 'tool')
    return { result: message.callId, text: words, ...(message.isError ? { isError: true } : {}) };
  const calls = message.toolCalls.map(({ callId, name, args }) => ({ callId, name, args: JSON.stringify(args) }));
  return { assistant: words, ...(calls.length > 0 ? { calls } : {}) };
}

const linesOf = (content: string): Line[] => content.split('\n').map((line): Line => JSON.parse(line));

describe('the request for a summary', () => {
  it('contains words, calls, arguments and results of the summarized messages, and which results are failures', async () => {
    const replies = [[t('I look.'), call('c1', 'echo', { m: 'a' }), call('c2', 'boom')], 'Seen.', summary, 'ok'];
    const model = scripted(replies, { contextWindow: 1_000, maxOutputTokens: 0 });
    const { conversation } = await bench({ model, tools: [echoTool().tool, boom] });
    await conversation.send(text(300)).result;
    const before = conversation.messages();
    expect(before.slice(2, 4).map((message) => message.role === 'tool' && message.isError)).toEqual([false, true]);
    expect((await conversation.send(text(600)).result).text).toBe('ok');
    const request = model.calls[2];
    expect(request?.tools).toEqual([]);
    expect(request?.messages).toHaveLength(1);
    const lines = linesOf(textOf(request?.messages[0] as Message));
    expect(lines.length).toBeGreaterThanOrEqual(4);
    expect(lines).toEqual(before.slice(0, lines.length).map(lineFor));
  });

  it('cuts the longest message until all lines fit, marks how much, and leaves short messages whole', async () => {
    const model = scripted(['read', 'heard', summary, 'ok'], { contextWindow: 4_000, maxOutputTokens: 600 });
    const { conversation } = await bench({ model });
    for (const tokens of [3_000, 150, 300]) await conversation.send(text(tokens)).result;
    const contents = model.calls.flatMap(({ messages }) => messages.map(textOf));
    const content = contents.find((each) => each.includes('characters more]')) ?? '';
    expect(content.length).toBeLessThanOrEqual((4_000 - 2 * 600) * 4);
    const [first, ...others] = linesOf(content);
    const [, kept = '', more] = /^(x+) \[and (\d+) characters more\]$/.exec(`${first?.user}`) ?? [];
    expect(kept.length + Number(more)).toBe(3_000 * 4);
    const short: Line[] = [{ assistant: 'read' }, { user: text(150) }, { assistant: 'heard' }];
    expect(others).toEqual(short.slice(0, others.length));
  });
});
