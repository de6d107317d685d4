/** An agent as a tool of an MCP server, called by the client of the protocol's own package. */
import type { ElicitResult } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { ConfigurationError, createAgent } from '../../src/index.ts';
import { mcpServer } from '../../src/mcp/mcpTools.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, scripted } from '../support/scriptedReplies.ts';
import { ALLOWED, served } from './servedBench.ts';

describe('an agent as a tool of an MCP server', () => {
  it('is listed with its name, its description and its arguments', async () => {
    const { client } = await served([]);
    const { tools } = await client.listTools();
    expect(tools).toMatchObject([
      { name: 'house', description: 'Keeps the house.', inputSchema: { required: ['message'] } },
    ]);
  });

  it('answers with the last text and the conversation, which a later call continues', async () => {
    const on = await served(['one', 'two']);
    const first = await on.ask({ message: 'first' });
    expect(first).toMatchObject({ text: 'one', isError: false });
    const second = await on.ask({ message: 'second', conversation: first.conversation });
    expect(second).toEqual({ text: 'two', conversation: first.conversation, isError: false });
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual(['user first', 'assistant one', 'user second']);
  });

  it('continues only conversations that were begun through it', async () => {
    const on = await served(['one']);
    const other = await on.agent.open('private');
    await other.close();
    expect(await on.ask({ message: 'tell', conversation: 'private' })).toMatchObject({ isError: true });
    expect(on.model.calls).toEqual([]);
  });

  it('asks the client’s person about a call that waits, who allows it', async () => {
    const on = await served([[call('c1', 'act', { m: 'x' })], 'done'], { form: ALLOWED });
    expect(await on.ask({ message: 'go' })).toMatchObject({ text: 'done' });
    expect(on.questions).toEqual([expect.stringMatching(/^act waits .*\{"m":"x"\}/)]);
    expect(lines(on.model.calls[1]?.messages ?? []).at(-1)).toContain('{"m":"x"}');
  });

  it.each<[string, ElicitResult | undefined]>([
    ['declines', { action: 'decline' }],
    ['closes the question', { action: 'cancel' }],
    ['sends the form without the permission', { action: 'accept', content: { allow: false } }],
    ['sends a form without its field', { action: 'accept', content: {} }],
    ['sends no form', { action: 'accept' }],
    ['sends the permission as a text', { action: 'accept', content: { allow: 'true' } }],
    ['declines, with a form that permits', { action: 'decline', content: { allow: true } }],
    ['cannot be asked', undefined],
  ])('denies a call that waits where the person %s', async (_, form) => {
    const act = echoTool('act', { needsApproval: true });
    const on = await served([[call('c1', 'act', { m: 'x' })], 'done'], form ? { form } : {}, [act.tool]);
    expect(await on.ask({ message: 'go' })).toMatchObject({ text: 'done', isError: false });
    expect(JSON.stringify(on.model.calls[1]?.messages)).toMatch(/denied|nobody could be asked/);
    expect(act.ran).toEqual([]);
  });

  it('a request that fails is an error result with its reason and without the inside of the server', async () => {
    const on = await served([new Error('secret path /srv')]);
    const answer = await on.ask({ message: 'go' });
    expect(answer).toMatchObject({ isError: true, text: expect.stringContaining('ended as Error') });
  });

  it('a call that the client cancels ends its run', async () => {
    const gate = gateTool('gate', { hearsAbort: true });
    const on = await served([[call('c1', 'gate')], 'never'], {}, [gate.tool]);
    const controller = new AbortController();
    const asked = on.ask({ message: 'go' }, { signal: controller.signal }).catch(() => 'cancelled');
    await gate.begun('c1');
    controller.abort();
    expect(await asked).toBe('cancelled');
    await expect.poll(async () => (await on.agent.list()).map(({ status }) => status)).toEqual(['idle']);
    expect(gate.context('c1').signal.aborted).toBe(true);
  });

  it('its close ends the requests under way, and the agent stays open', async () => {
    const gate = gateTool('gate', { hearsAbort: true });
    const on = await served([[call('c1', 'gate')], 'again'], {}, [gate.tool]);
    const asked = on.ask({ message: 'go' }).catch(() => undefined);
    await gate.begun('c1');
    await on.server.close();
    await asked;
    expect(gate.context('c1').signal.aborted).toBe(true);
    expect((await on.agent.run('hello')).text).toBe('again');
  });

  it.each([{ name: 'a b' }, { name: '' }, { nme: 'x' }])('refuses the options %j by name', (options) => {
    expect(() => mcpServer(createAgent({ model: scripted([]) }), options)).toThrow(ConfigurationError);
  });
});
