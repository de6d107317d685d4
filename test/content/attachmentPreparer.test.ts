/** Tests the images of a conversation for a model: each is read once while the cache has room, one after the other. */
import { describe, expect, it } from 'vitest';
import type { Json, LogEntry, Message, StoredPart } from '../../machines/vocabulary.ts';
import { AttachmentPreparer, AttachmentPreparers } from '../../src/content/attachmentPreparer.ts';
import { Attachments } from '../../src/content/content.ts';
import { imageLimitsOf } from '../../src/content/imageFormat.ts';
import type { LogHandle } from '../../src/stores/logStore.ts';
import { modelReply, stamped } from '../../src/testing/storeSuite/storeCase.ts';
import { base64, dot, plain, pngHeader } from '../support/samplePictures.ts';

const MIB = 1_048_576;
const { signal } = new AbortController();
const message = (...references: string[]): Message => ({
  role: 'user',
  content: references.map((data) => ({ type: 'image', mediaType: 'image/png', data })),
});

/** A picture of a few pixels and many bytes. */
function heavy(bytes: number): Uint8Array {
  const picture = new Uint8Array(bytes);
  picture.set(pngHeader(9, 9));
  return picture;
}

function gallery(getBlob: (reference: string) => Promise<Uint8Array>, cachedMost?: number) {
  const read: string[] = [];
  const diagnostics: [string, Json][] = [];
  const made = new AttachmentPreparer({
    limits: imageLimitsOf({ id: 'm', imageLimits: { maxBytes: 32 * MIB } }),
    scale: undefined,
    ...(cachedMost !== undefined && { cachedMost }),
    getBlob: (reference) => {
      read.push(reference);
      return getBlob(reference);
    },
    diagnose: (code, detail) => void diagnostics.push([code, detail]),
  });
  return { made, read, diagnostics };
}

describe('a preparer of images', () => {
  it('reads each image once; messages without images stay the objects they are', async () => {
    const { made, read } = gallery(async () => dot);
    const words: Message = { role: 'user', content: [{ type: 'text', text: 'Hi.' }] };
    const messages = [words, message('blob:1', 'blob:2'), message('blob:1')];
    const first = await made.prepare(messages, signal);
    const second = await made.prepare(messages, signal);
    expect(read).toEqual(['blob:1', 'blob:2']);
    expect(first[0]).toBe(words);
    expect(second).toEqual(first);
    expect(messages[2]).toEqual(message('blob:1'));
  });

  it.each([
    ['what was shown last, where not all have room', 'abacab', 'abcb'],
    ['all that have room', 'aabbab', 'ab'],
    ['as much as has room, however many came before', 'abcdefghabcdefghgh', 'abcdefghabcdefgh'],
    ['the last one, also where it alone is too large', 'aXXaXX', 'aXaX'],
  ])('keeps %s: shown %s, read %s', async (_, shown, expected) => {
    // Room for two images of these and a half.
    const { made, read } = gallery(async (name) => heavy(name === 'blob:X' ? 900 : 300), 1_000);
    for (const name of shown) await made.prepare([message(`blob:${name}`)], signal);
    expect(read).toEqual([...expected].map((name) => `blob:${name}`));
  });

  it('shows each form of an image in a log, with the type of its bytes', async () => {
    const jpeg = await plain(3, 2, 'jpeg');
    const { made, read, diagnostics } = gallery(async () => jpeg);
    const image = (mediaType: string, data: string) => ({ type: 'image' as const, mediaType, data });
    const forms = [
      [base64(dot), 'image/png', base64(dot)],
      [`data:image/gif;base64,${base64(dot)}`, 'image/png', base64(dot)],
      [`DATA:image/gif;name=a;BASE64,${base64(jpeg)}`, 'image/jpeg', base64(jpeg)],
      ['blob:1', 'image/jpeg', base64(jpeg)],
    ] as const;
    const addresses = ['http://pictures.test/a', 'https://pictures.test/a', 'HTTPS://pictures.test/a'];
    for (const [data, mediaType, bytes] of forms) {
      const [shown] = await made.prepare([{ role: 'user', content: [image('image/gif', data)] }], signal);
      expect(shown?.content).toEqual([image(mediaType, bytes)]);
    }
    for (const data of addresses) {
      const content = [image('image/gif', data)];
      expect(await made.prepare([{ role: 'user', content }], signal)).toEqual([{ role: 'user', content }]);
    }
    expect([read, diagnostics]).toEqual([['blob:1'], []]);
  });

  it('stops reading after an abort', async () => {
    const abort = new AbortController();
    const { made, read } = gallery(async () => {
      abort.abort(new Error('cancelled'));
      return dot;
    });
    await expect(made.prepare([message('blob:1', 'blob:2')], abort.signal)).rejects.toThrow('cancelled');
    expect(read).toEqual(['blob:1']);
  });

  it('tries a missing image again in the next request, and reports it once', async () => {
    let there = false;
    const { made, diagnostics } = gallery(async () => (there ? dot : Promise.reject(new Error('no such blob'))));
    for (const _ of [1, 2]) {
      const [shown] = await made.prepare([message('blob:1')], signal);
      expect(shown?.content[0]).toMatchObject({ type: 'text' });
    }
    there = true;
    const [shown] = await made.prepare([message('blob:1')], signal);
    expect(shown?.content[0]).toMatchObject({ type: 'image' });
    expect(diagnostics).toEqual([
      ['image_missing', { mediaType: 'image/png', image: 'blob:1', message: 'Error: no such blob' }],
    ]);
  });

  it('reports an image with any bytes only as not shown', async () => {
    for (const bytes of [new Uint8Array(0), Buffer.from('<svg/>'), dot.subarray(0, 10), pngHeader(60_000, 60_000)]) {
      const { made, diagnostics } = gallery(async () => bytes);
      const [shown] = await made.prepare([message('blob:1')], signal);
      expect(shown?.content).toEqual([{ type: 'text', text: expect.stringContaining('It is not shown:') }]);
      expect(diagnostics.map(([code]) => code)).toEqual(['image_not_shown']);
    }
  });
});

describe('the same bytes under several names and types', () => {
  const NAMES = [undefined, 'a.md', 'b.md', 'a.md\nb'];
  const TYPES = ['text/markdown', 'text/plain', 'application/pdf'];
  const parts = NAMES.flatMap((name) =>
    TYPES.map(
      (mediaType): StoredPart => ({ type: 'file', mediaType, data: 'blob:1', ...(name !== undefined && { name }) }),
    ),
  );

  it.each([undefined, ['text/*'], ['application/pdf'], []])(
    'are shown to a model that accepts %j under their own name and type each, in any order and again',
    async (accepts) => {
      const preparer = () =>
        new AttachmentPreparer({
          ...{ limits: imageLimitsOf({ id: 'm' }), scale: undefined, accepts, diagnose: () => undefined },
          getBlob: async () => Buffer.from('%PDF-1.7'),
        });
      const shownBy = async (made: AttachmentPreparer, content: StoredPart[]) =>
        (await made.prepare([{ role: 'user', content }], signal))[0]?.content;
      const alone = await Promise.all(parts.map(async (part) => (await shownBy(preparer(), [part]))?.[0]));
      expect(new Set(alone.map((part) => JSON.stringify(part))).size).toBe(parts.length);
      const shared = preparer();
      for (const order of [[...parts.keys()], [...parts.keys()].reverse()])
        expect(
          await shownBy(
            shared,
            order.map((at) => parts[at] as StoredPart),
          ),
        ).toEqual(order.map((at) => alone[at]));
    },
  );
});

describe('a preparer that cannot be loaded', () => {
  it('is loaded again for the next request, which shows the image', async () => {
    let tries = 0;
    const model = {
      id: 'm',
      async *stream() {},
      get imageLimits() {
        tries += 1;
        if (tries === 1) throw new Error('not there yet');
        return { maxBytes: MIB };
      },
    };
    const images = new Attachments({ getBlob: async () => dot } as unknown as LogHandle);
    const shown = async () => images.shownTo(model, [message('blob:1')], signal, () => undefined);
    await expect(shown()).rejects.toThrow('not there yet');
    const [first] = await shown();
    expect(first?.content[0]).toMatchObject({ type: 'image', data: base64(dot) });
    const loaded = tries;
    await shown();
    expect(tries).toBe(loaded);
  });
});

describe('a model without images', () => {
  it('receives files, and a text in place of an image', async () => {
    const limits = imageLimitsOf({ id: 'm', imageLimits: { mediaTypes: [] } });
    const made = new AttachmentPreparer({ limits, scale: undefined, getBlob: undefined, diagnose: () => undefined });
    const pdf: StoredPart = { type: 'file', mediaType: 'application/pdf', data: btoa('%PDF-1') };
    const image: StoredPart = { type: 'image', mediaType: 'image/png', data: base64(dot) };
    const [shown] = await made.prepare([{ role: 'user', content: [pdf, image] }], signal);
    expect(shown?.content).toEqual([
      pdf,
      { type: 'text', text: '[An image (image/png) belongs here. It is not shown: this model takes no images.]' },
    ]);
  });
});

describe('the diagnostic of an image', () => {
  it('is logged for each, also where two begin with the same bytes', async () => {
    const { made, diagnostics } = gallery(async () => dot);
    const broken = (last: number): string => {
      const picture = heavy(200);
      picture.set([0, 0, 0, 0], 12);
      picture[199] = last;
      return base64(picture);
    };
    const messages = [message(broken(1), broken(2)), message(broken(1))];
    for (let time = 0; time < 2; time += 1) await made.prepare(messages, signal);
    expect(diagnostics.map(([code]) => code)).toEqual(['image_not_shown', 'image_not_shown']);
    expect(JSON.stringify(diagnostics[0]).length).toBeLessThan(400);
  });
});

describe('a fallback', () => {
  const models = [{ id: 'a' }, { id: 'words', accepts: ['text/*'] }, { id: 'b' }];
  const image: StoredPart = { type: 'image', mediaType: 'image/png', data: base64(dot) };
  const userMessage = (seq: number, kind: 'direct' | 'steer', isShown: boolean): LogEntry =>
    stamped('c', seq, {
      ...{ type: 'user-message', messageId: `m${seq}`, kind },
      content: [{ type: 'text', text: 'Hi.' }, ...(isShown ? [image] : [])],
    });
  /** A request and its steers with replies between them; the images are in the messages of these places. */
  const request = (from: number, steers: number, shown: readonly number[]): LogEntry[] =>
    Array.from({ length: steers + 1 }, (_, at) => [
      userMessage(from + 2 * at, at === 0 ? 'direct' : 'steer', shown.includes(at)),
      modelReply('c', from + 2 * at + 1, null),
    ]).flat();

  it.each([0, 1, 2, 3])(
    'passes over a model that cannot see what the request or any of its %i steers shows',
    (steers) => {
      const preparers = new AttachmentPreparers({}, undefined);
      const nextModel = (entries: LogEntry[]) => preparers.skipping(models, 0, entries).nextModel ?? 1;
      for (let at = 0; at <= steers; at += 1) expect(nextModel(request(0, steers, [at]))).toBe(2);
      expect(nextModel(request(0, steers, []))).toBe(1);
      // Images of an earlier request are described to the model in words.
      expect(nextModel([...request(0, 1, [0, 1]), ...request(4, steers, [])])).toBe(1);
    },
  );

  it('passes over the model that the request began with', () => {
    const preparers = new AttachmentPreparers({}, undefined);
    const nextModel = (shown: readonly number[], own: string) =>
      preparers.skipping(models, 0, request(0, 0, shown), own).nextModel ?? 1;
    expect([nextModel([], 'words'), nextModel([], 'b'), nextModel([0], 'a'), nextModel([0], 'b')]).toEqual([
      2, 1, 2, 3,
    ]);
  });
});
