/**
 * A run in a real browser: bundles the core with a model of its own, opens the page in headless Chromium and reads what
 * it wrote. Chromium is Debian's; CHROMIUM names another.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const page = fileURLToPath(new URL('./page.mjs', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'runchart-browser-'));
try {
  const bundle = await build({ entryPoints: [page], bundle: true, format: 'esm', platform: 'browser', write: false });
  const file = join(directory, 'page.html');
  writeFileSync(
    file,
    `<!doctype html><meta charset="utf-8"><body><script type="module">${bundle.outputFiles[0].text.replaceAll('</script', '<\\/script')}</script>`,
  );
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
  const html = execFileSync(
    process.env.CHROMIUM ?? '/usr/bin/chromium',
    [
      ...flags,
      ...quiet,
      `--user-data-dir=${join(directory, 'profile')}`,
      '--virtual-time-budget=10000',
      '--dump-dom',
      `file://${file}`,
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000 },
  );
  const said = /<pre id="result">([^<]*)<\/pre>/.exec(html)?.[1];
  const expected =
    'NaturalEnd echo: from a page|run-started,user-message,agent-output,model-reply,tool-result,run-stop';
  if (said !== expected)
    throw new Error(`the page wrote ${JSON.stringify(said)}, expected ${JSON.stringify(expected)}`);
  console.log('browser: 1 passed, 0 failed');
} finally {
  rmSync(directory, { recursive: true, force: true });
}
