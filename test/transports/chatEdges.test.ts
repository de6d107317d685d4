/** Rare requests of pages: the same bytes under another type, bytes that are lost, messages of a developer, and choices that are null. */
import { expect, it, onTestFinished } from 'vitest';
import { type AgentOptions, createAgent, type LogStore, memoryStore } from '../../src/index.ts';
import { agUiHandler, uiMessageHandler } from '../../src/transports/index.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { scripted } from '../support/scriptedReplies.ts';

function chat(make: typeof agUiHandler, options: Partial<AgentOptions> = {}) {
  const model = scripted(['one', 'two', 'three']);
  const agent = createAgent({ model, ...options });
  onTestFinished(() => agent.close());
  const handler = make(agent, { authorize: () => true, basePath: '/c' });
  const ask = async (body: object) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await handler(new Request('http://h/c', init));
    return { status: response.status, text: await response.text() };
  };
  const history = async () => handler(new Request('http://h/c/a'));
  return { model, ask, history };
}

it('a message that gives its bytes another media type is an edit, and one with the same type is none', async () => {
  const { model, ask } = chat(uiMessageHandler);
  const send = (mediaType: string) => {
    const file = { type: 'file', mediaType, url: `data:${mediaType};base64,${btoa('a,b')}` };
    return ask({ id: 'a', messages: [{ id: 'm', role: 'user', parts: [file] }] });
  };
  const calls: number[] = [];
  for (const mediaType of ['text/plain', 'text/plain', 'text/csv', 'text/csv']) {
    await send(mediaType);
    calls.push(model.calls.length);
  }
  expect(calls).toEqual([1, 1, 2, 2]);
});

it('a history whose bytes the store has lost is answered, with a reference in their place', async () => {
  const store = memoryStore();
  const lost = Object.create(store, {
    open: {
      value: async (...args: Parameters<LogStore['open']>) => {
        const handle = await store.open(...args);
        handle.getBlob = () => Promise.reject(new Error('lost'));
        return handle;
      },
    },
  }) as LogStore;
  const { ask, history } = chat(uiMessageHandler, { store: lost });
  const image = { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${base64(dot)}` };
  await ask({ id: 'a', messages: [{ id: 'm', role: 'user', parts: [image] }] });
  const response = await history();
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject([{ parts: [{ url: expect.stringMatching(/^blob:/) }] }, {}]);
});

it.each(['system', 'developer'])('messages of the role %s come before the history that a page lacks', async (role) => {
  const { ask } = chat(agUiHandler);
  const user = (id: string) => ({ id, role: 'user', content: id });
  await ask({ threadId: 'a', runId: 'r1', messages: [user('first')] });
  const rule = { id: 'rule', role, content: 'Be brief.' };
  const { text } = await ask({ threadId: 'a', runId: 'r2', messages: [rule, user('second')] });
  const events = text.split('\n\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line.slice(6))]));
  const snapshots = events.filter(({ type }) => type === 'MESSAGES_SNAPSHOT');
  expect(snapshots.map(({ messages }) => messages.map(({ id }: { id: string }) => id))).toEqual([
    ['rule', 'first', 'run_first/1'],
    ['rule', 'first', 'run_first/1', 'second'],
  ]);
});

it.each(['model', 'output', 'settings', 'tools', 'context'])('a choice of %s that is null is refused', async (name) => {
  const { model, ask } = chat(uiMessageHandler);
  const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] }];
  const { status, text } = await ask({ id: 'a', messages, [name]: null });
  expect([status, JSON.parse(text), model.calls.length]).toMatchObject([403, { code: 'not_allowed' }, 0]);
});
