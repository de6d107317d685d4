/**
 * The page in a real browser for tests: one browser and one build for each file. Invariant: everything opened is closed
 * after each test. A page that contacts another host, throws, or is refused something fails the test.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join, relative } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { type Agent, createAgent } from '../../src/index.ts';
import { type InspectorHandlerOptions, inspectorHandlerOf } from '../../src/inspect/inspectorHandler.ts';
import { Observed } from '../../src/inspect/observed.ts';
import type { PageFiles } from '../../src/inspect/pageFiles.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { startServer } from '../../src/inspect/server.ts';
import { nodeHandler } from '../../src/transports/index.ts';
import { call, type Reply, scripted } from '../support/scriptedReplies.ts';
import { approvedTool } from './approvalTool.ts';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const EVIL = '<img src=x onerror="document.title=1"></script><script>document.title=1</script>';
const MEDIA: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
export const asks = (text = 'a note'): Reply => [call('call_1', 'note', { text })];

/** Builds the page as files into a folder. */
async function built(config: string, outDir: string): Promise<void> {
  const configFile = new URL(`../../inspector/${config}`, import.meta.url).pathname;
  await build({ configFile, build: { outDir, minify: false } });
}

/** Selects a file as a drop does. */
export const drop = (page: Page, text: string, name = 'made.jsonl') =>
  page.evaluate(
    ([content = '', title = '']) => {
      const held = new DataTransfer();
      held.items.add(new File([content], title));
      dispatchEvent(new DragEvent('drop', { dataTransfer: held, bubbles: true, cancelable: true }));
    },
    [text, name],
  );

/** For use within a `describe`: its hooks, and the functions that open pages. */
export function inspectedPages() {
  const folder = mkdtempSync(join(tmpdir(), 'runchart-page-'));
  let browser: Browser;
  let files: PageFiles;
  const faults: string[] = [];
  let isCut = false;
  const opened: { close(): unknown }[] = [];

  beforeAll(async () => {
    await built('vite.config.ts', folder);
    files = new Map(
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .map((path) => {
          const mediaType = MEDIA[extname(path)] ?? 'application/octet-stream';
          return [`/${relative(folder, path)}`, { mediaType, bytes: readFileSync(path) }];
        }),
    );
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close();
    isCut = false;
    expect(faults.splice(0)).toEqual([]);
  });

  async function inspector(control = false, port = 0) {
    const records = new RecordLog(Date.now);
    const observed = new Observed(records);
    const server = await startServer({ port, control, version: '0', records, observed, files, stallMs: 10_000 });
    opened.push({
      close() {
        observed.close();
        return server.close();
      },
    });
    return { server, observed };
  }

  /** The inspector in a server of the test, below a path. */
  async function hosted(agent: Agent, options: InspectorHandlerOptions) {
    const handler = inspectorHandlerOf(agent, options, { files: () => files, graceMs: 60_000 });
    const server = createServer(nodeHandler(handler));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    opened.push({
      close() {
        server.closeAllConnections();
        return new Promise((resolve) => server.close(resolve));
      },
    });
    /** Cuts every connection, which the browser reports. */
    const cut = (): void => {
      isCut = true;
      server.closeAllConnections();
    };
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut };
  }

  async function open({ url }: { url: string }, before?: (page: Page) => Promise<void>): Promise<Page> {
    const page = await watched();
    const { host } = new URL(url);
    page.on('request', (request) => {
      const asked = new URL(request.url());
      if (asked.host !== host && asked.protocol !== 'blob:') faults.push(`asked ${asked}`);
    });
    await before?.(page);
    await page.goto(url);
    await page.waitForSelector('.state');
    return page;
  }

  async function watched(options: BrowserContextOptions = {}): Promise<Page> {
    const viewport = { width: 1440, height: 900 };
    const context = await browser.newContext({ viewport, colorScheme: 'dark', ...options });
    opened.push(context);
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    page.on('pageerror', (error) => faults.push(`${error.stack}`));
    // The browser reports a refused style, script or request there.
    page.on('console', (message) => {
      if (message.type() !== 'error' || (isCut && message.text().includes('ERR_INCOMPLETE_CHUNKED_ENCODING'))) return;
      faults.push(message.text());
    });
    return page;
  }

  /** The page as one file, opened from the disk. */
  async function openFile(): Promise<Page> {
    const outDir = mkdtempSync(join(tmpdir(), 'runchart-file-'));
    opened.push({ close: () => rmSync(outDir, { recursive: true }) });
    await built('vite.file.config.ts', outDir);
    expect(readdirSync(outDir)).toEqual(['inspector.html']);
    const page = await watched();
    page.on('request', (request) => {
      const { protocol } = new URL(request.url());
      if (!['file:', 'data:', 'blob:'].includes(protocol)) faults.push(`asked ${request.url()}`);
    });
    await page.goto(`file://${outDir}/inspector.html`);
    return page;
  }

  const agentOf = (replies: readonly Reply[], inspect?: (event: unknown) => void) => {
    const made = createAgent({ model: scripted(replies), tools: [approvedTool], ...(inspect && { inspect }) });
    opened.push(made);
    return made;
  };

  /** A page that may act, and a conversation whose call waits for approval. */
  async function asked() {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const conversation = await agentOf([asks(), 'Done.'], observed.observe).open('live');
    await conversation.send('Take a note').result;
    return { server, page, conversation };
  }

  /** The log of a request whose call was allowed. */
  async function madeLog(text = 'a note'): Promise<string> {
    const conversation = await agentOf([asks(text), `Done. ${EVIL}`]).open('made');
    await conversation.send(`Take a note ${EVIL}`).result;
    await conversation.decide({ callId: 'call_1', action: 'approve', by: 'ada' });
    await conversation.resume().result;
    return conversation
      .log()
      .map((entry) => JSON.stringify(entry))
      .join('\n');
  }

  /** Closed after the test. */
  const kept = <Opened extends { close(): unknown }>(one: Opened): Opened => {
    opened.push(one);
    return one;
  };
  return { inspector, hosted, open, openFile, agentOf, asked, madeLog, kept };
}
