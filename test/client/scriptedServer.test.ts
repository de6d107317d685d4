/** A client whose server is a script: streams that end, answers that come late, another log under the same id, and values that are no JSON. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { connect } from '../../src/client/index.ts';

const frame = (event: string, data: object): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
const overviewOf = (entries: number, more: object = {}) => ({
  ...{ createdAt: 1, entries, status: 'idle', pending: [], unsettled: [] },
  ...more,
});
const entryOf = (seq: number, more: object) => ({ seq, at: 1, conversationId: 'a', runId: null, ...more });
const head = (createdAt = 1) => frame('entry', entryOf(0, { type: 'conversation', schema: 1, cwd: '/', createdAt }));
type Answer = object | Promise<object> | number;

/** `answer` answers every request but those of the events, whose streams are written by hand. */
function scripted(answer: (path: string, body: Record<string, unknown>) => Answer) {
  const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  const statuses: number[] = [];
  const posts: string[] = [];
  const events = (): Response => {
    const status = statuses.shift() ?? 200;
    if (status !== 200) return new Response('', { status });
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void streams.push(controller) });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const send = (async (url: string, { body }: RequestInit) => {
    const path = url.replace('http://h/conversations', '');
    if (path.includes('/events')) return events();
    posts.push(path.replace(/\?.*/, ''));
    const value = await answer(path, JSON.parse(String(body ?? '{}')));
    return typeof value === 'number' ? new Response('', { status: value }) : Response.json(value);
  }) as typeof fetch;
  let ids = 0;
  const client = connect({
    baseURL: 'http://h',
    fetch: send,
    newId: () => `m${++ids}`,
    random: () => 0,
    setTimer: (ms, fire) => {
      if (ms < 30_000) queueMicrotask(fire);
      return () => undefined;
    },
  });
  onTestFinished(() => client.close());
  const write = (text: string): void => streams.at(-1)?.enqueue(new TextEncoder().encode(text));
  const end = (): void => streams.at(-1)?.close();
  const opened = (count: number) => expect.poll(() => streams.length).toBe(count);
  return { client, write, end, opened, statuses, posts, streams };
}

/** A client that has opened the conversation `a`, which has its first entry only. */
async function opened(answer: Parameters<typeof scripted>[0] = () => overviewed({})) {
  const server = scripted((path, body) => (path.startsWith('?') ? overviewed({ id: 'a' }) : answer(path, body)));
  const opening = server.client.open('a');
  await server.opened(1);
  server.write(frame('overview', overviewOf(1)) + head());
  return { ...server, conversation: await opening };
}
const overviewed = (value: object, entries = 1) => ({ ...value, overview: overviewOf(entries) });

describe('a message whose signal is aborted before it is sent', () => {
  it('has a run that is over for whoever iterates it', async () => {
    const { conversation, posts } = await opened();
    const run = conversation.send('hi', { signal: AbortSignal.abort() });
    const items: unknown[] = [];
    for await (const item of run) items.push(item);
    for await (const item of run.partialOutput) items.push(item);
    expect([items, (await run.result).termination, posts]).toEqual([[], 'Cancelled', ['']]);
  });
});

describe('a client that is closed', () => {
  it('while a conversation opens rejects the opening, since its entries are not here', async () => {
    const { client, opened } = scripted(() => overviewed({ id: 'a' }, 5));
    const opening = client.open('a').catch((error: { code: string }) => error.code);
    await opened(1);
    await client.close();
    expect(await opening).toBe('closed');
  });
});

describe('the waiting calls of sub-agents', () => {
  it('that begin to wait while the client asks for them are asked for again', async () => {
    const answers: ((pending: object[]) => void)[] = [];
    const { conversation, write } = await opened(
      () => new Promise((resolve) => answers.push((pending) => resolve({ overview: overviewOf(6, { pending }) }))),
    );
    const ofRun = (seq: number, more: object) => frame('entry', entryOf(seq, { runId: 'r', ...more }));
    const call = { type: 'tool-call', callId: 'outer', name: 'spawn', args: {} };
    write(ofRun(1, { type: 'run-started' }));
    write(ofRun(2, { type: 'user-message', messageId: 'u', kind: 'direct', content: [{ type: 'text', text: 'hi' }] }));
    write(ofRun(3, { type: 'agent-output', item: call }));
    write(ofRun(4, { type: 'tool-started', callId: 'outer', idempotencyKey: 'k' }));
    write(ofRun(5, { type: 'sub-agent', callId: 'outer', child: 'b', phase: 'started' }));
    const waits = (callId: string): void =>
      write(
        frame('live', {
          type: 'tool-progress',
          runId: 'r',
          callId: 'outer',
          elapsedMs: 1,
          update: { waiting: [callId] },
        }),
      );
    const inner = (callId: string) => ({
      ...{ callId, name: 'pay', args: {}, reason: 'approval', suspension: 1 },
      path: ['outer', callId],
    });
    waits('one');
    await expect.poll(() => answers.length).toBe(1);
    waits('two');
    waits('three');
    await expect.poll(() => conversation.log().length).toBe(6);
    await new Promise((resolve) => setImmediate(resolve));
    answers[0]?.([inner('one')]);
    await expect.poll(() => answers.length).toBe(2);
    answers[1]?.([inner('one'), inner('two'), inner('three')]);
    await expect.poll(() => conversation.pending.map(({ callId }) => callId)).toEqual(['one', 'two', 'three']);
    expect(answers).toHaveLength(2);
  });
});

describe('a token that expires again and again', () => {
  it('while nothing happens in the conversation ends no connection, as long as each next request is accepted', async () => {
    const { conversation, end, write, opened: opens, statuses } = await opened();
    for (let times = 1; times <= 5; times += 1) {
      statuses.push(401);
      end();
      await opens(times + 1);
      write(frame('overview', overviewOf(1)));
      await expect.poll(() => conversation.connection.state).not.toBe('connecting');
    }
    expect(conversation.connection).toEqual({ state: 'open' });
  });

  it('ends the connection at the third refusal in a row', async () => {
    const { conversation, end, statuses } = await opened();
    statuses.push(401, 403, 401);
    end();
    await expect.poll(() => conversation.connection.state).toBe('failed');
    expect(statuses).toEqual([]);
  });
});

describe('a conversation that was deleted and made anew', () => {
  const ofMessage = (type: string, seq: number, messageId: string, runId: string | null): string =>
    frame('entry', entryOf(seq, { type, runId, messageId, kind: 'followUp', content: [{ type: 'text', text: 'hi' }] }));
  const started = (seq: number, runId: string) => frame('entry', entryOf(seq, { type: 'run-started', runId }));

  /** One run and one queued message of the old log, and one message whose answer is on its way. */
  async function remade(lose: 'overview' | 'reset') {
    let answerLast = (_: object): void => {};
    const server = await opened((_, { content, messageId }) => {
      if (content === 'last')
        return new Promise((resolve) => {
          answerLast = resolve;
        });
      return overviewed({ messageId, runId: `run_${messageId}` }, content === 'first' ? 3 : 4);
    });
    const { conversation, write, end, opened: opens } = server;
    const first = conversation.send('first', { messageId: 'first' });
    const queued = conversation.followUp('later');
    write(started(1, 'run_first') + ofMessage('user-message', 2, 'first', 'run_first'));
    write(ofMessage('message-queued', 3, queued.messageId, null));
    await expect.poll(() => conversation.log().length).toBe(4);
    const last = conversation.send('last', { messageId: 'last' });
    await expect.poll(() => server.posts.length).toBe(4);
    end();
    await opens(2);
    if (lose === 'reset') write(frame('live', { type: 'reset', runId: '' }));
    else {
      write(frame('overview', overviewOf(3, { createdAt: 2 })));
      await opens(3);
      write(frame('overview', overviewOf(3, { createdAt: 2 })));
    }
    write(head(2) + started(1, 'run_last') + ofMessage('user-message', 2, 'last', 'run_last'));
    await expect.poll(() => conversation.log().length).toBe(3);
    answerLast({ messageId: 'last', runId: 'run_last', overview: overviewOf(3, { createdAt: 2 }) });
    return { ...server, first, queued, last };
  }

  it.each(['overview', 'reset'] as const)(
    'takes its runs and queued messages with it, and one of the new log continues: by an %s',
    async (lose) => {
      const { write, first, queued, last } = await remade(lose);
      expect(await first.result).toMatchObject({ termination: 'Error', error: { code: 'not_found' } });
      await expect(queued.delivered).rejects.toMatchObject({ code: 'not_found' });
      const items: unknown[] = [];
      for await (const item of first) items.push(item);
      const stop = { type: 'run-stop', runId: 'run_last', reason: 'completed', cause: 'end_turn' };
      write(frame('entry', entryOf(3, stop)));
      write(frame('entry', entryOf(4, { type: 'checkpoint', boundary: 'RunFinished', runId: 'run_last' })));
      expect(await last.result).toMatchObject({ runId: 'run_last', reason: 'completed' });
    },
  );
});

describe('an answer that counts more entries than the log that began meanwhile', () => {
  const paid = (createdAt: number, entries: number, more: object = {}) => ({
    receipt: 'applied',
    overview: overviewOf(entries, { createdAt, ...more }),
  });
  const tell = (seq: number): string => frame('entry', entryOf(seq, { type: 'notice', code: 'x', text: 'y' }));

  it('is returned once the entries of the new log have arrived, and does not change the new log', async () => {
    const { conversation, write, end, opened: opens } = await opened(() => paid(1, 9, { status: 'active' }));
    const decided = conversation.decide({ callId: 'x', action: 'approve' });
    await expect.poll(() => conversation.log().length).toBe(1);
    let isDecided = false;
    void decided.then(() => {
      isDecided = true;
    });
    end();
    await opens(2);
    write(frame('overview', overviewOf(2, { createdAt: 2 })));
    await opens(3);
    write(frame('overview', overviewOf(2, { createdAt: 2 })) + head(2));
    await expect.poll(() => conversation.log().length).toBe(1);
    expect(isDecided).toBe(false);
    write(tell(1));
    expect(await decided).toBe('applied');
    expect(conversation.status).toBe('idle');
    const started = { type: 'run-started', runId: 'r' };
    write(frame('entry', entryOf(2, started)));
    await expect.poll(() => conversation.status).toBe('active');
  });

  it('of the opening opens the conversation with the new log', async () => {
    const { client, write, opened: opens } = scripted(() => overviewed({ id: 'a' }, 9));
    const opening = client.open('a');
    await opens(1);
    write(frame('overview', overviewOf(1, { createdAt: 2 })) + head(2));
    expect((await opening).log()).toHaveLength(1);
  });
});

describe('the result of a run', () => {
  const ofRun = (seq: number, more: object): string => frame('entry', entryOf(seq, { runId: 'run_m', ...more }));
  const content = [{ type: 'text', text: 'hi' }];

  it.each([
    [
      { code: 'model', message: 'no' },
      { code: 'model', message: 'no' },
    ],
    [{ code: 5, message: 'no' }, undefined],
    [{ code: 'model' }, undefined],
    ['no', undefined],
    [null, undefined],
  ])('that failed has the error %j of the server as %j', async (error, expected) => {
    const { conversation, write } = await opened((path) =>
      path.includes('/runs/') ? { error } : overviewed({ messageId: 'm', runId: 'run_m' }),
    );
    const run = conversation.send('hi', { messageId: 'm' });
    write(
      ofRun(1, { type: 'run-started' }) + ofRun(2, { type: 'user-message', messageId: 'm', kind: 'direct', content }),
    );
    write(ofRun(3, { type: 'run-stop', reason: 'error', cause: 'model' }));
    write(ofRun(4, { type: 'checkpoint', boundary: 'RunFinished' }));
    const result = await run.result;
    expect([result.termination, result.error]).toEqual(['Error', expected]);
  });

  it('whose message was returned earlier is cancelled when the message is repeated', async () => {
    const { conversation, write } = await opened(() => overviewed({ messageId: 'm', runId: 'run_m' }));
    const queued = { messageId: 'm', kind: 'followUp', content };
    write(frame('entry', entryOf(1, { type: 'message-queued', ...queued })));
    write(frame('entry', entryOf(2, { type: 'message-returned', messageId: 'm', why: 'closed' })));
    await expect.poll(() => conversation.log().length).toBe(3);
    const run = conversation.send('hi', { messageId: 'm', kind: 'followUp' });
    expect(await run.result).toMatchObject({ runId: 'run_m', termination: 'Cancelled' });
  });
});

describe('a value that is no JSON', () => {
  const circular: { [key: string]: unknown } = {};
  circular.own = circular;

  it.each([
    ['a number that is too large for JSON', 1n],
    ['an object that contains itself', circular],
  ])('%s is refused at once with the code of the embedded conversation, and nothing is sent', async (_, value) => {
    const { conversation, posts } = await opened();
    const json = value as never;
    const message = expect.stringMatching(/^only JSON can be sent/);
    const configuration = { code: 'configuration', message };
    expect((await conversation.send('hi', { context: json }).result).error).toEqual(configuration);
    await expect(conversation.steer(json).delivered).rejects.toMatchObject(configuration);
    const edit = conversation.decide({ callId: 'x', action: 'edit', args: json });
    await expect(edit).rejects.toMatchObject({ name: 'InvalidDecisionError', code: 'invalid_decision', message });
    await expect(conversation.settle('x', { ran: json })).rejects.toMatchObject({ code: 'invalid_decision', message });
    expect(posts).toEqual(['']);
  });
});
