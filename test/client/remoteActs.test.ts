/**
 * The request of each member of a remote conversation to its server, and the form that the store link gives it for another process, by
 * tables of all acts.
 */
import { describe, expect, it } from 'vitest';
import { type Content, RunchartError, SessionBusyError } from '../../src/index.ts';
import { errorOfCode } from '../../src/remote/errorOfCode.ts';
import { RemoteConversation, type RemoteLink } from '../../src/remote/remoteConversation.ts';
import { RemoteLog } from '../../src/remote/remoteLog.ts';
import { type LinkOptions, StoreLink } from '../../src/transports/followed/storeLink.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { flush } from '../support/virtualClock.ts';

type Asked = readonly [name: string, body: unknown];

/** A remote conversation whose acts are recorded, and answered by hand. */
function remote(answer: () => Promise<object> = async () => ({})) {
  const asked: Asked[] = [];
  const state = { closes: 0 };
  let ended = (_: RunchartError): void => undefined;
  const log = new RemoteLog(
    'c',
    () => undefined,
    (expected) => new RunchartError('bad_answer', expected),
  );
  const link: RemoteLink = {
    log,
    act: async (name, body) => {
      asked.push([name, body]);
      return (await answer()) as never;
    },
    errorOf: async () => undefined,
    whenEnded: (act) => {
      ended = act;
    },
    close: async () => {
      state.closes += 1;
      ended(new RunchartError('closed', 'it is closed'));
    },
  };
  let ids = 0;
  const newId = (): string => `id${++ids}`;
  const conversation = new RemoteConversation({ link, setTimer: () => () => undefined, newId });
  return { conversation, asked, state };
}

describe('a remote conversation', () => {
  const image = { type: 'image', mediaType: 'image/png' } as const;
  const sent = (content: unknown, more: object = {}): Asked => ['messages', { content, messageId: 'id1', ...more }];
  const ACTS: readonly (readonly [string, (on: ReturnType<typeof remote>['conversation']) => unknown, Asked])[] = [
    ['a text', (on) => on.send('hi'), sent('hi')],
    [
      'a message of its own id',
      (on) => on.send('hi', { messageId: 'm' }),
      ['messages', { content: 'hi', messageId: 'm' }],
    ],
    ['bytes', (on) => on.send([{ ...image, data: new Uint8Array(dot) }]), sent([{ ...image, data: base64(dot) }])],
    ['base64', (on) => on.send([{ ...image, data: 'eA==' }]), sent([{ ...image, data: 'eA==' }])],
    [
      'an address',
      (on) => on.send([{ ...image, data: new URL('https://h/a b') }] as unknown as Content),
      sent([{ ...image, data: 'https://h/a%20b' }]),
    ],
    [
      'a text beside a file',
      (on) =>
        on.send([
          { type: 'text', text: 'a' },
          { ...image, data: 'eA==' },
        ]),
      sent([
        { type: 'text', text: 'a' },
        { ...image, data: 'eA==' },
      ]),
    ],
    ['a steer', (on) => on.steer('hi'), sent('hi', { kind: 'steer' })],
    ['a followUp', (on) => on.followUp('hi'), sent('hi', { kind: 'followUp' })],
    [
      'a steer with bytes',
      (on) => on.steer([{ ...image, data: new Uint8Array(dot) }]),
      sent([{ ...image, data: base64(dot) }], { kind: 'steer' }),
    ],
    ['a steer by send', (on) => on.send('hi', { kind: 'steer' }), sent('hi', { kind: 'steer' })],
    [
      'a decision',
      (on) => on.decide({ callId: 'x', action: 'approve' }),
      ['decisions', { callId: 'x', action: 'approve' }],
    ],
    [
      'a settlement',
      (on) => on.settle('x', { didNotRun: true }),
      ['settlements', { callId: 'x', how: { didNotRun: true } }],
    ],
    ['a cancel', (on) => on.cancel(), ['cancel', {}]],
    ['a resumption', (on) => on.resume(), ['resume', { resumptionId: 'id1' }]],
    ['a cancel of a run', (on) => on.send('hi').cancel(), ['cancel', { runId: 'run_id1' }]],
  ];
  for (const option of [
    { kind: 'followUp' },
    { output: 'answer' },
    { whileSuspended: 'reject' },
    { by: 'ann' },
    { context: { a: 1 } },
    { model: 'big' },
    { settings: { effort: 'low' } },
    { tools: ['t'] },
  ] as const)
    (ACTS as unknown[]).push([
      `a message with ${JSON.stringify(option)}`,
      (on: { send(content: string, options: object): unknown }) => on.send('hi', option),
      sent('hi', option),
    ]);

  it.each(ACTS)('asks for %s, with everything of it and nothing else', async (_, act, expected) => {
    const { conversation, asked } = remote(() => new Promise(() => undefined));
    void act(conversation);
    await flush();
    expect(asked.at(-1)).toEqual(expected);
  });

  it('answers with the receipts of the server', async () => {
    for (const receipt of ['applied', 'duplicate', 'unknown', 'stale']) {
      const { conversation } = remote(async () => ({ receipt }));
      expect(await conversation.decide({ callId: 'x', action: 'deny' })).toBe(receipt);
      expect(await conversation.settle('x', { retry: true })).toBe(receipt);
    }
  });

  const refuse = (): Promise<never> => Promise.reject(new RunchartError('limit', 'no'));
  it('refuses every act as the server refuses it: acts and receipts reject, runs have the error', async () => {
    const { conversation } = remote(refuse);
    const limit = { code: 'limit', message: 'no' };
    await expect(conversation.decide({ callId: 'x', action: 'deny' })).rejects.toMatchObject(limit);
    await expect(conversation.settle('x', { retry: true })).rejects.toMatchObject(limit);
    await expect(conversation.cancel()).rejects.toMatchObject(limit);
    await expect(conversation.steer('a').delivered).rejects.toMatchObject(limit);
    await expect(conversation.followUp('a').delivered).rejects.toMatchObject(limit);
    for (const run of [conversation.send('a'), conversation.resume()])
      expect(await run.result).toMatchObject({ termination: 'Error', error: limit });
  });

  it('sends nothing for a message whose signal is over, and takes back one whose signal is over later', async () => {
    const { conversation, asked } = remote();
    const before = await conversation.send('a', { signal: AbortSignal.abort() }).result;
    expect([before.termination, asked]).toEqual(['Cancelled', []]);
    const abort = new AbortController();
    conversation.send('b', { signal: abort.signal, messageId: 'm' });
    await flush();
    expect(asked).toEqual([['messages', { content: 'b', messageId: 'm' }]]);
    abort.abort();
    abort.abort();
    await flush();
    expect(asked.slice(1)).toEqual([['cancel', { runId: 'run_m' }]]);
  });

  it('ends the iterations of a message whose signal is over', async () => {
    const { conversation } = remote();
    const run = conversation.send('a', { signal: AbortSignal.abort() });
    const ends: string[] = [];
    const iterate = async (name: string, items: AsyncIterable<unknown>): Promise<void> => {
      for await (const item of items) ends.push(JSON.stringify(item));
      ends.push(name);
    };
    void iterate('entries', run);
    void iterate('partialOutput', run.partialOutput);
    await expect.poll(() => [...ends].sort()).toEqual(['entries', 'partialOutput']);
  });

  it('refuses a schema as output, which cannot travel, and asks for nothing', async () => {
    const { conversation, asked } = remote();
    const run = conversation.send('a', { output: { '~standard': {} } as never });
    expect(await run.result).toMatchObject({ termination: 'Error', error: { code: 'configuration' } });
    expect(asked).toEqual([]);
  });

  it('ends every open run and receipt with its close, once', async () => {
    const { conversation, state } = remote(() => new Promise(() => undefined));
    const runs = [conversation.send('a'), conversation.resume()];
    const receipts = [conversation.steer('b'), conversation.followUp('c')];
    await conversation.close();
    await conversation.close();
    for (const run of runs) expect((await run.result).error).toMatchObject({ code: 'closed' });
    for (const { delivered } of receipts) await expect(delivered).rejects.toMatchObject({ code: 'closed' });
    expect(state.closes).toBe(2);
  });
});

describe('the link to a process that holds a conversation', () => {
  type Act = { [field: string]: unknown };

  function linkTo(act: (act: Act) => unknown, options: Partial<LinkOptions> = {}) {
    const acts: Act[] = [];
    const waits: { ms: number; fire(): void; isStopped: boolean }[] = [];
    const store = {
      follow: () => ({
        [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined), return: async () => ({}) }),
      }),
      act: async (_: string, asked: Act) => {
        acts.push(asked);
        return act(asked);
      },
      stateOf: async () => ({ length: 0, isHeld: true }),
    };
    let ids = 0;
    const link = new StoreLink({
      ...{ id: 'c', store: store as never, newId: () => `act${++ids}`, report: () => undefined },
      setTimer: (ms, fire) => {
        const wait = { ms, fire, isStopped: false };
        waits.push(wait);
        return () => {
          wait.isStopped = true;
        };
      },
      takeOver: async () => {
        throw new SessionBusyError('it is held');
      },
      ...options,
    });
    return { link, acts, waits };
  }

  it.each([
    [
      'messages',
      { content: 'hi', messageId: 'm', kind: 'steer', by: 'ann' },
      { type: 'send', content: 'hi', options: { messageId: 'm', kind: 'steer', by: 'ann' } },
    ],
    ['messages', { content: 'hi', messageId: undefined }, { type: 'send', content: 'hi', options: {} }],
    [
      'decisions',
      { callId: 'x', action: 'deny', by: 'ann' },
      { type: 'decide', decision: { callId: 'x', action: 'deny', by: 'ann' } },
    ],
    ['settlements', { callId: 'x', how: { retry: true } }, { type: 'settle', callId: 'x', how: { retry: true } }],
    ['cancel', {}, { type: 'cancel' }],
    ['cancel', { runId: 'r' }, { type: 'cancel', runId: 'r' }],
    ['resume', { resumptionId: 's' }, { type: 'resume', resumptionId: 's' }],
    ['resume', { resumptionId: undefined }, { type: 'resume' }],
  ] as const)('asks for %s %j as the act %j, with the key of a repeated request', async (name, body, act) => {
    for (const request of [undefined, 'key']) {
      const { link, acts } = linkTo(() => ({ receipt: 'applied', runId: 'r', entries: 0 }));
      expect(await link.act(name, body, request)).toEqual({ receipt: 'applied', runId: 'r' });
      expect(acts[0]).toEqual({ ...act, actId: 'act1', ...(request && { request }) });
    }
  });

  it('keeps the id of an act that is asked for again, and gives another one to the next act', async () => {
    let isGone = true;
    const { link, acts } = linkTo(() => {
      if (!isGone) return {};
      isGone = false;
      throw new RunchartError('unavailable', 'nobody answered');
    });
    await link.ask({ type: 'rename', title: 'a' });
    await link.ask({ type: 'rename', title: 'b' });
    expect(acts.map(({ actId, title }) => [actId, title])).toEqual([
      ['act1', 'a'],
      ['act1', 'a'],
      ['act2', 'b'],
    ]);
  });

  it('asks a holder that does not answer twice, and then rejects', async () => {
    const { link, acts } = linkTo(() => {
      throw new RunchartError('unavailable', 'nobody answered');
    });
    await expect(link.ask({ type: 'close' })).rejects.toMatchObject({
      code: 'unavailable',
      message: 'nobody answered',
    });
    expect(acts).toHaveLength(2);
  });

  it.each(['limit', 'agent_busy', 'invalid_decision', 'decision_refused', 'not_found', 'internal', 'session_busy'])(
    'passes on the refusal %s, and asks nobody else',
    async (code) => {
      const { link, acts } = linkTo(
        () => {
          throw new RunchartError(code, 'no');
        },
        {
          takeOver: () => {
            throw new Error('it was taken over');
          },
        },
      );
      const error: unknown = await link.ask({ type: 'close' }).catch((refusal: unknown) => refusal);
      expect(error).toMatchObject({ code, message: expect.stringContaining('no') });
      expect((error as Error).constructor).toBe(errorOfCode(code, '').constructor);
      expect(acts).toHaveLength(1);
    },
  );

  it('refuses an act that is no JSON, and asks nobody', async () => {
    const { link, acts } = linkTo(() => ({}));
    await expect(link.ask({ type: 'rename', title: 1n })).rejects.toMatchObject({ code: 'configuration' });
    expect(acts).toEqual([]);
  });

  it('passes on what fails while it carries an act out itself', async () => {
    const { link, acts } = linkTo(
      () => {
        throw new RunchartError('unavailable', 'nobody answered');
      },
      {
        takeOver: async () => {
          throw new RunchartError('not_found', 'there is none');
        },
      },
    );
    await expect(link.ask({ type: 'close' })).rejects.toMatchObject({ code: 'not_found' });
    expect(acts).toHaveLength(1);
  });

  it('waits at most 10 s for the entries of an answer, and no longer than until its close', async () => {
    for (const end of ['time', 'close'] as const) {
      const { link, waits } = linkTo(() => ({ ok: true, entries: 5 }));
      let isAnswered = false;
      const answer = link.ask({ type: 'rename', title: 'a' }).then((value) => {
        isAnswered = true;
        return value;
      });
      await flush();
      expect([waits.map(({ ms }) => ms), isAnswered]).toEqual([[10_000], false]);
      if (end === 'time') waits[0]?.fire();
      else await link.close();
      expect(await answer).toEqual({ ok: true });
      if (end === 'close') expect(waits[0]?.isStopped).toBe(true);
    }
  });

  it('asks again for the waiting calls of sub-agents if another call begins to wait meanwhile, and does not report the earlier answer', async () => {
    const entries = [
      { type: 'conversation', schema: 1, cwd: '/', createdAt: 1 },
      { type: 'run-started', runId: 'r' },
      { type: 'user-message', runId: 'r', messageId: 'u', kind: 'direct', content: [{ type: 'text', text: 'hi' }] },
      { type: 'agent-output', runId: 'r', item: { type: 'tool-call', callId: 'outer', name: 'spawn', args: {} } },
      { type: 'tool-started', runId: 'r', callId: 'outer', idempotencyKey: 'k' },
      { type: 'sub-agent', runId: 'r', callId: 'outer', child: 'b', phase: 'started' },
    ];
    const answers: ((pending: object[]) => void)[] = [];
    const answer = () =>
      new Promise((resolve) => {
        const overview = { createdAt: 1, entries: entries.length, status: 'active', unsettled: [] };
        answers.push((pending) => resolve({ overview: { ...overview, pending } }));
      });
    const store = { follow: () => [], act: answer, stateOf: async () => ({ length: entries.length, isHeld: true }) };
    const { link } = linkTo(() => ({}), { store: store as never });
    for (const [seq, entry] of entries.entries())
      link.log.takeEntry({ seq, at: 1, conversationId: 'c', runId: null, ...entry });
    link.log.takeSignal({ type: 'status', status: 'active' });
    let synced = 0;
    const sync = () =>
      link.sync().then(() => {
        synced += 1;
      });
    const first = sync();
    await expect.poll(() => answers.length).toBe(1);
    const second = [sync(), sync()];
    const call = { callId: 'x', name: 'pay', args: {}, reason: 'approval', suspension: 1, path: ['outer', 'x'] };
    await flush();
    answers[0]?.([]);
    await first;
    await expect.poll(() => answers.length).toBe(2);
    await flush();
    expect(synced).toBe(1);
    answers[1]?.([call]);
    await Promise.all(second);
    expect(answers).toHaveLength(2);
    expect(link.log.pending.map(({ callId }) => callId)).toEqual(['x']);
  });

  it('after its close reports its end once, and finds no conversation', async () => {
    const { link } = linkTo(() => ({}));
    const ends: string[] = [];
    link.whenEnded(({ code }) => void ends.push(code));
    link.begin();
    await link.close();
    await link.close();
    expect([ends, link.isEnded]).toEqual([['closed'], true]);
    await expect(link.sync()).rejects.toMatchObject({ code: 'not_found' });
  });
});
