/**
 * Variants of the trace (docs/internals/lifecycle.md, Request Trace): an unknown tool, a failing tool, and replies in
 * pieces.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type FinishReason, toolResult } from '../../src/index.ts';
import { callDelta, DONE, delta, finished, frame, modelOf, play, served, textDelta } from '../models/scriptedFetch.ts';
import { bench, only, resultText } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

const read = defineTool({
  name: 'Read',
  description: 'Reads',
  parameters: z.object({ file_path: z.string() }),
  execute: ({ file_path }) =>
    file_path === 'gone' ? toolResult.error('there is no such file', 'not_found') : `all of ${file_path}`,
});

describe('the loop continues', () => {
  it.each(['Raed', 'read', 'delete_everything', '__proto__'])(
    'S002-04 after a call of a tool that is not there, with an error result that names it: %s',
    async (name) => {
      const { conversation, model } = await bench({
        tools: [read],
        replies: [[call('c1', name, { file_path: 'x' })], 'done'],
      });
      const result = await conversation.send('go').result;
      expect(result).toMatchObject({ termination: 'NaturalEnd', cause: 'end_turn', turns: 2, text: 'done' });
      expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed unknown_tool']);
      expect(only(conversation.log(), 'tool-started')).toEqual([]);
      expect(resultText(conversation.log(), 'c1')).toContain(name);
      expect(model.calls[1]?.messages.at(-1)).toMatchObject({ role: 'tool', callId: 'c1', isError: true });
    },
  );

  it('S002-05 after an error result, which the model receives with a mark at the start of the text', async () => {
    const bodies: { messages: { role: string; content: unknown }[] }[] = [];
    const replies = [
      frame(
        callDelta({ index: 0, id: 'c1', function: { name: 'Read', arguments: '{"file_path":"gone"}' } }),
        finished('tool_calls'),
        '[DONE]',
      ),
      frame(textDelta('It is gone.'), finished('stop'), '[DONE]'),
    ];
    const model = modelOf(() => new Response(), {
      fetch: async (_, init) => {
        bodies.push(JSON.parse(String(init?.body)));
        return served([replies.shift() ?? '']);
      },
    });
    const { conversation } = await bench({ tools: [read], model: model as never });
    const result = await conversation.send('go').result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', turns: 2, text: 'It is gone.' });
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed not_found']);
    const toolMessage = bodies[1]?.messages.find(({ role }) => role === 'tool');
    expect(toolMessage?.content).toMatch(/^\[tool error\]\nthere is no such file/);
  });
});

describe('a reply in pieces', () => {
  it('S002-35 interleaved calls are assembled by index, after reasoning and text', async () => {
    const head = (index: number, id: string, name: string) => ({ index, id, function: { name, arguments: '' } });
    const tail = (index: number, text: string) => ({ index, function: { arguments: text } });
    const body = frame(
      delta({ reasoning_content: 'Two ' }),
      delta({ reasoning_content: 'files.' }),
      textDelta("I'll read"),
      textDelta(' both.'),
      callDelta(head(0, 'a', 'Read')),
      callDelta(head(1, 'b', 'Read')),
      callDelta(tail(1, '{"file_')),
      callDelta(tail(0, '{"file_path"')),
      callDelta(tail(1, 'path":"two"}'), tail(0, ':"one"}')),
      finished('tool_calls'),
    );
    const { parts } = await play(modelOf(() => served([body, DONE])));
    expect(parts.filter(({ type }) => type === 'tool-call')).toEqual([
      { type: 'tool-call', callId: 'a', name: 'Read', args: '{"file_path":"one"}' },
      { type: 'tool-call', callId: 'b', name: 'Read', args: '{"file_path":"two"}' },
    ]);
    const answers = [served([body, DONE]), served([frame(textDelta('done'), finished('stop')), DONE])];
    const model = modelOf(() => answers.shift() ?? new Response());
    const { conversation } = await bench({ tools: [read], model: model as never });
    await conversation.send('go').result;
    const items = conversation.log().flatMap((each) => (each.type === 'agent-output' ? [each.item] : []));
    expect(items.slice(0, 4).map((item) => (item.type === 'tool-call' ? item.args : item.text))).toEqual([
      'Two files.',
      "I'll read both.",
      { file_path: 'one' },
      { file_path: 'two' },
    ]);
  });

  it.each<[string, FinishReason]>([
    ['stop', 'stop'],
    ['tool_calls', 'tool-calls'],
    ['length', 'length'],
    ['content_filter', 'content-filter'],
  ])('S002-35 the finish reason %s is %s', async (finishReason, reason) => {
    const pieces =
      finishReason === 'tool_calls'
        ? [callDelta({ index: 0, id: 'a', function: { name: 'Read', arguments: '{}' } })]
        : [textDelta('x')];
    const { parts } = await play(modelOf(() => served([frame(...pieces, finished(finishReason)), DONE])));
    expect(parts.at(-1)).toMatchObject({ type: 'finish', reason });
  });
});
