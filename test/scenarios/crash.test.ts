/** A process ends during a tool call, and the next one opens the log (docs/internals/model.md, Effect Records). */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import { bench, entry, only, storeWith } from '../support/agentBench.ts';
import { call, lines, type Reply } from '../support/scriptedReplies.ts';

/** A tool that hangs in its first process and works in the next; records its idempotency keys. */
function onceHanging(idempotent: boolean) {
  const keys: string[] = [];
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    idempotent,
    execute(_, { idempotencyKey }) {
      keys.push(idempotencyKey);
      return keys.length === 1 ? new Promise(() => undefined) : 'paid';
    },
  });
  return { tool, keys };
}

/** The process dies while the call runs, and another one opens the log. */
async function diedInCall(idempotent: boolean, replies: readonly Reply[]) {
  const { tool, keys } = onceHanging(idempotent);
  const before = await bench({ replies: [[call('c1', 'pay')]], tools: [tool] });
  before.conversation.send('hi');
  await entry(before.conversation, 'tool-started');
  const store = await storeWith(before.conversation.log());
  return { ...(await bench({ replies, tools: [tool], store })), keys };
}

describe('a run whose message was lost with the rest of its first append', () => {
  /** The log of a process that died at the append after its first `kept` entries, with one entry of it stored. */
  async function torn(requests: readonly string[], replies: readonly Reply[]) {
    const before = await bench({ replies });
    for (const request of requests) await before.conversation.send(request).result;
    const log = before.conversation.log();
    const last = log.map(({ type }) => type).lastIndexOf('run-started');
    return bench({ replies: ['again'], store: await storeWith(log.slice(0, last + 1)) });
  }

  it.each([[['first']], [['first', 'second']]])(
    'the run is not continued: resume() finds nothing to do (%s)',
    async (requests) => {
      const { conversation, model } = await torn(requests, ['one', 'two']);
      const before = conversation.log();
      expect(only(before, 'run-stop').at(-1)).toBe('run-stop interrupted crash');
      expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', turns: 0 });
      expect(model.calls).toHaveLength(0);
      expect(conversation.log()).toEqual(before);
      expect((await conversation.send('third').result).text).toBe('again');
    },
  );

  it('if a message is queued, resume() promotes that message instead', async () => {
    const { conversation } = await torn(['first'], ['one']);
    const queued = [...conversation.log()];
    const at = { seq: queued.length, at: 0, conversationId: 'c', runId: null };
    const content = [{ type: 'text' as const, text: 'next' }];
    queued.push({ ...at, type: 'message-queued', messageId: 'q', kind: 'followUp', content });
    const on = await bench({ replies: ['promoted'], store: await storeWith(queued) });
    expect((await on.conversation.resume().result).text).toBe('promoted');
    expect(lines(on.model.calls[0]?.messages ?? [])).toEqual(['user next']);
  });
});

describe('a call that was started and has no outcome', () => {
  it('B12: it is unknown, never run again automatically, and the model receives this result', async () => {
    const { conversation, keys, model } = await diedInCall(false, ['went on']);
    expect(conversation.status).toBe('idle');
    expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 unknown',
      'run-stop interrupted crash',
    ]);
    expect((await conversation.resume().result).text).toBe('went on');
    expect(lines(model.calls[0]?.messages ?? []).at(-1)).toMatch(/^c1! .*may have run/);
    expect(keys).toHaveLength(1);
  });

  it('B12: if its tool is idempotent, a resume runs it again with the same key', async () => {
    const { conversation, keys } = await diedInCall(true, ['went on']);
    expect(keys).toHaveLength(1);
    expect((await conversation.resume().result).text).toBe('went on');
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 succeeded']);
  });

  it('B12: it is unknown even for an idempotent tool if a new request arrives instead of a resume', async () => {
    const { conversation, keys, model } = await diedInCall(true, ['answer']);
    expect((await conversation.send('something else').result).text).toBe('answer');
    expect(keys).toHaveLength(1);
    expect(only(conversation.log(), 'tool-result', 'user-message')).toEqual([
      'user-message direct hi',
      'tool-result c1 unknown',
      'user-message direct something else',
    ]);
    expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    expect(lines(model.calls[0]?.messages ?? [])[2]).toMatch(/^c1! .*unknown/);
  });

  it('after settle retry, a resume runs it again with the same key, and its result replaces the unknown one', async () => {
    const { conversation, keys } = await diedInCall(false, ['went on']);
    expect(await conversation.settle('c1', { retry: true })).toBe('applied');
    expect(keys).toHaveLength(1);
    expect((await conversation.resume().result).text).toBe('went on');
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(lines(conversation.messages())[2]).toBe('c1 paid');
    expect(conversation.unsettled).toEqual([]);
  });

  it('after settle retry, a new request does not run it, in this process or the next', async () => {
    const before = await diedInCall(false, ['answer']);
    await before.conversation.settle('c1', { retry: true });
    expect((await before.conversation.send('first this').result).text).toBe('answer');
    expect(before.keys).toHaveLength(1);
    const store = await storeWith(before.conversation.log());
    const { tool, keys } = onceHanging(false);
    const on = await bench({ replies: ['other answer'], tools: [tool], store });
    expect((await on.conversation.send('and this').result).text).toBe('other answer');
    expect(keys).toEqual([]);
  });

  it('after settle ran or not run, the model receives that result', async () => {
    const ran = await diedInCall(false, ['ok']);
    expect(await ran.conversation.settle('c1', { ran: { receipt: 7 } })).toBe('applied');
    expect(await ran.conversation.settle('c1', { didNotRun: true })).toBe('unknown');
    await ran.conversation.resume().result;
    expect(lines(ran.model.calls[0]?.messages ?? []).at(-1)).toBe('c1 {"receipt":7}');
    const notRun = await diedInCall(false, ['ok']);
    await notRun.conversation.settle('c1', { didNotRun: true });
    await notRun.conversation.resume().result;
    expect(lines(notRun.model.calls[0]?.messages ?? []).at(-1)).toBe('c1! This call did not run.');
  });
});
