/** What a message may hold is judged where it comes in. */
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readContent, storedContent } from '../../src/content/content.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { base64, dot, noise, plain } from '../support/pictures.ts';

const image = (data: unknown, mediaType: unknown = 'image/png') => [{ type: 'image', mediaType, data }] as never;
const read = (data: unknown, mediaType?: unknown) => readContent(image(data, mediaType))[0];

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  throw new Error('it was taken');
}

describe('an image is taken as', () => {
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
    for (const url of [text, new URL(text), text.replace('data:image/png;base64', 'DATA:;charset=x;BASE64')])
      expect(read(url)).toMatchObject({ bytes: dot });
  });

  it('an http: or https: URL, which is kept as it is', () => {
    for (const url of ['https://pictures.test/a.png?b=c', 'http://pictures.test/'])
      for (const data of [url, new URL(url)])
        expect(read(data)).toEqual({ type: 'image', mediaType: 'image/png', data: url });
  });

  it('a reference of the log', () => {
    const data = `blob:${'a'.repeat(64)}:image/png`;
    expect(read(data)).toEqual({ type: 'image', mediaType: 'image/png', data });
  });
});

describe('the bytes say what type an image has', () => {
  it('and a wrong media type is put right', async () => {
    const found: unknown[] = [];
    for (const format of ['png', 'jpeg', 'gif', 'webp'] as const) {
      const part = read(await plain(2, 2, format), format === 'png' ? 'image/gif' : 'image/png');
      found.push(part && 'mediaType' in part && part.mediaType);
    }
    expect(found).toEqual(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
  });

  it('and what is none of the four is refused, whatever it is called', () => {
    for (const bytes of [Buffer.from('%PDF-1.7'), Buffer.from('<svg/>'), dot.subarray(1), new Uint8Array(0)])
      expect(refusal(() => read(bytes))).toContain('must be PNG, JPEG, GIF or WebP');
    expect(refusal(() => read(''))).toContain('must be PNG, JPEG, GIF or WebP');
  });
});

describe('an image is refused, with what was expected and what came,', () => {
  it.each(['image/svg+xml', 'image/tiff', 'IMAGE/PNG', 'png', '', undefined, 7, '__proto__'])(
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
  ])('given as %s', (_, data, got) => {
    const said = refusal(() => read(data));
    expect(said).toContain('data must be bytes, base64');
    expect(said.endsWith(`, got ${got}`)).toBe(true);
    expect(said.length).toBeLessThan(300);
  });

  it.each([undefined, null, 5, {}, [1, 2], new ArrayBuffer(4)])('given as %o', (data) => {
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
  });

  it('and so is a hole in a list', () => {
    const hole = 'content part must be';
    expect(() => readContent(new Array(2))).toThrow(hole);
    expect(() => readContent(Object.assign([], { 1: { type: 'text' as const, text: 'b' } }))).toThrow(hole);
  });

  it('and so is what is no part at all', () => {
    for (const content of [[null], [5], [{}], [{ type: 'video' }], [{ type: 'text' }], {}, 7, undefined])
      expect(() => readContent(content as never)).toThrow(ConfigurationError);
  });
});

it('what is stored at once holds bytes in base64, and comes out of a second reading as it went in', async () => {
  const bytes = await noise(200, 200);
  const stored = storedContent([{ type: 'text', text: 'see' }, ...(image(bytes) as [])]);
  expect(stored).toEqual([
    { type: 'text', text: 'see' },
    { type: 'image', mediaType: 'image/png', data: base64(bytes) },
  ]);
  expect(storedContent(stored)).toEqual(stored);
});
