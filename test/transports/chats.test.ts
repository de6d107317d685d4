/**
 * Pages of AG-UI and of the AI SDK over HTTP: approvals of sub-agents, messages while a call waits, repetitions,
 * silence.
 */
import { describe, expect, it } from 'vitest';
import { createAgent, memoryStore, type Plugin, subAgents } from '../../src/index.ts';
import { agUiHandler, type ChatHandlerOptions, uiMessageHandler } from '../../src/transports/index.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, during, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { byTask, spawn, submit } from '../support/subAgentBench.ts';
import { agUiPage, ChatPage, served } from './chatPages.ts';

const authorize = (): boolean => true;

function family(replies: readonly Reply[], scripts: Record<string, readonly Reply[]>) {
  const ask = echoTool('ask');
  const tools = [ask.tool, echoTool().tool, subAgents({ model: byTask(scripts) })];
  const agent = createAgent({ model: scripted(replies), tools, plugins: [asks().plugin] });
  return { agent, ask };
}
const alone = (replies: readonly Reply[], plugins: Plugin[] = [asks().plugin]) => {
  const ask = echoTool('ask');
  const model = scripted(replies);
  return { agent: createAgent({ model, tools: [ask.tool, echoTool().tool], plugins }), ask, model };
};
const asking = (...ids: string[]): Reply => ids.map((id) => call(id, 'ask', { m: id }));
const interruptsOf = (page: { pendingInterrupts: readonly { id: string; toolCallId?: string }[] }) =>
  page.pendingInterrupts.map(({ id, toolCallId }) => [id, toolCallId]);

describe('a waiting call of a sub-agent', () => {
  const scripts = { alpha: [asking('x'), [submit('s1', 'A')]], beta: [asking('y'), [submit('s2', 'B')]] };

  it('it is a separate interrupt for a page of AG-UI, whose answer decides it', async () => {
    const { agent, ask } = family([[spawn('p', 'alpha', 'beta')], 'done'], scripts);
    const page = agUiPage((await served(agUiHandler(agent, { authorize }))).url);
    page.addMessage({ id: 'u1', role: 'user', content: 'go' });
    await page.runAgent();
    expect(interruptsOf(page)).toEqual([
      ['1/x', 'x'],
      ['1/y', 'y'],
    ]);
    expect(page.pendingInterrupts[0]).toMatchObject({ metadata: { path: ['p', 'x'] } });
    await page.runAgent({
      resume: [
        { interruptId: '1/x', status: 'resolved', payload: { approved: true } },
        { interruptId: '1/y', status: 'cancelled' },
      ],
    });
    expect([ask.ran, interruptsOf(page)]).toEqual([['x'], []]);
    expect(page.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'done' });
    await agent.close();
  });

  it('a chat of the AI SDK asks for its approval, and the click is sent automatically and decides it', async () => {
    const { agent, ask } = family([[spawn('p', 'alpha')], 'done'], scripts);
    const place = await served(uiMessageHandler(agent, { authorize }));
    const page = new ChatPage(place.url);
    await page.sendMessage({ text: 'go' });
    expect(page.asked).toEqual([{ approvalId: '1/x', toolCallId: 'x', toolName: 'ask', input: { m: 'x' } }]);
    await page.addToolApprovalResponse({ id: '1/x', approved: true });
    await expect.poll(() => [page.status, ask.ran, page.last.at(-1)]).toEqual(['ready', ['x'], 'done']);
    expect(page.last).toEqual(expect.arrayContaining(['p output-available', 'x output-available']));
    expect(place.requests()).toBe(2);
    await agent.close();
  });

  it('its id stays its own if another call has the same id, and a separate click answers the later question', async () => {
    const { agent, ask } = family([[spawn('p', 'alpha')], asking('x'), 'done'], scripts);
    const page = new ChatPage((await served(uiMessageHandler(agent, { authorize }))).url);
    await page.sendMessage({ text: 'go' });
    await page.sendMessage({ text: 'something else' });
    expect(page.asked.map(({ approvalId }) => approvalId)).toEqual(['1/x', '1/x_2']);
    await page.addToolApprovalResponse({ id: '1/x_2', approved: true });
    await expect.poll(() => [page.status, page.last.at(-1), ask.ran]).toEqual(['ready', 'done', ['x_2']]);
    await agent.close();
  });

  it('beside a waiting call of the conversation, each answer decides its own call', async () => {
    const { agent, ask } = family([[spawn('p', 'alpha'), call('q', 'ask', { m: 'q' })], 'done'], scripts);
    const place = await served(uiMessageHandler(agent, { authorize }));
    const page = new ChatPage(place.url);
    await page.sendMessage({ text: 'go' });
    expect(page.asked.map(({ toolCallId }) => toolCallId).sort()).toEqual(['q', 'x']);
    for (const { approvalId, toolCallId } of page.asked)
      await page.addToolApprovalResponse({ id: approvalId, approved: toolCallId === 'x' });
    await expect.poll(() => [page.status, page.last.at(-1)]).toEqual(['ready', 'done']);
    expect([ask.ran, page.asked, place.requests()]).toEqual([['x'], [], 2]);
    expect(page.last).toContain('q output-denied');
    await agent.close();
  });
});

describe('an answer to one of two calls', () => {
  it('the other call is the interrupt of the next run', async () => {
    const { agent, ask } = alone([asking('c1', 'c2'), 'done', 'done']);
    const page = agUiPage((await served(agUiHandler(agent, { authorize }))).url);
    page.addMessage({ id: 'u1', role: 'user', content: 'go' });
    await page.runAgent();
    // The client of the protocol answers all interrupts at once. A custom page may not.
    page.pendingInterrupts = page.pendingInterrupts.slice(0, 1);
    await page.runAgent({ resume: [{ interruptId: '1/c1', status: 'resolved', payload: true }] });
    expect([ask.ran, interruptsOf(page)]).toEqual([['c1'], [['1/c2', 'c2']]]);
    await page.runAgent({ resume: [{ interruptId: '1/c2', status: 'resolved', payload: true }] });
    expect([ask.ran, interruptsOf(page)]).toEqual([['c1', 'c2'], []]);
    await agent.close();
  });

  it('after another call has ended and another reply, both questions are in the last step of the message', async () => {
    const replies = [[call('c1', 'ask', { m: '' }), call('e', 'echo', { m: '' })], 'meanwhile', 'done'];
    const { agent, ask } = alone(replies);
    const place = await served(uiMessageHandler(agent, { authorize }));
    const page = new ChatPage(place.url);
    await page.sendMessage({ text: 'go' });
    expect(page.asked.map(({ toolCallId }) => toolCallId)).toEqual(['c1']);
    await page.addToolApprovalResponse({ id: '1/c1', approved: true });
    await expect.poll(() => [page.status, page.last.at(-1), ask.ran]).toEqual(['ready', 'done', ['c1']]);
    await agent.close();
  });
});

describe('a message while a call waits', () => {
  const chat = async (options: Partial<ChatHandlerOptions> = {}) => {
    const made = alone([asking('c1'), 'second', 'third']);
    const place = await served(uiMessageHandler(made.agent, { authorize, ...options }));
    const page = new ChatPage(place.url);
    await page.sendMessage({ text: 'first' });
    return { ...made, page, place };
  };

  it('the call is denied and the run of the message starts; the page continues, and a later click ends too', async () => {
    const { agent, ask, model, page, place } = await chat();
    await page.sendMessage({ text: 'never mind' });
    expect([page.status, page.last]).toEqual(['ready', ['second']]);
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual([
      'user first',
      'assistant +c1',
      'c1! This call was denied: a new message came first. It was not run.',
      'user never mind',
    ]);
    await page.addToolApprovalResponse({ id: '1/c1', approved: true });
    await page.sendMessage();
    expect([page.status, ask.ran]).toEqual(['ready', []]);
    await page.sendMessage({ text: 'and now' });
    expect([page.status, page.last]).toEqual(['ready', ['third']]);
    expect(place.requests()).toBe(4);
    await agent.close();
  });

  it('a page of AG-UI receives the result of the denied call within the run of the message', async () => {
    const { agent } = alone([asking('c1'), 'second']);
    const page = agUiPage((await served(agUiHandler(agent, { authorize }))).url);
    page.addMessage({ id: 'u1', role: 'user', content: 'first' });
    await page.runAgent();
    page.pendingInterrupts = [];
    page.addMessage({ id: 'u2', role: 'user', content: 'never mind' });
    await page.runAgent();
    expect(page.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant']);
    expect(page.messages[2]).toMatchObject({ toolCallId: 'c1', content: expect.stringMatching('a new message came') });
    await agent.close();
  });

  it('under reject it is refused, and the call can still be decided', async () => {
    const { agent, ask, page } = await chat({ whileSuspended: 'reject' });
    await page.sendMessage({ text: 'never mind' });
    expect([page.status, page.error?.message]).toEqual(['error', expect.stringContaining('agent_busy')]);
    page.messages = page.messages.slice(0, -1);
    page.clearError();
    await page.addToolApprovalResponse({ id: '1/c1', approved: true });
    await expect.poll(() => [page.status, page.last.at(-1), ask.ran]).toEqual(['ready', 'second', ['c1']]);
    await agent.close();
  });

  it('under followUp the page is asked again at once; its answer brings the end of the cycle and then the answer to the message', async () => {
    const { agent, ask, page, place } = await chat({ whileSuspended: 'followUp' });
    await page.sendMessage({ text: 'then this' });
    expect([page.status, page.asked.map(({ toolCallId }) => toolCallId)]).toEqual(['ready', ['c1', 'c1']]);
    await page.addToolApprovalResponse({ id: page.asked.at(-1)?.approvalId ?? '', approved: true });
    await expect
      .poll(() => [page.status, page.last.slice(-2), ask.ran])
      .toEqual(['ready', ['second', 'third'], ['c1']]);
    expect(place.requests()).toBe(3);
    await agent.close();
  });
});

describe('a message that is repeated under its id', () => {
  const input = (text = 'hi', id = 'u1') => ({
    agUi: { threadId: 'c', runId: 'r', messages: [{ id, role: 'user', content: text }] },
    ui: { id: 'c', messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }] },
  });
  /** The events of the answer. Progress is never stored, so a repetition has none. */
  async function post(url: string, body: unknown): Promise<string> {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    const events = (await answer.text()).split('\n\n').filter((event) => !/progress/.test(event));
    return events.join('\n');
  }

  it.each([
    ['agUi', agUiHandler],
    ['ui', uiMessageHandler],
  ] as const)('%s: the same events answer it during its run, after it, and after a restart', async (name, make) => {
    const store = memoryStore();
    const model = scripted([
      during(() => new Promise((resolve) => setTimeout(resolve, 30)), [call('e', 'echo', { m: 'a' })]),
      'done',
      'more',
    ]);
    const agentOn = () => createAgent({ model, tools: [echoTool().tool], store });
    const agent = agentOn();
    const { url } = await served(make(agent, { authorize }));
    const [first, twice] = await Promise.all([post(url, input()[name]), post(url, input()[name])]);
    expect(twice).toBe(first);
    expect(first).toContain('done');
    expect(await post(url, input()[name])).toBe(first);
    expect(model.calls).toHaveLength(2);
    await agent.close();
    const restarted = agentOn();
    const again = await served(make(restarted, { authorize }));
    expect(await post(again.url, input()[name])).toBe(first);
    expect(model.calls).toHaveLength(2);
    expect(await post(again.url, input('other words')[name])).toContain('more');
    expect(model.calls).toHaveLength(3);
    await restarted.close();
  });
});

describe('a silent run', () => {
  it.each([
    ['agUiHandler', agUiHandler],
    ['uiMessageHandler', uiMessageHandler],
  ] as const)('%s: it sends comments that the page skips, and none after its end', async (_, make) => {
    let goOn = (): void => {};
    const wait = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const timers = new Set<() => void>();
    const setTimer = (ms: number, fire: () => void): (() => void) => {
      if (ms !== 40) return () => {};
      timers.add(fire);
      return () => void timers.delete(fire);
    };
    const agent = createAgent({ model: scripted([during(() => wait, [t('late')])]) });
    const handler = make(agent, { authorize, beatMs: 40, setTimer });
    const body = {
      threadId: 'c',
      id: 'c',
      messages: [{ role: 'user', content: 'hi', parts: [{ type: 'text', text: 'hi' }] }],
    };
    const headers = { 'content-type': 'application/json' };
    const answer = await handler(new Request('http://here/', { method: 'POST', headers, body: JSON.stringify(body) }));
    const reader = (answer.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>)
      .getReader();
    let text = '';
    const read = (async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
    })();
    for (let beats = 1; beats <= 3; beats++) {
      await expect.poll(() => timers.size).toBe(1);
      for (const fire of [...timers]) {
        timers.delete(fire);
        fire();
      }
      await expect.poll(() => text.split(': still connected').length - 1).toBe(beats);
    }
    goOn();
    await read;
    expect(text).toContain('late');
    expect(timers.size).toBe(0);
    await agent.close();
  });

  it('comments do not disturb the clients of the protocols', async () => {
    const slow = () =>
      createAgent({ model: scripted([during(() => new Promise((resolve) => setTimeout(resolve, 60)), [t('late')])]) });
    const agents = [slow(), slow()] as const;
    const page = agUiPage((await served(agUiHandler(agents[0], { authorize, beatMs: 5 }))).url);
    page.addMessage({ id: 'u1', role: 'user', content: 'hi' });
    await page.runAgent();
    expect(page.messages.at(-1)).toMatchObject({ content: 'late' });
    const chat = new ChatPage((await served(uiMessageHandler(agents[1], { authorize, beatMs: 5 }))).url);
    await chat.sendMessage({ text: 'hi' });
    expect([chat.status, chat.last]).toEqual(['ready', ['late']]);
    for (const agent of agents) await agent.close();
  });
});
