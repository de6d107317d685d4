/** Ids that a page gives its messages: each form of them can be edited, repeated, and distinguished from the id of an edit. */
import { describe, expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { readUiMessages } from '../../src/transports/chat/chatRequests.ts';
import { pageIdOf } from '../../src/transports/chat/chatRuns.ts';
import { agUiHandler, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { scripted } from '../support/scriptedReplies.ts';

const HANDLERS = {
  'AG-UI': [
    agUiHandler,
    (id: string, content: string) => ({ threadId: 'c', runId: 'r', messages: [{ id, role: 'user', content }] }),
  ],
  'UI messages': [
    uiMessageHandler,
    (id: string, text: string) => ({ id: 'c', messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }] }),
  ],
} as const;
const IDS: readonly (readonly [form: string, id: string])[] = [
  ['a word', 'm'],
  ['a digit', '2'],
  ['a word with a number after a tilde', 'a~2'],
  ['a word with a tilde in it', 'a~b'],
  ['a tilde', '~'],
  ['190 characters long', 'x'.repeat(190)],
  ['200 characters long', 'x'.repeat(200)],
  ['full of surrogate pairs', `a${'😀'.repeat(99)}`],
];

describe.each(Object.entries(HANDLERS))('%s', (_, [make, body]) => {
  it.each(IDS)('a message whose id is %s is edited twice, and its repetition runs nothing', async (__, id) => {
    const model = scripted(['1', '2', '3']);
    const agent = createAgent({ model });
    const shared = sessions(agent);
    const handler = make(agent, { authorize: () => true, sessions: shared });
    const requested: unknown[] = [];
    for (const text of ['one', 'two', 'three', 'three']) {
      const headers = { 'content-type': 'application/json' };
      const request = new Request('http://h/', { method: 'POST', headers, body: JSON.stringify(body(id, text)) });
      const response = await handler(request);
      expect([response.status, (await response.text()).includes('RUN_ERROR')]).toEqual([200, false]);
      const asked = model.calls.at(-1)?.messages.filter(({ role }) => role === 'user') ?? [];
      requested.push([model.calls.length, asked.map(({ content }) => content)]);
    }
    const alone = (text: string) => [[{ type: 'text', text }]];
    expect(requested).toEqual([
      [1, alone('one')],
      [2, alone('two')],
      [3, alone('three')],
      [3, alone('three')],
    ]);
    const conversation = await shared.acquire('c');
    const log = conversation.log();
    shared.release(conversation);
    const ids = log.flatMap((entry) => (entry.type === 'user-message' ? [entry.messageId] : []));
    expect(ids).toHaveLength(3);
    expect(ids[0]).toBe(id);
    for (const each of ids) expect([each.length <= 200, /\p{Surrogate}/u.test(each)]).toEqual([true, false]);
    await agent.close();
  });
});

it.each([
  ['m', 'm'],
  ['m~2', 'm'],
  ['m~12', 'm'],
  ['a~2~3', 'a~2'],
  ['a~b', 'a~b'],
  ['a~2b', 'a~2b'],
  ['~', '~'],
  ['', ''],
])('%j is the page’s message %j', (id, page) => {
  expect(pageIdOf(id)).toBe(page);
});

describe('a request of the AI SDK', () => {
  const user = (id?: string) => ({ id, role: 'user', parts: [{ type: 'text', text: 'hi' }] });
  const asks = (id?: string) => ({
    ...{ id, role: 'assistant' },
    parts: [
      { type: 'tool-x', toolCallId: 'c1', state: 'approval-responded', approval: { id: '1/c1', approved: true } },
    ],
  });
  it.each<[string, object, 'message' | 'answers']>([
    ['without a message id: the last message counts', { messages: [asks(), user('u')] }, 'message'],
    ['without a message id: an answer counts if it is last', { messages: [user('u'), asks()] }, 'answers'],
    ['that names a message of the assistant', { messages: [asks('a'), user('u')], messageId: 'a' }, 'answers'],
    ['that names a message of the user', { messages: [user('u'), asks('a')], messageId: 'u' }, 'answers'],
    ['that names no message', { messages: [asks('a'), user('u')], messageId: 'z' }, 'message'],
  ])('%s', (_, fields, kind) => {
    const { message, answers } = readUiMessages({ id: 'c', ...fields });
    expect([message !== undefined, answers.size]).toEqual(kind === 'message' ? [true, 0] : [false, 1]);
  });
});
