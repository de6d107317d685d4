/** Conversations that start with earlier messages: no call of the history runs. */
import { describe, expect, it } from 'vitest';
import { modelMessages } from '../../machines/index.ts';
import { eachEarlierEntry } from '../../machines/log/earlierMessages.ts';
import type { LogEntry, Message } from '../../src/index.ts';
import { project } from '../../src/projector/index.ts';
import { bench, only, story } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { lines } from '../support/scriptedReplies.ts';

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const calls = (text: string, ...callIds: string[]): Message => ({
  role: 'assistant',
  content: text === '' ? [] : [{ type: 'text', text }],
  toolCalls: callIds.map((callId) => ({ callId, name: 'pay', args: { m: callId } })),
});
const resultOf = (callId: string): Message => ({
  role: 'tool',
  callId,
  content: [{ type: 'text', text: `${callId} is paid` }],
  isError: false,
});

/** The log, with the history expanded to its events. */
function past(log: readonly LogEntry[]): LogEntry[] {
  const expandedEntries: LogEntry[] = [];
  for (const entry of log) {
    if (entry.type === 'history') eachEarlierEntry(entry, (earlier) => void expandedEntries.push(earlier));
    else expandedEntries.push(entry);
  }
  return expandedEntries;
}

/**
 * A new conversation `h` with this history, whose model gives `replies`. `again`: it is first closed and opened again.
 */
async function opened(history: readonly Message[], options: { again?: boolean; replies?: string[] } = {}) {
  const { again = false, replies = ['done'] } = options;
  const pay = echoTool('pay');
  const on = await bench({ replies, tools: [pay.tool] });
  const first = await on.agent.open('h', { history });
  if (again) await first.close();
  const conversation = again ? await on.agent.open('h') : first;
  return { conversation, model: on.model, ran: pay.ran };
}

const UNANSWERED: [string, readonly Message[]][] = [
  ['in an earlier request', [user('a'), calls('', 'c1'), user('b'), calls('done')]],
  ['that a later reply follows', [user('a'), calls('', 'c1'), calls('I paid')]],
  ['that ends the history', [user('a'), calls('', 'c1')]],
  ['beside one with a result', [user('a'), calls('', 'c1', 'c2'), resultOf('c2'), calls('ok')]],
  ['whose result precedes it', [user('a'), resultOf('c1'), calls('', 'c1')]],
  ['without a request', [calls('', 'c1')]],
];

describe('a call of a history without a result', () => {
  it.each(UNANSWERED)('a call %s is never run, neither by a message nor by resume()', async (_, history) => {
    for (const again of [false, true]) {
      const { conversation, model, ran } = await opened(history, { again });
      expect([conversation.status, conversation.pending, conversation.unsettled]).toEqual(['idle', [], []]);
      expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', turns: 0 });
      expect(model.calls).toHaveLength(0);
      expect(await conversation.send('hello').result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
      expect(ran).toEqual([]);
      expect(only(past(conversation.log()), 'tool-result')).toContain('tool-result c1 cancelled restart');
    }
  });

  it('it has a result in its place with that reason, stored with the history and not with a repair', async () => {
    const { conversation } = await opened([user('a'), calls('', 'c1', 'c2'), resultOf('c2'), user('b'), calls('ok')]);
    expect(conversation.log().map(({ type }) => type)).toEqual(['conversation', 'history']);
    const log = story(past(conversation.log()));
    expect(lines(conversation.messages())).toEqual([
      'user a',
      'assistant +c1 +c2',
      'c1! The earlier messages hold no result of this call. It was not run here.',
      'c2 c2 is paid',
      'user b',
      'assistant ok',
    ]);
    await conversation.close();
    const again = await opened([user('a'), calls('', 'c1', 'c2'), resultOf('c2'), user('b'), calls('ok')], {
      again: true,
    });
    expect(story(past(again.conversation.log()))).toEqual(log);
  });

  it('it has one result even if its id is used again', async () => {
    const { conversation, ran } = await opened([user('a'), calls('', 'c1'), user('b'), calls('', 'c1', 'c1')]);
    expect(only(past(conversation.log()), 'tool-result')).toEqual(['tool-result c1 cancelled restart']);
    await conversation.send('hello').result;
    expect(ran).toEqual([]);
  });
});

it('a history is one entry, and the log, the messages and the view contain its events', async () => {
  const { conversation } = await opened([user('a'), calls('', 'c1', 'c2'), resultOf('c2'), calls('ok'), user('b')]);
  const log = conversation.log();
  const events = past(log).map((entry, seq) => ({ ...entry, seq }));
  expect([log.length, events.length]).toEqual([2, 10]);
  expect(modelMessages(log)).toEqual(modelMessages(events));
  expect(conversation.view()).toEqual(project(events));
  expect(conversation.view().cycles.map(({ root, stop }) => [root.messageId, stop])).toEqual([
    ['history-0', { reason: 'completed', cause: 'history' }],
    ['history-4', { reason: 'completed', cause: 'history' }],
  ]);
});

it('a secret in a history is not stored', async () => {
  const on = await bench({ replies: ['done'], secrets: ['hunter2-hunter2'] });
  const history = [user('it is hunter2-hunter2'), calls('hunter2-hunter2', 'c1'), resultOf('c1')];
  const secret = { ...resultOf('c2'), content: [{ type: 'text' as const, text: 'hunter2-hunter2' }] };
  const named = { ...calls('', 'c2'), toolCalls: [{ callId: 'c2', name: 'pay', args: { m: 'hunter2-hunter2' } }] };
  const conversation = await on.agent.open('h', { history: [...history, named as Message, secret] });
  expect(JSON.stringify(conversation.log())).not.toContain('hunter2');
  expect(conversation.messages()).toHaveLength(5);
});

it('a history whose calls all have results is stored unchanged', async () => {
  const history = [user('a'), calls('', 'c1'), resultOf('c1'), calls('ok')];
  const { conversation } = await opened(history);
  expect(conversation.messages()).toEqual(history);
  expect(only(past(conversation.log()), 'tool-result')).toEqual(['tool-result c1 succeeded']);
});

it("a history's result that follows a later reply is sent to the model as a later message", async () => {
  const { conversation } = await opened([user('q'), calls('', 'c1'), calls('in between'), resultOf('c1'), calls('ok')]);
  const shown = conversation.messages();
  expect(shown.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user', 'assistant']);
  expect(shown[2]).toMatchObject({ callId: 'c1', isError: true });
  expect(JSON.stringify(shown[4])).toContain('c1 is paid');
});

it('consecutive replies in a history stay separate, each with its provider data', async () => {
  const signed: Message = {
    role: 'assistant',
    content: [{ type: 'text', text: 'b' }],
    toolCalls: [],
    extra: { signed: 1 },
  };
  const history = [user('q'), calls('a'), signed, calls('', 'c1'), resultOf('c1'), calls('c'), calls('d'), user('r')];
  for (const again of [false, true]) {
    const { conversation, model } = await opened(history, { again });
    expect(conversation.messages()).toEqual(history);
    expect(modelMessages(conversation.log())).toEqual(history);
    await conversation.send('go').result;
    expect(model.calls[0]?.messages).toEqual([...history, user('go')]);
  }
});

it.each<[string, object]>([
  ['a result without the id of its call', { role: 'tool', content: 'paid', isError: false }],
  ['a reply without a list of calls', { role: 'assistant', content: 'hi' }],
  ['a call that is no object', { role: 'assistant', content: '', toolCalls: [null] }],
  ['a call without an id', { role: 'assistant', content: '', toolCalls: [{ name: 'pay', args: {} }] }],
  ['a call without a name', { role: 'assistant', content: '', toolCalls: [{ callId: 'c1', args: {} }] }],
  [
    'arguments that are no JSON',
    { role: 'assistant', content: '', toolCalls: [{ callId: 'c1', name: 'pay', args: 1n }] },
  ],
])('a history with %s is refused, and no conversation is made of it', async (_, message) => {
  const { agent } = await bench({ replies: [] });
  const opening = agent.open('h', { history: [user('a'), message as unknown as Message] });
  await expect(opening).rejects.toMatchObject({ code: 'configuration' });
  await expect(agent.open('h', { existing: true })).rejects.toMatchObject({ code: 'not_found' });
});

it.each<[object, RegExp]>([
  [{ callId: 'c1', args: {} }, /history has a call without callId and name/],
  [{ callId: 'c1', name: 'pay', args: {}, argsText: 5 }, /history has a call whose argsText is no text/],
  [{ callId: 'c1', name: 'pay', args: 1n }, /history has a message whose args is not JSON/],
])('a history with the call %o is refused with the reason', async (call, reason) => {
  const { agent } = await bench({ replies: [] });
  const reply = { role: 'assistant', content: '', toolCalls: [call] } as unknown as Message;
  await expect(agent.open('h', { history: [reply] })).rejects.toThrow(reason);
});

it("the arguments in a history are copied as JSON, and the host's own objects stay as they are", async () => {
  const args = { at: new Date(0), list: [1] };
  const reply = { role: 'assistant', content: [], toolCalls: [{ callId: 'c1', name: 'pay', args }] };
  const { conversation } = await opened([user('a'), reply as unknown as Message, resultOf('c1')]);
  args.list.push(2);
  const [call] = conversation.messages().flatMap((message) => (message.role === 'assistant' ? message.toolCalls : []));
  expect(call?.args).toEqual({ at: '1970-01-01T00:00:00.000Z', list: [1] });
});
