/** A conversation that is rewound: what the model and views receive, restarts, forks, waiting calls, refusals. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { modelMessages } from '../../machines/index.ts';
import { type Conversation, defineTool, forkConversation } from '../../src/index.ts';
import { bench, entry, storeWith } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply } from '../support/scriptedReplies.ts';

const send = (conversation: Conversation, text: string, messageId: string) =>
  conversation.send(text, { messageId }).result;
const types = (conversation: Conversation, from: number): string[] => conversation.log(from).map((entry) => entry.type);
const asking: Reply = [call('c1', 'ask', { m: '' })];

describe('after a rewind', () => {
  it('the model and the history see what stood before the message, and the log keeps the rest', async () => {
    const { conversation, model } = await bench({ replies: ['one', 'two', 'three', 'other'] });
    for (const id of ['a', 'b', 'c']) await send(conversation, `say ${id}`, id);
    const log = conversation.log();
    expect(conversation.view().cycles).toHaveLength(3);
    const before = conversation.view();
    await conversation.rewind('b');
    const entry = conversation.log().at(-1);
    expect(entry).toMatchObject({ type: 'rewound', runId: null });
    expect(conversation.log().slice(0, log.length)).toEqual(log);
    const started = log.filter(({ type }) => type === 'run-started')[1];
    expect(entry).toMatchObject({ toSeq: (started?.seq ?? 0) - 1 });
    expect(lines(conversation.messages())).toEqual(['user say a', 'assistant one']);
    expect(modelMessages(conversation.log())).toEqual(conversation.messages());
    await send(conversation, 'again', 'd');
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user say a', 'assistant one', 'user again']);
    const { cycles, diagnostics } = conversation.view();
    expect(cycles.map(({ id, superseded }) => [id, superseded])).toEqual([
      ['a', undefined],
      ['b', true],
      ['c', true],
      ['d', undefined],
    ]);
    expect(before.cycles.map(({ superseded }) => superseded)).toEqual([undefined, undefined, undefined]);
    expect([diagnostics, conversation.status]).toEqual([[], 'idle']);
  });

  it('it holds after a restart and in a fork, and a second rewind returns further', async () => {
    const first = await bench({ replies: ['one', 'two'] });
    await send(first.conversation, 'first', 'a');
    await send(first.conversation, 'second', 'b');
    await first.conversation.rewind('b');
    const view = first.conversation.view();
    await first.agent.close();
    const again = await bench({ store: first.store, replies: ['three'] });
    const { conversation } = again;
    expect(lines(conversation.messages())).toEqual(['user first', 'assistant one']);
    expect(conversation.view()).toEqual(view);
    await send(conversation, 'third', 'c');
    await again.agent.close();
    await forkConversation(first.store, 'c', 'fork');
    const last = await bench({ store: first.store, replies: ['four'] });
    const fork = await last.agent.open('fork');
    expect(fork.messages()).toEqual(conversation.messages());
    await fork.rewind('a');
    expect(fork.messages()).toEqual([]);
    await send(fork, 'fourth', 'd');
    expect(lines(last.model.calls.at(-1)?.messages ?? [])).toEqual(['user fourth']);
    expect(fork.view().cycles.map(({ superseded }) => superseded)).toEqual([true, true, true, undefined]);
    await last.agent.close();
  });

  it('nothing continues: a resume has nothing to do', async () => {
    const { conversation, model } = await bench({
      replies: [new Error('no'), new Error('no')],
      policies: { modelRetry: { attempts: 1 } },
    });
    expect((await send(conversation, 'first', 'a')).termination).toBe('Error');
    await conversation.rewind('a');
    const { length } = conversation.log();
    const { calls } = model;
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
    expect([conversation.log().length, model.calls.length]).toEqual([length, calls.length]);
  });

  it('a retry that was requested before does not run: the outcome of its call is unknown again', async () => {
    const keys: string[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({}),
      execute: (_, { idempotencyKey }) => {
        keys.push(idempotencyKey);
        return keys.length === 1 ? new Promise(() => undefined) : 'paid';
      },
    });
    const before = await bench({ replies: [[call('c1', 'pay')]], tools: [pay] });
    before.conversation.send('first', { messageId: 'a' });
    await entry(before.conversation, 'tool-started');
    const { conversation } = await bench({ tools: [pay], store: await storeWith(before.conversation.log()) });
    expect(await conversation.settle('c1', { retry: true })).toBe('applied');
    await conversation.rewind('a');
    const log = conversation.log();
    for (const living of [conversation, (await bench({ tools: [pay], store: await storeWith(log) })).conversation]) {
      expect((await living.resume().result).termination).toBe('NaturalEnd');
      expect(living.log()).toEqual(log);
      expect(living.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    }
    expect(keys).toHaveLength(1);
    // The host may still ask for it.
    expect(await conversation.settle('c1', { retry: true })).toBe('applied');
    await conversation.resume().result;
    expect(keys).toHaveLength(2);
  });

  it('a summary that came later counts no more', async () => {
    const { conversation } = await bench({ replies: ['one', 'two'] });
    await send(conversation, 'first', 'a');
    await send(conversation, 'second', 'b');
    const [, second] = conversation.log().filter(({ type }) => type === 'user-message');
    const log = [
      ...conversation.log(),
      { seq: 90, at: 0, conversationId: 'c', runId: null, type: 'compaction' as const, upToSeq: 5, summary: 'Short.' },
    ];
    const rewound = {
      seq: 91,
      at: 0,
      conversationId: 'c',
      runId: null,
      type: 'rewound' as const,
      toSeq: (second?.seq ?? 0) - 1,
    };
    expect(lines(modelMessages([...log, rewound]))).toEqual(['user first', 'assistant one']);
  });

  it('a call before it is settled later all the same', () => {
    const base = { at: 0, conversationId: 'c', runId: 'run_a' };
    const content = [{ type: 'text' as const, text: 'unknown' }];
    const log = [
      { ...base, type: 'user-message' as const, messageId: 'a', kind: 'direct' as const, content },
      {
        ...base,
        type: 'agent-output' as const,
        item: { type: 'tool-call' as const, callId: 'x', name: 'pay', args: {} },
      },
      { ...base, type: 'tool-result' as const, callId: 'x', outcome: 'unknown' as const, content },
      { ...base, type: 'user-message' as const, messageId: 'b', kind: 'direct' as const, content },
      { ...base, type: 'call-settled' as const, callId: 'x', how: { ran: 'paid' } },
      { ...base, type: 'rewound' as const, toSeq: 2 },
    ].map((entry, seq) => ({ ...entry, seq }));
    expect(lines(modelMessages(log))).toEqual(['user unknown', 'assistant +x', 'x "paid"']);
  });

  it('its calls count no more, and the calls before it keep their results', async () => {
    const tools = [echoTool().tool];
    const { conversation } = await bench({
      tools,
      replies: [[call('x', 'echo', { m: '1' })], 'one', [call('y', 'echo', { m: '2' })], 'two'],
    });
    await send(conversation, 'first', 'a');
    await send(conversation, 'second', 'b');
    await conversation.rewind('b');
    expect(lines(conversation.messages())).toEqual(['user first', 'assistant +x', 'x {"m":"1"}', 'assistant one']);
  });

  it('costs and turns count on', async () => {
    const { conversation, agent } = await bench({ replies: ['one', 'two'] });
    await send(conversation, 'first', 'a');
    await conversation.rewind('a');
    await send(conversation, 'second', 'b');
    expect((await agent.list())[0]?.turns).toBe(2);
  });
});

describe('a rewind while a call waits', () => {
  it('cancels the waiting request in the same append', async () => {
    const { conversation, model } = await bench({
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
      replies: [asking, 'new'],
    });
    await send(conversation, 'first', 'a');
    expect(conversation.status).toBe('waiting');
    const { length } = conversation.log();
    await conversation.rewind('a');
    expect(types(conversation, length)).toEqual(['tool-result', 'run-stop', 'rewound', 'checkpoint']);
    expect([conversation.status, conversation.pending]).toEqual(['idle', []]);
    expect(conversation.view().cycles).toMatchObject([
      { superseded: true, stop: { reason: 'interrupted' }, waiting: [] },
    ]);
    expect(await conversation.decide({ callId: 'c1', action: 'approve' })).toBe('stale');
    await send(conversation, 'other', 'b');
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user other']);
  });

  it('a retry that was requested meanwhile does not run', async () => {
    const [pay, later] = [gateTool('pay'), gateTool('pay')];
    const before = await bench({ replies: [[call('p', 'pay')]], tools: [pay.tool] });
    before.conversation.send('pay', { messageId: 'a' });
    await pay.begun('p');
    const { conversation } = await bench({
      tools: [echoTool('ask').tool, later.tool],
      plugins: [asks().plugin],
      replies: [asking],
      store: await storeWith(before.conversation.log()),
    });
    await send(conversation, 'ask', 'b');
    expect(await conversation.settle('p', { retry: true })).toBe('applied');
    const { length } = conversation.log();
    await conversation.rewind('b');
    expect(types(conversation, length)).toEqual(['tool-result', 'run-stop', 'tool-result', 'rewound', 'checkpoint']);
    expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['p']);
    const log = conversation.log();
    await conversation.resume().result;
    expect(conversation.log()).toEqual(log);
    expect(later.started).toEqual([]);
  });

  it('a queued message starts after it, without what was rewound', async () => {
    const { conversation, model } = await bench({
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
      replies: [asking, 'new'],
    });
    await send(conversation, 'first', 'a');
    const followUp = conversation.send('later', { messageId: 'q' });
    expect(conversation.queue).toHaveLength(1);
    await conversation.rewind('a');
    expect((await followUp.result).termination).toBe('NaturalEnd');
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user later']);
  });
});

describe('a rewind is refused', () => {
  it('for a steer, an unknown id, a superseded message and an earlier message', async () => {
    const gate = gateTool();
    const { conversation, agent } = await bench({ tools: [gate.tool], replies: [[call('g', 'gate')], 'one', 'two'] });
    const run = conversation.send('first', { messageId: 'a' });
    await gate.begun('g');
    const { messageId } = conversation.steer('also');
    gate.release('g');
    await run.result;
    await send(conversation, 'second', 'b');
    await conversation.rewind('b');
    const { length } = conversation.log();
    const refused = (id: unknown) =>
      conversation.rewind(id as string).then(
        () => 'rewound',
        (error) => error.code,
      );
    expect(await refused(messageId)).toBe('configuration');
    expect(await refused('nobody')).toBe('not_found');
    expect(await refused('b')).toBe('not_found');
    expect(await refused(undefined)).toBe('not_found');
    const earlier = await agent.open('e', { history: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] });
    await expect(earlier.rewind('history-0')).rejects.toMatchObject({ code: 'configuration' });
    expect(conversation.log()).toHaveLength(length);
  });

  it('while a run is active, whose log does not change', async () => {
    const gate = gateTool();
    const { conversation } = await bench({ tools: [gate.tool], replies: [[call('g', 'gate')], 'one'] });
    const run = conversation.send('first', { messageId: 'a' });
    await gate.begun('g');
    await expect(conversation.rewind('a')).rejects.toMatchObject({ code: 'agent_busy' });
    gate.release('g');
    expect((await run.result).text).toBe('one');
    expect(conversation.log().some(({ type }) => type === 'rewound')).toBe(false);
  });
});
