/**
 * docs/examples/browser in a real browser: an agent in a page, and the inspector's page of the same origin beside it.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../support/tier.ts';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const MEDIA: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
const path = (name: string): string => new URL(`../../${name}`, import.meta.url).pathname;

describe.skipIf(!proves || !existsSync(CHROMIUM))('the example of an agent in a page', () => {
  const folder = mkdtempSync(join(tmpdir(), 'runchart-example-'));
  const server = createServer(({ url = '' }, response) => {
    const file = join(folder, url.replace(/\?.*$/, '').replace(/\/$/, '/index.html'));
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': MEDIA[extname(file)] ?? 'application/octet-stream' });
    response.end(readFileSync(file));
  });
  let browser: Browser;
  let address = '';

  beforeAll(async () => {
    const alias = [
      { find: 'runchart/browser', replacement: path('src/browser.ts') },
      { find: /^runchart$/, replacement: path('src/index.ts') },
    ];
    const how = { minify: false, reportCompressedSize: false } as const;
    await build({
      configFile: path('docs/examples/browser/vite.config.ts'),
      publicDir: false,
      resolve: { alias },
      build: { ...how, outDir: folder },
    });
    await build({ configFile: path('inspector/vite.config.ts'), build: { ...how, outDir: join(folder, 'page') } });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser?.close();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const steps = (page: Page): Promise<string[]> => page.locator('#steps li').allTextContents();

  it('it shows its steps and its chart, continues after a reload, and reports to a second tab that it is busy', async () => {
    const context = await browser.newContext({ viewport: { width: 1700, height: 900 } });
    context.setDefaultTimeout(50_000);
    // The conversation opens after the page has loaded, and its button waits for it.
    await context.addInitScript(() => {
      const request = navigator.locks.request.bind(navigator.locks) as (...args: unknown[]) => Promise<unknown>;
      navigator.locks.request = (async (...args: unknown[]) => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        return request(...args);
      }) as LockManager['request'];
    });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(address);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('li.call', { hasText: 'running' }).waitFor();
    const chart = page.frameLocator('iframe');
    await chart.getByText('What is in the garden?').first().waitFor({ state: 'attached' });
    await chart.locator('.state', { hasText: 'ToolRound' }).first().waitFor();
    const second = await context.newPage();
    await second.goto(address);
    await second.getByText('session_busy').waitFor();
    await second.close();
    // During the call.
    await page.reload();
    await page.locator('li.stop', { hasText: 'completed' }).waitFor();
    const [asked, firstReply, called, lastReply] = await steps(page);
    expect(asked).toBe('What is in the garden?');
    expect(firstReply?.trim()).toBe('I go and look.');
    expect(called).toBe('look {"place":"garden"}: ended');
    expect(lastReply?.trim()).toBe('There is a fig tree in the garden.');
    await chart.getByText('completed').first().waitFor({ state: 'attached' });
    expect(faults).toEqual([]);
    await context.close();
  });
});
