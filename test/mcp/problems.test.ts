/** The list of servers that have ended or cannot be reached again: which, why, and until when. */
import { expect, it, onTestFinished } from 'vitest';

import { type McpTools, mcpTools } from '../../src/mcp/mcpTools.ts';
import { definitionOf } from '../../src/tools/tool.ts';
import { serverByHand } from './serverByHand.ts';

/** Two servers whose transports a test may refuse. */
async function twoServers() {
  const [one, other] = [serverByHand(), serverByHand()];
  const refused = new Set<string>();
  const reached = (name: string, { transport }: typeof one) => ({
    transport: () => {
      if (refused.has(name)) throw new Error(`${name} is away`);
      return transport();
    },
  });
  const mcp = await mcpTools({ one: reached('one', one), other: reached('other', other) });
  onTestFinished(() => mcp.close());
  return { mcp, one, other, refused };
}

/** Calls the tool of a server, which answers at once. */
async function call(mcp: McpTools, name: string, { begun }: ReturnType<typeof serverByHand>): Promise<unknown> {
  const tool = mcp.tools.find((each) => each.name === `mcp__${name}__act`);
  const { length } = begun;
  const context = { signal: new AbortController().signal, conversationId: 'c', callId: `${length}` };
  const result = definitionOf(tool as never)?.execute({} as never, context as never);
  const answer = expect.poll(() => begun.length, { interval: 5 }).toBe(length + 1);
  await Promise.race([answer, Promise.resolve(result).catch(() => undefined)]);
  begun[length]?.answer('done');
  return result;
}

it('is empty while all are connected, and after a close', async () => {
  const { mcp, one } = await twoServers();
  expect(mcp.problems).toEqual([]);
  await call(mcp, 'one', one);
  expect(mcp.problems).toEqual([]);
  await mcp.close();
  expect(mcp.problems).toEqual([]);
});

it('names a server that has ended, until the next call connects to it', async () => {
  const { mcp, one, other } = await twoServers();
  await other.ends[0]?.close();
  const why = 'the MCP server other has ended: the next call connects to it again';
  expect(mcp.problems).toEqual([{ server: 'other', why }]);
  await call(mcp, 'one', one);
  expect(mcp.problems).toEqual([{ server: 'other', why }]);
  await call(mcp, 'other', other);
  expect(mcp.problems).toEqual([]);
});

it('names each server that cannot be reached again, with its last error', async () => {
  const { mcp, one, other, refused } = await twoServers();
  for (const name of ['one', 'other']) refused.add(name);
  await one.ends[0]?.close();
  await other.ends[0]?.close();
  await expect(call(mcp, 'other', other)).rejects.toThrow('cannot be reached');
  expect(mcp.problems).toEqual([
    { server: 'one', why: 'the MCP server one has ended: the next call connects to it again' },
    { server: 'other', why: 'the MCP server other cannot be reached: Error: other is away' },
  ]);
  refused.delete('other');
  await call(mcp, 'other', other);
  expect(mcp.problems.map(({ server }) => server)).toEqual(['one']);
});
