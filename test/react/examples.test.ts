/** The examples with servers and pages of frameworks, bundled with the sources in place of the package's names. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { getRequestListener } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { build } from 'esbuild';
import { Hono } from 'hono';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { build as buildPage } from 'vite';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { entries, root } from '../docs/documents.ts';
import { freePort } from '../support/freePort.ts';
import { plain } from '../support/samplePictures.ts';
import { proves, sampled, volume } from '../support/tier.ts';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const SERVERS = ['hono-chat', 'express-chat'];
const example = (name: string): string => join(root, 'docs/examples', name);
const sources = Object.fromEntries([...entries].map(([name, source]) => [name, join(root, source)]));
// Packages of the old kind ask for Node's modules by `require`.
const js = "import { createRequire as ofModule } from 'node:module'; const require = ofModule(import.meta.url);";
const folder = mkdtempSync(join(tmpdir(), 'runchart-example-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bundles a module of an example for Node. */
async function bundledForNode(name: string, file: string): Promise<string> {
  const outfile = join(folder, file);
  const how = { bundle: true, platform: 'node', format: 'esm', banner: { js }, logLevel: 'silent' } as const;
  await build({ entryPoints: [example(name)], alias: sources, outfile, ...how });
  return outfile;
}

/** The working directory of an example. */
function directoryOf(name: string): string {
  const directory = join(folder, name);
  mkdirSync(directory, { recursive: true });
  return directory;
}

/** Runs the server of an example, which serves the page in its directory. Returns its address. */
async function served(name: string): Promise<string> {
  const file = await bundledForNode(`${name}/server.js`, `${name}.mjs`);
  const port = await freePort();
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [file], { cwd: directoryOf(name), env: { PATH, PORT: `${port}` } });
  onTestFinished(async () => {
    const ended = once(child, 'exit');
    child.kill();
    await ended;
  });
  const url = `http://127.0.0.1:${port}/`;
  await expect
    .poll(
      () =>
        fetch(url).then(
          ({ status }) => status > 0,
          () => false,
        ),
      { timeout: 20_000 },
    )
    .toBe(true);
  return url;
}

const post = (url: string, body: object): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

describe('the example for Next', () => {
  it('its routes answer a chat, and modules that are evaluated again share its conversations', async () => {
    const cwd = process.cwd();
    process.chdir(directoryOf('next-chat'));
    onTestFinished(() => process.chdir(cwd));
    const file = await bundledForNode('next-chat/app/api/chat/[[...path]]/route.ts', 'route.mjs');
    type Route = Record<'GET' | 'POST', (request: Request) => Promise<Response>>;
    const [first, second] = [
      (await import(pathToFileURL(file).href)) as Route,
      (await import(`${pathToFileURL(file).href}?again`)) as Route,
    ];
    const ask = (route: Route, body: object): Promise<Response> => {
      const headers = { 'content-type': 'application/json' };
      return route.POST(new Request('http://host/api/chat', { method: 'POST', headers, body: JSON.stringify(body) }));
    };
    const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Pay the rent' }] }];
    expect(await (await ask(first, { id: 'c', messages })).text()).toContain('tool-approval-request');
    const history = await second.GET(new Request('http://host/api/chat/c'));
    const shown = (await history.json()) as { role: string; parts: { type: string; state?: string }[] }[];
    expect(shown.map(({ role }) => role)).toEqual(['user', 'assistant']);
    const tool = shown[1]?.parts.find(({ type }) => type === 'tool-transfer');
    expect(tool?.state).toBe('approval-requested');
    const answered = { ...shown[1], parts: [{ ...tool, state: 'approval-responded', approval: approvalOf(tool) }] };
    const paid = await ask(second, { id: 'c', messages: [shown[0], answered] });
    expect(await paid.text()).toContain('sent 900 euros to the landlord');
  });

  const approvalOf = (tool: object | undefined): object => ({
    ...(tool as { approval: object }).approval,
    approved: true,
  });
});

describe.skipIf(proves)('the servers of the examples', () => {
  it.each(SERVERS)('%s answers requests of the client', async (name) => {
    const url = await served(name);
    expect((await post(`${url}api/conversations`, { id: 'c' })).status).toBe(201);
    expect((await post(`${url}api/conversations/c/messages`, { content: 'Pay the rent' })).status).toBe(202);
    const pending = async (): Promise<number> =>
      ((await (await fetch(`${url}api/conversations/c`)).json()) as { pending: unknown[] }).pending.length;
    await expect.poll(pending).toBe(1);
    expect((await fetch(`${url}else`)).status).toBe(404);
  });
});

describe.skipIf(!proves || !existsSync(CHROMIUM))('the pages of the examples in Chromium', () => {
  let browser: Browser;
  const faults: string[] = [];
  const alias = [...entries].map(([name, source]) => ({
    find: new RegExp(`^${name}$`),
    replacement: join(root, source),
  }));

  async function pageBuilt(name: string, outDir: string, config?: string): Promise<void> {
    const how = { minify: false, reportCompressedSize: false, emptyOutDir: false, outDir } as const;
    const root = example(name);
    const cwd = process.cwd();
    process.chdir(root);
    try {
      const configFile = config === undefined ? false : join(root, config);
      await buildPage({ configFile, root, logLevel: 'warn', resolve: { alias }, build: how });
    } finally {
      process.chdir(cwd);
    }
  }

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    for (const name of SERVERS) await pageBuilt(`${name}/page`, join(directoryOf(name), 'dist'));
  });
  afterAll(() => browser.close());

  async function opened(): Promise<BrowserContext> {
    const context = await browser.newContext({ viewport: { width: 900, height: 600 } });
    context.setDefaultTimeout(120_000);
    context.on('page', (page) => void page.on('pageerror', ({ message }) => faults.push(message)));
    onTestFinished(() => context.close());
    return context;
  }
  const send = async (page: Page, text: string): Promise<void> => {
    await page.getByLabel('Message').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  const idle = (page: Page): Promise<void> => page.getByRole('button', { name: 'Send' }).waitFor();

  /** `interrupt` happens in the middle of a reply. */
  async function usedInTwoTabs(url: string, interrupt: (page: Page) => Promise<unknown>): Promise<void> {
    const context = await opened();
    const [first, second] = [await context.newPage(), await context.newPage()];
    await first.goto(`${url}#c`);
    await idle(first);
    await send(first, 'Pay the rent');
    await second.goto(`${url}#c`);
    await second.getByRole('button', { name: 'Approve' }).click();
    await first.getByText('Done: sent 900 euros').waitFor();
    await idle(second);
    await send(second, 'talk');
    await first.getByText('You wrote “talk”. I am').waitFor();
    await interrupt(first);
    await idle(first);
    await idle(second);
    const reply = (page: Page) => page.locator('p.message').last().textContent();
    expect((await reply(first))?.match(/I am still talking/g)).toHaveLength(40);
    expect(await reply(second)).toBe(await reply(first));
    await send(first, 'more');
    await second.getByText('You wrote “more”').waitFor();
    await second.getByRole('button', { name: 'Stop' }).click();
    await idle(first);
    await first.close();
    await second.reload();
    await second.getByText('You wrote “more”').waitFor();
    await second.getByRole('link', { name: 'Pay the rent' }).waitFor();
    expect(faults.splice(0)).toEqual([]);
  }

  /** An image is shown where it was sent, after a reload and in another tab. The file beside it can be downloaded. */
  async function sendsAnImage(url: string): Promise<void> {
    const context = await opened();
    const [first, second] = [await context.newPage(), await context.newPage()];
    await first.goto(`${url}#images`);
    await idle(first);
    await second.goto(`${url}#images`);
    await first.getByLabel('Files').setInputFiles([
      { name: 'square.png', mimeType: 'image/png', buffer: Buffer.from(await plain(120, 80)) },
      { name: 'notes.html', mimeType: 'text/html', buffer: Buffer.from('<script>document.title = "run"</script>') },
    ]);
    await send(first, 'What is it?');
    const isShown = async (page: Page): Promise<void> => {
      const image = page.locator('p.user img');
      await image.waitFor();
      await expect.poll(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBe(120);
    };
    await isShown(first);
    await isShown(second);
    await first.reload();
    await isShown(first);
    const downloading = first.waitForEvent('download');
    await first.getByRole('link', { name: 'notes.html' }).click();
    expect((await downloading).suggestedFilename()).toBe('notes.html');
    expect(faults.splice(0)).toEqual([]);
  }

  it.each(sampled(SERVERS, volume.exampleServerOf))('%s', async (name) => {
    const url = await served(name);
    await usedInTwoTabs(url, (page) => page.reload());
    await sendsAnImage(url);
  });

  it('browser-only: the browser ends the worker in the middle of a reply, and the run continues', async () => {
    const place = join(folder, 'browser-only');
    await pageBuilt('browser-only', place, 'vite.config.ts');
    await pageBuilt('browser-only', place, 'vite.worker.config.ts');
    const app = new Hono().use(serveStatic({ root: place }));
    const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false })).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await usedInTwoTabs(url, async (page) => {
      const protocol = await page.context().newCDPSession(page);
      await protocol.send('ServiceWorker.enable');
      await protocol.send('ServiceWorker.stopAllWorkers');
    });
    await sendsAnImage(url);
  });
});
