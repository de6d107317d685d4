/**
 * Images and files between a caller, a store and a model, at each bound: the valid answers of a store, the kept part of a result whose
 * bytes cannot be stored, names, texts by their media type, and the fallback model that can see a request.
 */
import { describe, expect, it } from 'vitest';
import type { LogEntry, StoredPart } from '../../machines/vocabulary.ts';
import { AttachmentPreparers } from '../../src/content/attachmentPreparer.ts';
import { Attachments, NotStored, readContent, storedContent } from '../../src/content/content.ts';
import { attachmentLabel, fileName, leftOut, sourceOf } from '../../src/content/filePart.ts';
import { accepts, isTextType, mediaTypeOf } from '../../src/content/mediaTypes.ts';
import type { LogHandle } from '../../src/stores/logStore.ts';
import { stamped } from '../../src/testing/storeSuite/storeCase.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { refusal } from './refusal.ts';

const PDF = 'application/pdf';
const pdf = new TextEncoder().encode('%PDF-1.7\n');
const HASH = 'a'.repeat(64);
const handleOf = (fields: Partial<LogHandle>): Attachments => new Attachments(fields as LogHandle);
const image = { type: 'image' as const, mediaType: 'image/png', data: dot };
const file = { type: 'file' as const, mediaType: PDF, name: 'a.pdf', data: pdf };
const text = (words: string) => ({ type: 'text' as const, text: words });

describe('the parts of a message', () => {
  it('of text alone, or for a store without blobs, are kept at once', () => {
    const words = readContent([text('a'), text('')]);
    expect(handleOf({ putBlob: async () => expect.unreachable() }).keepMessage(words)).toEqual([text('a'), text('')]);
    const kept = handleOf({}).keepMessage(readContent([text('see'), image, file]));
    expect(kept).toEqual([text('see'), { ...image, data: base64(dot) }, { ...file, data: base64(pdf) }]);
    expect(storedContent([text('see'), image, file])).toEqual(kept);
  });

  it('are stored one after the other, each with its media type, in their order', async () => {
    const stored: string[] = [];
    let isBusy = false;
    const putBlob = async (bytes: Uint8Array, mediaType: string): Promise<string> => {
      expect(isBusy).toBe(false);
      isBusy = true;
      await new Promise((resolve) => setImmediate(resolve));
      isBusy = false;
      return `blob:${stored.push(`${mediaType} ${bytes.length}`)}`;
    };
    const web = { ...image, data: 'https://pictures.test/a.png' };
    const kept = await handleOf({ putBlob }).keepMessage(readContent([text('a'), image, web, file, text('b')]));
    expect(kept).toEqual([text('a'), { ...image, data: 'blob:1' }, web, { ...file, data: 'blob:2' }, text('b')]);
    expect(stored).toEqual([`image/png ${dot.length}`, `${PDF} ${pdf.length}`]);
  });

  it.each<[unknown, boolean]>([
    ['x', true],
    ['x'.repeat(1_024), true],
    ['x'.repeat(1_025), false],
    ['', false],
    [undefined, false],
    [7, false],
  ])('need a reference from the store: %#, taken: %s', async (answer, isTaken) => {
    const images = handleOf({ putBlob: async () => answer as string });
    const kept = Promise.resolve(images.keepMessage(readContent([image])));
    if (isTaken) expect(await kept).toEqual([{ ...image, data: answer }]);
    else await expect(kept).rejects.toMatchObject({ code: 'store', part: 'image' });
  });

  it.each([
    ['image', [image]],
    ['file', [file]],
    ['image', [file, image]],
  ] as const)('that the store refuses are not accepted, and the error names an %s', async (part, content) => {
    const putBlob = (): Promise<string> => Promise.reject(new Error('full'));
    const kept = handleOf({ putBlob }).keepMessage(readContent([...content]));
    const error = await Promise.resolve(kept).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotStored);
    expect(error).toMatchObject({ code: 'store', part, message: expect.stringContaining('full') });
    // A result keeps the parts that can be stored, and the error of the store is passed on unchanged.
    await expect(handleOf({ putBlob }).keep(readContent([...content]))).rejects.toThrow('full');
  });

  it.each<[string, Partial<LogHandle>, boolean]>([
    ['has the bytes', { getBlob: async () => dot }, true],
    ['has no bytes', { getBlob: async () => undefined as never }, false],
    ['cannot read them', { getBlob: () => Promise.reject(new Error('no such blob')) }, false],
    ['has no blobs', {}, false],
  ])('with a reference are accepted where the store %s', async (_, fields, isAccepted) => {
    for (const part of [
      { ...image, data: `blob:${HASH}` },
      { ...file, data: `blob:${HASH}:${PDF}` },
    ]) {
      const kept = Promise.resolve(handleOf(fields).keepMessage(readContent([part])));
      if (isAccepted) expect(await kept).toEqual([part]);
      else await expect(kept).rejects.toMatchObject({ code: 'store', part: part.type });
    }
  });
});

describe('the parts of a result', () => {
  const stored = (data: string, fields: object = {}): StoredPart =>
    ({ type: 'image', mediaType: 'image/png', data, ...fields }) as StoredPart;
  const doc = (data: string): StoredPart => ({ type: 'file', mediaType: PDF, name: 'a.pdf', data });

  it('without bytes stay as they are, and those with bytes are stored with the type of their bytes', async () => {
    const types: string[] = [];
    const putBlob = async (_: Uint8Array, mediaType: string): Promise<string> => `blob:${types.push(mediaType)}`;
    const others = [
      text('a'),
      stored('https://pictures.test/a'),
      stored(`blob:${HASH}`),
      doc(`blob:${HASH}`),
      stored('no image'),
    ];
    const parts = [...others, stored(base64(dot), { mediaType: 'image/gif' }), doc(base64(pdf))];
    const kept = await handleOf({ putBlob }).keepResult(parts, () => expect.unreachable());
    expect(kept).toEqual([...others, stored('blob:1'), doc('blob:2')]);
    expect(types).toEqual(['image/png', PDF]);
    // Without blobs, and without an attachment, nothing waits.
    expect(handleOf({}).keepResult(parts, () => undefined)).toBe(parts);
    const words = [text('a')];
    expect(handleOf({ putBlob }).keepResult(words, () => undefined)).toBe(words);
  });

  it('that the store refuses become texts, each with a diagnostic of its kind, and the rest is kept', async () => {
    const diagnostics: unknown[] = [];
    let calls = 0;
    const putBlob = (): Promise<string> => {
      calls += 1;
      return calls === 2 ? Promise.resolve('blob:2') : Promise.reject(new Error('full'));
    };
    const parts = [stored(base64(dot)), stored(base64(dot)), doc(base64(pdf)), text('b')];
    const kept = await handleOf({ putBlob }).keepResult(parts, (code, detail) => void diagnostics.push([code, detail]));
    expect(kept).toEqual([
      text('[An image belongs here. It could not be stored.]'),
      stored('blob:2'),
      text('[A file belongs here. It could not be stored.]'),
      text('b'),
    ]);
    expect(diagnostics).toEqual(['image', 'file'].map((kind) => [`${kind}_not_stored`, { message: 'Error: full' }]));
  });
});

describe('a file', () => {
  const read = (data: Uint8Array, mediaType = PDF, fields: object = {}) =>
    readContent([{ type: 'file', mediaType, data, ...fields } as never])[0];

  it('is a PDF if its mark is in the first 1,024 bytes', () => {
    for (const at of [0, 1, 1_019, 1_020]) {
      const bytes = new Uint8Array(3_000);
      bytes.set(pdf.subarray(0, 5), at);
      if (at <= 1_019) expect(read(bytes)).toMatchObject({ mediaType: PDF });
      else expect(refusal(() => read(bytes))).toContain('must be those of application/pdf');
    }
  });

  it('of no bytes is none, whatever its type', () => {
    for (const type of [PDF, 'text/plain', 'audio/wav', 'application/zip'])
      expect(refusal(() => read(new Uint8Array(0), type))).toContain('got 0 others');
  });

  it('has a name of up to 255 characters, or none', () => {
    const name = 'n'.repeat(255);
    expect(read(pdf, PDF, { name })).toHaveProperty('name', name);
    expect(read(pdf, PDF, { name: '' })).not.toHaveProperty('name');
    expect(refusal(() => read(pdf, PDF, { name: `${name}n` }))).toContain('at most 255');
    expect(refusal(() => read(pdf, PDF, { name: null }))).toContain('at most 255');
    const part = { type: 'file' as const, mediaType: PDF, data: '', name: `${name}more` };
    expect([fileName(part), attachmentLabel(part)]).toEqual([name, `${name} (${PDF})`]);
  });

  it('that is the caller’s own bytes is copied, also a view into a larger buffer', () => {
    const whole = new Uint8Array([0, ...pdf, 0]);
    const part = read(whole.subarray(1, 1 + pdf.length));
    whole.fill(1);
    expect(part).toMatchObject({ bytes: pdf });
    expect((part as unknown as { bytes: Uint8Array }).bytes.buffer.byteLength).toBe(pdf.length);
  });

  const HIDDEN = ['\u0000', '\n', '\u200b', '\u202e', '\u2028', '\u2029', '\ufeff', '\u{e0041}', '\u001b'];
  it.each(HIDDEN)('shows no character that would not be seen: %j', (hidden) => {
    const part = { type: 'file' as const, mediaType: PDF, data: '', name: `a${hidden}b.pdf` };
    expect([fileName(part), attachmentLabel(part)]).toEqual(['ab.pdf', `ab.pdf (${PDF})`]);
    expect(leftOut(part, 'why')).toEqual(text(`[file ab.pdf (${PDF}): why]`));
  });

  it.each<[string, object | undefined]>([
    ['QUJD', { base64: 'QUJD' }],
    ['data:a/b;base64,QUJD', { base64: 'QUJD' }],
    [`DATA:${'x'.repeat(256)};BASE64,QUJD`, { base64: 'QUJD' }],
    [`data:${'x'.repeat(257)};base64,QUJD`, undefined],
    ['https://files.test/a', { url: 'https://files.test/a' }],
    ['HTTP://files.test/a', { url: 'HTTP://files.test/a' }],
    ['blob:abc', undefined],
    ['file:///a', undefined],
    ['data:a/b,plain', undefined],
  ])('with the data %s has its bytes at %j', (data, source) => {
    expect(sourceOf({ type: 'file', mediaType: PDF, data })).toEqual(source);
  });
});

describe('a media type', () => {
  it.each<[string, boolean]>([
    ['text/plain', true],
    ['text/x-anything', true],
    ['application/json', true],
    ['application/ld+json', true],
    ['application/vnd.a.b+xml', true],
    ['application/x-yaml', true],
    ['application/x-ndjson', true],
    ['application/javascript', true],
    ['application/sql', true],
    ['application/toml', true],
    ['application/jsonx', false],
    ['application/pdf', false],
    ['application/xhtml', false],
    ['image/svg+xml', false],
    ['context/plain', false],
  ])('%s is one of a text: %s', (mediaType, isText) => expect(isTextType(mediaType)).toBe(isText));

  it.each<[string, string[] | undefined, boolean]>([
    ['image/png', undefined, true],
    ['image/png', [], false],
    ['image/png', ['image/png'], true],
    ['image/png', ['IMAGE/PNG'], true],
    ['IMAGE/PNG; q=1', ['image/png'], true],
    ['image/png', ['image/jpeg', 'image/*'], true],
    ['image/png', ['image/pn'], false],
    ['image/pngx', ['image/png'], false],
    ['images/png', ['image/*'], false],
    ['image/png', ['*/*'], true],
    ['', ['image/png'], false],
  ])('%s is accepted by %j: %s', (mediaType, patterns, isAccepted) =>
    expect(accepts(patterns, mediaType)).toBe(isAccepted),
  );

  it('has at most 64 characters on each side', () => {
    const [longest, longer] = [64, 65].map((length) => 'x'.repeat(length));
    expect(mediaTypeOf(`${longest}/${longest} ; a=b`)).toBe(`${longest}/${longest}`);
    expect([mediaTypeOf(`${longer}/x`), mediaTypeOf(`x/${longer}`), mediaTypeOf(7)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('the next fallback model', () => {
  const SEES = { id: 'sees', accepts: ['image/*'] };
  const READS = { id: 'reads', accepts: [PDF] };
  const BLIND = { id: 'blind', accepts: [] };
  const ALL = { id: 'all' };
  const asked = (...parts: StoredPart[]): LogEntry[] => [
    stamped('c', 0, { type: 'user-message', messageId: 'm', kind: 'direct', content: parts }),
  ];
  const picture: StoredPart = { ...image, data: 'blob:1' };
  const book: StoredPart = { type: 'file', mediaType: PDF, data: 'blob:2' };
  const notes: StoredPart = { type: 'file', mediaType: 'text/markdown', data: 'blob:3' };

  /** By hand: the model after each failed one, in this order. */
  const ORDER = [ALL, BLIND, SEES, READS, ALL, SEES];
  it.each<[string, StoredPart[], number[]]>([
    ['text', [text('a')], [1, 2, 3, 4, 5, 6]],
    ['a text file', [notes], [1, 2, 3, 4, 5, 6]],
    ['an image', [picture], [2, 2, 4, 4, 5, 6]],
    ['a PDF', [book], [3, 3, 3, 4, 6, 6]],
    ['an image and a PDF', [picture, text('a'), book], [4, 4, 4, 4, 6, 6]],
  ])('for %s is the first that accepts all of it, and none if none does', (_, parts, expected) => {
    const preparers = new AttachmentPreparers({}, undefined);
    const next = ORDER.map((__, index) => preparers.skipping(ORDER, index, asked(...parts)).nextModel ?? index + 1);
    // After the last model there is none, which the length of the list represents.
    expect(next).toEqual(expected);
    for (const [index, at] of expected.entries())
      if (at === index + 1 && at < ORDER.length) expect(preparers.skipping(ORDER, index, asked(...parts))).toEqual({});
  });
});
