/** Pages of AG-UI with tools and a state of their own, that lack messages, that edit, with the protocol's own client. */
import { HttpAgent } from '@ag-ui/client';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, type Message, toolResult } from '../../src/index.ts';
import { agUiMessagesOf } from '../../src/transports/chat/agUiHistory.ts';
import { agUiHandler, sessions } from '../../src/transports/index.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { agUiPage, served } from './chatPages.ts';

const note = defineTool({
  name: 'note',
  description: 'Writes the state.',
  parameters: z.object({}),
  execute: () => toolResult.success('noted', { state: { noted: true } }),
});

async function opened(replies: readonly Reply[]) {
  const model = scripted(replies);
  const ask = echoTool('ask');
  const agent = createAgent({ model, tools: [ask.tool, note], plugins: [asks().plugin] });
  const shared = sessions(agent);
  const { url } = await served(agUiHandler(agent, { authorize: () => true, sessions: shared }));
  const page = agUiPage(url);
  const say = async (content: string, input: object = {}, id = content) => {
    page.addMessage({ id, role: 'user', content });
    return page.runAgent(input);
  };
  return { agent, model, page, say, url, shared };
}
const spoken = (page: HttpAgent): string[] =>
  page.messages.map(({ role, content }) => `${role} ${typeof content === 'string' ? content : ''}`.trim());

describe('a tool of the page', () => {
  const tools = [
    {
      name: 'paint',
      description: 'Paints the page.',
      parameters: { type: 'object', properties: { colour: { type: 'string' } } },
    },
  ];
  const painting: Reply = [t('I paint.'), call('p', 'paint', { colour: 'red' })];

  it('its call ends the run without an interrupt, and its result comes with the next request', async () => {
    const { agent, page, say, model } = await opened([painting, 'done']);
    await say('go', { tools });
    expect(model.calls[0]?.tools.find(({ name }) => name === 'paint')?.parameters).toEqual(tools[0]?.parameters);
    expect(page.pendingInterrupts).toEqual([]);
    expect(page.messages.at(-1)).toMatchObject({
      role: 'assistant',
      toolCalls: [{ id: 'p', function: { name: 'paint' } }],
    });
    page.addMessage({ id: 'r', role: 'tool', toolCallId: 'p', content: 'painted red' });
    await page.runAgent({ tools });
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user go', 'assistant I paint. +p', 'p painted red']);
    expect(spoken(page)).toEqual(['user go', 'assistant I paint.', 'tool painted red', 'assistant done']);
    await agent.close();
  });

  it('an error of the page is a failed result', async () => {
    const { agent, page, say, model } = await opened([painting, 'sorry']);
    await say('go', { tools });
    page.addMessage({ id: 'r', role: 'tool', toolCallId: 'p', content: '', error: 'no paint' });
    await page.runAgent({ tools });
    expect(lines(model.calls.at(-1)?.messages ?? []).at(-1)).toBe('p! no paint');
    await agent.close();
  });

  it('beside a call that a person is asked about, only that one is an interrupt', async () => {
    const { agent, page, say, model } = await opened([[call('p', 'paint', {}), call('c1', 'ask', { m: '' })], 'done']);
    await say('go', { tools });
    expect(page.pendingInterrupts.map(({ toolCallId }) => toolCallId)).toEqual(['c1']);
    page.addMessage({ id: 'r', role: 'tool', toolCallId: 'p', content: 'painted' });
    await page.runAgent({ tools, resume: [{ interruptId: '1/c1', status: 'resolved', payload: true }] });
    expect(lines(model.calls.at(-1)?.messages ?? []).slice(-2)).toEqual(['p painted', 'c1 {"m":""}']);
    await agent.close();
  });

  it('a page without it no longer offers it', async () => {
    const { agent, say, model } = await opened(['one', 'two']);
    await say('go', { tools });
    await say('on', { tools: [] });
    expect(model.calls.map((request) => request.tools.map(({ name }) => name))).toEqual([
      ['ask', 'note', 'paint'],
      ['ask', 'note'],
    ]);
    await agent.close();
  });
});

describe('the state', () => {
  it('of a page is merged, and the page receives what tools wrote', async () => {
    const { agent, page, say } = await opened([[call('n', 'note')], 'one', 'two']);
    page.setState({ theme: 'dark' });
    await say('go');
    expect(page.state).toEqual({ theme: 'dark', noted: true });
    page.setState({});
    await say('on');
    expect(page.state).toEqual({ theme: 'dark', noted: true });
    await agent.close();
  });

  it.each([
    ['a text', 'dark'],
    ['nothing', null],
    ['a list', [1, [2], {}]],
    ['an object', { a: { b: [true, null] } }],
    ['an object in another order of its keys', { x: 1, y: { z: 2, w: 3 } }],
  ])('of a page that sends %s again as it was is written once', async (_, value) => {
    const { agent, page, say, shared } = await opened(['one', 'two', 'three']);
    const reversed = (of: unknown): unknown =>
      typeof of !== 'object' || of === null || Array.isArray(of)
        ? of
        : Object.fromEntries(
            Object.entries(of)
              .reverse()
              .map(([key, child]) => [key, reversed(child)]),
          );
    const states = [{ value: 'before' }, { value }, { value: reversed(value) }];
    for (const [at, state] of states.entries()) {
      page.setState(state);
      await say(`say ${at}`);
    }
    const conversation = await shared.acquire('c', { existing: true });
    const written = conversation.log().filter(({ type }) => type === 'state-changed');
    expect(written).toHaveLength(2);
    expect(conversation.state).toEqual({ value });
    await agent.close();
  });
});

describe('a key of the state of a page', () => {
  it.each([
    ['that is null', { chosen: null }],
    ['that has the name of an object property', { toString: 'a', valueOf: null, constructor: null }],
  ])('%s is written once, and the page keeps it', async (_, state) => {
    const { agent, page, say, shared } = await opened(['one', 'two']);
    const snapshots: unknown[] = [];
    page.subscribe({ onStateSnapshotEvent: ({ event }) => void snapshots.push(event.snapshot) });
    for (const content of ['go', 'on']) {
      page.setState(state);
      await say(content);
    }
    expect(snapshots.filter((snapshot) => JSON.stringify(snapshot) !== JSON.stringify(state))).toEqual([]);
    const conversation = await shared.acquire('c', { existing: true });
    expect(conversation.log().filter(({ type }) => type === 'state-changed')).toMatchObject([{ writes: state }]);
    await agent.close();
  });
});

describe('a page that lacks messages', () => {
  it('receives all of them with its next run, and no snapshot where it lacks none', async () => {
    const { agent, say, url, page } = await opened([[t('Look.'), call('n', 'note')], 'one', 'two', 'three']);
    await say('go');
    const snapshots: string[] = [];
    const count = (name: string) => ({ onMessagesSnapshotEvent: () => void snapshots.push(name) });
    page.subscribe(count('page'));
    await say('on');
    const other = new HttpAgent({ url, threadId: 'c' });
    other.addMessage({ id: 'new', role: 'user', content: 'new' });
    await other.runAgent({}, count('other'));
    expect(new Set(snapshots)).toEqual(new Set(['other']));
    expect(spoken(other)).toEqual([...spoken(page), 'user new', 'assistant three']);
    await agent.close();
  });
});

describe('a conversation that was opened with messages', () => {
  it('shows them to a page before its own, once, with their calls and results', async () => {
    const { agent, say, page } = await opened(['one', 'two']);
    const text = (words: string) => [{ type: 'text' as const, text: words }];
    const history: Message[] = [
      { role: 'user', content: text('hi') },
      { role: 'assistant', content: text('I look.'), toolCalls: [{ callId: 'x', name: 'look', args: { at: 1 } }] },
      { role: 'tool', callId: 'x', content: text('seen'), isError: false },
      { role: 'assistant', content: text('It is there.'), toolCalls: [] },
    ];
    await (await agent.open('c', { history })).close();
    await say('first');
    const earlier = ['user hi', 'assistant I look.', 'tool seen', 'assistant It is there.'];
    expect(spoken(page)).toEqual([...earlier, 'user first', 'assistant one']);
    const looks = { id: 'x', function: { name: 'look', arguments: '{"at":1}' } };
    expect(page.messages[1]).toMatchObject({ toolCalls: [looks] });
    const snapshots: unknown[] = [];
    page.subscribe({ onMessagesSnapshotEvent: (snapshot) => void snapshots.push(snapshot) });
    await say('more');
    expect(spoken(page)).toEqual([...earlier, 'user first', 'assistant one', 'user more', 'assistant two']);
    expect(snapshots).toEqual([]);
    await agent.close();
  });
});

describe('an edit of a page', () => {
  it('the conversation continues from before the message', async () => {
    const { agent, say, page, model } = await opened(['one', 'two', 'three']);
    await say('first', {}, 'a');
    await say('second', {}, 'b');
    page.setMessages(page.messages.slice(0, 2));
    await say('changed', {}, 'b');
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user first', 'assistant one', 'user changed']);
    expect(spoken(page)).toEqual(['user first', 'assistant one', 'user changed', 'assistant three']);
    await agent.close();
  });

  it.each([
    ['a reply', 'one'],
    ['a call that waits', [t('May I?'), call('c1', 'ask', { m: '' })]],
    ['a call that has ended', [t('I echo.'), call('n', 'note')]],
  ] satisfies [string, Reply][])(
    'after %s leaves its next requests without a snapshot, and each message once',
    async (_, first) => {
      const { agent, say, url, shared } = await opened([first, 'two', 'three', 'four']);
      await say('first', {}, 'a');
      const page = agUiPage(url);
      page.addMessage({ id: 'a', role: 'user', content: 'changed' });
      await page.runAgent();
      const seen = spoken(page);
      const snapshots: unknown[] = [];
      page.subscribe({ onMessagesSnapshotEvent: (snapshot) => void snapshots.push(snapshot) });
      page.addMessage({ id: 'b', role: 'user', content: 'more' });
      await page.runAgent();
      expect(spoken(page)).toEqual([...seen, 'user more', expect.stringMatching(/^assistant (three|four)$/)]);
      expect(snapshots).toEqual([]);
      const conversation = await shared.acquire('c', { existing: true });
      const ids = agUiMessagesOf(conversation.log()).map(({ id }) => id);
      expect(ids).toEqual(page.messages.map(({ id }) => (id === 'a' ? 'a~2' : id)));
      await agent.close();
    },
  );
});
