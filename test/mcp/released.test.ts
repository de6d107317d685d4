/** The state of an MCP server after a call that ends without a result: no open call, and no open question. */
import { InMemoryTransport } from '@modelcontextprotocol/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mcpTools } from '../../src/mcp/mcpTools.ts';
import { bench } from '../support/agentBench.ts';
import { Census, NOTHING } from '../support/resourceCensus.ts';
import { call } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

/** A server in memory that answers nothing, asks a person if its tool is named `ask`, and counts its open calls. */
function silentServer() {
  type Message = { id?: number; method?: string; params?: { name?: string; requestId?: number }; result?: unknown };
  const open = { calls: new Set<number>(), questions: new Set<number>(), connections: 0 };
  const answers: unknown[] = [];
  const transport = (): InMemoryTransport => {
    const [client, server] = InMemoryTransport.createLinkedPair();
    const send = (message: object): void =>
      void server.send({ jsonrpc: '2.0', ...message } as never).catch(() => undefined);
    open.connections += 1;
    server.onclose = () => {
      open.connections -= 1;
      open.calls.clear();
      open.questions.clear();
    };
    server.onmessage = (message) => {
      const { id = -1, method, params, result } = message as unknown as Message;
      const serverInfo = { name: 's', version: '1' };
      if (method === 'initialize')
        send({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } });
      else if (method === 'tools/list')
        send({ id, result: { tools: ['wait', 'ask'].map((name) => ({ name, inputSchema: { type: 'object' } })) } });
      else if (method === 'tools/call') {
        open.calls.add(id);
        if (params?.name !== 'ask') return;
        open.questions.add(1000 + id);
        const requestedSchema = { type: 'object', properties: {} };
        send({ id: 1000 + id, method: 'elicitation/create', params: { message: 'Sure?', requestedSchema } });
      } else if (method === 'notifications/cancelled') {
        open.calls.delete(params?.requestId ?? -1);
        open.questions.delete(1000 + (params?.requestId ?? -1));
      } else if (method === undefined && open.questions.delete(id)) {
        answers.push((result as { action?: unknown } | undefined)?.action);
        // The server receives the answer to its question, so it ends the call that asked.
        open.calls.delete(id - 1000);
        send({ id: id - 1000, result: { content: [{ type: 'text', text: 'ended' }] } });
      }
    };
    void server.start();
    return client;
  };
  const openCounts = () => [open.calls.size, open.questions.size, open.connections];
  return { transport, left: openCounts, answers };
}

async function asked(tool: 'wait' | 'ask', policies = {}) {
  const census = new Census();
  const server = silentServer();
  const mcp = await mcpTools({ s: { transport: server.transport } });
  onTestFinished(() => mcp.close());
  const replies = [[call('c1', `mcp__s__${tool}`)], 'done', 'done'];
  const on = await bench({ tools: [...mcp.tools], replies, clock: census.clock, policies });
  const run = on.conversation.send('go');
  if (tool === 'ask') await run.result;
  else await expect.poll(server.left).toEqual([1, 0, 1]);
  return { ...on, census, server, mcp, run };
}

describe('a call that runs at the server', () => {
  it.each(['cancel', 'time-out', 'close of the conversation', 'close of the servers'] as const)(
    'a %s cancels it there',
    async (way) => {
      const { census, server, mcp, run, conversation, agent } = await asked('wait', { limits: { toolMs: 400 } });
      if (way === 'cancel') await census.clock.until(run.cancel());
      else if (way === 'time-out') await census.clock.until(run.result, 1_000);
      else if (way === 'close of the conversation') await census.clock.until(conversation.close());
      else await mcp.close();
      await expect.poll(server.left).toEqual([0, 0, way === 'close of the servers' ? 0 : 1]);
      await census.clock.until(run.result, 1_000);
      await agent.close();
      expect(census.left()).toEqual(NOTHING);
    },
  );
});

describe('a call that waits for a person', () => {
  it.each(['cancel', 'deny', 'a message in its place', 'close of the servers'] as const)(
    'it is open at the server until a %s ends it, and its question with it',
    async (way) => {
      const { census, server, mcp, conversation, agent } = await asked('ask', { whileSuspended: 'denyAndRun' });
      expect(conversation.status).toBe('waiting');
      expect(server.left()).toEqual([1, 1, 1]);
      if (way === 'cancel') await conversation.cancel();
      else if (way === 'a message in its place') await conversation.send('something else').result;
      else if (way === 'close of the servers') await mcp.close();
      else {
        await conversation.decide({ callId: 'c1', action: 'deny' });
        await conversation.resume().result;
      }
      await flush();
      expect(server.left()).toEqual([0, 0, way === 'close of the servers' ? 0 : 1]);
      await agent.close();
      expect(census.left()).toEqual(NOTHING);
    },
  );
});
