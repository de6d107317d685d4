/** Calls at an MCP server that does what a test tells it to: turns, questions, and what is left at the end. */
import { InMemoryTransport } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { type McpCall, McpServer } from '../../src/mcp/mcpServer.ts';
import { mcpTools } from '../../src/mcp/mcpTools.ts';
import { flush } from '../support/clock.ts';

/** A server in memory that does what a test tells it to, call by call. */
function serverByHand(names: readonly string[] = ['act']) {
  type Message = { id?: number; method?: string; params?: { name?: string; requestId?: number }; result?: unknown };
  const begun: { id: number; answer(text: string): void; ask(message: string): Promise<unknown> }[] = [];
  const cancelled: (number | undefined)[] = [];
  const ends: InMemoryTransport[] = [];
  const asked = new Map<number, (answer: unknown) => void>();
  const transport = (): InMemoryTransport => {
    const [client, server] = InMemoryTransport.createLinkedPair();
    const send = (message: object): void => void server.send({ jsonrpc: '2.0', ...message } as never);
    const ask = (message: string): Promise<unknown> =>
      new Promise((resolve) => {
        const id = 1000 + asked.size;
        asked.set(id, resolve);
        const requestedSchema = { type: 'object', properties: {} };
        send({ id, method: 'elicitation/create', params: { message, requestedSchema } });
      });
    const serverInfo = { name: 's', version: '1' };
    server.onmessage = (message) => {
      const { id = -1, method, params, result } = message as unknown as Message;
      if (method === 'initialize')
        send({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } });
      else if (method === 'tools/list')
        send({ id, result: { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) } });
      else if (method === 'tools/call')
        begun.push({ id, ask, answer: (text) => send({ id, result: { content: [{ type: 'text', text }] } }) });
      else if (method === 'notifications/cancelled') cancelled.push(params?.requestId);
      else if (method === undefined) asked.get(id)?.(result);
    };
    void server.start();
    ends.push(server);
    return client;
  };
  const server = new McpServer('s', { transport });
  const act = (key: string, more: Partial<McpCall> = {}) =>
    server.call({
      ...{ key, name: 'act', args: {}, readOnly: false, decision: undefined, progress: () => undefined },
      signal: new AbortController().signal,
      ...more,
    });
  return { server, transport, act, begun, cancelled, ends };
}

describe('calls at a server', () => {
  it('that may change something run one after the other; those that only read run at once', async () => {
    const { server, act, begun } = serverByHand();
    const all = [act('a'), act('b'), act('c', { readOnly: true })];
    await expect.poll(() => begun.length).toBe(2);
    await flush();
    expect(begun.length).toBe(2);
    for (const one of begun) one.answer('done');
    await expect.poll(() => begun.length).toBe(3);
    begun[2]?.answer('done');
    expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(['result', 'result', 'result']);
    await server.close();
  });

  it('one that was cancelled while it waited for its turn is never begun', async () => {
    const { server, act, begun } = serverByHand();
    const first = act('a');
    const abort = new AbortController();
    const second = act('b', { signal: abort.signal });
    await expect.poll(() => begun.length).toBe(1);
    abort.abort(new Error('not any more'));
    begun[0]?.answer('done');
    await first;
    await expect(second).rejects.toThrow('not any more');
    expect(begun.length).toBe(1);
    await server.close();
  });

  it('of two questions in one call the first goes to a person, the second is called off', async () => {
    const { server, act, begun } = serverByHand();
    const settled = act('a');
    await expect.poll(() => begun.length).toBe(1);
    const first = begun[0]?.ask('one?');
    expect(await begun[0]?.ask('two?')).toEqual({ action: 'cancel' });
    expect(await settled).toMatchObject({ kind: 'elicitation', elicitation: { message: 'one?' } });
    const on = act('a', { decision: { callId: 'a', action: 'answer', payload: { yes: true } } });
    expect(await first).toEqual({ action: 'accept', content: { yes: true } });
    begun[0]?.answer('done');
    expect(await on).toMatchObject({ kind: 'result' });
    await server.close();
  });

  it('at most 64 wait for a person: the question of the one that waits longest is called off', async () => {
    const { server, act, begun } = serverByHand();
    const answers: unknown[] = [];
    for (let count = 1; count <= 65; count++) {
      const settled = act(`${count}`);
      await expect.poll(() => begun.length, { interval: 1 }).toBe(count);
      void begun
        .at(-1)
        ?.ask('?')
        .then((answer) => answers.push([count, answer]));
      await settled;
    }
    await flush();
    expect(answers).toEqual([[1, { action: 'cancel' }]]);
    await server.close();
  });

  it('those that wait for a person are cancelled at the server when the connection is closed', async () => {
    const { server, act, begun, cancelled } = serverByHand();
    const settled = act('a');
    await expect.poll(() => begun.length).toBe(1);
    void begun[0]?.ask('?');
    await settled;
    await server.close();
    expect(cancelled).toEqual([begun[0]?.id]);
  });

  it('one that comes after the server has ended connects anew', async () => {
    const { server, act, begun, ends } = serverByHand();
    const first = act('a');
    await expect.poll(() => begun.length).toBe(1);
    await ends[0]?.close();
    await expect(first).rejects.toThrow();
    const second = act('b');
    await expect.poll(() => begun.length).toBe(2);
    begun[1]?.answer('again');
    expect(await second).toMatchObject({ kind: 'result' });
    expect(ends.length).toBe(2);
    await server.close();
  });

  it('of two tools whose names come to the same the first is given to the model, and the other is told', async () => {
    const { transport } = serverByHand(['a b', 'a_b']);
    const { tools, left, close } = await mcpTools({ s: { transport } });
    await close();
    expect(tools.map(({ name }) => name)).toEqual(['mcp__s__a_b']);
    expect(left).toMatchObject([{ server: 's', tool: 'a_b', why: expect.stringContaining('mcp__s__a_b') }]);
  });
});
