/**
 * Repeated questions of an MCP server: the call that one belongs to, and the effect of an answer, an edit or a new
 * connection.
 */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { McpServer } from '../../src/mcp/mcpServer.ts';
import { mcpTools } from '../../src/mcp/mcpTools.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { serverByHand } from './serverByHand.ts';

const begins = (begun: readonly unknown[], count: number) =>
  expect.poll(() => begun.length, { interval: 1 }).toBe(count);
const CANCELLED = { action: 'cancel' };

describe('a question belongs to one call', () => {
  it('it belongs to the call that may change something, whichever read-only calls run beside it', async () => {
    const { server, act, begun } = serverByHand();
    const reading = act('r1', { readOnly: true });
    await begins(begun, 1);
    const changing = act('w');
    await begins(begun, 2);
    const later = act('r2', { readOnly: true });
    await begins(begun, 3);
    const answer = begun[1]?.ask('sure?');
    expect(await changing).toMatchObject({ kind: 'elicitation', elicitation: { message: 'sure?' } });
    for (const at of [0, 2]) begun[at]?.answer('read');
    expect([await reading, await later].map(({ kind }) => kind)).toEqual(['result', 'result']);
    const on = act('w', { decision: { callId: 'w', action: 'answer', payload: { yes: true } } });
    expect(await answer).toEqual({ action: 'accept', content: { yes: true } });
    begun[1]?.answer('done');
    expect(await on).toMatchObject({ kind: 'result' });
    await server.close();
  });

  it('of two read-only calls it belongs to none: it is cancelled, and both run to their end', async () => {
    const { server, act, begun } = serverByHand();
    const both = [act('r1', { readOnly: true }), act('r2', { readOnly: true })];
    await begins(begun, 2);
    expect(await begun[1]?.ask('which?')).toEqual(CANCELLED);
    for (const one of begun) one.answer('read');
    expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(['result', 'result']);
    await server.close();
  });

  it('it belongs to the only read-only call that still runs, after the other one has ended', async () => {
    const { server, act, begun } = serverByHand();
    const first = act('r1', { readOnly: true });
    const second = act('r2', { readOnly: true });
    await begins(begun, 2);
    begun[0]?.answer('read');
    await first;
    void begun[1]?.ask('and?');
    expect(await second).toMatchObject({ kind: 'elicitation', elicitation: { message: 'and?' } });
    await server.close();
  });

  it('it belongs to none while a call only waits for its person', async () => {
    const { server, act, begun } = serverByHand();
    const settled = act('a');
    await begins(begun, 1);
    void begun[0]?.ask('first?');
    await settled;
    expect(await begun[0]?.ask('second?')).toEqual(CANCELLED);
    await server.close();
  });

  it('calls of two conversations with one id are two calls', async () => {
    const { transport, begun } = serverByHand();
    const { tools, close } = await mcpTools({ s: { transport } });
    const asks = [call('c1', 'mcp__s__act', {})];
    const agent = createAgent({ model: scripted([asks, asks, 'one', 'two']), tools });
    const open = [await agent.open('a'), await agent.open('b')] as const;
    const questions: (Promise<unknown> | undefined)[] = [];
    for (const [index, conversation] of open.entries()) {
      const run = conversation.send('go');
      await begins(begun, index + 1);
      questions.push(begun[index]?.ask(`for ${conversation.id}?`));
      expect((await run.result).pending).toMatchObject([{ payload: { message: `for ${conversation.id}?` } }]);
    }
    await open[0].decide({ callId: 'c1', action: 'answer', payload: { from: 'a' } });
    const first = open[0].resume();
    expect(await questions[0]).toEqual({ action: 'accept', content: { from: 'a' } });
    begun[0]?.answer('done');
    expect((await first.result).termination).toBe('NaturalEnd');
    await open[1].decide({ callId: 'c1', action: 'deny' });
    const second = open[1].resume();
    expect((await second.result).calls).toMatchObject([{ callId: 'c1', code: 'denied' }]);
    await agent.close();
    await close();
  });
});

describe('a second question of one call', () => {
  it('the person receives it again, and each answer reaches its own question', async () => {
    const { server, act, begun } = serverByHand();
    const first = act('a');
    await begins(begun, 1);
    const one = begun[0]?.ask('one?');
    await first;
    const second = act('a', { decision: { callId: 'a', action: 'answer', payload: { n: 1 } } });
    expect(await one).toEqual({ action: 'accept', content: { n: 1 } });
    const two = begun[0]?.ask('two?');
    expect(await second).toMatchObject({ kind: 'elicitation', elicitation: { message: 'two?' } });
    const third = act('a', { decision: { callId: 'a', action: 'deny' } });
    expect(await two).toEqual({ action: 'decline' });
    begun[0]?.answer('done');
    expect(await third).toMatchObject({ kind: 'result' });
    expect(begun.length).toBe(1);
    await server.close();
  });

  it('the person receives it even if the first answer existed before its question', async () => {
    const { server, act, begun } = serverByHand();
    const settled = act('a', { decision: { callId: 'a', action: 'answer', payload: { n: 1 } } });
    await begins(begun, 1);
    expect(await begun[0]?.ask('one?')).toEqual({ action: 'accept', content: { n: 1 } });
    void begun[0]?.ask('two?');
    expect(await settled).toMatchObject({ kind: 'elicitation', elicitation: { message: 'two?' } });
    await server.close();
  });
});

describe('a call that is repeated', () => {
  it('with other arguments it is a new call: the question of the first is cancelled', async () => {
    const { server, act, begun } = serverByHand();
    const first = act('a');
    await begins(begun, 1);
    const question = begun[0]?.ask('sure?');
    await first;
    const edited = act('a', { decision: { callId: 'a', action: 'edit', args: { b: 1 } } });
    expect(await question).toEqual(CANCELLED);
    await begins(begun, 2);
    begun[1]?.answer('done');
    expect(await edited).toMatchObject({ kind: 'result' });
    await server.close();
  });

  it('if a plugin changed its arguments after the answer, it is a new call, and asks the person again', async () => {
    const { server, act, begun, cancelled } = serverByHand();
    const first = act('a', { args: { path: 'a', deep: { n: 1 } } });
    await begins(begun, 1);
    const question = begun[0]?.ask('write a?');
    await first;
    const decision = { callId: 'a', action: 'answer', payload: { yes: true } } as const;
    const changed = act('a', { args: { path: 'a', deep: { n: 2 } }, decision });
    expect(await question).toEqual(CANCELLED);
    await begins(begun, 2);
    expect(begun[1]?.args).toEqual({ path: 'a', deep: { n: 2 } });
    await expect.poll(() => cancelled, { interval: 1 }).toEqual([begun[0]?.id]);
    void begun[1]?.ask('write that?');
    expect(await changed).toMatchObject({ kind: 'elicitation', elicitation: { message: 'write that?' } });
    await server.close();
  });

  it('it continues at the server if its arguments equal the approved ones', async () => {
    const { server, act, begun } = serverByHand();
    const first = act('a', { args: { path: 'a', deep: { n: [1] } } });
    await begins(begun, 1);
    const question = begun[0]?.ask('write a?');
    await first;
    const answered = act('a', {
      args: { path: 'a', deep: { n: [1] } },
      decision: { callId: 'a', action: 'answer', payload: { yes: true } },
    });
    expect(await question).toEqual({ action: 'accept', content: { yes: true } });
    begun[0]?.answer('done');
    expect(await answered).toMatchObject({ kind: 'result' });
    expect(begun.length).toBe(1);
    await server.close();
  });

  it('after its end it runs again, also with a decision, and returns its own result', async () => {
    const { server, act, begun } = serverByHand();
    const first = act('a');
    await begins(begun, 1);
    void begun[0]?.ask('one?');
    await first;
    const on = act('a', { decision: { callId: 'a', action: 'answer', payload: {} } });
    begun[0]?.answer('done');
    await on;
    // A call that a person retries has the earlier decision.
    const again = act('a', { decision: { callId: 'a', action: 'approve' } });
    await begins(begun, 2);
    begun[1]?.answer('done again');
    expect(await again).toMatchObject({ kind: 'result', result: { content: [{ text: 'done again' }] } });
    await server.close();
  });

  it('it leaves no listener on its signal, whether asked, answered or failed', async () => {
    const { server, act, begun, ends } = serverByHand();
    const { signal } = new AbortController();
    const first = act('a', { signal });
    await begins(begun, 1);
    void begun[0]?.ask('one?');
    await first;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    const on = act('a', { signal, decision: { callId: 'a', action: 'approve' } });
    begun[0]?.answer('done');
    await on;
    const failing = act('b', { signal });
    await begins(begun, 2);
    await ends[0]?.close();
    await expect(failing).rejects.toThrow();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    await server.close();
  });
});

describe('a connection', () => {
  it('a call after close creates a new one', async () => {
    const { server, act, begun, ends } = serverByHand();
    for (const count of [1, 2]) {
      const settled = act('a');
      await begins(begun, count);
      begun[count - 1]?.answer('done');
      await settled;
      await server.close();
      await server.close();
    }
    expect(ends).toHaveLength(2);
  });

  it('the next call tries a failed one again, and all waiting calls share it', async () => {
    const { transport, begun, ends } = serverByHand();
    let tries = 0;
    const server = new McpServer('s', {
      transport: () => {
        tries += 1;
        if (tries === 1) throw new Error('not up yet');
        return transport();
      },
    });
    const { signal } = new AbortController();
    const act = (key: string) =>
      server.call({
        key,
        name: 'act',
        args: {},
        readOnly: true,
        signal,
        decision: undefined,
        progress: () => undefined,
      });
    await expect(act('a')).rejects.toThrow('the MCP server s cannot be reached: Error: not up yet');
    const both = [act('a'), act('b')];
    await begins(begun, 2);
    for (const one of begun) one.answer('done');
    expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(['result', 'result']);
    expect([tries, ends.length]).toEqual([2, 1]);
    await server.close();
  });
});
