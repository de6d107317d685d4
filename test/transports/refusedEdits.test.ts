/** Refused requests of pages: the history, the state and the waiting calls are unchanged. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AgentOptions, createAgent } from '../../src/index.ts';
import { agUiHandler, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply, scripted } from '../support/scriptedReplies.ts';
import { sharedMemoryStore } from '../support/sharedMemoryStore.ts';

type Place = 'this process' | 'another process';
const PLACES: readonly Place[] = ['this process', 'another process'];

/** Handlers of this process, and a conversation `a` that the process of the place holds. */
async function pages(replies: readonly Reply[], place: Place, more: object = {}) {
  const model = Object.assign(scripted(replies), { accepts: ['image/*'] });
  const store = sharedMemoryStore();
  const models = { blind: Object.assign(scripted([]), { accepts: [] }) };
  const own: AgentOptions = { model, models, store, tools: [echoTool('ask').tool], plugins: [asks().plugin] };
  const holder = createAgent(own);
  const agent = place === 'this process' ? holder : createAgent(own);
  const shared = sessions(agent);
  const allow = { models: ['blind'], settings: true, tools: true, context: true };
  const options = { authorize: () => true, basePath: '/c', sessions: shared, allow, ...more };
  agUiHandler(holder, options);
  onTestFinished(async () => {
    await shared.close();
    await agent.close();
    await holder.close();
  });
  if (agent !== holder) await holder.open('a');
  const asker = (handler: (request: Request) => Promise<Response>) => async (body: object) => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ id: 'a', threadId: 'a', ...body }) };
    const response = await handler(new Request('http://h/c', init));
    return { status: response.status, text: await response.text() };
  };
  const log = async () => {
    const conversation = await shared.acquire('a', { existing: true });
    onTestFinished(() => shared.release(conversation));
    return conversation.log();
  };
  return { model, log, ask: asker(uiMessageHandler(agent, options)), askAgUi: asker(agUiHandler(agent, options)) };
}

const text = (words: string) => ({ type: 'text', text: words });
const file = (mediaType: string, bytes: string) => ({
  type: 'file',
  mediaType,
  url: `data:${mediaType};base64,${btoa(bytes)}`,
});
const image = { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${base64(dot)}` };
const user = (id: string, ...parts: object[]) => ({ id, role: 'user', parts });

describe.each(PLACES)('a refused edit of a conversation in %s', (place) => {
  const edited = { messages: [user('m1', text('changed'))] };
  const EDITS: readonly (readonly [string, number, object])[] = [
    ['a file that the model does not accept', 415, { messages: [user('m1', file('application/pdf', '%PDF-1.4'))] }],
    ['bytes that are no image', 400, { messages: [user('m1', file('image/png', 'no image'))] }],
    ['settings that do not exist', 400, { ...edited, settings: { heat: 1 } }],
    ['a tool that does not exist', 400, { ...edited, tools: ['none'] }],
    ['a context that is too long', 400, { ...edited, context: 'x'.repeat(70_000) }],
    [
      'a model that does not accept the content that is asked again',
      415,
      { messages: [user('m1', text('Look'), image)], trigger: 'regenerate-message', model: 'blind' },
    ],
  ];

  it.each(EDITS)('with %s is answered %i, and the conversation continues with its history', async (_, status, body) => {
    const { ask, model, log } = await pages(['one', 'two'], place);
    await ask({ messages: [user('m1', text('Look'), image)] });
    const before = await log();
    expect((await ask(body)).status).toBe(status);
    expect(await log()).toEqual(before);
    await ask({ messages: [user('m2', text('on'))] });
    expect(lines(model.calls.at(-1)?.messages ?? [])).toHaveLength(3);
  });

  it.each([
    ['without a name', [{ description: 'no name' }]],
    ['with a name that no provider takes', [{ name: 'a b' }]],
    ['that are no list', {}],
  ])('of AG-UI with tools %s is answered 400, and nothing is changed', async (_, tools) => {
    const { askAgUi, log } = await pages(['one'], place);
    await askAgUi({ messages: [{ id: 'm1', role: 'user', content: 'hi' }] });
    const before = await log();
    const body = { messages: [{ id: 'm1', role: 'user', content: 'changed' }], state: { a: 1 }, tools };
    expect((await askAgUi(body)).status).toBe(400);
    expect(await log()).toEqual(before);
  });

  it('an invalid answer is refused before the state of its page is written', async () => {
    const { askAgUi, log } = await pages([[call('c1', 'ask', { m: '' })]], place);
    await askAgUi({ messages: [{ id: 'm1', role: 'user', content: 'hi' }] });
    const before = await log();
    const resume = [{ interruptId: '1/c1', status: 'resolved', payload: { approved: 'perhaps' } }];
    expect((await askAgUi({ messages: [], resume, state: { a: 1 } })).status).toBe(400);
    expect(await log()).toEqual(before);
  });
});

describe.each(PLACES)('a refused message of an AG-UI page to a conversation in %s', (place) => {
  const tools = [{ name: 'paint', description: 'Paints.', parameters: { type: 'object', properties: {} } }];
  const noImage = { type: 'image', source: { type: 'data', value: btoa('no image'), mimeType: 'image/png' } };
  const sheet = { type: 'document', source: { type: 'data', value: btoa('%PDF-1.4'), mimeType: 'application/pdf' } };
  const REFUSED: readonly (readonly [string, number, object])[] = [
    ['with an id that contains a slash', 400, { id: 'm/2', content: 'on' }],
    ['with bytes that are no image', 400, { id: 'm2', content: [noImage] }],
    ['with a file that the model does not accept', 415, { id: 'm2', content: [sheet] }],
    ['while a call waits', 409, { id: 'm2', content: 'on' }],
  ];

  it.each(REFUSED)(
    '%s is answered %i, and changes neither the state nor the offered tools',
    async (_, status, message) => {
      const { askAgUi, model, log } = await pages([[call('c1', 'ask', { m: '' })], 'two'], place, {
        whileSuspended: 'reject',
      });
      await askAgUi({ messages: [{ id: 'm1', role: 'user', content: 'go' }], state: { a: 1 } });
      const before = await log();
      const body = { messages: [{ ...message, role: 'user' }], state: { a: 2 }, tools };
      expect((await askAgUi(body)).status).toBe(status);
      expect(await log()).toEqual(before);
      await askAgUi({ messages: [], resume: [{ interruptId: '1/c1', status: 'resolved', payload: true }] });
      expect(model.calls.at(-1)?.tools.map(({ name }) => name)).toEqual(['ask']);
    },
  );
});

describe('a refused message to a chat that does not exist', () => {
  const MESSAGES: readonly (readonly [string, object])[] = [
    ['an id that contains a slash', { messages: [user('m/1', text('hi'))] }],
    ['bytes that are no image', { messages: [user('m1', file('image/png', 'no image'))] }],
    ['settings that do not exist', { messages: [user('m1', text('hi'))], settings: { heat: 1 } }],
  ];

  it.each(MESSAGES)('with %s creates no conversation', async (_, body) => {
    const agent = createAgent({ model: scripted(['one']) });
    onTestFinished(() => agent.close());
    const handler = uiMessageHandler(agent, { authorize: () => true, allow: { settings: true } });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ id: 'new', ...body }) };
    expect((await handler(new Request('http://h/chat', init))).status).toBe(400);
    expect(await agent.list()).toEqual([]);
  });
});
