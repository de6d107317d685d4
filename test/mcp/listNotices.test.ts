/** A server in memory that changes its tools while the list is on its way, at each moment of a fetch. */
import { InMemoryTransport } from '@modelcontextprotocol/client';
import { expect, it, onTestFinished } from 'vitest';
import { mcpTools } from '../../src/mcp/mcpTools.ts';

/** Answers the first list at once. Every later one waits for the test. */
async function serverOfLists() {
  const [client, server] = InMemoryTransport.createLinkedPair();
  const send = (message: object): void => void server.send({ jsonrpc: '2.0', ...message } as never);
  const waiting: number[] = [];
  const toolsNamed = (names: readonly string[]) => ({
    tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })),
  });
  const capabilities = { tools: { listChanged: true } };
  let isFirst = true;
  server.onmessage = (message) => {
    const { id = -1, method } = message as { id?: number; method?: string };
    if (method === 'initialize')
      send({ id, result: { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 's', version: '1' } } });
    if (method !== 'tools/list') return;
    if (isFirst) send({ id, result: toolsNamed(['first']) });
    else waiting.push(id);
    isFirst = false;
  };
  await server.start();
  const mcp = await mcpTools({ s: { transport: () => client } });
  onTestFinished(() => mcp.close());
  return {
    names: () => mcp.tools.map(({ name }) => name),
    notify: () => send({ method: 'notifications/tools/list_changed' }),
    /** Resolves with the next request for a list. */
    async asked(): Promise<(names: readonly string[]) => void> {
      await expect.poll(() => waiting.length, { interval: 5 }).toBeGreaterThan(0);
      const id = waiting.shift();
      return (names) => send({ id, result: toolsNamed(names) });
    },
  };
}

it.each([1, 2, 3])(
  'after %i notices during one fetch the tools are those of a list that was asked for later',
  async (count) => {
    const server = await serverOfLists();
    server.notify();
    const answer = await server.asked();
    for (let notice = 0; notice < count; notice += 1) server.notify();
    // The notices have arrived before the answer.
    answer(['old']);
    const answerAgain = await server.asked();
    answerAgain(['new']);
    await expect.poll(server.names, { interval: 5 }).toEqual(['mcp__s__new']);
  },
);
