import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { modelMessages } from '../../machines/index.ts';
import type { Json, LogEntry, Message } from '../../machines/vocabulary.ts';
import { createAgent } from '../../src/index.ts';
import { logEntrySchema } from '../../src/schema.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { scriptedModel } from '../../src/testing/scriptedModel.ts';
import { defineTool } from '../../src/tools/tool.ts';

const SIGNED: Json = { from: 'p', parts: [{ reasoning: 'think', signature: 'c2ln' }, 7, null, 'x'] };
const look = defineTool({ name: 'look', description: 'looks', parameters: z.object({}), execute: () => 'seen' });
const callReply = {
  parts: [
    { type: 'reasoning-delta', text: 'think' },
    { type: 'tool-call', callId: 'c1', name: 'look', args: '{}', extra: { of: 'call' } },
    { type: 'finish', reason: 'tool-calls', extra: SIGNED },
  ],
} as const;
const assistantIn = (messages: readonly Message[]) => messages.filter((message) => message.role === 'assistant');

describe('provider data of a reply', () => {
  it('it is on the last item of the reply in the log, and is sent back with the message unchanged', async () => {
    const model = scriptedModel([callReply, 'done']);
    const conversation = await createAgent({ model, tools: [look] }).open('c');
    await conversation.send('go').result;
    const output = conversation.log().filter((entry) => entry.type === 'agent-output');
    expect(output.map((entry) => ('extra' in entry ? entry.extra : undefined))).toEqual([undefined, SIGNED, undefined]);
    const [asked] = assistantIn(model.calls[1]?.messages ?? []);
    expect(asked).toMatchObject({ extra: SIGNED, toolCalls: [{ callId: 'c1', extra: { of: 'call' } }] });
    expect(modelMessages(conversation.log())).toEqual(conversation.messages());
    for (const entry of conversation.log())
      expect(logEntrySchema['~standard'].validate(entry)).not.toHaveProperty('issues');
  });

  it('it is kept when the conversation is opened from its store', async () => {
    const store = memoryStore();
    const first = await createAgent({ model: scriptedModel([callReply, 'done']), tools: [look], store }).open('c');
    await first.send('go').result;
    await first.close();
    const model = scriptedModel(['again']);
    const second = await createAgent({ model, tools: [look], store }).open('c');
    await second.send('more').result;
    expect(assistantIn(model.calls[0]?.messages ?? [])[0]).toMatchObject({ extra: SIGNED });
  });

  it('it is absent if the provider attached nothing, as in older logs', async () => {
    const conversation = await createAgent({ model: scriptedModel(['hello']) }).open('c');
    await conversation.send('go').result;
    expect(conversation.log().some((entry) => 'extra' in entry)).toBe(false);
    expect(conversation.messages().some((message) => 'extra' in message)).toBe(false);
  });

  it('it is stored without secrets', async () => {
    const secret = 'sk-very-secret-value';
    const parts = [
      { type: 'text-delta', text: 'hi' },
      { type: 'finish', reason: 'stop', extra: { [secret]: [`a ${secret} b`] } as Json },
    ] as const;
    const agent = createAgent({ model: scriptedModel([{ parts }]), secrets: [secret] });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    expect(JSON.stringify(conversation.log())).not.toContain(secret);
    expect(conversation.messages().at(-1)).toMatchObject({ extra: { '[redacted]': ['a [redacted] b'] } });
  });

  it('data of earlier messages is sent to the model too, without secrets', async () => {
    const history: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'before' }] },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'said' }],
        toolCalls: [],
        extra: { kept: 'sk-very-secret' },
      },
    ];
    const model = scriptedModel(['ok']);
    const agent = createAgent({ model, secrets: ['sk-very-secret'] });
    const conversation = await agent.open('c', { history });
    await conversation.send('go').result;
    expect(assistantIn(model.calls[0]?.messages ?? [])[0]).toMatchObject({ extra: { kept: '[redacted]' } });
    expect(JSON.stringify(conversation.log())).not.toContain('sk-very-secret');
  });

  it('data of one of two joined replies does not apply to both', () => {
    const output = (text: string, extra?: Json): object => ({
      type: 'agent-output',
      item: { type: 'assistant', text },
      ...(extra && { extra }),
    });
    const entries = [output('a', { of: 'a' }), output('b')].map((entry, seq) => ({
      seq,
      at: 0,
      conversationId: 'c',
      runId: null,
      ...entry,
    }));
    expect(modelMessages(entries as LogEntry[])).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
        toolCalls: [],
      },
    ]);
  });

  it('invalid JSON is dropped, and the reply is kept', async () => {
    const round: { self?: unknown } = {};
    round.self = round;
    const parts = [
      { type: 'text-delta', text: 'hi' },
      { type: 'finish', reason: 'stop', extra: round as Json },
    ] as const;
    const conversation = await createAgent({ model: scriptedModel([{ parts }]) }).open('c');
    expect((await conversation.send('go').result).text).toBe('hi');
    expect(conversation.messages().at(-1)).not.toHaveProperty('extra');
  });
});
