/** Chats of the AI SDK that are reloaded, stopped, edited and asked again, with the SDK's own client. */
import type { UIMessage } from 'ai';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, memoryStore, type Plugin, toolResult } from '../../src/index.ts';
import { type ChatHandlerOptions, uiMessageHandler, uiMessagesOf } from '../../src/transports/index.ts';
import { asks, boom, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { ChatPage, PAGES, served } from './chatPages.ts';

/** The page of the tests that run. */
let Page = ChatPage;

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function chat(replies: readonly Reply[], options: Partial<ChatHandlerOptions> = {}, plugins: Plugin[] = []) {
  const gate = gateTool();
  const ask = echoTool('ask');
  const store = memoryStore();
  const model = scripted(replies);
  const tools = [gate.tool, ask.tool, echoTool().tool, boom];
  const agent = createAgent({ model, tools, plugins: [asks().plugin, ...plugins], store });
  const { url, requests } = await served(uiMessageHandler(agent, { authorize: () => true, ...options }));
  const at = (path: string, init?: RequestInit): Promise<Response> => fetch(`${url}${path}`, init);
  const log = async () => {
    const entries = [];
    const handle = await store.open('c');
    for await (const entry of handle.read()) entries.push(entry);
    await handle.close();
    return entries;
  };
  return { agent, gate, ask, model, url, requests, at, log, page: new Page(url) };
}
/** As JSON carries them. */
const plain = (messages: readonly object[]): unknown => JSON.parse(JSON.stringify(messages));
/** Without the answer of a person. Version 6 keeps the text of an input that is no JSON under another name. */
const shown = (messages: readonly object[]): unknown =>
  (plain(messages) as UIMessage[]).map(({ parts, ...message }) => ({
    ...message,
    parts: parts.map((part) => {
      const { approval, rawInput, ...rest } = part as { approval?: { id: string }; rawInput?: string; input?: unknown };
      return {
        ...rest,
        ...(approval && { approval: approval.id }),
        ...(rawInput !== undefined && { input: rawInput }),
      };
    }),
  }));
const textsOf = (messages: readonly UIMessage[]): string[] =>
  messages.map(({ role, parts }) => `${role} ${parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}`);

const HISTORIES: readonly (readonly [string, readonly Reply[]])[] = [
  ['texts', ['one', 'two']],
  [
    'thinking, calls and failures',
    [
      [{ type: 'reasoning-delta', text: 'hm' }, t('I look.'), call('c1', 'echo', { m: 'a' }), call('c2', 'boom')],
      'one',
      'two',
    ],
  ],
  ['arguments that are no JSON', [[call('c1', 'echo', '{bad')], 'one', 'two']],
  ['a call that is approved', [[call('c1', 'ask', { m: 'a' })], 'one', 'two']],
  ['a call that waits while another message comes', [[call('c1', 'ask', { m: 'a' })], [call('c2', 'ask', { m: 'b' })]]],
];

const history = () =>
  describe('the history of a chat', () => {
    it.each(HISTORIES)('%s: it is what the page has that received every chunk', async (name, replies) => {
      const { agent, at, page, log } = await chat(replies);
      await page.sendMessage({ text: 'first' });
      if (name.includes('approved')) {
        await page.addToolApprovalResponse({ id: '1/c1', approved: true });
        await expect.poll(() => [page.status, page.last.at(-1)]).toEqual(['ready', 'one']);
      }
      await page.sendMessage({ text: 'second' });
      const history = (await (await at('c')).json()) as UIMessage[];
      // A page does not receive the denial of its call by a later message.
      const isDenied = name.includes('waits');
      const messages = isDenied ? page.messages.slice(-2) : page.messages;
      expect(shown(isDenied ? history.slice(-2) : history)).toEqual(shown(messages));
      expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
      if (isDenied) expect(history[1]?.parts).toContainEqual(expect.objectContaining({ state: 'output-denied' }));
      await agent.close();
      expect(plain(uiMessagesOf(await log()))).toEqual(history);
    });

    it('is empty for a chat that is not there, and makes nothing', async () => {
      const { at, agent } = await chat([]);
      const answer = await at('nobody');
      expect([answer.status, await answer.json()]).toEqual([200, []]);
      expect((await at('nobody/stream')).status).toBe(204);
      expect((await at('nobody/stop', { method: 'POST' })).status).toBe(404);
      expect(await agent.list()).toEqual([]);
      await agent.close();
    });

    it('has the images that the page sent, and usage and cost of each reply', async () => {
      const { at, page, agent, log } = await chat(['one', 'two']);
      await page.sendMessage({ text: 'look', files: [{ type: 'file', mediaType: 'image/png', url: PIXEL }] });
      const history = (await (await at('c')).json()) as UIMessage[];
      expect(history[0]?.parts).toContainEqual({ type: 'file', mediaType: 'image/png', url: PIXEL });
      expect(history[1]?.metadata).toEqual({ usage: expect.objectContaining({ inputTokens: 0 }), costUsd: null });
      expect(page.messages[1]?.metadata).toEqual(history[1]?.metadata);
      await page.regenerate();
      expect(page.status).toBe('ready');
      await agent.close();
      const [message] = uiMessagesOf(await log());
      expect(message?.parts).toContainEqual({
        type: 'file',
        mediaType: 'image/png',
        url: expect.stringMatching(/^blob:/),
      });
    });

    it('shows a call that was approved and then failed as approved', async () => {
      const risky = defineTool({
        name: 'risky',
        description: 'Fails.',
        parameters: z.object({}),
        needsApproval: true,
        execute: () => toolResult.error('broken', 'it broke'),
      });
      const agent = createAgent({ model: scripted([[call('c1', 'risky')], 'done']), tools: [risky] });
      const conversation = await agent.open('c');
      await conversation.send('go').result;
      await conversation.decide({ callId: 'c1', suspension: 1, action: 'approve' });
      await conversation.resume().result;
      const parts = uiMessagesOf(conversation.log()).flatMap((message) => message.parts);
      const approval = expect.objectContaining({ approved: true });
      expect(parts).toContainEqual(expect.objectContaining({ toolCallId: 'c1', state: 'output-error', approval }));
      await agent.close();
    });

    it('begins with the messages that the conversation was opened with', async () => {
      const agent = createAgent({ model: scripted([]) });
      const text = (words: string) => [{ type: 'text' as const, text: words }];
      const conversation = await agent.open('c', {
        history: [
          { role: 'user', content: text('hi') },
          { role: 'assistant', content: text('hello'), toolCalls: [{ callId: 'x', name: 'look', args: {} }] },
          { role: 'tool', callId: 'x', content: text('seen'), isError: false },
          { role: 'user', content: text('bye') },
        ],
      });
      const messages = uiMessagesOf(conversation.log());
      expect(messages.map(({ id, role, parts }) => [id, role, parts.map(({ type }) => type)])).toEqual([
        ['history-0', 'user', ['text']],
        ['history-0/reply', 'assistant', ['step-start', 'text', 'tool-look']],
        ['history-3', 'user', ['text']],
      ]);
      await agent.close();
    });
  });

const reload = () =>
  describe('a page that is reloaded in the middle of a reply', () => {
    it('receives the whole reply, and each text once', async () => {
      const { agent, gate, page, url, requests } = await chat([[t('I look.'), call('g', 'gate')], 'done']);
      const sent = page.sendMessage({ text: 'first' });
      await gate.begun('g');
      const reloading = Page.reloaded(url);
      await expect.poll(requests).toBe(3);
      await new Promise((resolve) => setTimeout(resolve, 20));
      gate.release('g');
      await sent;
      const reloaded = await reloading;
      expect(plain(reloaded.messages)).toEqual(plain(page.messages));
      expect(textsOf(reloaded.messages)).toEqual(['user first', 'assistant I look.done']);
      await agent.close();
    });

    it('receives a reply that continues after an approval, from the beginning of its message', async () => {
      const { agent, gate, page, url, requests } = await chat([
        [t('May I?'), call('c1', 'ask', { m: '' })],
        [call('g', 'gate')],
        'done',
      ]);
      await page.sendMessage({ text: 'first' });
      const approved = page.addToolApprovalResponse({ id: '1/c1', approved: true });
      await gate.begun('g');
      const reloading = Page.reloaded(url);
      await expect.poll(requests).toBe(4);
      await new Promise((resolve) => setTimeout(resolve, 20));
      gate.release('g');
      await approved;
      const reloaded = await reloading;
      await expect.poll(() => [page.status, page.last.at(-1)]).toEqual(['ready', 'done']);
      expect(textsOf(reloaded.messages)).toEqual(['user first', 'assistant May I?done']);
      expect(reloaded.last).toEqual(page.last);
      await agent.close();
    });

    it('receives nothing where nothing runs, and a question that waits', async () => {
      const { agent, page, url, at } = await chat([[call('c1', 'ask', { m: '' })], 'done']);
      await page.sendMessage({ text: 'first' });
      expect((await at('c/stream')).status).toBe(204);
      const reloaded = await Page.reloaded(url);
      expect(reloaded.asked.map(({ toolCallId }) => toolCallId)).toEqual(['c1']);
      await reloaded.addToolApprovalResponse({ id: '1/c1', approved: true });
      await expect.poll(() => [reloaded.status, reloaded.last.at(-1)]).toEqual(['ready', 'done']);
      await agent.close();
    });
  });

const stop = () =>
  describe('a stop', () => {
    it('ends the run, and the page that streams it', async () => {
      const { agent, gate, page, at } = await chat([[call('g', 'gate')], 'never']);
      const sent = page.sendMessage({ text: 'first' });
      await gate.begun('g');
      const answer = await at('c/stop', { method: 'POST' });
      expect([answer.status, await answer.json()]).toEqual([200, { status: 'idle' }]);
      await sent;
      expect(page.status).toBe('ready');
      await agent.close();
    });

    it('happens when the page disconnects, if onDisconnect is cancel', async () => {
      for (const onDisconnect of ['cancel', 'continue'] as const) {
        const { agent, gate, page } = await chat([[call('g', 'gate')], 'later'], { onDisconnect });
        const sent = page.sendMessage({ text: 'first' });
        await gate.begun('g');
        await page.stop();
        await sent;
        const signal = gate.context('g').signal;
        if (onDisconnect === 'cancel') await expect.poll(() => signal.aborted).toBe(true);
        else {
          await new Promise((resolve) => setTimeout(resolve, 30));
          expect(signal.aborted).toBe(false);
        }
        await agent.close();
      }
    });
  });

const regeneration = () =>
  describe('a request that is asked again', () => {
    it('the model sees what stood before it, and the page has the new reply', async () => {
      const { agent, page, model, log } = await chat(['one', 'two', 'other two']);
      await page.sendMessage({ text: 'first' });
      await page.sendMessage({ text: 'second' });
      await page.regenerate();
      expect(textsOf(page.messages)).toEqual(['user first', 'assistant one', 'user second', 'assistant other two']);
      expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user first', 'assistant one', 'user second']);
      await agent.close();
      const entries = await log();
      expect(entries.filter(({ type }) => type === 'rewound')).toHaveLength(1);
      expect(textsOf(uiMessagesOf(entries) as UIMessage[])).toEqual(textsOf(page.messages));
    });

    it('an earlier reply is asked again by its id', async () => {
      const { agent, page, model } = await chat(['one', 'two', 'other one']);
      await page.sendMessage({ text: 'first' });
      const { id = '' } = page.messages.at(-1) ?? {};
      await page.sendMessage({ text: 'second' });
      await page.regenerate({ messageId: id });
      expect(textsOf(page.messages)).toEqual(['user first', 'assistant other one']);
      expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user first']);
      await agent.close();
    });

    it('a request that waits is cancelled first', async () => {
      const { agent, page } = await chat([[call('c1', 'ask', { m: '' })], 'two']);
      await page.sendMessage({ text: 'first' });
      await page.regenerate();
      expect([page.status, textsOf(page.messages)]).toEqual(['ready', ['user first', 'assistant two']]);
      await agent.close();
    });

    it('a message that was never accepted is sent', async () => {
      const { agent, page } = await chat(['one']);
      page.messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'first' }] }];
      await page.regenerate();
      expect(textsOf(page.messages)).toEqual(['user first', 'assistant one']);
      await agent.close();
    });
  });

const edits = () =>
  describe('an edit of an earlier message', () => {
    it('the conversation continues from before it, also twice and after a reload', async () => {
      const { agent, page, url, model } = await chat(['one', 'two', 'three', 'four', 'five']);
      await page.sendMessage({ text: 'first' });
      await page.sendMessage({ text: 'second' });
      const { id = '' } = page.messages[2] ?? {};
      await page.sendMessage({ text: 'changed', messageId: id });
      expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user first', 'assistant one', 'user changed']);
      await page.sendMessage({ text: 'changed again', messageId: id });
      expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user first', 'assistant one', 'user changed again']);
      expect(page.messages).toHaveLength(4);
      const reloaded = await Page.reloaded(url);
      expect(textsOf(reloaded.messages)).toEqual(textsOf(page.messages));
      await reloaded.sendMessage({ text: 'last', messageId: reloaded.messages[2]?.id ?? '' });
      expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual(['user first', 'assistant one', 'user last']);
      await agent.close();
    });

    it('the same content is a repetition, which runs nothing', async () => {
      const { agent, page, model, log } = await chat(['one']);
      await page.sendMessage({ text: 'first' });
      await page.sendMessage({ text: 'first', messageId: page.messages[0]?.id ?? '' });
      expect([model.calls.length, textsOf(page.messages)]).toEqual([1, ['user first', 'assistant one']]);
      await agent.close();
      expect((await log()).some(({ type }) => type === 'rewound')).toBe(false);
    });

    it('another image is an edit, and the same image is none', async () => {
      const { agent, page, model } = await chat(['one', 'two']);
      const file = (url: string) => ({ type: 'file' as const, mediaType: 'image/png', url });
      await page.sendMessage({ text: 'look', files: [file(PIXEL)] });
      const messageId = page.messages[0]?.id ?? '';
      await page.sendMessage({ text: 'look', files: [file(PIXEL)], messageId });
      expect(model.calls).toHaveLength(1);
      await page.sendMessage({ text: 'look', files: [file('https://example.com/other.png')], messageId });
      expect(model.calls).toHaveLength(2);
      await agent.close();
    });
  });

describe.each(PAGES)('a page of %s', (_, OfVersion) => {
  beforeAll(() => {
    Page = OfVersion;
  });
  history();
  reload();
  stop();
  regeneration();
  edits();
});

describe('the input of a call', () => {
  it('is shown as it streams, in a part of its tool', async () => {
    const parts = [
      { type: 'tool-call-delta' as const, index: 0, callId: 'c1', name: 'echo', text: '{"m":' },
      { type: 'tool-call-delta' as const, index: 0, text: '"ab"}' },
    ];
    const { agent, page } = await chat([[...parts, call('c1', 'echo', { m: 'ab' })], 'done']);
    const states: string[] = [];
    const { url } = await served(uiMessageHandler(agent, { authorize: () => true }));
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'c', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] }),
    });
    for (const line of (await answer.text()).split('\n')) {
      const type = /"type":"(tool-[\w-]+)"/.exec(line)?.[1];
      if (type) states.push(type);
    }
    expect(states).toEqual([
      'tool-input-start',
      'tool-input-delta',
      'tool-input-delta',
      'tool-input-available',
      'tool-output-available',
    ]);
    await agent.close();
    expect(page.messages).toEqual([]);
  });

  it('an attempt that failed leaves no open part', async () => {
    const parts = [{ type: 'tool-call-delta' as const, index: 0, callId: 'c1', name: 'echo', text: '{"m":' }];
    const { agent, page } = await chat([
      async function* () {
        yield* parts;
        throw Object.assign(new Error('lost'), { code: 'ECONNRESET' });
      },
      'done',
    ]);
    await page.sendMessage({ text: 'first' });
    expect(page.last).toEqual(['c1 output-error', 'done']);
    await agent.close();
  });
});

describe('the paths of a chat', () => {
  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  it.each([
    ['GET', '/api/chat/c', 200],
    ['GET', '/api/chat/c/stream', 204],
    ['POST', '/api/chat/c/stop', 404],
    ['POST', '/api/chat', 400],
    ['POST', '/api/chat/', 400],
    ['GET', '/api/chat', 405],
    ['POST', '/api/chat/c', 405],
    ['DELETE', '/api/chat/c', 405],
    ['POST', '/api/chat/c/stream', 405],
    ['GET', '/api/chat/c/stop', 405],
    ['GET', '/api/chatter', 404],
    ['GET', '/api/chat//stream', 404],
    ['GET', '/api/chat/c/other', 404],
    ['GET', '/api/chat/c/stream/more', 404],
    ['GET', '/api/chat/%', 404],
  ])('%s %s is %i with a base path', async (method, path, status) => {
    const agent = createAgent({ model: scripted([]) });
    const handler = uiMessageHandler(agent, { authorize: () => true, basePath: '/api/chat/' });
    const init = method === 'POST' ? post : { method };
    expect((await handler(new Request(`http://x${path}`, init))).status).toBe(status);
    await agent.close();
  });

  it('another owner’s chat is not found', async () => {
    const agent = createAgent({ model: scripted(['one']) });
    const conversation = await agent.open('c', { owner: 'ann' });
    await conversation.send('secret').result;
    await conversation.close();
    const handler = uiMessageHandler(agent, { authorize: () => ({ by: 'bob', owner: 'bob' }) });
    const get = (path: string, init?: RequestInit) => handler(new Request(`http://x/${path}`, init));
    expect(await (await get('c')).json()).toEqual([]);
    expect((await get('c/stream')).status).toBe(204);
    expect((await get('c/stop', { method: 'POST' })).status).toBe(404);
    await agent.close();
  });
});
