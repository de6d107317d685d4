/**
 * The questions of an agent that an MCP server serves: the text for a person, the author of a decision, and a client that disconnects
 * before the answer.
 */
import { McpServer } from '@modelcontextprotocol/server';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, toolResult } from '../../src/index.ts';
import { mcpServer } from '../../src/mcp/mcpTools.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, lines, scripted } from '../support/scriptedReplies.ts';
import { ALLOWED, clientOf, served } from './servedBench.ts';

const HOSTILE = 'a\u001b[31mred\u0007\u202e\u0000z';
const UNPRINTABLE = /[\p{Cc}\p{Cf}]/u;

/** A tool that waits with a reason of its own. */
const asking = (reason: string) =>
  defineTool({
    name: 'act',
    description: 'Waits.',
    parameters: z.object({ m: z.string() }),
    execute: (_, { decision }) =>
      decision?.action === 'approve' ? toolResult.success('allowed') : toolResult.pending({ reason }),
  });

describe('the question that a person reads', () => {
  it('has no control characters, neither in the reason nor in the arguments', async () => {
    const on = await served([[call('c1', 'act', { m: HOSTILE })], 'done'], { form: ALLOWED }, [asking(HOSTILE)]);
    await on.ask({ message: 'go' });
    const [question = ''] = on.questions;
    expect(question).toMatch(/^act waits \(a.*z\)\. May it run with \{"m":"a.*z"\}\?$/);
    expect(question).not.toMatch(UNPRINTABLE);
  });

  it.each([1_991, 1_992, 1_993, 60_000])(
    'shows at most 2,000 characters of the arguments, of a text of %i, and marks a cut',
    async (length) => {
      const on = await served([[call('c1', 'act', { m: 'x'.repeat(length) })], 'done'], { form: ALLOWED });
      await on.ask({ message: 'go' });
      const whole = JSON.stringify({ m: 'x'.repeat(length) });
      const shown = whole.length <= 2_000 ? whole : `${whole.slice(0, 1_999)}…`;
      expect(on.questions[0]?.endsWith(`with ${shown}?`)).toBe(true);
    },
  );

  it.each([1_990, 1_991, 1_992, 1_993, 1_994])(
    'has no half of a character at the cut, after %i others',
    async (length) => {
      const m = `${'x'.repeat(length)}🎉🎉🎉`;
      const on = await served([[call('c1', 'act', { m })], 'done'], { form: ALLOWED });
      await on.ask({ message: 'go' });
      expect(on.questions[0]?.slice(-6)).toMatch(/[x🎉]…\?$/u);
    },
  );

  it('comes for each waiting call of a request, also after an earlier answer, and each has its own answer', async () => {
    const act = echoTool('act', { needsApproval: true });
    const replies = [
      [call('a', 'act', { m: '1' }), call('b', 'act', { m: '2' })],
      [call('c', 'act', { m: '3' })],
      'done',
    ];
    const form = (message: string) => (message.includes('"2"') ? { action: 'decline' as const } : ALLOWED);
    const on = await served(replies, { form }, [act.tool]);
    expect(await on.ask({ message: 'go' })).toMatchObject({ text: 'done', isError: false });
    expect(on.questions.map((question) => /"m":"(\d)"/.exec(question)?.[1])).toEqual(['1', '2', '3']);
    expect(act.ran).toHaveLength(2);
  });

  it.each([
    ['allows', ALLOWED, { action: 'approve', by: 'mcp' }],
    ['declines', { action: 'decline' as const }, { action: 'deny', by: 'mcp', reason: 'denied' }],
    ['cannot be asked', undefined, { action: 'deny', by: 'mcp', reason: 'nobody could be asked' }],
  ])('is decided in the name of mcp where the person %s', async (_, form, decision) => {
    const on = await served([[call('c1', 'act', { m: 'x' })], 'done'], form && { form });
    const { conversation = '' } = await on.ask({ message: 'go' });
    const log = (await on.agent.open(conversation)).log();
    expect(log.flatMap((entry) => (entry.type === 'decision' ? [entry.decision] : []))).toMatchObject([decision]);
  });
});

describe('a person who takes long', () => {
  it('is received a day later: neither the protocol nor the server has a limit of its own', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let allow = (): void => undefined;
    const form = () => new Promise<typeof ALLOWED>((resolve) => (allow = () => resolve(ALLOWED)));
    const act = echoTool('act', { needsApproval: true });
    const on = await served([[call('c1', 'act', { m: 'x' })], 'done'], { form }, [act.tool]);
    const answer = on.ask({ message: 'go' }, { timeout: 2 ** 31 - 1 });
    // Parts of the library are loaded meanwhile, which takes real time.
    const turn = async (): Promise<void> => {
      await vi.advanceTimersByTimeAsync(1);
      await new Promise(setImmediate);
    };
    while (on.questions.length === 0) await turn();
    await vi.advanceTimersByTimeAsync(24 * 3_600_000);
    allow();
    let isAnswered = false;
    void answer.finally(() => {
      isAnswered = true;
    });
    while (!isAnswered) await turn();
    expect(await answer).toMatchObject({ text: 'done', isError: false });
    expect(act.ran).toHaveLength(1);
  });
});

describe('a client that goes away while its person is asked', () => {
  it.each(['cancels its request', 'is closed', 'loses its server'])(
    '%s: the run ends, and no model is called again',
    async (how) => {
      const controller = new AbortController();
      let asked = (): void => undefined;
      const isAsked = new Promise<void>((resolve) => {
        asked = resolve;
      });
      const form = (): Promise<never> => {
        asked();
        return new Promise(() => undefined);
      };
      const act = echoTool('act', { needsApproval: true });
      const on = await served([[call('c1', 'act', { m: 'x' })], 'never', 'never'], { form }, [act.tool]);
      const answer = on.ask({ message: 'go' }, { signal: controller.signal }).catch(() => 'gone');
      await isAsked;
      if (how === 'cancels its request') controller.abort();
      else if (how === 'is closed') await on.client.close();
      else await on.server.close();
      await answer;
      await expect.poll(async () => (await on.agent.list()).map(({ status }) => status)).toEqual(['idle']);
      const [{ id } = { id: '' }] = await on.agent.list();
      await expect.poll(async () => (await on.agent.open(id).catch(() => undefined))?.status).toBe('idle');
      expect([on.model.calls.length, act.ran.length]).toEqual([1, 0]);
    },
  );
});

describe('several clients of one server', () => {
  it('have requests of their own, and may continue the conversations of each other', async () => {
    const on = await served(['one', 'two', 'three']);
    const other = await clientOf(on.server);
    const first = await on.ask({ message: 'a' });
    const second = await other.ask({ message: 'b' });
    expect(second.conversation).not.toBe(first.conversation);
    const third = await other.ask({ message: 'c', conversation: first.conversation });
    expect(third).toEqual({ text: 'three', conversation: first.conversation, isError: false });
    expect(lines(on.model.calls[2]?.messages ?? [])).toEqual(['user a', 'assistant one', 'user c']);
    await on.client.close();
    expect((await on.agent.list()).length).toBe(2);
  });

  it('of another server have no access to the conversations of this one', async () => {
    const on = await served(['one', 'two']);
    const yard = mcpServer(on.agent, { name: 'yard' });
    onTestFinished(() => yard.close());
    const other = await clientOf(yard);
    const { conversation } = await on.ask({ message: 'a' });
    const { content, isError } = await other.client.callTool({
      name: 'yard',
      arguments: { message: 'b', conversation },
    });
    expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringContaining('not_found')]);
    expect(on.model.calls).toHaveLength(1);
  });

  it('are forgotten when they leave, so a server of many sessions does not grow', async () => {
    const close = vi.spyOn(McpServer.prototype, 'close');
    onTestFinished(() => close.mockRestore());
    const on = await served(['one']);
    const others = [await clientOf(on.server), await clientOf(on.server)];
    for (const { client } of others) await client.close();
    expect(await on.ask({ message: 'a' })).toMatchObject({ text: 'one' });
    await on.server.close();
    // Only the last connection was still open.
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('all end with the server, which may be closed twice', async () => {
    const on = await served(['one']);
    const other = await clientOf(on.server);
    await on.server.close();
    await on.server.close();
    for (const { ask } of [on, other]) await expect(ask({ message: 'a' })).rejects.toThrow();
    expect(on.model.calls).toEqual([]);
  });
});

it('without options the tool is named agent, and describes its purpose', async () => {
  const agent = createAgent({ model: scripted([]) });
  const server = mcpServer(agent);
  onTestFinished(() => Promise.all([server.close(), agent.close()]).then(() => undefined));
  const { tools } = await (await clientOf(server)).client.listTools();
  expect(tools.map(({ name, description }) => [name, description])).toEqual([
    ['agent', expect.stringMatching(/request.*agent/)],
  ]);
});

it.each([
  ['x', true],
  ['x'.repeat(64), true],
  ['A-9_z', true],
  ['x'.repeat(65), false],
  ['a.b', false],
  ['ä', false],
])('the name %j is accepted: %s', (name, isAccepted) => {
  const make = () => mcpServer(createAgent({ model: scripted([]) }), { name });
  if (isAccepted) expect(make).not.toThrow();
  else expect(make).toThrow(/name must be 1 to 64 letters/);
});
