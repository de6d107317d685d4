/**
 * The contract of a model as test cases, for models with a chat completions server. The suite serves each reply itself,
 * on the loopback interface. Invariant: every case applies to every model. An adapter's own options and quirks have
 * separate tests.
 */
import assert from 'node:assert/strict';
import type { Message } from '../../../machines/vocabulary.ts';
import { failureOf } from '../../models/attemptFailure.ts';
import type { Model, ModelPart, ModelRequest } from '../../models/model.ts';
import type { SuiteRunner } from '../storeSuite/logStoreSuite.ts';
import {
  type Answer,
  type ChatServer,
  callPiece,
  callRest,
  chatServer,
  delta,
  ends,
  hasContents,
  type ReceivedRequest,
  used,
} from './chatServer.ts';

interface Played {
  parts: ModelPart[];
  /** The thrown error, as the run reads it. Undefined if the reply ended normally. */
  failed: { code: string; retryable: boolean; retryAfterMs?: number } | undefined;
  server: ChatServer;
}
type Play = (answer: Answer, request?: Partial<ModelRequest>) => Promise<Played>;
/** Aborts after this many parts. `undefined`: before the call. */
type Abort = (answer: Answer, after: number | undefined) => Promise<Played>;
type ModelCase = readonly [name: string, check: (play: Play, abort: Abort) => Promise<void>];

const says = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const asked = (fields: Partial<ModelRequest> = {}): ModelRequest => ({
  system: '',
  messages: [says('hello')],
  tools: [],
  ...fields,
});
const textIn = (parts: readonly ModelPart[], type: 'text-delta' | 'reasoning-delta'): string =>
  parts.map((part) => (part.type === type ? part.text : '')).join('');
const callsIn = (parts: readonly ModelPart[]) =>
  parts.flatMap((part) => (part.type === 'tool-call' ? [[part.callId, part.name, JSON.parse(part.args)]] : []));
const finishOf = ({ parts, failed }: Played) => {
  assert.equal(failed, undefined, `the reply is whole, but the model threw ${failed?.code}`);
  const last = parts.at(-1);
  assert.ok(last?.type === 'finish', 'the last part of a whole reply is its finish');
  return last;
};

const replies: readonly ModelCase[] = [
  [
    'text comes in pieces as it is streamed, and ends with a finish',
    async (play) => {
      const played = await play({
        chunks: [delta({ role: 'assistant', content: 'Hel' }), delta({ content: 'lo' }), ends('stop')],
      });
      assert.equal(finishOf(played).reason, 'stop');
      assert.equal(textIn(played.parts, 'text-delta'), 'Hello');
      assert.ok(played.parts.filter(({ type }) => type === 'text-delta').length > 1, 'the text was not streamed');
    },
  ],
  [
    'reasoning comes apart from text',
    async (play) => {
      const { parts } = await play({
        chunks: [
          delta({ reasoning_content: 'hm, ' }),
          delta({ reasoning_content: 'yes' }),
          delta({ content: 'Yes.' }),
          ends('stop'),
        ],
      });
      assert.equal(textIn(parts, 'reasoning-delta'), 'hm, yes');
      assert.equal(textIn(parts, 'text-delta'), 'Yes.');
    },
  ],
  [
    'calls made side by side come whole and in order, each with its id and its arguments',
    async (play) => {
      const played = await play({
        chunks: [
          callPiece(0, 'a', 'look', '{"at"'),
          callPiece(1, 'b', 'look', ''),
          callRest(0, ':"x"}'),
          callRest(1, '{"at":"y"}'),
          ends('tool_calls'),
        ],
      });
      assert.equal(finishOf(played).reason, 'tool-calls');
      assert.deepEqual(callsIn(played.parts), [
        ['a', 'look', { at: 'x' }],
        ['b', 'look', { at: 'y' }],
      ]);
    },
  ],
  [
    'a server that says stop although it called a tool has called it',
    async (play) => {
      const played = await play({ chunks: [callPiece(0, 'a', 'look', '{}'), ends('stop')] });
      assert.equal(finishOf(played).reason, 'tool-calls');
      assert.equal(callsIn(played.parts).length, 1);
    },
  ],
  [
    'a reply that was cut by its length says so',
    async (play) =>
      assert.equal(finishOf(await play({ chunks: [delta({ content: 'a' }), ends('length')] })).reason, 'length'),
  ],
  [
    'token counts come with the finish, those of the cache among the input',
    async (play) => {
      const usage = {
        ...{ prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 },
        ...{ prompt_tokens_details: { cached_tokens: 7 }, completion_tokens_details: { reasoning_tokens: 4 } },
      };
      const finish = finishOf(await play({ chunks: [delta({ content: 'a' }), ends('stop'), used(usage)] }));
      const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = finish.usage ?? {};
      assert.deepEqual([inputTokens, outputTokens, cachedInputTokens, reasoningTokens], [20, 9, 7, 4]);
    },
  ],
];

const whole: Answer = { chunks: [delta({ content: 'ok' }), ends('stop')] };
const requests: readonly ModelCase[] = [
  [
    'system text, tools and messages reach the server, each result directly behind its calls',
    async (play) => {
      const call = (callId: string) => ({ callId, name: 'look', args: { at: callId } });
      const result = (callId: string): Message => ({
        role: 'tool',
        callId,
        content: [{ type: 'text', text: `saw ${callId}` }],
        isError: false,
      });
      const messages: Message[] = [
        says('go'),
        { role: 'assistant', content: [], toolCalls: [call('a'), call('b')] },
        result('a'),
        result('b'),
      ];
      const parameters = { type: 'object', properties: { at: { type: 'string' } } };
      const tools = [{ name: 'look', description: 'looks at a place', parameters }];
      const { server } = await play(whole, { system: 'be brief', messages, tools });
      const body = server.requests[0] as ReceivedRequest;
      assert.deepEqual(
        body.messages?.map(({ role }) => role),
        ['system', 'user', 'assistant', 'tool', 'tool'],
      );
      assert.deepEqual(
        body.messages?.slice(-2).map((message) => message.tool_call_id),
        ['a', 'b'],
      );
      assert.deepEqual(
        body.tools?.map((tool) => tool.function?.name),
        ['look'],
      );
      hasContents(body);
    },
  ],
  [
    'an image of the user reaches the server byte for byte',
    async (play) => {
      const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
      const messages: Message[] = [{ role: 'user', content: [{ type: 'image', mediaType: 'image/png', data }] }];
      const { server } = await play(whole, { messages });
      assert.ok(JSON.stringify(server.requests[0]).includes(`data:image/png;base64,${data}`));
    },
  ],
];

const aborts: readonly ModelCase[] = [
  [
    'before the call asks nobody',
    async (_, abort) => assert.equal((await abort(whole, undefined)).server.requests.length, 0),
  ],
  ['while the server is silent ends the call', async (_, abort) => left(await abort({ end: 'headers' }, 0))],
  ['before the first chunk ends the call', async (_, abort) => left(await abort({ end: 'hang' }, 0))],
  [
    'in the middle of the reply ends the call, and nothing comes behind it',
    async (_, abort) => {
      const played = await abort({ chunks: [delta({ content: 'a' })], end: 'hang' }, 1);
      await left(played);
      assert.equal(textIn(played.parts, 'text-delta'), 'a');
    },
  ],
  [
    'in the middle of a call ends it, and the call is not made',
    async (_, abort) => {
      const chunks = [delta({ content: 'a' }), callPiece(0, 'a', 'look', '{"at"')];
      const played = await abort({ chunks, end: 'hang' }, 2);
      await left(played);
      assert.deepEqual(callsIn(played.parts), []);
    },
  ],
];

/** Asserts that the exchange was left and that no reply was made of it. */
async function left({ parts, server }: Played): Promise<void> {
  assert.equal(
    parts.some(({ type }) => type === 'finish'),
    false,
    'an aborted reply has no finish',
  );
  for (let turns = 0; server.left === 0 && turns < 500; turns += 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(server.left, 1, 'the connection to the server was not closed');
}

const refusals = [
  [400, 'bad-request', false],
  [401, 'auth', false],
  [403, 'auth', false],
  [404, 'not-found', false],
  [429, 'rate-limit', true],
  [500, 'server', true],
  [503, 'server', true],
] as const;
const failures: readonly ModelCase[] = [
  ...refusals.map(
    ([status, code, retryable]): ModelCase => [
      `with status ${status} is ${code}, ${retryable ? 'worth' : 'not worth'} another attempt`,
      async (play) => {
        const { failed } = await play({ status, chunks: [{ error: { message: 'because', type: 'x' } }] });
        assert.deepEqual([failed?.code, failed?.retryable], [code, retryable]);
      },
    ],
  ),
  [
    'tells the wait that the server asks for',
    async (play) => {
      const { failed } = await play({
        status: 429,
        headers: { 'retry-after': '7' },
        chunks: [{ error: { message: 'slow' } }],
      });
      assert.equal(failed?.retryAfterMs, 7000);
    },
  ],
  [
    'for want of credit is not worth another attempt',
    async (play) => {
      const error = { message: 'no credit', type: 'insufficient_quota', code: 'insufficient_quota' };
      const { failed } = await play({ status: 429, chunks: [{ error }] });
      assert.deepEqual([failed?.code, failed?.retryable], ['quota', false]);
    },
  ],
  [
    'of a connection that is cut is worth another attempt',
    (play) => broken(play, { chunks: [delta({ content: 'a' })], end: 'cut' }),
  ],
  [
    'of a reply without a finish reason is worth another attempt',
    (play) => broken(play, { chunks: [delta({ content: 'a' })], end: 'close' }),
  ],
  ['of a reply without a chunk is worth another attempt', (play) => broken(play, { end: 'close' })],
  [
    'in the stream fails the attempt, though text came before it',
    (play) =>
      broken(play, { chunks: [delta({ content: 'a' }), { error: { message: 'overloaded', type: 'server_error' } }] }),
  ],
];

async function broken(play: Play, answer: Answer): Promise<void> {
  const { parts, failed } = await play(answer);
  assert.equal(
    parts.some(({ type }) => type === 'finish'),
    false,
    'a broken reply has no finish',
  );
  assert.equal(failed?.retryable, true);
}

const groups: readonly (readonly [name: string, cases: readonly ModelCase[]])[] = [
  ['a reply', replies],
  ['a request', requests],
  ['an abort', aborts],
  ['a failure', failures],
];

/** The time that the suite waits for the next part, and for the end of an aborted call. */
const SILENCE_MS = 10_000;
const ABORT_MS = 3_000;
/** The same limit after a model has used up the first one, so that each case ends soon. */
const LATER_MS = 500;
/** No reply of the suite has as many parts as this. */
const PARTS_MAX = 1000;

/** Waits for a model, and fails the case if the model does not answer. */
class Patience {
  #isUsedUp = false;

  of<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const limit = (ms: number, what: string): void => {
        clearTimeout(timer);
        const most = this.#isUsedUp ? Math.min(ms, LATER_MS) : ms;
        timer = setTimeout(() => {
          this.#isUsedUp = true;
          reject(new assert.AssertionError({ message: `${what} within ${most} ms` }));
        }, most);
      };
      const onAbort = (): void => limit(ABORT_MS, 'the call was aborted, and the model had not ended it');
      limit(SILENCE_MS, 'the model gave no part and no end');
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      work.then(resolve, reject).finally(done);
    });
  }
}

interface Asked {
  model: Model;
  server: ChatServer;
  request: ModelRequest;
  patience: Patience;
}

async function played({ model, server, request, patience }: Asked, after?: number | 'before'): Promise<Played> {
  const controller = new AbortController();
  const { signal } = controller;
  const parts: ModelPart[] = [];
  const stop = (): void => controller.abort(new Error('the suite pressed stop'));
  if (after === 'before') stop();
  // If a call is aborted before its request is sent, there is no connection to check.
  if (after === 0) void server.asked.then(stop);
  let stream: AsyncIterator<ModelPart> | undefined;
  try {
    const streamPromise = Promise.resolve(model.stream(request, { signal, attempt: 1 }));
    stream = (await patience.of(streamPromise, signal))[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await patience.of(stream.next(), signal);
      if (done) return { parts, failed: undefined, server };
      assert.equal(signal.aborted, false, 'a part came after the abort');
      parts.push(value);
      assert.ok(parts.length <= PARTS_MAX, `the model gave more than ${PARTS_MAX} parts`);
      if (typeof after === 'number' && after > 0 && parts.length >= after) setTimeout(stop, 0);
    }
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return { parts, failed: failureOf(error), server };
  } finally {
    stream?.return?.().catch(() => undefined);
  }
}

/**
 * Declares one test for each case. `makeModel` returns a model for the chat completions server at `baseURL`. `runner`
 * contains vitest's or node:test's `describe` and `test`, or your own. A failed case rejects with an AssertionError.
 */
export function modelSuite(
  makeModel: (server: { baseURL: string }) => Model | Promise<Model>,
  runner: SuiteRunner,
): void {
  const patience = new Patience();
  const never = new AbortController().signal;
  for (const [group, cases] of groups) {
    runner.describe(group, () => {
      for (const [name, check] of cases) {
        runner.test(name, async () => {
          const servers: ChatServer[] = [];
          const play = async (answer: Answer, request: ModelRequest, after?: number | 'before'): Promise<Played> => {
            const server = await chatServer(answer);
            servers.push(server);
            const model = await patience.of(Promise.resolve(makeModel({ baseURL: server.baseURL })), never);
            return played({ model, server, request, patience }, after);
          };
          try {
            await check(
              (answer, fields) => play(answer, asked(fields)),
              (answer, after) => play(answer, asked(), after ?? 'before'),
            );
          } finally {
            await Promise.all(servers.map((server) => server.close()));
          }
        });
      }
    });
  }
}
