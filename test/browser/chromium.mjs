/**
 * Controls headless Chromium over a pipe (DevTools protocol: JSON with a zero byte after each message). Invariant: one
 * page, whose script writes its result into `<pre id="result">`. The process and its profile are removed afterwards.
 * Chromium is Debian's; CHROMIUM names another.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const FLAGS = [
  '--headless',
  '--remote-debugging-pipe',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const LONGEST_MS = 900_000;
/** Resolves in the page when its script has written a result. */
const SILENT_MS = 5000;
/** Resolves in the page once its script has spoken. */
const SPOKEN = `new Promise((resolve) => {
  const look = () => {
    const said = document.getElementById('result');
    if (said) resolve(said.textContent);
    else setTimeout(look, 20);
  };
  look();
})`;

/** A module of this folder with all it imports, as a script of a page. `alias`: modules in place of others. */
export async function bundled(name, alias = {}) {
  const entry = fileURLToPath(new URL(name, import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    alias,
    write: false,
  });
  return outputFiles[0].text;
}

/**
 * Returns the result of a page with this script. `input` is JSON in `#input`. `language` applies to the browser and its
 * scripts, also through the protocol. `env` is the environment. `url` replaces the page.
 */
export async function written(script, { input = null, language, env = {}, url } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'runchart-browser-'));
  const page = join(directory, 'page.html');
  const address = url ?? `file://${page}`;
  writeFileSync(
    page,
    `<!doctype html><meta charset="utf-8"><body>` +
      `<script type="application/json" id="input">${JSON.stringify(input).replaceAll('<', '\\u003c')}</script>` +
      `<script type="module">${script.replaceAll('</script', '<\\/script')}</script>`,
  );
  const spoken = language === undefined ? [] : [`--lang=${language}`, `--accept-lang=${language}`];
  const browser = spawn(
    process.env.CHROMIUM ?? '/usr/bin/chromium',
    [...FLAGS, ...spoken, `--user-data-dir=${join(directory, 'profile')}`, 'about:blank'],
    { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
  );
  const ended = once(browser, 'exit');
  const timer = setTimeout(() => browser.kill('SIGKILL'), LONGEST_MS);
  try {
    const call = protocolOf(browser);
    const { targetInfos } = await call('Target.getTargets');
    const { targetId } =
      targetInfos.find(({ type }) => type === 'page') ?? (await call('Target.createTarget', { url: 'about:blank' }));
    const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
    if (language !== undefined) await call('Emulation.setLocaleOverride', { locale: language }, sessionId);
    await call('Runtime.enable', {}, sessionId);
    await call('Page.enable', {}, sessionId);
    await call('Page.navigate', { url: address }, sessionId);
    const { result } = await evaluated(call, sessionId, address);
    await call('Browser.close').catch(() => {});
    return result.value;
  } finally {
    clearTimeout(timer);
    if (browser.exitCode === null && browser.signalCode === null) {
      const late = setTimeout(() => browser.kill('SIGKILL'), 5000);
      await ended;
      clearTimeout(late);
    }
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** Asks until the answer is that of the page and not of the one before it. */
async function evaluated(call, sessionId, url) {
  const expression = `location.href === ${JSON.stringify(url)} ? ${SPOKEN} : undefined`;
  for (;;) {
    const answer = await call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }, sessionId)
      // The document of the request has been replaced.
      .catch((error) => (/context|navigated|destroyed/i.test(error.message) ? undefined : Promise.reject(error)));
    if (answer?.result.value !== undefined) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Calls a method of the protocol and answers its result. */
function protocolOf(browser) {
  const [, , , write, read] = browser.stdio;
  const waiting = new Map();
  let last = 0;
  let held = [];
  const refuseAll = (why) => {
    for (const { method, reject } of waiting.values()) reject(new Error(`${method}: ${why}`));
    waiting.clear();
  };
  const give = (text) => {
    const { id, result, error, method, params } = JSON.parse(text);
    // A script that threw writes no result, unless its error was a rejection that is handled later.
    if (method === 'Runtime.exceptionThrown') {
      const { exception, text: message } = params.exceptionDetails;
      setTimeout(() => refuseAll(`the page threw ${exception?.description ?? message}`), SILENT_MS).unref();
    }
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error) asked?.reject(new Error(`${asked.method}: ${error.message}`));
    else asked?.resolve(result);
  };
  read.on('data', (chunk) => {
    let rest = chunk;
    for (let cut = rest.indexOf(0); cut !== -1; cut = rest.indexOf(0)) {
      give(Buffer.concat([...held, rest.subarray(0, cut)]).toString());
      held = [];
      rest = rest.subarray(cut + 1);
    }
    held.push(rest);
  });
  const over = () => refuseAll('the browser has ended');
  read.on('close', over);
  write.on('error', over);
  return (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { method, resolve, reject });
      write.write(`${JSON.stringify({ id: last, method, params, ...(sessionId && { sessionId }) })}\0`);
    });
}
