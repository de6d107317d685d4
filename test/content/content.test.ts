/** Tests the validation of content at its entry points. */
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Attachments, readContent, readMessage, storedContent, textOf } from '../../src/content/content.ts';
import { imageType } from '../../src/content/imageFormat.ts';
import { ConfigurationError } from '../../src/errors.ts';
import type { LogHandle, Message } from '../../src/index.ts';
import { base64, dot, noise, plain } from '../support/samplePictures.ts';
import { refusal } from './refusal.ts';

const image = (data: unknown, mediaType: unknown = 'image/png') => [{ type: 'image', mediaType, data }] as never;
const read = (data: unknown, mediaType?: unknown) => readContent(image(data, mediaType))[0];

describe('an image is accepted as', () => {
  it('bytes, which are copied', () => {
    const bytes = dot.slice();
    const part = read(bytes);
    bytes.fill(0);
    expect(part).toEqual({ type: 'image', mediaType: 'image/png', bytes: dot });
  });

  it('a Buffer, which is copied too', () => {
    const buffer = Buffer.from(dot);
    const part = read(buffer);
    buffer.fill(0);
    expect(part).toEqual({ type: 'image', mediaType: 'image/png', bytes: dot });
  });

  it('base64, also with line ends and without its padding', () => {
    for (const text of [base64(dot), base64(dot).replace(/.{20}/g, '$&\r\n'), base64(dot).replace(/=+$/, '')])
      expect(read(text)).toEqual({ type: 'image', mediaType: 'image/png', bytes: dot });
  });

  it('a data: URL, as a text or as a URL', () => {
    const text = `data:image/png;base64,${base64(dot)}`;
    const heads = ['DATA:;charset=x;BASE64', `data:image/png;name=${'n'.repeat(230)};base64`];
    for (const url of [text, new URL(text), ...heads.map((head) => text.replace('data:image/png;base64', head))])
      expect(read(url)).toMatchObject({ bytes: dot });
  });

  it('an http: or https: URL, which stays unchanged', () => {
    for (const url of ['https://pictures.test/a.png?b=c', 'http://pictures.test/'])
      for (const data of [url, new URL(url)])
        expect(read(data)).toEqual({ type: 'image', mediaType: 'image/png', data: url });
  });

  it('a web URL of up to 8,192 characters', () => {
    const url = 'https://pictures.test/'.padEnd(8_192, 'a');
    expect(read(url)).toEqual({ type: 'image', mediaType: 'image/png', data: url });
    expect(refusal(() => read(`${url}a`))).toContain('got a https: URL');
  });

  it.each(['a'.repeat(64), 'a'.repeat(128), '0', '0:image/png', 'a-b_c:image/vnd.a+xml', '0:image/x-y.z'])(
    'a reference of the log: blob:%s',
    (reference) => {
      const data = `blob:${reference}`;
      expect(read(data)).toEqual({ type: 'image', mediaType: 'image/png', data });
    },
  );
});

describe('the bytes determine the type of an image', () => {
  it('and a wrong media type is corrected', async () => {
    const found: unknown[] = [];
    for (const format of ['png', 'jpeg', 'gif', 'webp'] as const) {
      const part = read(await plain(2, 2, format), format === 'png' ? 'image/gif' : 'image/png');
      found.push(part && 'mediaType' in part && part.mediaType);
    }
    expect(found).toEqual(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
  });

  it('and bytes of another type are refused, whatever media type they have', () => {
    for (const bytes of [Buffer.from('%PDF-1.7'), Buffer.from('<svg/>'), dot.subarray(1), new Uint8Array(0)])
      expect(refusal(() => read(bytes))).toContain('must be PNG, JPEG, GIF or WebP');
    expect(refusal(() => read(''))).toContain('must be PNG, JPEG, GIF or WebP');
  });
});

describe('the first bytes are those of an image', () => {
  const riff = (size: number, kind: string) => [...Buffer.from('RIFF'), size, 0, 0, 0, ...Buffer.from(kind)];
  it.each([
    ['GIF of 1987', [...Buffer.from('GIF87a')], 'image/gif'],
    ['GIF of 1989', [...Buffer.from('GIF89a')], 'image/gif'],
    ['GIF of another year', [...Buffer.from('GIF88a')], undefined],
    ['WebP, whatever its size', riff(0, 'WEBP'), 'image/webp'],
    ['WebP whose size is a line feed', riff(10, 'WEBP'), 'image/webp'],
    ['WebP whose size is a carriage return', riff(13, 'WEBP'), 'image/webp'],
    ['sound in the same container', riff(0, 'WAVE'), undefined],
    ['PNG', [0x89, ...Buffer.from('PNG\r\n\x1a\n')], 'image/png'],
    ['PNG that lost a byte of its line ends', [0x89, ...Buffer.from('PNG\n\x1a\n')], undefined],
    ['JPEG', [0xff, 0xd8, 0xff], 'image/jpeg'],
    ['two bytes of a JPEG', [0xff, 0xd8], undefined],
  ])('%s', (_, bytes, mediaType) => {
    expect(imageType(new Uint8Array(bytes))).toBe(mediaType);
    expect(imageType(new Uint8Array([0, ...bytes]))).toBeUndefined();
  });
});

describe('an image is refused, with the expected and the received value,', () => {
  it.each(['image/svg+xml', 'image/tiff', 'png', '', undefined, 7, '__proto__'])(
    'of the media type %s',
    (mediaType) => {
      const act = () => readContent([{ type: 'image', mediaType, data: dot }] as never);
      expect(refusal(act)).toContain('mediaType must be one of image/png, image/jpeg, image/gif, image/webp');
    },
  );

  it.each([
    ['a file: URL', pathToFileURL('/pictures/a.png'), 'a file: URL'],
    ['a file: URL in a text', 'file:///pictures/a.png', 'a file: URL'],
    ['a path', '/pictures/a.png', 'another text'],
    ['a path of Windows', 'C:\\pictures\\a.png', 'a c: URL'],
    ['a URL that only one page can open', 'blob:https://page.test/6f9b', 'a blob: URL'],
    ['a reference with a path in it', 'blob:../../etc/passwd:image/png', 'a blob: URL'],
    ['a reference without end', `blob:${'a'.repeat(200)}`, 'a blob: URL'],
    ['a script', 'javascript:alert(1)', 'a javascript: URL'],
    ['an ftp: URL', new URL('ftp://pictures.test/a.png'), 'a ftp: URL'],
    ['a data: URL that is not base64', 'data:image/png,abc', 'a data: URL'],
    ['a web URL that is none', 'https://', 'a https: URL'],
    ['a web URL without end', `https://pictures.test/${'a'.repeat(9_000)}`, 'a https: URL'],
    ['text', 'a picture (of a cat)', 'another text'],
  ])('as %s', (_, data, got) => {
    const message = refusal(() => read(data));
    expect(message).toContain('data must be bytes, base64');
    expect(message.endsWith(`, got ${got}`)).toBe(true);
    expect(message.length).toBeLessThan(300);
  });

  it.each([undefined, null, 5, {}, [1, 2], new ArrayBuffer(4)])('as %o', (data) => {
    expect(refusal(() => readContent([{ type: 'image', mediaType: 'image/png', data }] as never))).toContain(
      'data must be a Uint8Array, a string or a URL',
    );
  });

  it('over 32 MiB, as bytes or encoded, without decoding it', () => {
    const most = 32 * 1_048_576;
    const large = new Uint8Array(most + 1);
    large.set(dot);
    expect(refusal(() => read(large))).toContain(`may be ${most}`);
    expect(read(large.subarray(0, most))).toMatchObject({ mediaType: 'image/png' });
    expect(refusal(() => read('A'.repeat(most * 2)))).toContain(`may be ${most}`);
    // The longest form: a data: URL with 32 MiB.
    const encoded = `data:image/png;base64,${base64(large.subarray(0, most))}`;
    expect(read(encoded)).toMatchObject({ mediaType: 'image/png' });
  });

  it('for a hole in a list too', () => {
    const hole = 'content part must be';
    expect(() => readContent(new Array(2))).toThrow(hole);
    expect(() => readContent(Object.assign([], { 1: { type: 'text' as const, text: 'b' } }))).toThrow(hole);
  });

  it('for a value that is not a part too', () => {
    for (const content of [[null], [5], [{}], [{ type: 'video' }], [{ type: 'text' }], {}, 7, undefined])
      expect(() => readContent(content as never)).toThrow(ConfigurationError);
  });
});

describe('a message', () => {
  const [picture] = image(dot) as unknown as [never];
  const text = (words: string) => ({ type: 'text' as const, text: words });
  it.each([
    ['a text', 'a', true],
    ['white space', ' ', true],
    ['nothing', '', false],
    ['no part', [], false],
    ['an empty part', [text('')], false],
    ['empty parts', [text(''), text('')], false],
    ['an image', [picture], true],
    ['an image and an empty part', [text(''), picture], true],
    ['a text between empty parts', [text(''), text('a'), text('')], true],
  ])('of %s: is it one?', (_, content, isMessage) => {
    if (isMessage) expect(readMessage(content as never)).toEqual(readContent(content as never));
    else expect(refusal(() => readMessage(content as never))).toContain('needs some text or an image');
  });

  it('has the joined text of its parts', () => {
    expect(textOf([text('a'), picture, text(''), text('b'), text('\n')])).toBe('ab\n');
  });

  it('is searched for images again after it was replaced', async () => {
    const images = new Attachments({} as LogHandle);
    const { signal } = new AbortController();
    const words: Message = { role: 'user', content: [text('a')] };
    const shown: Message = { role: 'user', content: [{ type: 'image', mediaType: 'image/png', data: base64(dot) }] };
    const show = (...messages: Message[]) => images.shownTo({ id: 'm' }, messages, signal, () => undefined);
    const first = [words, words];
    expect(images.shownTo({ id: 'm' }, first, signal, () => undefined)).toBe(first);
    for (const messages of [[shown], [words, shown], [shown, words], [words, words, shown]])
      expect(await show(...messages)).toEqual(messages);
    expect(show(words, shown)).toBeInstanceOf(Promise);
  });
});

it.each(['png', 'jpeg', 'gif', 'webp'] as const)(
  'the bytes of a %s in the result of a tool go to the store, in every form in which a result holds them',
  async (format) => {
    const bytes = await plain(2, 2, format);
    const stored: Uint8Array[] = [];
    const putBlob = async (each: Uint8Array) => `blob:${stored.push(each)}`;
    const images = new Attachments({ putBlob } as Partial<LogHandle> as LogHandle);
    const mediaType = `image/${format}`;
    for (const data of [base64(bytes), base64(bytes).replace(/=+$/, '')]) {
      const kept = await images.keepResult([{ type: 'image', mediaType, data }], () => expect.unreachable());
      expect(kept).toEqual([{ type: 'image', mediaType, data: `blob:${stored.length}` }]);
    }
    expect(stored).toEqual([bytes, bytes].map((each) => new Uint8Array(each)));
  },
);

it('content that is stored synchronously has bytes in base64, and a second reading returns it unchanged', async () => {
  const bytes = await noise(200, 200);
  const stored = storedContent([{ type: 'text', text: 'see' }, ...(image(bytes) as [])]);
  expect(stored).toEqual([
    { type: 'text', text: 'see' },
    { type: 'image', mediaType: 'image/png', data: base64(bytes) },
  ]);
  expect(storedContent(stored)).toEqual(stored);
});
