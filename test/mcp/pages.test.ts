/** A server that gives its lists in pages. */
import { InMemoryTransport } from '@modelcontextprotocol/client';
import { expect, it, onTestFinished } from 'vitest';
import { mcpTools } from '../../src/mcp/mcpTools.ts';
import { definitionOf } from '../../src/tools/tool.ts';

type Message = { id?: number; method?: string; params?: { cursor?: string } };
const PAGES: { [method: string]: readonly [name: string, pages: readonly object[][]] } = {
  'tools/list': [
    'tools',
    [[{ name: 'a' }, { name: 'b' }], [{ name: 'c' }], [{ name: 'd' }]].map((page) =>
      page.map((tool) => ({ ...tool, inputSchema: { type: 'object' } })),
    ),
  ],
  'resources/list': [
    'resources',
    [[{ uri: 'r:1', name: 'one' }], [{ uri: 'r:2', name: 'two' }], [{ uri: 'r:3', name: 'three' }]],
  ],
  'resources/templates/list': [
    'resourceTemplates',
    [[{ uriTemplate: 't:1', name: 'x' }], [{ uriTemplate: 't:2', name: 'y' }]],
  ],
  'prompts/list': ['prompts', [[{ name: 'p1' }], [{ name: 'p2' }]]],
};

/** A server of these pages. `isEndless`: the last page names another one, and so on. */
async function served(isEndless = false) {
  const [client, server] = InMemoryTransport.createLinkedPair();
  const send = (message: object): void => void server.send({ jsonrpc: '2.0', ...message } as never);
  const requests: string[] = [];
  const capabilities = { tools: {}, resources: {}, prompts: {} };
  server.onmessage = (message) => {
    const { id = -1, method = '', params } = message as Message;
    if (method === 'initialize')
      send({ id, result: { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 's', version: '1' } } });
    const [name, pages] = PAGES[method] ?? [];
    if (!name || !pages) return;
    requests.push(method);
    const at = Number(params?.cursor ?? 0);
    const hasNext = isEndless || at + 1 < pages.length;
    const page = isEndless ? [{ name: `t${at}`, inputSchema: { type: 'object' } }] : pages[at];
    send({ id, result: { [name]: page, ...(hasNext && { nextCursor: `${at + 1}` }) } });
  };
  await server.start();
  return { requests, connect: () => mcpTools({ s: { transport: () => client, resources: true, prompts: true } }) };
}

it('each list has the entries of all pages', async () => {
  const { connect } = await served();
  const mcp = await connect();
  onTestFinished(() => mcp.close());
  const names = mcp.tools.map(({ name }) => name.replace('mcp__s__', ''));
  expect(names.slice(0, 4)).toEqual(['a', 'b', 'c', 'd']);
  const run = (own: string): unknown => {
    const tool = mcp.tools.find(({ name }) => name === `mcp__s__${own}`);
    const context = { signal: new AbortController().signal, conversationId: 'c', callId: own };
    return definitionOf(tool as never)?.execute({} as never, context as never);
  };
  const resources = 'r:1 - one\nr:2 - two\nr:3 - three\nt:1 - x (a template)\nt:2 - y (a template)';
  expect(await run('list_resources')).toBe(resources);
  expect(await run('list_prompts')).toBe('p1()\np2()');
});

it('a list without an end is an error, after a limited number of pages', async () => {
  const { connect, requests } = await served(true);
  await expect(connect()).rejects.toMatchObject({
    ...{ code: 'mcp', message: expect.stringMatching(/^the MCP server s did not list its tools: /) },
  });
  expect(requests.length).toBeLessThanOrEqual(100);
});
