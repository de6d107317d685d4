/**
 * Makes the pictures of README and docs (`npm run pictures`). It builds, runs the demo until it waits, opens its page
 * in Debian's Chromium (CHROMIUM names another), and draws RUN. Invariant: every picture shows a real run.
 */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('..', import.meta.url));
const program = `${root}dist/src/cli/main.js`;
const folder = `${root}docs/pictures`;
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Starts the demo with its page. It waits for the decision. */
async function demo() {
  const child = spawn(process.execPath, [program, 'demo', '--inspect'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (text) => {
      output += text;
      const [address] = /http:\S+token=[\w-]+/.exec(output) ?? [];
      if (address && output.includes('decide in the page')) resolve(address);
    });
    child.once('exit', () => reject(new Error(`the demo ended:\n${output}`)));
  });
  return { url, stop: () => child.kill('SIGINT') };
}

async function picture(browser, url, { name, colorScheme, act = async () => {} }) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector('.state');
  await act(page);
  // Wait for the fonts and the last colour transition.
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await context.close();
}

mkdirSync(folder, { recursive: true });
const { url, stop } = await demo();
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
try {
  await picture(browser, url, { name: 'inspector', colorScheme: 'dark' });
  await picture(browser, url, {
    name: 'inspector-travel',
    colorScheme: 'light',
    act: async (page) => {
      for (let step = 0; step < 16; step += 1) await page.keyboard.press('k');
    },
  });
} finally {
  await browser.close();
  stop();
}
console.log('docs/pictures: inspector.png, inspector-travel.png');
