/** Cases for the session, the callbacks and the ends of a request (docs/internals/contracts.md, 7.3, 5 and 6). */
import assert from 'node:assert/strict';
import type { Message } from '../../../machines/vocabulary.ts';
import { type LoopCase, READ, rejectsWith, textsOf } from './loopCase.ts';

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const textIn = (messages: readonly Message[]): string[] =>
  messages.flatMap(({ content }) => content.map((part) => (part.type === 'text' ? part.text : '')));

export const stateCases: readonly LoopCase[] = [
  [
    '7.3, 3.1, 3.2, 3.3: a request begins with fresh counters, an empty registry, an id of its own of 8 characters, and its query',
    async (make) => {
      const on = make([READ, { text: 'done' }, { text: 'again' }]);
      await on.ask('first');
      const { runtime, task } = on.session;
      const { requestId } = runtime;
      assert.deepEqual(
        [runtime.currentIteration, runtime.iterationCount, runtime.batchCounter, requestId.length],
        [2, 2, 1, 8],
      );
      assert.equal(task.originalQuery, 'first');
      runtime.consecutiveEmptyResponses = 7;
      await on.ask('second');
      assert.deepEqual([runtime.currentIteration, runtime.batchCounter, runtime.consecutiveEmptyResponses], [1, 0, 0]);
      assert.deepEqual(runtime.toolRegistry.list(), []);
      assert.equal(task.originalQuery, 'second');
      assert.notEqual(runtime.requestId, requestId);
    },
  ],
  [
    '7.3, 3.4: the messages of the run count, and what others appended during it stays behind them',
    async (make) => {
      const on = make([{ text: 'one' }, READ, { text: 'two' }]);
      await on.ask('first');
      const append = (): void => void on.session.conversation.messages.push(user('X'));
      const run = await on.ask('second', { toolStartCallback: append });
      assert.deepEqual(textIn(on.session.conversation.messages), [...textsOf(run), 'X']);
      assert.deepEqual(textsOf(run), ['first', 'one', 'second', 'read a.ts', 'two']);
    },
  ],
  [
    '7.3, 3.6: usage is that of the last call, and the sum of all',
    async (make) => {
      const on = make([
        { ...READ, tokens: 3 },
        { text: 'done', tokens: 4 },
      ]);
      await on.ask('hi');
      const { lastCallUsage, sessionTotalUsage } = on.session.usage;
      assert.deepEqual([lastCallUsage.inputTokens, lastCallUsage.outputTokens], [4, 4]);
      assert.deepEqual([sessionTotalUsage.inputTokens, sessionTotalUsage.outputTokens], [7, 7]);
      assert.deepEqual([sessionTotalUsage.cachedInputTokens, sessionTotalUsage.costUsd], [0, null]);
    },
  ],
  [
    '2.3: a model is shown no call without a result, no empty reply, no requests in a row',
    async (make) => {
      const on = make([{ text: 'done' }]);
      const dangling: Message = {
        role: 'assistant',
        content: [],
        toolCalls: [{ callId: 'x', name: 'read', args: {} }],
      };
      const empty: Message = { role: 'assistant', content: [], toolCalls: [] };
      on.session.conversation.messages.push(user('r1'), dangling, user('r2'), empty, user('r3'));
      await on.ask('r4');
      assert.deepEqual(textIn(on.model.asked[0]?.messages ?? []), ['r4']);
      assert.equal(on.model.asked[0]?.messages.length, 1);
    },
  ],
];

export const callbackCases: readonly LoopCase[] = [
  [
    '5: deltas come in order, then the start of the batch, then each return with what was registered, then the answer',
    async (make) => {
      const received: string[] = [];
      await make([{ text: 'I look', ...READ }, { text: 'done' }]).ask('hi', {
        streamingCallback: (delta) => void received.push(delta),
        toolStartCallback: (label) => void received.push(`start ${label}`),
        toolResultCallback: (...all) => void received.push(JSON.stringify(all)),
      });
      const back = '["read","completed",{"path":"a.ts"},"read a.ts",null]';
      assert.deepEqual(received, ['I ', 'look', 'start read', back, 'do', 'ne']);
    },
  ],
  [
    '5.4: a batch is announced once, by its first three names and three dots where there are more',
    async (make) => {
      const calls = ['a', 'b', 'c', 'd'].map((callId) => [callId, 'read', { path: callId }] as const);
      const labels: string[] = [];
      await make([{ calls }, { text: 'done' }]).ask('hi', { toolStartCallback: (label) => void labels.push(label) });
      assert.deepEqual(labels, ['read, read, read...']);
    },
  ],
  [
    '5.5: an empty reply is noticed, and the model asked again',
    async (make) => {
      const notices: string[] = [];
      const on = make([{ text: ' ' }, { text: 'done' }]);
      const run = await on.ask('hi', { noticeCallback: (text) => void notices.push(text) });
      assert.equal(notices.length, 1);
      assert.equal(run.result?.output, 'done');
    },
  ],
  ...(['streamingCallback', 'toolResultCallback'] as const).map(
    (name): LoopCase => [
      `5: what ${name} throws fails the request, and the next one works`,
      async (make) => {
        const on = make([{ text: 'I look', ...READ }, { text: 'done' }, { text: 'again' }, { text: 'again' }]);
        const fails = (): never => {
          throw new Error('the screen is gone');
        };
        await rejectsWith(on.ask('hi', { [name]: fails }), /the screen is gone/);
        assert.ok((await on.ask('again')).result);
      },
    ],
  ),
];

export const endCases: readonly LoopCase[] = [
  [
    '6.1: a request that takes too long is ended by an error with the time, and the next one works',
    async (make) => {
      const on = make([{ text: 'par', hangs: true }, { text: 'again' }], { globalRequestTimeoutSeconds: 0.05 });
      await assert.rejects(on.ask('hi'), (error) => (error as { timeoutSeconds?: unknown }).timeoutSeconds === 0.05);
      assert.equal((await on.ask('go on')).result?.output, 'again');
    },
  ],
  [
    '6.2: an aborted request leaves what was streamed as an interrupted reply, and no call open',
    async (make) => {
      const on = make([READ, { text: 'partly', hangs: true }, { text: 'again' }]);
      const stop = new AbortController();
      const asked = on.ask('hi', {
        signal: stop.signal,
        streamingCallback: (delta) => {
          if (delta === 'rtly') stop.abort();
        },
      });
      await rejectsWith(asked, /UserAbort/);
      const last = on.session.conversation.messages.at(-1);
      assert.equal(last?.role, 'assistant');
      assert.match(textIn(last ? [last] : []).join(''), /interrupted[\s\S]*partly/i);
      assert.ok(on.session.runtime.toolRegistry.list().every(({ status }) => status === 'completed'));
      assert.equal((await on.ask('go on')).result?.output, 'again');
    },
  ],
  [
    '3.5, 6.2: a tool that is aborted by the user is cancelled, not failed',
    async (make) => {
      const on = make([READ, { text: 'again' }]);
      const stop = new AbortController();
      const asked = on.ask('hi', {
        signal: stop.signal,
        toolCallback: () => {
          stop.abort();
          return new Promise(() => undefined);
        },
      });
      await rejectsWith(asked, /UserAbort/);
      assert.equal(on.session.runtime.toolRegistry.get('c1')?.status, 'cancelled');
      assert.equal((await on.ask('go on')).result?.output, 'again');
    },
  ],
  [
    '2.4: a request whose model never comes to an end is ended by settings.maxIterations',
    async (make) => {
      const on = make([READ, { calls: [['c2', 'read', { path: 'b.ts' }]] }, { text: 'never' }], { maxIterations: 2 });
      await on.ask('hi').catch(() => undefined);
      assert.equal(on.model.asked.length, 2);
    },
  ],
];
