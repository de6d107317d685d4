/** Repeated requests, the blobs of copied entries, and a final answer while it streams. */
import { describe, expect, it, vi } from 'vitest';
import { withCopiedBlobs } from '../../src/conversation/copies/copiedBlobs.ts';
import { partialOutputOf } from '../../src/conversation/partialOutput.ts';
import { overviewOf } from '../../src/conversation/served/conversationOverview.ts';
import { once } from '../../src/conversation/served/repeatedRequests.ts';
import { RunchartError } from '../../src/errors.ts';

describe('a repeated request', () => {
  const conversation = () => ({}) as never;

  it('acts once, also while it runs, and has the first answer, an error included', async () => {
    const on = conversation();
    let answer = (_: string): void => {};
    const act = vi.fn(
      () =>
        new Promise<string>((resolve) => {
          answer = resolve;
        }),
    );
    const both = [once(on, 'k', act), once(on, 'k', act)];
    answer('first');
    expect(await Promise.all(both)).toEqual(['first', 'first']);
    expect([await once(on, 'k', act), act.mock.calls.length]).toEqual(['first', 1]);
    const fails = vi.fn(async () => Promise.reject(new Error('no')));
    for (let count = 0; count < 2; count += 1) await expect(once(on, 'f', fails)).rejects.toThrow('no');
    expect(fails).toHaveBeenCalledTimes(1);
  });

  it.each(['limit', 'unavailable', 'busy'])(
    'acts again after the error %s only if that is for the moment',
    async (code) => {
      const on = conversation();
      const act = vi.fn(async () => Promise.reject(new RunchartError(code, 'not now')));
      for (let count = 0; count < 2; count += 1) await expect(once(on, 'k', act)).rejects.toMatchObject({ code });
      expect(act).toHaveBeenCalledTimes(code === 'busy' ? 1 : 2);
    },
  );

  it('is another one under another key, in another conversation, or without a key', async () => {
    const [on, other] = [conversation(), conversation()];
    let acts = 0;
    const act = async (): Promise<number> => {
      acts += 1;
      return acts;
    };
    const answers = [
      await once(on, 'a', act),
      await once(on, 'b', act),
      await once(other, 'a', act),
      await once(on, undefined, act),
      await once(on, undefined, act),
      await once(on, 'a', act),
      await once(on, '', act),
      await once(on, '', act),
    ];
    expect(answers).toEqual([1, 2, 3, 4, 5, 1, 6, 6]);
  });

  it('is remembered among the last 256 requests, and the oldest is forgotten first', async () => {
    const on = conversation();
    const act = vi.fn(async () => 0);
    for (let key = 0; key < 256; key += 1) await once(on, `${key}`, act);
    await once(on, '0', act);
    expect(act).toHaveBeenCalledTimes(256);
    await once(on, 'new', act);
    for (const key of ['1', '2', '255', 'new']) await once(on, key, act);
    expect(act).toHaveBeenCalledTimes(257);
    await once(on, '0', act);
    expect(act).toHaveBeenCalledTimes(258);
  });
});

describe('a copied entry', () => {
  const image = (data: string) => ({ type: 'image', mediaType: 'image/png', data });
  const file = (data: string) => ({ type: 'file', mediaType: 'text/plain', name: 'n', data });
  const text = { type: 'text', text: 'blob:no' };
  const copied = async (entry: object) => {
    const asked: unknown[] = [];
    const made = await withCopiedBlobs(entry as never, async (reference, mediaType) => {
      asked.push([reference, mediaType]);
      return `blob:copy-${reference.slice(5)}`;
    });
    return { made, asked };
  };

  it('names the copies of its blobs, and keeps everything else', async () => {
    const entry = {
      type: 'user-message',
      seq: 1,
      content: [text, image('blob:a'), image('QUJD'), file('blob:b'), image('https://x/y')],
    };
    const { made, asked } = await copied(entry);
    expect(made).toEqual({
      ...entry,
      content: [text, image('blob:copy-a'), image('QUJD'), file('blob:copy-b'), image('https://x/y')],
    });
    expect(asked).toEqual([
      ['blob:a', 'image/png'],
      ['blob:b', 'text/plain'],
    ]);
    expect(entry.content[1]).toEqual(image('blob:a'));
  });

  it('of a result and of a history does too, in every message', async () => {
    const { made } = await copied({ type: 'tool-result', content: [image('blob:a')] });
    expect(made).toEqual({ type: 'tool-result', content: [image('blob:copy-a')] });
    const message = (role: string, data: string) => ({ role, content: [image(data)] });
    const history = {
      type: 'history',
      messages: [message('user', 'blob:a'), message('tool', 'blob:b'), message('assistant', 'x')],
    };
    expect((await copied(history)).made).toEqual({
      type: 'history',
      messages: [message('user', 'blob:copy-a'), message('tool', 'blob:copy-b'), message('assistant', 'x')],
    });
  });

  it('without content is the same entry', async () => {
    const entry = { type: 'checkpoint', boundary: 'RunStarted' };
    expect((await copied(entry)).made).toBe(entry);
  });
});

describe('a final answer while it streams', () => {
  const delta = (words: string, more: object = {}) => ({ type: 'text-delta', runId: 'r', text: words, ...more });
  async function values(items: readonly object[], output?: unknown): Promise<unknown[]> {
    async function* run() {
      yield* items as never[];
    }
    const seen: unknown[] = [];
    for await (const value of partialOutputOf(run(), Promise.resolve({ output }))) seen.push(value);
    return seen;
  }

  it.each<[string, object[], unknown, unknown[]]>([
    [
      'piece by piece',
      [delta('{"a":'), delta('[1'), delta(',2]}')],
      { a: [1, 2] },
      [{}, { a: [1] }, { a: [1, 2] }, { a: [1, 2] }],
    ],
    ['in a fence', [delta('```json\n{"a":1'), delta('}\n```')], undefined, [{ a: 1 }]],
    ['in a fence without a language', [delta('```\n[1'), delta(']\n```')], undefined, [[1]]],
    ['of a number in a fence', [delta('```\n12\n```')], undefined, [12]],
    ['that is no JSON', [delta('So: '), delta('no')], undefined, []],
    ['of nothing', [delta(' \n')], undefined, []],
    ['of a sub-agent is not it', [delta('{"a":1}', { path: ['c1'] })], undefined, []],
    ['and reasoning is not it', [{ ...delta('{"a":1}'), type: 'reasoning-delta' }], undefined, []],
    [
      'anew after a reset',
      [delta('{"a":1'), { type: 'reset', runId: 'r' }, delta('{"b":2')],
      undefined,
      [{ a: 1 }, { b: 2 }],
    ],
    [
      'anew after a reply',
      [delta('{"a":1}'), { type: 'model-reply' }, delta('{"b":2}')],
      undefined,
      [{ a: 1 }, { b: 2 }],
    ],
    ['that is null', [], null, [null]],
    ['that is false', [], false, [false]],
    ['that the schema changed', [delta('{"a":"1"}')], { a: 1 }, [{ a: '1' }, { a: 1 }]],
  ])('%s', async (_, items, output, expected) => {
    expect(await values(items, output)).toEqual(expected);
  });

  it('gives a long text again only after it has grown by a sixty-fourth', async () => {
    const long = `["${'x'.repeat(6_398)}`;
    const items = [delta(long), ...Array.from({ length: 99 }, () => delta('y')), delta('z')];
    const lengths = (await values(items)).map((value) => (value as string[])[0]?.length);
    expect(lengths).toEqual([6_398, 6_498]);
  });
});

it('an overview has the length and the beginning of the log, also of one without entries', () => {
  const state = { status: 'idle', pending: [], unsettled: [] } as never;
  const entry = (type: string) => ({ type, createdAt: 7 }) as never;
  expect(overviewOf(state, [])).toEqual({ createdAt: 0, entries: 0, status: 'idle', pending: [], unsettled: [] });
  expect(overviewOf(state, [entry('conversation'), entry('x')])).toMatchObject({ createdAt: 7, entries: 2 });
  expect(overviewOf(state, [entry('x')])).toMatchObject({ createdAt: 0, entries: 1 });
});
