/** Servers that change their tools while agents have them, as real processes. */
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { defineTool, type LogEntry, type Tool } from '../../src/index.ts';
import { type McpTools, mcpTools } from '../../src/mcp/mcpTools.ts';
import { moreTools } from '../../src/mcp/resourceTools.ts';
import { permissions } from '../../src/node.ts';
import { definitionOf } from '../../src/tools/tool.ts';
import { acceptPageTools, offerPageTools } from '../../src/transports/chat/pageTools.ts';
import { type BenchOptions, bench } from '../support/agentBench.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { isGone, stdioServer } from './stdioServer.ts';

const reading = (name: string) => ({ name, annotations: { readOnlyHint: true } });
const allowed = permissions({ allow: ['mcp__s__*'] });

async function changing(first: readonly (string | object)[], later: readonly (string | object)[]) {
  const server = stdioServer({ tools: first });
  const mcp = await mcpTools({ s: server.options });
  onTestFinished(() => mcp.close());
  server.replan({ tools: later });
  return { server, mcp };
}
async function agentWith(tools: readonly Tool[], rounds: readonly (readonly string[])[], more: BenchOptions = {}) {
  const replies = rounds.map((round, at) =>
    round.length === 0 ? 'done' : round.map((name, index) => call(`c${at}${index}`, name)),
  );
  const made = await bench({ model: scripted([...replies, 'done', 'done', 'done']), tools: [...tools], ...more });
  onTestFinished(() => made.agent.close());
  const offered = () => made.model.calls.map((request) => request.tools.map(({ name }) => name));
  return { ...made, offered };
}
const resultOf = (log: readonly LogEntry[], callId: string) => {
  const [result] = log.flatMap((entry) => (entry.type === 'tool-result' && entry.callId === callId ? [entry] : []));
  return { outcome: result?.outcome, code: result?.code, text: JSON.stringify(result?.content) };
};
const namesOf = ({ tools }: McpTools): string[] => tools.map(({ name }) => name);
const own = defineTool({ name: 'own', description: 'Own', parameters: z.object({}), execute: () => 'own' });

describe('a server that changes its tools', () => {
  it('the next model call offers the new list in its place, and a removed tool is answered clearly', async () => {
    const { mcp } = await changing(['echo', 'change'], ['change', { name: 'pid', description: 'New' }]);
    const rounds = [['mcp__s__change'], ['mcp__s__echo', 'mcp__s__pid']];
    const { conversation, offered } = await agentWith([own, ...mcp.tools], rounds, { plugins: [allowed] });
    await conversation.send('go').result;
    expect(offered().slice(0, 2)).toEqual([
      ['own', 'mcp__s__echo', 'mcp__s__change'],
      ['own', 'mcp__s__change', 'mcp__s__pid'],
    ]);
    expect(resultOf(conversation.log(), 'c10')).toMatchObject({
      outcome: 'failed',
      code: 'unknown_tool',
      text: expect.stringContaining('The tool mcp__s__echo was removed by its server. It was not run.'),
    });
    expect(resultOf(conversation.log(), 'c11')).toMatchObject({ outcome: 'succeeded' });
    expect(namesOf(mcp)).toEqual(['mcp__s__change', 'mcp__s__pid']);
  });

  it('a message may choose a new tool by its name, and not a removed one', async () => {
    const { mcp } = await changing([reading('change'), 'echo'], [reading('change'), reading('pid')]);
    const { conversation, offered } = await agentWith(mcp.tools, [['mcp__s__change'], []]);
    await conversation.send('go').result;
    expect(() => conversation.send('go', { tools: ['mcp__s__echo'] })).toThrow(/mcp__s__echo/);
    await conversation.send('go', { tools: ['mcp__s__pid'] }).result;
    expect(offered().at(-1)).toEqual(['mcp__s__pid']);
  });

  it('a call that waits for a person while its tool is removed has a result after the approval', async () => {
    const { server, mcp } = await changing([reading('change'), 'echo'], [reading('change')]);
    const { conversation } = await agentWith(mcp.tools, [['mcp__s__echo']], { plugins: [permissions()] });
    await conversation.send('go').result;
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c00']);
    const other = await agentWith(mcp.tools, [['mcp__s__change']]);
    await other.conversation.send('go').result;
    await conversation.decide({ callId: 'c00', action: 'approve' });
    expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd' });
    expect(resultOf(conversation.log(), 'c00')).toMatchObject({
      outcome: 'failed',
      code: 'unknown_tool',
      text: expect.stringContaining('was removed by its server'),
    });
    expect(server.calls()).toEqual(['change']);
  });

  it('tools that the host left out stay out, and its own tool keeps its name', async () => {
    const { mcp } = await changing([reading('change'), 'echo'], [reading('change'), 'echo', 'pid', 'hang']);
    const listed = mcp.tools.filter(({ name }) => name !== 'mcp__s__echo');
    const taken = defineTool({
      ...{ name: 'mcp__s__hang', description: 'Own', parameters: z.object({}) },
      execute: () => 'own',
    });
    const { conversation, offered, model } = await agentWith([...listed, taken], [['mcp__s__change'], []]);
    await conversation.send('go').result;
    expect(offered()[1]).toEqual(['mcp__s__change', 'mcp__s__pid', 'mcp__s__hang']);
    expect(model.calls[1]?.tools[2]?.description).toBe('Own');
  });

  it('a tool that could change something does not become read-only', async () => {
    const { mcp } = await changing([reading('change'), 'echo'], [reading('change'), reading('echo'), reading('pid')]);
    const rounds = [['mcp__s__change'], ['mcp__s__pid', 'mcp__s__echo']];
    const { conversation } = await agentWith(mcp.tools, rounds, { plugins: [permissions()] });
    await conversation.send('go').result;
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c11']);
    await conversation.cancel();
  });

  it('a server that was started again is listed again', async () => {
    const { server, mcp } = await changing([reading('pid'), 'echo'], [reading('pid')]);
    const { conversation, offered } = await agentWith(mcp.tools, [['mcp__s__pid']]);
    const [first = 0] = server.starts();
    process.kill(first, 'SIGKILL');
    await expect.poll(() => isGone(first)).toBe(true);
    await conversation.send('go').result;
    expect(offered()).toEqual([['mcp__s__pid', 'mcp__s__echo'], ['mcp__s__pid']]);
  });

  it('a conversation that was opened without any tool can use those that come', async () => {
    const { server, mcp } = await changing(['echo'], []);
    const { agent, offered } = await agentWith(mcp.tools, [['mcp__s__echo']], { plugins: [allowed] });
    const change = async (count: number) => {
      process.kill(server.starts()[0] ?? 0, 'SIGUSR2');
      await expect.poll(() => mcp.tools.length).toBe(count);
    };
    await change(0);
    const conversation = await agent.open('later');
    server.replan({ tools: ['echo'] });
    await change(1);
    await conversation.send('go').result;
    expect(offered()[0]).toEqual(['mcp__s__echo']);
    expect(resultOf(conversation.log(), 'c00')).toMatchObject({ outcome: 'succeeded' });
  });

  it('pages of AG-UI have the new tools too', async () => {
    const { mcp } = await changing([reading('change')], [reading('change'), 'pid', 'page']);
    const { agent, offered } = await agentWith(mcp.tools, [['mcp__s__change'], []]);
    acceptPageTools(agent);
    const conversation = await agent.open('page');
    offerPageTools(conversation, [{ name: 'page' }, { name: 'mcp__s__page' }]);
    await conversation.send('go').result;
    expect(offered()[0]).toEqual(['mcp__s__change', 'page', 'mcp__s__page']);
    expect(offered()[1]).toEqual(['mcp__s__change', 'mcp__s__pid', 'mcp__s__page', 'page']);
  });
});

describe('resources and prompts', () => {
  const capabilities = { resources: {}, prompts: {} };
  const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const answers = {
    'resources/list': {
      resources: Array.from({ length: 150 }, (_, at) => ({
        uri: `note:${at}`,
        name: `n${at}`,
        description: 'A\nnote',
      })),
    },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'note:{day}', name: 'day' }] },
    'resources/read': {
      'note:1': { contents: [{ uri: 'note:1', text: 'buy tea' }] },
      'note:2': { contents: [{ uri: 'note:2', mimeType: 'image/png', blob: PNG }] },
    },
    'prompts/list': {
      prompts: [{ name: 'sum', description: 'Sums up', arguments: [{ name: 'of', required: true }, { name: 'in' }] }],
    },
    'prompts/get': { messages: [{ role: 'user', content: { type: 'text', text: 'Sum up the notes' } }] },
  };
  const serve = async (plan: object, options: { resources?: boolean; prompts?: boolean }) => {
    const server = stdioServer({ tools: ['echo'], ...plan });
    const mcp = await mcpTools({ s: { ...server.options, ...options } });
    onTestFinished(() => mcp.close());
    return mcp;
  };

  it('without the options there are none, and what the server lacks is reported', async () => {
    expect(namesOf(await serve({ capabilities, answers }, {}))).toEqual(['mcp__s__echo']);
    const mcp = await serve(
      { tools: ['echo', 'get_prompt'], capabilities: { prompts: {} } },
      { resources: true, prompts: true },
    );
    expect(namesOf(mcp)).toEqual(['mcp__s__echo', 'mcp__s__get_prompt', 'mcp__s__list_prompts']);
    expect(mcp.left).toEqual([
      { server: 's', tool: 'mcp__s__get_prompt', why: 'another tool is named mcp__s__get_prompt too' },
      { server: 's', tool: 'resources', why: 'the server has no resources' },
    ]);
  });

  it('they are listed in parts, read and got without approval', async () => {
    const mcp = await serve({ capabilities, answers }, { resources: true, prompts: true });
    const calls = [
      call('list', 'mcp__s__list_resources'),
      call('rest', 'mcp__s__list_resources', { from: 100 }),
      call('text', 'mcp__s__read_resource', { uri: 'note:1' }),
      call('image', 'mcp__s__read_resource', { uri: 'note:2' }),
      call('prompts', 'mcp__s__list_prompts'),
      call('prompt', 'mcp__s__get_prompt', { name: 'sum', arguments: { of: 'notes' } }),
    ];
    const { conversation, agent } = await bench({
      tools: mcp.tools,
      replies: [calls, 'done'],
      plugins: [permissions()],
    });
    onTestFinished(() => agent.close());
    expect(await conversation.send('go').result).toMatchObject({ termination: 'NaturalEnd' });
    const texts = (callId: string) => JSON.parse(resultOf(conversation.log(), callId).text) as { text?: string }[];
    const lines = texts('list')[0]?.text?.split('\n') ?? [];
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([
      101,
      'note:0 - n0 - A note',
      'and 51 more: call again with from 100',
    ]);
    expect(texts('rest')[0]?.text?.split('\n').at(-1)).toBe('note:{day} - day (a template)');
    expect(texts('text')).toEqual([{ type: 'text', text: 'buy tea' }]);
    expect(texts('image')).toMatchObject([{ type: 'image', mediaType: 'image/png' }]);
    expect(texts('prompts')).toEqual([{ type: 'text', text: 'sum(of, in?) - Sums up' }]);
    expect(texts('prompt').map(({ text }) => text)).toEqual(['user:', 'Sum up the notes']);
  });

  it.each(
    ['list_resources', 'list_prompts'].flatMap((name) =>
      [0, 1, 99, 100, 101, 200, 201, 350].map((n) => [name, n] as const),
    ),
  )('%s shows each of %i entries once, if every instruction to continue is followed', async (name, count) => {
    const entries = Array.from({ length: count }, (_, at) => ({ uri: `note:${at}`, name: `n${at}` }));
    const client = {
      listResources: async () => ({ resources: entries }),
      listResourceTemplates: async () => ({ resourceTemplates: [] }),
      listPrompts: async () => ({ prompts: entries }),
    };
    const server = { name: 's', read: (_: AbortSignal, act: (client: unknown) => unknown) => act(client) };
    const { tools } = moreTools(server as never, { resources: true, prompts: true } as never, capabilities as never);
    const tool = tools.find((each) => each.name === `mcp__s__${name}`);
    const shown: string[] = [];
    for (let from: number | undefined = 0, pages = 0; from !== undefined && pages < 9; pages += 1) {
      const context = { signal: new AbortController().signal } as never;
      const lines: readonly string[] = String(
        await definitionOf(tool as Tool)?.execute({ from } as never, context),
      ).split('\n');
      const [, rest, next] = /^and (\d+) more: call again with from (\d+)$/.exec(lines.at(-1) ?? '') ?? [];
      shown.push(...(rest === undefined ? lines : lines.slice(0, -1)));
      if (rest !== undefined) expect(shown.length + Number(rest)).toBe(count);
      from = next === undefined ? undefined : Number(next);
    }
    const nothing = `The server has no ${name.slice('list_'.length)}.`;
    const lineOf = ({ uri, name: own }: { uri: string; name: string }): string =>
      name === 'list_resources' ? `${uri} - ${own}` : `${own}()`;
    expect(shown).toEqual(count === 0 ? [nothing] : entries.map(lineOf));
  });
});
