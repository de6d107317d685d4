/** The same request in the process that holds a conversation and in another one: the name of its caller, and a repetition at either place. */
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, type LogEntry, type Model } from '../../src/index.ts';
import { agUiHandler, createHandlers, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { call, deaf, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { sharedMemoryStore } from '../support/sharedMemoryStore.ts';

const wrongModel: Model = {
  id: 'wrong',
  stream() {
    throw new Error('the wrong process asks its model');
  },
};
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => 'paid',
});

type Place = 'the holder' | 'another process';
const PLACES: readonly Place[] = ['the holder', 'another process'];
type Answer = { status: number; body: { [field: string]: unknown } };

/** Two processes, of which the first holds the conversation `c`. */
async function house(...replies: readonly Reply[]) {
  const store = sharedMemoryStore();
  const agents = {
    'the holder': createAgent({ model: scripted(replies), store, tools: [pay] }),
    'another process': createAgent({ store, tools: [pay], model: wrongModel }),
  };
  onTestFinished(async () => {
    await agents['another process'].close();
    await agents['the holder'].close();
  });
  const shared = {
    'the holder': sessions(agents['the holder']),
    'another process': sessions(agents['another process']),
  };
  const make = (place: Place) => createHandlers(agents[place], { authorize: () => 'ann', sessions: shared[place] });
  const handlers = { 'the holder': make('the holder'), 'another process': make('another process') };
  const ask = async (place: Place, path: string, body?: object, method = body ? 'POST' : 'GET'): Promise<Answer> => {
    const headers = { 'content-type': 'application/json' };
    const response = await handlers[place](
      new Request(`http://h/conversations${path}`, { method, ...(body && { headers, body: JSON.stringify(body) }) }),
    );
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  };
  await ask('the holder', '', { id: 'c' });
  const statusIs = (status: string) =>
    expect.poll(async () => (await ask('the holder', '/c')).body.status, { interval: 5 }).toBe(status);
  const log = async (): Promise<LogEntry[]> => {
    const entries: LogEntry[] = [];
    const { length } = await store.stateOf('c');
    for await (const item of store.follow('c', 0)) {
      if ('seq' in item) entries.push(item as LogEntry);
      if (entries.length >= length) break;
    }
    return entries;
  };
  return { agents, shared, ask, statusIs, log };
}

const messagesIn = (entries: readonly LogEntry[]) =>
  entries.flatMap((entry) => (entry.type === 'user-message' || entry.type === 'message-queued' ? [entry] : []));

describe.each(PLACES)('a request at %s', (place) => {
  it.each([
    ['messages', {}, 'direct'],
    ['messages', { kind: 'steer' }, 'steer'],
    ['messages', { kind: 'followUp' }, 'followUp'],
    ['steer', {}, 'steer'],
    ['follow-ups', {}, 'followUp'],
  ])('that sends a message by /%s %j is logged with its caller and its kind', async (act, more, kind) => {
    const { ask, log, statusIs } = await house(deaf(t('a')), deaf(t('b')));
    if (kind !== 'direct') {
      await ask('the holder', '/c/messages', { content: 'go' });
      await statusIs('active');
    }
    expect((await ask(place, `/c/${act}`, { content: 'hi', ...more })).status).toBe(202);
    expect(messagesIn(await log()).at(-1)).toMatchObject({ kind, by: 'ann', content: [{ type: 'text', text: 'hi' }] });
  });

  it.each([{ action: 'approve' }, { action: 'deny', reason: 'no' }, { action: 'deny', by: 'bob' }])(
    'that decides %j is logged with its caller',
    async (decision) => {
      const { ask, log, statusIs } = await house([call('c1', 'pay')], 'done');
      await ask('the holder', '/c/messages', { content: 'go' });
      await statusIs('waiting');
      expect((await ask(place, '/c/decisions', { callId: 'c1', ...decision })).body).toEqual({ receipt: 'applied' });
      const logged = (await log()).flatMap((entry) => (entry.type === 'decision' ? [entry.decision] : []));
      expect(logged).toMatchObject([{ ...decision, by: 'ann' }]);
    },
  );

  it.each([
    [
      'a page of AG-UI',
      agUiHandler,
      { threadId: 'c', messages: [{ role: 'user', id: 'u', content: 'go' }] },
      { threadId: 'c', messages: [], resume: [{ interruptId: '1/c1', status: 'resolved', payload: true }] },
    ],
    [
      'a chat of the AI SDK',
      uiMessageHandler,
      { id: 'c', messages: [{ role: 'user', id: 'u', parts: [{ type: 'text', text: 'go' }] }] },
      {
        id: 'c',
        messages: [
          {
            role: 'assistant',
            id: 'a',
            parts: [
              {
                type: 'tool-pay',
                toolCallId: 'c1',
                state: 'approval-responded',
                approval: { id: '1/c1', approved: true },
              },
            ],
          },
        ],
      },
    ],
  ] as const)('of %s is logged with its caller, its message and its answer', async (_, make, message, answer) => {
    const { agents, shared, log } = await house([call('c1', 'pay')], 'done');
    const handle = make(agents[place], { authorize: () => 'ann', sessions: shared[place] });
    const headers = { 'content-type': 'application/json' };
    for (const body of [message, answer]) {
      const response = await handle(new Request('http://h/', { method: 'POST', headers, body: JSON.stringify(body) }));
      expect(response.status).toBe(200);
      await response.text();
    }
    const entries = await log();
    expect(messagesIn(entries)).toMatchObject([{ by: 'ann' }]);
    expect(entries.flatMap((entry) => (entry.type === 'decision' ? [entry.decision.by] : []))).toEqual(['ann']);
  });
});

describe.each(PLACES.flatMap((first) => PLACES.map((second) => [first, second] as const)))(
  'a request at %s that is repeated at %s',
  (first, second) => {
    it.each([
      ['messages', { content: 'hi' }],
      ['messages', { content: 'hi', kind: 'followUp' }],
      ['steer', { content: 'hi' }],
      ['follow-ups', { content: 'hi' }],
    ])('sends one message by /%s %j, and another request sends another one', async (act, body) => {
      const isDirect = act === 'messages' && !('kind' in body);
      const { ask, log, statusIs } = await house(isDirect ? 'one' : deaf(t('a')), 'two', 'three');
      if (!isDirect) {
        await ask('the holder', '/c/messages', { content: 'go' });
        await statusIs('active');
      }
      const before = messagesIn(await log()).length;
      const settled = () => (isDirect ? statusIs('idle') : Promise.resolve());
      const answers: unknown[] = [];
      for (const place of [first, second]) {
        answers.push((await ask(place, `/c/${act}?request=r1`, body)).body.messageId);
        await settled();
      }
      expect(messagesIn(await log()).length - before).toBe(1);
      expect(new Set(answers).size).toBe(1);
      await ask(second, `/c/${act}?request=r2`, body);
      await settled();
      expect(messagesIn(await log()).length - before).toBe(2);
    });

    it('ends one run by /cancel, and leaves a later run alone', async () => {
      const { ask, statusIs } = await house(deaf(t('a')), deaf(t('b')));
      await ask('the holder', '/c/messages', { content: 'go' });
      await statusIs('active');
      expect((await ask(first, '/c/cancel?request=r1', {})).body).toEqual({ status: 'idle' });
      await ask('the holder', '/c/messages', { content: 'again' });
      await statusIs('active');
      expect((await ask(second, '/c/cancel?request=r1', {})).body).toEqual({ status: 'idle' });
      await statusIs('active');
      expect((await ask(second, '/c/cancel?request=r2', {})).body).toEqual({ status: 'idle' });
      await statusIs('idle');
    });

    it('decides once and resumes once, with the same answers', async () => {
      const { ask, log, statusIs } = await house([call('c1', 'pay')], 'done', 'never');
      await ask('the holder', '/c/messages', { content: 'go' });
      await statusIs('waiting');
      for (const place of [first, second])
        expect((await ask(place, '/c/decisions?request=r1', { callId: 'c1', action: 'approve' })).body).toEqual({
          receipt: 'applied',
        });
      const runs: unknown[] = [];
      for (const place of [first, second]) {
        runs.push((await ask(place, '/c/resume?request=r2', {})).body.runId);
        await statusIs('idle');
      }
      expect(new Set(runs).size).toBe(1);
      expect((await log()).filter(({ type }) => type === 'run-resumed')).toHaveLength(1);
    });
  },
);
