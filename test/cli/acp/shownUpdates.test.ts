/** Entries and signals as updates of an editor: those of sub-agents, of the past, of changed calls and of notices. */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { describe, expect, test } from 'vitest';
import type { LogEntry } from '../../../machines/internal.ts';
import { SessionUpdates } from '../../../src/cli/acp/sessionUpdates.ts';
import { UpdateQueue } from '../../../src/cli/acp/updateQueue.ts';
import type { Live } from '../../../src/index.ts';

const updates = (more: object = {}) =>
  new SessionUpdates({ cwd: '/project', contextWindow: 1_000, notices: false, ...more });
const entry = (fields: object): LogEntry => ({ seq: 0, at: 0, conversationId: 'c', runId: 'r', ...fields }) as LogEntry;
const calls = (name: string, args: object, more: object = {}): LogEntry =>
  entry({ type: 'agent-output', item: { type: 'tool-call', callId: 'c1', name, args, ...more } });
const ends = (outcome: string, text: string): LogEntry =>
  entry({ type: 'tool-result', callId: 'c1', outcome, content: [{ type: 'text', text }] });

test('text of a sub-agent is not text of the session, whatever its signal', () => {
  const all = updates();
  const signals = [
    { type: 'text-delta', text: 'a' },
    { type: 'reasoning-delta', text: 'a' },
    { type: 'tool-input-delta', index: 0, text: '{' },
    { type: 'reset' },
  ];
  for (const signal of signals) {
    expect(all.signal({ ...signal, runId: 's', path: ['c1'] } as Live)).toEqual([]);
    expect(all.signal({ ...signal, runId: 's', path: ['c1', 'c2'] } as Live)).toEqual([]);
  }
  // Nothing counts as streamed, so the session's own text is shown with its entry.
  const says = entry({ type: 'agent-output', item: { type: 'assistant', text: 'mine' } });
  expect(all.entry(says)).toMatchObject([{ content: { text: 'mine' } }]);
});

test('text of a reply that broke off does not count, and the editor says nothing of another attempt, which may not follow', () => {
  const all = updates();
  all.signal({ type: 'text-delta', runId: 'r', text: 'partial' });
  const text = '\n\n*The reply broke off: what was shown of it does not count.*\n\n';
  expect(all.signal({ type: 'reset', runId: 'r' })).toMatchObject([{ content: { type: 'text', text } }]);
});

test('the usage is the input and the output of the last reply, and a cost of 0 is a cost', () => {
  const reply = (inputTokens: number, outputTokens: number, costUsd: number | null) => {
    const usage = { inputTokens, outputTokens, cachedInputTokens: 1, cacheWriteTokens: 2, reasoningTokens: 3 };
    return entry({ type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd });
  };
  const shown = (size: object) => ({ sessionUpdate: 'usage_update', size: 1_000, ...size });
  const free = { cost: { amount: 0, currency: 'USD' } };
  const all = updates();
  expect(all.entry(reply(100, 7, 0))).toEqual([shown({ used: 107, ...free })]);
  expect(all.entry(reply(200, 0, 0))).toEqual([shown({ used: 200, ...free })]);
  expect(all.entry(reply(300, 1, null))).toEqual([shown({ used: 301 })]);
  expect(all.usage()).toEqual([shown({ used: 301 })]);
});

describe('a call', () => {
  test('whose arguments are no JSON shows their text', () => {
    expect(updates().entry(calls('Bash', {}, { argsText: '{"command":' }))).toMatchObject([
      { rawInput: '{"command":' },
    ]);
  });

  test.each(['tool-started', 'tool-suspended'])('that %s with other arguments has a result of those', (type) => {
    const all = updates();
    all.entry(calls('Write', { file_path: 'a.ts', content: 'a' }));
    all.entry(entry({ type, callId: 'c1', args: { file_path: 'b.ts', content: 'b' } }));
    expect(all.entry(ends('succeeded', 'Created b.ts'))).toMatchObject([
      { content: [{ type: 'diff', path: '/project/b.ts', newText: 'b' }] },
    ]);
  });

  test.each(['succeeded', 'failed', 'cancelled'])(
    'of TodoWrite that %s makes a plan only if it succeeded',
    (outcome) => {
      const all = updates();
      all.entry(calls('TodoWrite', { todos: [{ content: 'x', status: 'pending' }] }));
      const kinds = all.entry(ends(outcome, 'ok')).map(({ sessionUpdate }) => sessionUpdate);
      expect(kinds).toEqual(['tool_call_update', ...(outcome === 'succeeded' ? ['plan'] : [])]);
    },
  );

  test('that is unknown has its state and its result', () => {
    const all = updates();
    expect(all.entry(entry({ type: 'tool-started', callId: 'c1', args: { a: 1 } }))).toEqual([
      { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'in_progress' },
    ]);
    expect(all.entry(ends('succeeded', 'x'))).toMatchObject([{ status: 'completed' }]);
  });
});

describe('the past', () => {
  const part = (text: string) => ({ type: 'text', text });
  const chunksOf = (shown: readonly SessionUpdate[]) =>
    shown.flatMap((update) => ('messageId' in update ? [update] : [])) as { messageId: string; content: object }[];

  test('has a message id for each part of each message of the person', () => {
    const all = updates();
    const says = (...texts: string[]) => entry({ type: 'user-message', content: texts.map(part) });
    const shown = [...all.replayed(says('a', 'b')), ...all.replayed(says('c'))];
    expect(chunksOf(shown).map(({ content }) => content)).toEqual(['a', 'b', 'c'].map(part));
    expect(new Set(chunksOf(shown).map(({ messageId }) => messageId)).size).toBe(3);
  });

  test('names what a message attached, and shows the text before it', () => {
    const all = updates();
    const content = [
      part('look'),
      part('[attached a.ts, 2 lines]\nsecret\nwords'),
      part('see [attached] here\nand more'),
      { type: 'file', mediaType: 'application/pdf', data: 'blob:x' },
      { type: 'image', mediaType: 'image/png', data: 'blob:x' },
    ];
    const shown = all.replayed(entry({ type: 'user-message', content }));
    expect(chunksOf(shown).map(({ content: each }) => (each as { text: string }).text)).toEqual([
      'look',
      '[attached a.ts, 2 lines]',
      'see [attached] here\nand more',
      '[application/pdf]',
      '[image/png]',
    ]);
  });

  test('shows a typed text that begins like an attached file as it is', () => {
    const typed = '[attached notes]\nplease read them';
    const shown = updates().replayed(entry({ type: 'user-message', content: [part(typed)] }));
    expect(chunksOf(shown).map(({ content }) => content)).toEqual([part(typed)]);
  });

  test('that the session was opened with shows the texts of the messages, and no results of tools', () => {
    const messages = [
      { role: 'user', content: [part('q')] },
      { role: 'assistant', content: [part('a'), { type: 'image', mediaType: 'image/png', data: 'x' }], toolCalls: [] },
      { role: 'tool', callId: 'c1', content: [part('result')], isError: false },
    ];
    const shown = updates().replayed(entry({ type: 'history', messages }));
    expect(shown).toMatchObject([
      { sessionUpdate: 'user_message_chunk', content: part('q') },
      { sessionUpdate: 'agent_message_chunk', content: part('a') },
    ]);
  });
});

test('a notice warns of a fault and informs of the rest, and is shown only where the editor shows notices', () => {
  const retry = entry({ type: 'model-retry', attempt: 2, model: 'm', waitMs: 1500, reason: 'a\u202eb' });
  const diagnostic = entry({ type: 'diagnostic', code: 'odd\n' });
  const severities = [retry, diagnostic].map((each) => updates({ notices: true }).entry(each)[0]);
  expect(severities).toEqual([
    { sessionUpdate: 'notice', severity: 'warning', title: expect.stringContaining('a\\u202eb') },
    { sessionUpdate: 'notice', severity: 'info', title: '! odd\\n' },
  ]);
  for (const each of [retry, diagnostic]) expect(updates().entry(each)).toEqual([]);
});

test('an image between two texts of one message is sent in its place', async () => {
  const chunk = (content: object) =>
    ({ sessionUpdate: 'user_message_chunk', content, messageId: 'm' }) as SessionUpdate;
  const [text, image] = [
    chunk({ type: 'text', text: 'a' }),
    chunk({ type: 'image', mimeType: 'image/png', data: 'x' }),
  ];
  const sent: SessionUpdate[] = [];
  const queue = new UpdateQueue(async (update) => void sent.push(update));
  queue.push([text, text, image, text, image, image]);
  await queue.drained();
  expect(sent).toEqual([chunk({ type: 'text', text: 'aa' }), image, text, image, image]);
});
