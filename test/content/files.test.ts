/** Tests the validation of files at their entry points, and the form in which a model receives them. */
import { describe, expect, it, vi } from 'vitest';
import type { Json, Message, StoredPart } from '../../machines/vocabulary.ts';
import { Attachments, readContent, readMessage } from '../../src/content/content.ts';
import { fileAsText, fileName } from '../../src/content/filePart.ts';
import { isAcceptable, mediaTypeOf } from '../../src/content/mediaTypes.ts';
import type { LogHandle, Model } from '../../src/index.ts';
import { base64Of, bytesOf, largePdf, markdown, pdf, wav } from '../support/sampleFiles.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { refusal } from './refusal.ts';

const PDF = 'application/pdf';
const MIB = 1_048_576;
const file = (data: unknown, mediaType: unknown = PDF, name?: unknown) =>
  [{ type: 'file', mediaType, data, ...(name !== undefined && { name }) }] as never;
const read = (data: unknown, mediaType?: unknown, name?: unknown) => readContent(file(data, mediaType, name))[0];

describe('a file is accepted as', () => {
  it('bytes, which are copied, with its name', () => {
    const bytes = pdf.slice();
    const part = read(bytes, PDF, 'report.pdf');
    bytes.fill(0);
    expect(part).toEqual({ type: 'file', mediaType: PDF, name: 'report.pdf', bytes: pdf });
  });

  it('base64, or a data: URL as a text or as a URL', () => {
    const url = `data:application/pdf;base64,${base64Of(pdf)}`;
    const hostile = `data:text/html;charset=x;BASE64,${base64Of(pdf)}`;
    for (const data of [base64Of(pdf), base64Of(pdf).replace(/.{20}/g, '$&\n'), url, new URL(url), hostile])
      expect(read(data)).toEqual({ type: 'file', mediaType: PDF, bytes: pdf });
  });

  it('an https: URL or a reference, unchanged', () => {
    for (const data of ['https://files.test/a.pdf?b=c', `blob:${'a'.repeat(64)}:application/pdf`])
      expect(read(data, PDF, 'a.pdf')).toEqual({ type: 'file', mediaType: PDF, name: 'a.pdf', data });
  });

  it.each([
    ['Application/PDF', PDF, pdf],
    ['text/Plain; charset=utf-8', 'text/plain', markdown],
    ['text/markdown;charset=UTF-8;x="y z"', 'text/markdown', markdown],
    ['audio/x-wav', 'audio/x-wav', wav],
    ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', undefined, wav],
  ])('media type %s: without its parameters, in small letters', (mediaType, expected, bytes) => {
    expect(read(bytes, mediaType)).toEqual({ type: 'file', mediaType: expected ?? mediaType, bytes });
  });

  it('20 MB, and up to the limit', () => {
    expect(read(largePdf(20_000_000))).toMatchObject({ type: 'file' });
    expect(readContent(file(largePdf(32 * MIB)), 32 * MIB)).toHaveLength(1);
    expect(readContent(file(largePdf(10)), 10)).toHaveLength(1);
  });

  it('an image, if its bytes are one: it becomes an image part', () => {
    expect(read(dot, 'image/png', 'dot.png')).toEqual({ type: 'image', mediaType: 'image/png', bytes: dot });
    expect(read(base64(dot), 'IMAGE/JPEG; q=1')).toEqual({ type: 'image', mediaType: 'image/png', bytes: dot });
  });

  it('the only part of a message', () => expect(readMessage(file(pdf))).toHaveLength(1));
});

describe('a file is refused, with the expected and the received value,', () => {
  it.each([
    undefined,
    7,
    '',
    'pdf',
    '/pdf',
    'a/',
    'a b/c',
    'application/pdf charset=x',
    `a/${'b'.repeat(65)}`,
    '__proto__',
  ])('of the media type %s', (mediaType) => {
    const message = refusal(() => readContent([{ type: 'file', mediaType, data: pdf }] as never));
    expect(message).toContain("a file's mediaType must be one such as application/pdf, got ");
  });

  it.each([
    ['no data', undefined, 'got undefined'],
    ['null', null, 'got object'],
    ['an array', [1, 2], 'got object'],
    ['a path', '/home/a/report.pdf', 'got another text'],
    ['a file: URL', new URL('file:///home/report.pdf'), 'got a file: URL'],
    ['a data: URL without base64', 'data:application/pdf,%25PDF-1.7', 'got a data: URL'],
    ['a data: URL with a comma in its parameters', `data:a/b;x="1,2";base64,${base64Of(pdf)}`, 'got a data: URL'],
    ["a browser's blob: URL", 'blob:https://page.test/1-2-3', 'got a blob: URL'],
    ['base64 with another character', `${base64Of(pdf)}!`, 'got another text'],
    ['no bytes', new Uint8Array(0), 'got 0 others'],
    ['an empty text', '', 'got 0 others'],
  ])('as %s', (_, data, got) => expect(refusal(() => read(data))).toContain(got));

  it('if its bytes are not those of its type', () => {
    expect(refusal(() => read(bytesOf('hello')))).toBe("a file's bytes must be those of application/pdf, got 5 others");
    for (const type of [
      'text/plain',
      'text/csv',
      'application/json',
      'application/ld+json',
      'text/html; charset=latin1',
    ])
      expect(refusal(() => read(new Uint8Array([0x66, 0xfc, 0x72]), type))).toContain(
        `must be those of ${type.split(';')[0]} in UTF-8, got 3 others`,
      );
  });

  it('if it is larger than the limit, before it is decoded', () => {
    expect(refusal(() => readContent(file(largePdf(32 * MIB + 1)), 32 * MIB))).toBe(
      "a file's bytes may be 33554432, got more",
    );
    const decode = vi.spyOn(globalThis, 'atob');
    for (const head of ['', 'data:text/plain;base64,'])
      expect(refusal(() => readContent(file(head + 'A'.repeat(1_000)), 10))).toBe("a file's bytes may be 10, got more");
    expect(decode).not.toHaveBeenCalled();
    decode.mockRestore();
    expect(refusal(() => readContent(file(largePdf(11)), 10))).toContain('may be 10');
    expect(refusal(() => readContent(file(base64Of(largePdf(11))), 10))).toContain('may be 10');
  });

  it.each([7, {}, 'n'.repeat(256)])('with the name %j', (name) =>
    expect(refusal(() => read(pdf, PDF, name))).toContain('name must be a text of at most 255 characters'),
  );

  it('as an image that is none', () => {
    expect(refusal(() => read(pdf, 'image/png'))).toContain('must be PNG, JPEG, GIF or WebP');
    expect(refusal(() => read(bytesOf('<svg/>'), 'image/svg+xml'))).toContain('image/svg+xml');
  });
});

describe('a model', () => {
  const covers = (patterns: string[] | undefined, mediaType: string): boolean =>
    isAcceptable({ type: 'file', mediaType }, patterns);

  it('accepts what a pattern covers, and every text', () => {
    expect(covers(undefined, 'video/mp4')).toBe(true);
    expect(covers([], 'text/csv')).toBe(true);
    expect(covers([], 'application/json')).toBe(true);
    expect(covers(['image/*'], PDF)).toBe(false);
    expect(covers(['Application/PDF'], 'application/PDF; x=y')).toBe(true);
    expect(covers(['audio/*'], 'audio/ogg')).toBe(true);
    expect(covers(['audio/*'], 'audiobook/x')).toBe(false);
    for (const all of ['*/*', '*']) expect(covers([all], 'a/b')).toBe(true);
  });

  it('does not accept an image as a text', () => {
    expect(isAcceptable({ type: 'image', mediaType: 'image/png' }, ['application/pdf'])).toBe(false);
    expect(mediaTypeOf('image/png, x')).toBeUndefined();
  });
});

describe('of a file', () => {
  const part = (name?: string, mediaType = PDF) => ({
    type: 'file' as const,
    mediaType,
    data: '',
    ...(name !== undefined && { name }),
  });

  it('the name that a server receives has no characters that would not be seen', () => {
    expect(fileName(part('a\n\u202e\u200bb\u0000\u001b[31m.pdf'))).toBe('ab[31m.pdf');
    expect(fileName(part())).toBe('file.pdf');
    expect(fileName(part('\u0007', 'application/ld+json'))).toBe('file.json');
    expect(fileName(part(undefined, 'application/vnd.ms-excel'))).toBe('file.ms-excel');
  });

  it('the text has a heading with the name', () => {
    expect(fileAsText(part('no\ntes.md', 'text/markdown'), base64Of(markdown))?.text).toBe(
      '[file notes.md (text/markdown)]\n# Notes\n\nBuy milk, süß.\n\n[end of file]',
    );
    expect(fileAsText(part('x'), base64Of(new Uint8Array([255])))).toBeUndefined();
  });
});

describe('the files of a conversation', () => {
  const { signal } = new AbortController();
  const handle = (blobs: Record<string, Uint8Array> = {}) =>
    ({
      putBlob: async (bytes: Uint8Array, type: string) => `blob:${bytes.length}:${type}`,
      getBlob: async (reference: string) => {
        const bytes = blobs[reference];
        if (!bytes) throw new Error('gone');
        return bytes;
      },
    }) as unknown as LogHandle;
  const user = (...content: StoredPart[]): Message[] => [{ role: 'user', content }];
  async function shown(messages: Message[], model: Partial<Model> = {}, blobs: Record<string, Uint8Array> = {}) {
    const diagnostics: [string, Json][] = [];
    const showing = new Attachments(handle(blobs)).shownTo({ id: 'm', ...model }, messages, signal, (code, detail) =>
      diagnostics.push([code, detail]),
    );
    return { content: (await showing)[0]?.content, diagnostics };
  }
  const stored = (mediaType: string, data: string, name?: string): StoredPart => ({
    ...{ type: 'file', mediaType, data },
    ...(name !== undefined && { name }),
  });

  it('are stored as blobs with their names; results too', async () => {
    const attachments = new Attachments(handle());
    const parts = readContent(file(pdf, PDF, 'a.pdf'));
    const expected = [{ type: 'file', mediaType: PDF, name: 'a.pdf', data: `blob:${pdf.length}:application/pdf` }];
    expect(await attachments.keepMessage(parts)).toEqual(expected);
    expect(await attachments.keepResult([stored(PDF, base64Of(pdf), 'a.pdf')], () => {})).toEqual(expected);
    expect(await attachments.keepResult([stored(PDF, 'https://a.test/a.pdf')], () => {})).toEqual([
      stored(PDF, 'https://a.test/a.pdf'),
    ]);
  });

  it('that the store refuses are named: in a message by an error, in a result by a text', async () => {
    const full = { putBlob: async () => Promise.reject(new Error('the disk is full')) } as unknown as LogHandle;
    const attachments = new Attachments(full);
    await expect(attachments.keepMessage(readContent(file(pdf)))).rejects.toMatchObject({
      code: 'store',
      part: 'file',
      message: 'a file could not be stored (Error: the disk is full)',
    });
    const diagnostics: string[] = [];
    expect(await attachments.keepResult([stored(PDF, base64Of(pdf))], (code) => diagnostics.push(code))).toEqual([
      { type: 'text', text: '[A file belongs here. It could not be stored.]' },
    ]);
    expect(diagnostics).toEqual(['file_not_stored']);
  });

  it('reach a model byte for byte, by URL, or with their names', async () => {
    const blob = 'blob:1:application/pdf';
    const parts = [stored(PDF, blob, 'a.pdf'), stored(PDF, blob, 'b.pdf'), stored(PDF, 'https://a.test/a.pdf')];
    const { content } = await shown(user(...parts), { accepts: [PDF] }, { [blob]: pdf });
    expect(content).toEqual([stored(PDF, base64Of(pdf), 'a.pdf'), stored(PDF, base64Of(pdf), 'b.pdf'), parts[2]]);
    expect((await shown(user(stored('x/y', base64Of(wav))))).content).toEqual([stored('x/y', base64Of(wav))]);
  });

  it('that a model does not accept become texts that name them', async () => {
    const parts = [
      stored(PDF, 'blob:1:application/pdf', 'a\u202eb.pdf'),
      { type: 'image', mediaType: 'image/png', data: base64(dot) },
    ];
    const { content, diagnostics } = await shown(user(...(parts as StoredPart[])), { accepts: ['audio/*'] });
    expect(content).toEqual([
      {
        type: 'text',
        text: '[A file (ab.pdf (application/pdf)) belongs here. It is not shown: this model takes no application/pdf.]',
      },
      { type: 'text', text: '[An image (image/png) belongs here. It is not shown: this model takes no image/png.]' },
    ]);
    expect(diagnostics).toEqual([]);
  });

  it('that are texts become text parts for a model without files of their type', async () => {
    const blob = 'blob:1:text/markdown';
    const parts = [stored('text/markdown', blob, 'n.md'), stored('text/plain', 'https://a.test/n.txt')];
    const { content } = await shown(user(...parts), { accepts: [] }, { [blob]: markdown });
    expect(content?.map((part) => part.type === 'text' && part.text)).toEqual([
      '[file n.md (text/markdown)]\n# Notes\n\nBuy milk, süß.\n\n[end of file]',
      '[A file (text/plain) belongs here. It is not shown: this model reads no text from a URL. It is at https://a.test/n.txt.]',
    ]);
    expect((await shown(user(...parts), { accepts: ['text/*'] }, { [blob]: markdown })).content?.[0]?.type).toBe(
      'file',
    );
  });

  it('whose bytes are gone or damaged become texts, with one diagnostic each', async () => {
    const gone = stored(PDF, 'blob:9:application/pdf', 'a.pdf');
    const damaged = stored('text/plain', base64Of(new Uint8Array([255, 254])));
    const { content, diagnostics } = await shown(user(gone, gone, damaged), { accepts: [PDF] });
    expect(content?.map((part) => part.type === 'text' && part.text)).toEqual([
      '[A file (a.pdf (application/pdf)) belongs here. It is not shown: its bytes are missing.]',
      '[A file (a.pdf (application/pdf)) belongs here. It is not shown: its bytes are missing.]',
      '[A file (text/plain) belongs here. It is not shown: its bytes are not a text in UTF-8.]',
    ]);
    expect(diagnostics.map(([code]) => code)).toEqual(['file_missing', 'file_not_shown']);
  });
});
