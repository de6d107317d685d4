/** The result of WebFetch for each status, media type, charset and encoding, the shown part, and the failures before it. */
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isPublicAddress } from '../../../src/tools/coding/web/publicAddress.ts';
import { fetched, html, site } from './servedPages.ts';

/** The result of a page with these headers and this body, without its first line. */
async function shown(headers: { [name: string]: string }, body: string | Buffer, more: object = {}, status = 200) {
  const { at, network } = await site((_, response) => void response.writeHead(status, headers).end(body));
  const { code, text } = await fetched(network, at('/p'), more);
  const first = `[${at('/p')}, status ${status}]\n`;
  return { code, text: text.startsWith(first) ? text.slice(first.length) : text };
}
const PAGE = '<p>a <b>b</b></p>';

describe('the media type of a page', () => {
  it.each(['text/html', 'TEXT/HTML', ' text/html ;charset=utf-8', 'application/xhtml+xml'])(
    '%j is read as HTML',
    async (type) => {
      expect(await shown({ 'content-type': type }, PAGE)).toEqual({ code: undefined, text: 'a b' });
    },
  );

  it.each([
    ...['text/plain', 'text/markdown', 'Text/CSV; header=present', 'application/json', 'application/ld+json'],
    ...['application/xml', 'application/atom+xml', 'application/javascript', 'application/yaml', 'application/toml'],
    ...['application/x-ndjson', 'application/x-sh', ''],
  ])('%j is read as it is', async (type) => {
    expect(await shown(type === '' ? {} : { 'content-type': type }, PAGE)).toEqual({ code: undefined, text: PAGE });
  });

  it.each(['image/png', 'application/pdf', 'application/octet-stream', 'audio/json', 'application/zip', 'x'])(
    '%j is refused with the number of its bytes',
    async (type) => {
      const { code, text } = await shown({ 'content-type': type }, 'four');
      expect([code, text]).toEqual(['binary', expect.stringMatching(/ with 4 bytes, and no text$/)]);
      expect(text).toContain(` is ${type} with`);
    },
  );
});

describe('the charset of a page', () => {
  const latin = (text: string): Buffer => Buffer.from(text, 'latin1');
  const meta = (name: string): string => `<meta charset=${name}>`;
  it.each<[string, string, string | Buffer, string]>([
    ['is UTF-8 unless it is named', 'text/plain', 'é', 'é'],
    ['is that of the header', 'text/plain; charset=iso-8859-1', latin('é'), 'é'],
    ['is named in any case and in quotes', 'text/plain; Charset="ISO-8859-1"', latin('é'), 'é'],
    ['is that in the page', 'text/html', latin(`${meta('latin1')}é`), 'é'],
    ['is that in the page, in quotes', 'text/html', latin(`${meta('"latin1"')}é`), 'é'],
    [
      'is that in the page, as a content type',
      'text/html',
      latin('<meta http-equiv="content-type" content="text/html; charset=latin1">é'),
      'é',
    ],
    ['is that of the header if the page names another', 'text/html; charset=utf-8', `${meta('latin1')}é`, 'é'],
    ['is UTF-8 where an unknown one is named', 'text/plain; charset=nope', 'é', 'é'],
    ['is looked for in the first 1,024 bytes alone', 'text/html', `${' '.repeat(1_024)}${meta('latin1')}é`, 'é'],
  ])('%s', async (_, type, body, text) => {
    expect((await shown({ 'content-type': type }, body)).text).toBe(text);
  });
});

describe('the encoding of a page', () => {
  it.each<[string, (text: string) => Buffer | string]>([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', (text) => text],
  ])('%s is undone', async (encoding, pack) => {
    const headers = { 'content-type': 'text/plain', 'content-encoding': encoding };
    expect(await shown(headers, pack('words'))).toEqual({ code: undefined, text: 'words' });
  });

  it('that is wrong is an error and no page', async () => {
    const headers = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };
    expect(await shown(headers, 'words')).toMatchObject({ code: 'unreachable' });
  });
});

describe('the status of a page', () => {
  it.each([
    [200, undefined],
    [203, undefined],
    [300, undefined],
    [399, undefined],
    [400, 'http_400'],
    [404, 'http_404'],
    [500, 'http_500'],
    [599, 'http_599'],
  ])('%i has the code %s, and its text is returned', async (status, code) => {
    expect(await shown({ 'content-type': 'text/plain' }, 'words', {}, status)).toEqual({ code, text: 'words' });
  });

  it.each([301, 302, 303, 307, 308])('%i with an address is followed', async (status) => {
    const { at, network, requests } = await site((request, response) => {
      if (request.url === '/new') return void response.end('arrived');
      response.writeHead(status, { location: 'new' }).end();
    });
    expect((await fetched(network, at('/old'))).text).toBe(`[${at('/new')}, status 200]\narrived`);
    expect(requests).toHaveLength(2);
  });

  it.each([201, 400])('%i with an address is a page of its own', async (status) => {
    const headers = { 'content-type': 'text/plain', location: '/new' };
    expect((await shown(headers, 'words', {}, status)).text).toBe('words');
  });
});

describe('a page, whatever comes of it,', () => {
  const endless: RequestListener = (_, response) => {
    response.setHeader('content-type', 'text/plain');
    const more = (): void => {
      while (response.write('x'.repeat(65_536)));
      response.once('drain', more);
    };
    more();
  };
  it.each<[string, RequestListener, string | undefined]>([
    ['is shown', html('a'), undefined],
    ['fails with a status', (_, response) => void response.writeHead(404).end('a'), 'http_404'],
    ['is no text', html('a', 'image/png'), 'binary'],
    [
      'leads to another host',
      (_, response) => {
        response.writeHead(302, { location: 'http://other.test/' }).write('the connection stays open');
      },
      undefined,
    ],
    ['never ends', endless, undefined],
    ['breaks off', (request) => void request.socket.destroy(), 'unreachable'],
  ])('that %s leaves no connection, no listener and no timer', async (_, listener, code) => {
    const sockets: Socket[] = [];
    const { at, network } = await site((request, response) => {
      sockets.push(request.socket);
      listener(request, response);
    });
    const { signal } = new AbortController();
    const [added, removed] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')];
    const [timers, cleared] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
    try {
      expect((await fetched(network, at('/'), {}, signal)).code).toBe(code);
      await expect.poll(() => sockets.map(({ destroyed }) => destroyed)).toEqual([true]);
      for (const [, listener] of added.mock.calls)
        expect(removed.mock.calls.map(([, gone]) => gone)).toContain(listener);
      const timer = timers.mock.results[timers.mock.calls.findIndex(([, ms]) => ms === 30_000)]?.value;
      expect(cleared.mock.calls).toContainEqual([timer]);
    } finally {
      for (const spy of [timers, cleared]) spy.mockRestore();
    }
  });
});

describe('the part of a page that is shown', () => {
  const plain = { 'content-type': 'text/plain' };
  const text = Array.from({ length: 60_000 }, (_, at) => String.fromCharCode(97 + (at % 26))).join('');
  it.each<[number, object, string]>([
    [0, {}, '[no text]'],
    [1, { offset: 1 }, '[no text]'],
    [50_000, {}, text.slice(0, 50_000)],
    [50_001, {}, `${text.slice(0, 50_000)}\n[1 characters follow: read on with offset 50000]`],
    [60_000, { offset: 3 }, `${text.slice(3, 50_003)}\n[9997 characters follow: read on with offset 50003]`],
    [60_000, { offset: 50_003 }, text.slice(50_003)],
    [60_000, { offset: 60_001 }, '[no text]'],
  ])('of %i characters with %j', async (length, more, wanted) => {
    expect((await shown(plain, text.slice(0, length), more)).text).toBe(wanted);
  });

  it('never ends with half of a character, and is read on with the whole one', async () => {
    const page = `${text.slice(0, 49_999)}🎉end`;
    const first = `${text.slice(0, 49_999)}\n[5 characters follow: read on with offset 49999]`;
    expect((await shown(plain, page)).text).toBe(first);
    expect((await shown(plain, page, { offset: 49_999 })).text).toBe('🎉end');
  });

  it.each([{ offset: -1 }, { offset: 0.5 }, { url: '' }, { url: `http://a.test/${'x'.repeat(2_048)}` }])(
    'is asked for with valid arguments, unlike %j',
    async (more) => {
      const { at, network } = await site((_, response) => void response.end('x'));
      expect((await fetched(network, at('/'), more)).code).toBe('invalid');
    },
  );

  it.each([
    [5 * 1_048_576, false],
    [5 * 1_048_576 + 1, true],
  ])('ends with a note where a page of %i bytes was cut: %s', async (bytes, isCut) => {
    const { text: end } = await shown(plain, Buffer.alloc(bytes, 'x'), { offset: 5 * 1_048_576 - 1 });
    expect(end).toBe(isCut ? 'x\n[the page is longer than 5 MiB, and its end was left out]' : 'x');
  });
});

describe('a page that is not reached', () => {
  const nowhere = { resolve: async () => [], isAllowed: isPublicAddress };
  it('has no address: the result names the host and the reason', async () => {
    expect(await fetched(nowhere, 'http://site.test/')).toEqual({
      code: 'unreachable',
      text: 'site.test has no address',
    });
    const failing = { ...nowhere, resolve: () => Promise.reject(new Error('not found')) };
    expect(await fetched(failing, 'http://site.test/')).toEqual({
      code: 'unreachable',
      text: 'the name site.test has no address: not found',
    });
  });

  it('is judged by the port of its address, which may be that of its protocol, and an IP address needs no name', async () => {
    const asked: unknown[] = [];
    const network = {
      resolve: async (host: string) => {
        asked.push(host);
        return [{ address: '9.9.9.9', family: 4 as const }];
      },
      isAllowed: (address: string, port: number) => {
        asked.push(`${address} ${port}`);
        return false;
      },
    };
    for (const url of ['http://a.test/', 'https://b.test/', 'http://c.test:8080/', 'http://8.8.8.8/', 'https://[::2]/'])
      expect(await fetched(network, url)).toMatchObject({ code: 'not_allowed' });
    expect(asked).toEqual([
      ...['a.test', '9.9.9.9 80', 'b.test', '9.9.9.9 443', 'c.test', '9.9.9.9 8080'],
      ...['8.8.8.8 80', '::2 443'],
    ]);
  });

  it('ends after 30 s, with or without an address, and nothing waits for it afterwards', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const network = { resolve: () => new Promise<never>(() => undefined), isAllowed: isPublicAddress };
    const { signal } = new AbortController();
    const listening = { added: vi.spyOn(signal, 'addEventListener'), removed: vi.spyOn(signal, 'removeEventListener') };
    const running = fetched(network, 'http://site.test:81/', {}, signal);
    await vi.advanceTimersByTimeAsync(29_999);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await running).toEqual({ code: 'timeout', text: 'site.test:81 did not answer within 30000 ms' });
    expect([vi.getTimerCount(), listening.removed.mock.calls.length]).toEqual([0, listening.added.mock.calls.length]);
  });

  it.each(['a page', 'a refusal', 'an error'])('leaves no timer and no listener after %s', async (end) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { at, network } = await site((_, response) => {
      if (end === 'an error') response.destroy();
      else response.end('x');
    });
    const { signal } = new AbortController();
    const listening = { added: vi.spyOn(signal, 'addEventListener'), removed: vi.spyOn(signal, 'removeEventListener') };
    await fetched(network, end === 'a refusal' ? 'http://127.0.0.1:1/' : at('/'), {}, signal);
    expect(vi.getTimerCount()).toBe(0);
    expect([listening.added.mock.calls.length, listening.removed.mock.calls.length]).toEqual([1, 1]);
  });

  it('is asked for in a way that names the program, the wanted types and the encodings', async () => {
    let headers: { [name: string]: unknown } = {};
    const { at, network } = await site((request, response) => {
      headers = request.headers;
      response.end('x');
    });
    await fetched(network, at('/'));
    expect(headers).toMatchObject({
      ...{ accept: expect.stringMatching(/^text\/html, text\/markdown, text\/plain/), 'user-agent': 'runchart' },
      'accept-encoding': 'gzip, deflate, br',
    });
  });
});
