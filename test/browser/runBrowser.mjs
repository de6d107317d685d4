/**
 * Runs the core, an interrupted EventSource, the projector, React and the clients of chats in a real browser. The views must
 * equal Node's byte for byte, in any language and time zone. Prints the comparisons. `--logs N` sets the number of random logs, `--place N`
 * selects one language, and `--no-whole` skips slow store cases and the older AI SDK.
 */
import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { pageOfAgUi, pagesOfUseChat } from './chatClients.mjs';
import { bundled, written } from './chromium.mjs';
import { imagesOnACanvas } from './images.mjs';
import { hooksOfReact } from './reactHooks.mjs';

const SEED = 20261122;
const { values } = parseArgs({
  allowNegative: true,
  options: {
    logs: { type: 'string', default: '400' },
    whole: { type: 'boolean', default: true },
    place: { type: 'string' },
  },
});
const RANDOM = Number(values.logs);
/** Each place has a text that proves the effect of its language and time zone. */
const ALL_PLACES = [
  { language: 'de-DE', TZ: 'Asia/Kolkata', month: 'Januar', number: '1.234,5', offset: -330 },
  { language: 'tr-TR', TZ: 'America/Los_Angeles', month: 'Aralık', number: '1.234,5', offset: 480 },
];
const PLACES = ALL_PLACES.filter((_, index) => values.place === undefined || index === Number(values.place));

/** Modules of the tests and the sources, for Node. */
async function load(...names) {
  const folder = mkdtempSync(join(tmpdir(), 'runchart-browser-'));
  try {
    const entryPoints = names.map((name) => fileURLToPath(new URL(name, import.meta.url)));
    await build({ entryPoints, bundle: true, format: 'esm', platform: 'node', outdir: folder, entryNames: '[name]' });
    const modules = [];
    for (const name of names) {
      const file = join(folder, name.replace(/^.*\//, '').replace(/\.ts$/, '.js'));
      modules.push(await import(pathToFileURL(file).href));
    }
    return modules;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runOfTheCore() {
  const expected =
    'NaturalEnd echo: from a page|run-started,user-message,agent-output,model-reply,tool-result,run-stop';
  assert.equal(await written(await bundled('browserPage.mjs')), expected);
  console.log('a run of the core: one request with one tool call, as expected');
}

async function viewsOfTheProjector() {
  const [{ project }, { randomLogs, scenarioLogs }] = await load(
    '../../src/projector/index.ts',
    '../projector/scenarioLogs.ts',
  );
  // The form in which a stored log is read, also for Node.
  const named = JSON.parse(JSON.stringify([...Object.values(scenarioLogs), ...randomLogs(SEED, RANDOM)]));
  const views = named.map((log) => JSON.stringify(project(log)));
  const script = await bundled('projection.mjs');
  for (const { language, TZ, ...shown } of PLACES) {
    const env = { TZ, LANG: `${language.replace('-', '_')}.UTF-8`, LANGUAGE: language.replace('-', '_') };
    const result = await written(script, { input: named, language, env });
    const found = JSON.parse(Buffer.from(result, 'base64').toString());
    const { month, number, offset } = found;
    assert.deepEqual({ month, number, offset }, shown, `${language} and ${TZ} took effect`);
    assert.equal(found.views.length, views.length);
    const names = Object.keys(scenarioLogs);
    for (const [i, view] of views.entries()) {
      assert.equal(found.views[i], view, `log "${names[i] ?? `random ${i - names.length}`}" under ${language}, ${TZ}`);
    }
    const bytes = views.reduce((sum, view) => sum + Buffer.byteLength(view), 0);
    console.log(
      `views under ${found.language} (${found.locale}), ${found.timeZone}: ${names.length} scenarios and ${RANDOM} random logs ` +
        `(seed ${SEED}), ${bytes} bytes equal to Node's (${Intl.DateTimeFormat().resolvedOptions().timeZone})`,
    );
  }
}

async function eventsOfAServer() {
  const [{ eventServer }] = await load('eventServer.ts');
  const server = await eventServer();
  try {
    const { seqs, opens } = JSON.parse(await written('', { url: server.url }));
    assert.deepEqual(
      seqs,
      seqs.map((_, index) => index),
    );
    assert.equal(opens, server.cuts + 1);
    console.log(`EventSource: ${seqs.length} entries over ${opens} connections, without gap or repeat`);
  } finally {
    await server.close();
  }
}

/** The store suite on IndexedDB, and a second page of the same origin. */
async function logsInIndexedDb() {
  const nodeModules = fileURLToPath(new URL('nodeModules.mjs', import.meta.url));
  const script = await bundled('storesPage.mjs', { 'node:assert/strict': nodeModules, 'node:util': nodeModules });
  const page = `<!doctype html><meta charset="utf-8"><body><script type="module" src="/script.js"></script>`;
  const server = createServer(({ url }, response) => {
    const [type, body] = url === '/script.js' ? ['text/javascript', script] : ['text/html', page];
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const output = await written('', {
      url: `http://127.0.0.1:${server.address().port}/${values.whole ? '?whole' : ''}`,
    });
    const { cases, failed, secondTimes, released, pages } = JSON.parse(output);
    assert.deepEqual(failed, []);
    assert.deepEqual(secondTimes, []);
    const codes = ['store', 'store_conflict', 'session_busy', 'done'];
    assert.deepEqual(released, { codes, locks: 0, ended: 'deleted' });
    assert.deepEqual(pages, {
      refused: 'session_busy',
      status: 'active',
      left: 'session_busy',
      again: 'opened',
      text: 'heard two',
      gapless: true,
    });
    console.log(`indexedDbStore: ${cases} cases of the store suite, and a second page that gets session_busy`);
  } finally {
    server.close();
  }
}

async function hooks() {
  const [library] = await load('reactServer.ts');
  await hooksOfReact(library);
  await pagesOfUseChat(library, values.whole ? ['ai 6', 'ai 7'] : ['ai 7']);
  await pageOfAgUi(library);
}

await runOfTheCore();
await logsInIndexedDb();
await eventsOfAServer();
await viewsOfTheProjector();
await imagesOnACanvas();
await hooks();
console.log(`browser: ${7 + PLACES.length} passed, 0 failed`);
