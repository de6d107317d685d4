/**
 * Images and files of a conversation over HTTP. Invariant: a caller reads only the bytes of conversations that it may reach, whatever
 * hash it requests. A browser displays images and nothing else.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { connect } from '../../src/client/index.ts';
import {
  type AgentOptions,
  type Content,
  createAgent,
  defineTool,
  type LogEntry,
  type LogStore,
  memoryStore,
  RunchartError,
} from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { createHandlers, sessions } from '../../src/transports/index.ts';
import { bytesOf, pdf } from '../support/sampleFiles.ts';
import { dot } from '../support/samplePictures.ts';
import { call, during, finish, scripted } from '../support/scriptedReplies.ts';
import { sharedMemoryStore } from '../support/sharedMemoryStore.ts';
import { served } from './agentServer.ts';

const PNG = { type: 'image', mediaType: 'image/png', data: dot } as const;
const html = bytesOf('<script>alert(1)</script>');
const file = (data: Uint8Array, mediaType: string, name?: string) =>
  ({ type: 'file', mediaType, data, ...(name !== undefined && { name }) }) as const;

/** The references in a log, in order, without `blob:` and the media type. */
function hashesIn(entries: readonly LogEntry[]): string[] {
  const parts = entries.flatMap((entry) => {
    if (entry.type === 'history') return entry.messages.flatMap(({ content }) => content);
    return 'content' in entry ? entry.content : [];
  });
  return parts.flatMap((part) => ('data' in part ? [part.data.split(':')[1] ?? ''] : []));
}

/** A conversation `c` with this message, over HTTP by Node. */
async function place(content: Content, options: Partial<AgentOptions> = {}) {
  const server = await served(['one', 'two'], options);
  const conversation = await server.agent.open('c');
  await conversation.send(content).result;
  const hashes = hashesIn(conversation.log());
  await conversation.close();
  const blob = (hash = hashes[0], headers = {}): Promise<Response> =>
    server.get(`/conversations/c/blobs/${hash}`, headers);
  return { ...server, hashes, blob };
}

const bodyOf = async (response: Response): Promise<Uint8Array> => new Uint8Array(await response.arrayBuffer());
const headersOf = ({ headers }: Response, ...names: string[]): (string | null)[] =>
  names.map((name) => headers.get(name));

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'runchart-blobs-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}
const STORES: [string, () => LogStore][] = [
  ['in memory', memoryStore],
  ['in files', () => jsonlStore(directory())],
];

describe.each(STORES)('the bytes of a conversation %s', (_, store) => {
  it('an image is answered as it is, to be kept by the browser of that person', async () => {
    const { blob, hashes } = await place([PNG], { store: store() });
    const response = await blob();
    expect(response.status).toBe(200);
    expect(headersOf(response, 'content-type', 'content-length', 'content-disposition')).toEqual([
      'image/png',
      `${dot.length}`,
      null,
    ]);
    expect(headersOf(response, 'cache-control', 'x-content-type-options', 'etag')).toEqual([
      'private, max-age=31536000, immutable',
      'nosniff',
      `"${hashes[0]}"`,
    ]);
    expect(await bodyOf(response)).toEqual(dot);
  });

  it('every other file is answered as a download without its type', async () => {
    const parts = [file(html, 'text/html', 'page.html'), file(pdf, 'application/pdf', 'Bericht „1“\n.pdf')];
    const { blob, hashes } = await place(parts, { store: store() });
    const [page, report] = [await blob(hashes[0]), await blob(hashes[1])];
    for (const response of [page, report])
      expect(headersOf(response, 'content-type', 'x-content-type-options', 'content-security-policy')).toEqual([
        'application/octet-stream',
        'nosniff',
        "default-src 'none'; sandbox",
      ]);
    expect(page.headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''page.html");
    expect(report.headers.get('content-disposition')).toBe(
      `attachment; filename*=UTF-8''${encodeURIComponent('Bericht „1“.pdf')}`,
    );
    expect(await bodyOf(page)).toEqual(html);
    expect(await bodyOf(report)).toEqual(pdf);
  });
});

it('bytes that are no image are a download, also where a part calls them an image', async () => {
  const { agent, blob, hashes, post } = await place([file(html, 'text/html')], { store: jsonlStore(directory()) });
  const data = `blob:${hashes[0]}:image/png`;
  const content = [{ type: 'image', mediaType: 'image/png', data }];
  expect((await post('/conversations/c/messages', { content })).status).toBe(202);
  const response = await blob();
  expect(headersOf(response, 'content-type', 'content-disposition')).toEqual([
    'application/octet-stream',
    'attachment',
  ]);
  await agent.close();
});

it('bytes that are a file in one message and an image in a later one are shown as an image', async () => {
  const { agent, blob, hashes, post } = await place([file(dot, 'application/octet-stream', 'dot')], {
    store: jsonlStore(directory()),
  });
  expect(headersOf(await blob(), 'content-type')).toEqual(['application/octet-stream']);
  const content = [{ type: 'image', mediaType: 'image/png', data: `blob:${hashes[0]}:image/png` }];
  expect((await post('/conversations/c/messages', { content })).status).toBe(202);
  const response = await blob();
  expect(headersOf(response, 'content-type', 'content-disposition')).toEqual(['image/png', null]);
  await agent.close();
});

it.each([
  ['messages', 'image', `blob:${'0'.repeat(64)}:image/png`],
  ['messages', 'file', `blob:${'0'.repeat(64)}:application/pdf`],
  ['messages', 'image', 'blob:none'],
  ['steer', 'image', `blob:${'0'.repeat(64)}:image/png`],
])(
  'a %s with an %s of a reference that the log does not contain is 400, and nothing is logged',
  async (path, type, data) => {
    for (const [, store] of STORES) {
      const { agent, get, post } = await place([PNG], { store: store() });
      const before = await (await get('/conversations/c')).json();
      const mediaType = type === 'image' ? 'image/png' : 'application/pdf';
      const content = [
        { type: 'text', text: 'see' },
        { type, mediaType, data },
      ];
      const refused = await post(`/conversations/c/${path}`, { content });
      expect([refused.status, await refused.json()]).toEqual([
        400,
        { type: 'error', code: 'configuration', message: expect.stringMatching(/reference.*this conversation.*bytes/) },
      ]);
      expect(await (await get('/conversations/c')).json()).toEqual(before);
      expect((await post('/conversations/c/messages', { content: 'go on' })).status).toBe(202);
      await agent.close();
    }
  },
);

it('every character of a name that a header cannot hold is escaped', async () => {
  const { blob } = await place([file(html, 'text/html', "it's (a) *.html;\r\n\u202e")]);
  const disposition = (await blob()).headers.get('content-disposition');
  expect(disposition).toBe("attachment; filename*=UTF-8''it%27s%20%28a%29%20%2a.html%3B");
});

it('bytes that their holder cannot give at the moment are 503, so that they are asked for again', async () => {
  const store = memoryStore();
  const slow = Object.create(store, {
    open: {
      value: async (...args: Parameters<LogStore['open']>) => {
        const handle = await store.open(...args);
        handle.getBlob = () => Promise.reject(new RunchartError('unavailable', 'the holder does not answer'));
        return handle;
      },
    },
  }) as LogStore;
  const response = await (await place([PNG], { store: slow })).blob();
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await response.json()).toMatchObject({ code: 'unavailable' });
});

it('a request with the ETag is answered 304 without bytes, and only to those who may read them', async () => {
  const { agent, blob, hashes } = await place([PNG]);
  const etag = `"${hashes[0]}"`;
  for (const sent of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const response = await blob(hashes[0], { 'if-none-match': sent });
    expect([response.status, ...headersOf(response, 'etag', 'content-type')]).toEqual([304, etag, null]);
    expect(await response.text()).toBe('');
  }
  expect((await blob(hashes[0], { 'if-none-match': '"x"' })).status).toBe(200);
  const unknown = 'a'.repeat(64);
  expect((await blob(unknown, { 'if-none-match': `"${unknown}"` })).status).toBe(404);
  const asBob = createHandlers(agent, { authorize: () => ({ by: 'bob', owner: 'bob' }) });
  const asked = new Request(`http://host/conversations/c/blobs/${hashes[0]}`, { headers: { 'if-none-match': etag } });
  expect((await asBob(asked)).status).toBe(404);
});

it('a blob without a reference in this conversation is 404, also if another conversation or the store has it', async () => {
  const { agent, get, hashes, blob } = await place([PNG]);
  const other = await agent.open('other');
  await other.send([file(pdf, 'application/pdf')]).result;
  const [hash] = hashesIn(other.log());
  await other.close();
  expect((await get(`/conversations/other/blobs/${hash}`)).status).toBe(200);
  const answers = [await blob(hash), await get(`/conversations/other/blobs/${hashes[0]}`), await blob('..%2Fc')];
  for (const answer of answers) {
    expect(answer.status).toBe(404);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  }
  expect((await get(`/conversations/never/blobs/${hash}`)).status).toBe(404);
  expect((await get('/conversations/c/blobs')).status).toBe(404);
  expect((await get(`/conversations/c/blobs/${hashes[0]}/more`)).status).toBe(404);
  expect(await agent.list()).toHaveLength(2);
});

it('every request is authorized, and the path takes GET', async () => {
  const { agent, hashes, post } = await place([PNG]);
  expect((await post(`/conversations/c/blobs/${hashes[0]}`, {})).status).toBe(405);
  const refusing = createHandlers(agent, { authorize: () => false });
  expect((await refusing(new Request(`http://host/conversations/c/blobs/${hashes[0]}`))).status).toBe(401);
});

it('images of results, of messages in the queue and of an earlier conversation are answered too', async () => {
  const camera = defineTool({
    name: 'camera',
    description: 'Takes a picture.',
    parameters: z.object({}),
    execute: () => [PNG],
  });
  let release = (): void => {};
  const wait = new Promise<void>((resolve) => {
    release = resolve;
  });
  const replies = [[call('c', 'camera'), finish('tool-calls')], during(() => wait, 'one'), 'two'];
  const agent = createAgent({ model: scripted(replies), tools: [camera], store: memoryStore() });
  onTestFinished(() => agent.close());
  const history = [{ role: 'user' as const, content: [file(pdf, 'application/pdf', 'report.pdf')] }];
  await (await agent.open('c', { history })).close();
  const shared = sessions(agent);
  const handler = createHandlers(agent, { authorize: () => true, sessions: shared });
  const conversation = await shared.acquire('c');
  const run = conversation.send('Take one.');
  await expect.poll(() => hashesIn(conversation.log()).length).toBe(2);
  conversation.followUp([file(html, 'text/html', 'page.html')]);
  await expect.poll(() => hashesIn(conversation.log()).length).toBe(3);
  for (const [index, bytes] of [pdf, dot, html].entries()) {
    const hash = hashesIn(conversation.log())[index];
    expect(await bodyOf(await handler(new Request(`http://host/conversations/c/blobs/${hash}`)))).toEqual(bytes);
  }
  release();
  await run.result;
});

it('bytes that the store has lost are an error without its paths', async () => {
  const store = jsonlStore(directory());
  const lost = Object.create(store, {
    open: {
      value: async (...args: Parameters<LogStore['open']>) => {
        const handle = await store.open(...args);
        handle.getBlob = () => Promise.reject(new Error('/home/ann/secret: no such file'));
        return handle;
      },
    },
  }) as LogStore;
  const { blob } = await place([PNG], { store: lost });
  const response = await blob();
  expect(response.status).toBe(500);
  expect(await response.json()).toMatchObject({ code: 'store', message: expect.not.stringContaining('/home') });
});

it('a conversation that was idle is released before its bytes are read by the client', async () => {
  const { agent, hashes } = await place([PNG, file(pdf, 'application/pdf')]);
  const shared = sessions(agent, { openMax: 1, waitMs: 0 });
  const handler = createHandlers(agent, { authorize: () => true, sessions: shared });
  const response = await handler(new Request(`http://host/conversations/c/blobs/${hashes[0]}`));
  // The only place is free again, although nobody has read the body.
  shared.release(await shared.acquire('d'));
  expect(await bodyOf(response)).toEqual(dot);
});

it('the bytes of a conversation that another process holds come from there, and no place is taken', async () => {
  const store = sharedMemoryStore();
  const holder = createAgent({ model: scripted(['one']), store });
  const other = createAgent({ model: scripted([]), store });
  onTestFinished(async () => {
    await other.close();
    await holder.close();
  });
  const held = await holder.open('c');
  await held.send([PNG]).result;
  const shared = sessions(other, { openMax: 1, waitMs: 0 });
  const handler = createHandlers(other, { authorize: () => true, sessions: shared });
  const [hash] = hashesIn(held.log());
  const response = await handler(new Request(`http://host/conversations/c/blobs/${hash}`));
  expect(await bodyOf(response)).toEqual(dot);
  expect((await handler(new Request(`http://host/conversations/c/blobs/${'a'.repeat(64)}`))).status).toBe(404);
  await shared.acquire('d');
});

describe('attachmentURL of a remote conversation', () => {
  it('is the address of stored bytes, a data: URL for base64, and an address as it is', async () => {
    const { base, agent } = await place([PNG]);
    const client = connect({ baseURL: `${base}/` });
    onTestFinished(() => client.close());
    const conversation = await client.open('c');
    const [image] = conversation.messages()[0]?.content ?? [];
    if (image?.type !== 'image') throw new Error('the message has no image');
    const response = await fetch(conversation.attachmentURL(image));
    expect(await bodyOf(response)).toEqual(dot);
    const mediaType = 'image/png';
    expect(conversation.attachmentURL({ mediaType, data: 'aGk=' })).toBe('data:image/png;base64,aGk=');
    for (const data of ['https://host/a.png', 'HTTP://host:8080/a:b.png', 'data:image/png;base64,aGk=', 'DATA:,hi'])
      expect(conversation.attachmentURL({ mediaType, data })).toBe(data);
    expect(conversation.attachmentURL({ mediaType, data: 'blob:a/b?c:image/png' })).toBe(
      `${base}/conversations/c/blobs/a%2Fb%3Fc`,
    );
    const odd = await client.open('a/ü b');
    expect(odd.attachmentURL(image)).toContain(`${base}/conversations/a%2F%C3%BC%20b/blobs/`);
    await agent.close();
  });
});
