/**
 * WebFetch: addresses, redirects and bounds, against real servers on this machine. Invariant: the check of addresses is
 * never weaker than that of the tool; a test names the one address and port that it adds.
 */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { permissions } from '../../../src/permissions/permissions.ts';
import { htmlText } from '../../../src/tools/coding/web/htmlText.ts';
import { internet, type Network } from '../../../src/tools/coding/web/pageRequest.ts';
import { isPublicAddress } from '../../../src/tools/coding/web/publicAddress.ts';
import { isSameHost } from '../../../src/tools/coding/web/webFetch.ts';
import { cpuTime } from '../../support/cpuTime.ts';
import { fetched, html, site } from './servedPages.ts';

describe('addresses', () => {
  it('this machine, private networks, link-local and metadata addresses are not public, in any spelling', () => {
    const refused = `127.0.0.1 127.9.9.9 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1
      100.127.255.255 198.18.0.1 224.0.0.1 255.255.255.255 240.0.0.1 192.0.2.1 203.0.113.9 168.63.129.16 ::1 :: ::ffff:127.0.0.1
      ::ffff:7f00:1 ::ffff:10.0.0.1 ::127.0.0.1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 2001:db8::1 2001::1
      2002:7f00:1:: 2002:a00:1::1 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b:1::1 100::1 4000::1 localhost 1 127.1 0x7f.1`;
    for (const address of refused.split(/\s+/)) expect([address, isPublicAddress(address)]).toEqual([address, false]);
    for (const address of [
      '8.8.8.8',
      '1.1.1.1',
      '172.32.0.1',
      '100.128.0.1',
      '2606:4700::1111',
      '::ffff:8.8.8.8',
      '64:ff9b::808:808',
      '2002:808:808::1',
    ])
      expect([address, isPublicAddress(address)]).toEqual([address, true]);
  });

  it('an IPv4 address is judged alike however IPv6 holds it', () => {
    const bytes = fc.tuple(...[0, 1, 2, 3].map(() => fc.integer({ min: 0, max: 255 })));
    fc.assert(
      fc.property(bytes, (parts) => {
        const plain = parts.join('.');
        const [a, b, c, d] = parts.map((part) => part.toString(16).padStart(2, '0'));
        const held = [`::ffff:${plain}`, `::ffff:${a}${b}:${c}${d}`, `64:ff9b::${plain}`, `2002:${a}${b}:${c}${d}::1`];
        expect(held.map(isPublicAddress)).toEqual(held.map(() => isPublicAddress(plain)));
      }),
    );
  });

  it('an address of this machine is refused before anything is sent, as a number, a name, or in another form', async () => {
    const { port, requests } = await site(html('secret'));
    for (const host of [
      '127.0.0.1',
      'localhost',
      '0',
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
    ]) {
      expect(await fetched(internet, `http://${host}:${port}/`)).toMatchObject({ code: 'not_allowed' });
    }
    expect(requests).toEqual([]);
  });

  it('a name with one private address among others is refused', async () => {
    const { requests, at, network } = await site(html('x'));
    const both: Network = {
      ...network,
      resolve: async () => [
        { address: '127.0.0.1', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ],
    };
    expect(await fetched(both, at('/'))).toMatchObject({ code: 'not_allowed' });
    expect(requests).toEqual([]);
  });

  it('a name that changes its address after the check is reached at the checked address, and asked for once a request', async () => {
    const { requests, resolved, at, network } = await site(html('page'), { 'site.test': ['127.0.0.1', '10.0.0.1'] });
    expect(await fetched(network, at('/'))).toMatchObject({ text: expect.stringContaining('page') });
    expect(resolved).toEqual(['site.test']);
    expect(await fetched(network, at('/'))).toMatchObject({ code: 'not_allowed' });
    expect(requests).toHaveLength(1);
  });

  it('only http and https are read, and no address with a password', async () => {
    for (const url of [
      'file:///etc/passwd',
      'ftp://example.com/',
      'data:text/html,x',
      'javascript:1',
      'example.com',
      'http://',
      'http://a:b@example.com/',
    ])
      expect([url, (await fetched(internet, url)).code]).toEqual([url, 'invalid_arguments']);
  });
});

describe('redirects', () => {
  it('of the same host are followed, at most five', async () => {
    const { at, network, requests } = await site((request, response) => {
      const step = Number(request.url?.slice(1));
      if (step === 3) return void response.end('arrived');
      response.writeHead(302, { location: `/${step + 1}` }).end();
    });
    expect(await fetched(network, at('/0'))).toMatchObject({
      code: undefined,
      text: expect.stringContaining('arrived'),
    });
    expect(await fetched(network, at('/10'))).toMatchObject({ code: 'unreachable' });
    expect(requests).toHaveLength(4 + 6);
  });

  it('to another host are reported and not followed', async () => {
    const { at, network, requests } = await site((_, response) => {
      response.writeHead(301, { location: 'https://other.test/x' }).end();
    });
    const { code, text } = await fetched(network, at('/'));
    expect([code, text]).toEqual([
      undefined,
      expect.stringContaining('[it redirects to another host: https://other.test/x]'),
    ]);
    expect(requests).toHaveLength(1);
  });

  it('keep the name, the port and the encryption of the call, unless http becomes https', () => {
    const hosts = ['a.test', 'b.test'];
    const ports = ['', ':8080', ':8443'];
    const places = ['http:', 'https:'].flatMap((scheme) =>
      hosts.flatMap((host) => ports.map((port) => ({ scheme, host, port }))),
    );
    const urlOf = ({ scheme, host, port }: (typeof places)[number]): URL => new URL(`${scheme}//${host}${port}/x`);
    for (const from of places)
      for (const to of places) {
        const isKept = from.host === to.host && from.port === to.port;
        const isPlainAfterwards = from.scheme === 'https:' && to.scheme === 'http:';
        expect([urlOf(from).href, urlOf(to).href, isSameHost(urlOf(from), urlOf(to))]).toEqual([
          urlOf(from).href,
          urlOf(to).href,
          isKept && !isPlainAfterwards,
        ]);
      }
  });

  it('are checked like the first address, also where the name leads elsewhere by then', async () => {
    const names = { 'site.test': ['127.0.0.1', '169.254.169.254'] };
    const { at, network, requests } = await site((_, response) => {
      response.writeHead(302, { location: '/again' }).end();
    }, names);
    expect(await fetched(network, at('/'))).toMatchObject({ code: 'not_allowed' });
    expect(requests).toHaveLength(1);
  });

  it('to what is no page are refused', async () => {
    for (const location of ['file:///etc/passwd', 'http://a:b@site.test/', 'http://']) {
      const { at, network } = await site((_, response) => void response.writeHead(302, { location }).end());
      expect([location, (await fetched(network, at('/'))).code]).toEqual([location, 'unreachable']);
    }
  });
});

describe('a page', () => {
  it('is returned as text with its title, address and status, and a failure keeps its text', async () => {
    const page = html(
      '<title>T</title><h1>Head</h1><p>One <b>two</b><br>three <a href="/x">link</a></p><script>no()</script>',
    );
    const { at, network } = await site(page);
    expect((await fetched(network, at('/p'))).text).toBe(
      `[${at('/p')}, status 200]\nT\n\n# Head\n\nOne two\nthree link (${at('/x')})`,
    );
    const missing = await site((_, response) => void response.writeHead(404).end('gone'));
    expect(await fetched(missing.network, missing.at('/'))).toEqual({
      code: 'http_404',
      text: `[${missing.at('/')}, status 404]\ngone`,
    });
  });

  it('is decompressed, decoded by its charset, and refused where it is no text', async () => {
    for (const [encoding, packed] of [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', brotliCompressSync],
    ] as const) {
      const { at, network } = await site((_, response) => {
        response.writeHead(200, { 'content-encoding': encoding, 'content-type': 'text/plain; charset=latin1' });
        response.end(packed(Buffer.from('caf\xe9', 'latin1')));
      });
      expect((await fetched(network, at('/'))).text).toContain('café');
    }
    const image = await site(html('x', 'image/png'));
    expect(await fetched(image.network, image.at('/'))).toMatchObject({ code: 'binary' });
  });

  it('is bounded in bytes after decompression, and its text is read on with offset', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1_048_576, 'x'));
    const { at, network } = await site((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'text/plain' }).end(bomb);
    });
    const { text } = await fetched(network, at('/'));
    expect(text.length).toBeLessThan(50_300);
    expect(text).toMatch(/characters follow: read on with offset 50000\]$/);
    const last = await fetched(network, at('/'), { offset: 5 * 1_048_576 });
    expect(last.text).toMatch(/the page is longer than 5 MiB, and its end was left out\]$/);
  });

  it('sends no cookies and no credentials, uses no proxy, and keeps no connection', async () => {
    let headers: object = {};
    const { at, network } = await site((request, response) => {
      headers = request.headers;
      response.setHeader('set-cookie', 'a=b').end('x');
    });
    process.env.HTTP_PROXY = 'http://127.0.0.1:1';
    await fetched(network, at('/'));
    await fetched(network, at('/'));
    delete process.env.HTTP_PROXY;
    expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
    // Another request must not use a connection whose address was checked for this one.
    expect(headers).toMatchObject({ connection: 'close' });
  });

  it('that does not arrive is no longer awaited after a cancel of the call', async () => {
    const { at, network, requests } = await site(() => undefined);
    const stop = new AbortController();
    const running = fetched(network, at('/'), {}, stop.signal);
    await expect.poll(() => requests.length).toBe(1);
    stop.abort(new Error('stopped'));
    await expect(running).rejects.toThrow('stopped');
  });

  it.each([
    ['identity', (bytes: Buffer) => bytes],
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)('in %s that the server cuts anywhere is an error at once, and no half page', async (encoding, packed) => {
    const whole = packed(Buffer.from(Array.from({ length: 2_000 }, (_, at) => `${at * 7919} `).join('')));
    for (const length of [0, 1, 10, whole.length >> 1, whole.length - 1]) {
      const { at, network } = await site((_, response) => {
        const headers = { 'content-encoding': encoding, 'content-type': 'text/plain', 'content-length': whole.length };
        response.writeHead(200, headers).flushHeaders();
        response.write(whole.subarray(0, length), () => response.destroy());
      });
      // The tool itself waits for 30 s.
      const answer = await fetched(network, at('/'), {}, AbortSignal.timeout(20_000));
      expect([length, answer]).toEqual([length, { code: 'unreachable', text: expect.any(String) }]);
    }
  });

  it('cannot drive a terminal', async () => {
    const { at, network } = await site(html('a\x1b[2Jb&#27;[1m\x9bc'));
    expect((await fetched(network, at('/'))).text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });
});

describe('the text of HTML', () => {
  const textOf = (source: string): string => htmlText(source, 'https://a.test/d/').text;

  it('has lists, code, tables and entities, and leaves out what is not shown', () => {
    expect(textOf('<ul><li>a<li>b &amp; c</ul>')).toBe('- a\n- b & c');
    expect(textOf('<pre>  x\n   y</pre>z')).toBe('```\n  x\n   y\n```\n\nz');
    expect(textOf('<table><tr><td>1<td>2<tr><td>3</table>')).toBe('| 1 | 2\n| 3');
    expect(textOf('a<!-- <b> -->b<style>c</style><script>"</div>"</script>d<svg><text>e</text></svg>')).toBe('abd');
    expect(textOf('&lt;&#65;&#x42;&nope;&#0; 1 < 2 <3')).toBe('<AB&nope;\uFFFD 1 < 2 <3');
    expect(textOf('<a href="x?a=1&amp;b">t</a> <a href="#n">n</a> <a href="javascript:x">j</a>')).toBe(
      't (https://a.test/d/x?a=1&b) n j',
    );
  });

  it('is made in time that is linear in the page, however the page is broken', async () => {
    const many = 400_000;
    for (const part of [
      '<',
      '<a ',
      '<a href="',
      '<!--',
      '<script>',
      '</',
      '<div>',
      ' ',
      '&',
      '<pre> ',
      '<svg><',
      "<p a='",
    ]) {
      const source = part.repeat(Math.ceil(many / part.length));
      expect([part, (await cpuTime(() => textOf(source))) < 5_000]).toEqual([part, true]);
    }
  });

  it('never throws', () => {
    const piece = fc.constantFrom(
      '<',
      '>',
      '/',
      'a',
      'pre',
      'li',
      '"',
      '=',
      ' href',
      '&',
      '#',
      ';',
      '!--',
      'script',
      '\n',
      'x',
    );
    fc.assert(fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => typeof textOf(pieces.join('')) === 'string'));
  });
});

describe('the rules', () => {
  const outcomeOf = async (rules: ReturnType<typeof permissions>, url: string): Promise<string> => {
    const { outcome, by } = await rules.explain('WebFetch', { url }, '/');
    return `${outcome} ${by}`;
  };

  it('TRC-13 WebFetch is asked about by the host of its address', async () => {
    const rules = permissions({
      allow: ['WebFetch(domain:example.com)', 'webfetch(domain:*.docs.test)'],
      deny: ['WebFetch(domain:bad.docs.test)'],
    });
    expect(await outcomeOf(rules, 'https://EXAMPLE.com./a?b')).toBe('allow allow WebFetch(domain:example.com)');
    expect(await outcomeOf(rules, 'http://example.com:8080/')).toBe('allow allow WebFetch(domain:example.com)');
    expect(await outcomeOf(rules, 'https://a.b.docs.test/')).toBe('allow allow webfetch(domain:*.docs.test)');
    expect(await outcomeOf(rules, 'https://bad.docs.test/')).toBe('deny deny WebFetch(domain:bad.docs.test)');
    for (const url of [
      'https://docs.test/',
      'https://sub.example.com/',
      'https://example.com.evil.test/',
      'https://evilexample.com/',
      'https://example.com@evil.test/',
      'https://evil.test/?example.com',
    ])
      expect([url, await outcomeOf(rules, url)]).toEqual([url, expect.stringMatching(/^(ask mode default|deny deny)/)]);
  });

  it('"always" saves a rule for the host', async () => {
    const rules = permissions();
    expect(await rules.remember('WebFetch', { url: 'https://a.test/x' }, '/')).toEqual(['webfetch(domain:a.test)']);
    expect(await outcomeOf(rules, 'https://a.test/y')).toBe('allow allow webfetch(domain:a.test)');
    expect(await outcomeOf(rules, 'https://b.test/y')).toBe('ask mode default');
  });

  it('plan mode denies it, and an address without a host is held to every deny rule', async () => {
    expect(await outcomeOf(permissions({ mode: 'plan' }), 'https://a.test/')).toBe('deny mode plan');
    expect(await outcomeOf(permissions({ deny: ['webfetch(domain:a.test)'] }), 'nonsense')).toMatch(/^deny/);
    for (const rule of [
      'webfetch(example.com)',
      'webfetch(domain:)',
      'webfetch(domain:a b)',
      'webfetch(domain:a/b)',
      'webfetch(domain:*)',
    ])
      expect(() => permissions({ allow: [rule] })).toThrow('must name a host, as in WebFetch(domain:example.com)');
  });
});
