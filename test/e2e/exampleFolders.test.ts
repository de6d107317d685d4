/**
 * The example folders outside the repository: each is copied, installed with the packed library, and started by `npm
 * start`. Invariant: nothing is fetched, so the pinned versions are the ones installed here. Runs in `npm run prove`, on
 * the Node that runs the tests, from 20.19.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { read, root } from '../docs/documents.ts';
import { freePort } from '../support/freePort.ts';
import { copyPackages, environmentOf, type Names, npm, packInto } from '../support/offlineProject.ts';
import { proves } from '../support/tier.ts';
import { modelServer } from './modelServer.ts';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const PROGRAMS = ['first-agent', 'approval-restart', 'server'];
const PAGES = ['react-chat', 'hono-chat', 'express-chat', 'browser-only'];
/** Next and its compiler take 500 MB, and are not installed here. test/react/examples.test.ts runs its routes. */
const NOT_INSTALLED = ['next-chat'];

type Manifest = { dependencies: Names; devDependencies?: Names };
const manifestOf = (name: string): Manifest => JSON.parse(read(`docs/examples/${name}/package.json`)) as Manifest;
const folders = async (): Promise<string[]> =>
  (await readdir(join(root, 'docs/examples'))).filter((name) =>
    existsSync(join(root, 'docs/examples', name, 'package.json')),
  );

let place = '';
let tarball = '';
beforeAll(async () => {
  place = await realpath(await mkdtemp(join(tmpdir(), 'runchart-examples-')));
  if (proves) tarball = await packInto(place, inject('packageRoot'));
});
afterAll(() => rm(place, { recursive: true, force: true }));

/** Copies the example out of the repository and installs it. Returns its folder. */
async function installed(name: string): Promise<string> {
  const project = await mkdtemp(join(place, `${name}-`));
  await cp(join(root, 'docs/examples', name), project, { recursive: true });
  const manifest = manifestOf(name);
  const { dependencies: ofLibrary } = JSON.parse(read('package.json')) as Manifest;
  const { runchart: _, ...others } = { ...manifest.dependencies, ...manifest.devDependencies };
  await copyPackages(project, [...Object.keys(others), ...Object.keys(ofLibrary)]);
  const dependencies = { ...manifest.dependencies, runchart: `file:../${tarball}` };
  await writeFile(join(project, 'package.json'), JSON.stringify({ ...manifest, dependencies }));
  await npm(project, 'install', '--ignore-scripts');
  return project;
}

/** The output of a script of the example. */
async function outputOf(project: string, script: string, keys: Names = {}): Promise<string> {
  const env = { ...environmentOf(project), ...keys };
  const { stdout, stderr } = await promisify(execFile)('npm', ['run', '--silent', script], { cwd: project, env });
  expect(stderr).toBe('');
  return stdout;
}

/** Starts the example, which runs until the end of the test. Returns the address that it prints. */
async function started(project: string): Promise<string> {
  const env = { ...environmentOf(project), NO_COLOR: '1', PORT: `${await freePort()}` };
  const child = spawn('npm', ['start'], { cwd: project, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(child, 'close');
  onTestFinished(async () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
    await closed;
  });
  return new Promise((resolve, reject) => {
    let output = '';
    const add = (text: string): void => {
      output += text;
      const [address] = /http:\/\/(?:localhost|127\.0\.0\.1):\d+/.exec(output) ?? [];
      if (address) resolve(address);
    };
    child.stdout.setEncoding('utf8').on('data', add);
    child.stderr.setEncoding('utf8').on('data', add);
    closed.then(([code]) => reject(new Error(`npm start ended with ${code}:\n${output}`)));
  });
}

describe('the example folders', () => {
  it('each is tested here, or listed with the reason', async () => {
    expect(await folders()).toEqual([...PROGRAMS, ...PAGES, ...NOT_INSTALLED].sort());
  });

  it('each has a README, needs a range of the library, and pins every other package to the installed version', async () => {
    for (const name of (await folders()).filter((folder) => !NOT_INSTALLED.includes(folder))) {
      const { dependencies, devDependencies } = manifestOf(name);
      const { runchart, ...others } = { ...dependencies, ...devDependencies };
      expect(runchart).toBe('^0.1.0');
      for (const [other, version] of Object.entries(others)) {
        const { version: here } = JSON.parse(read(`node_modules/${other}/package.json`)) as { version: string };
        expect(version, `${name}: ${other}`).toBe(here);
      }
      expect(read(`docs/examples/${name}/README.md`)).toContain('npm install\nnpm start\n');
    }
  });

  it('the folders that show the same chat have the same page and model', () => {
    const shared = ['main.tsx', 'chat.tsx', 'chat.css'];
    for (const name of PAGES.slice(1)) {
      const copies = [...shared.map((file) => [file, `page/${file}`]), ['model.js', 'model.js']];
      if (name !== 'browser-only') copies.push(['index.html', 'page/index.html']);
      for (const [file, copy] of copies)
        expect(read(`docs/examples/${name}/${copy}`), `${name}: ${copy}`).toBe(
          read(`docs/examples/react-chat/${file}`),
        );
    }
  });
});

describe.skipIf(!proves)('programs that are copied out of the repository', () => {
  it('first-agent answers by its script, and by a model server once there is a key', async () => {
    const project = await installed('first-agent');
    expect(await outputOf(project, 'start')).toBe('A light one: 18 °C and dry in Lisbon.\n');
    const server = await modelServer((reply) => {
      reply.text('Take ', 'a coat.');
      reply.finish('stop');
    });
    const keys = { OPENAI_API_KEY: 'key', OPENAI_BASE_URL: server.baseURL };
    expect(await outputOf(project, 'start', keys)).toBe('Take a coat.\n');
    const [asked] = server.asked;
    expect(asked?.tools?.map(({ function: { name } }) => name)).toEqual(['weather']);
    expect(asked?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
  });

  it('approval-restart: the call waits while no process runs, and runs only after the approval', async () => {
    const project = await installed('approval-restart');
    const waits = 'waits: transfer {"to":"the landlord","euros":900}\n';
    const conversations = join(project, '.conversations');
    const log = async (): Promise<string> => {
      const files = await readdir(conversations, { recursive: true });
      const logs = files.filter((file) => file.endsWith('.jsonl'));
      return (await Promise.all(logs.map((file) => readFile(join(conversations, file), 'utf8')))).join('');
    };
    expect(await outputOf(project, 'start')).toBe(waits);
    expect(await outputOf(project, 'start')).toBe(waits);
    expect(await log()).not.toContain('"tool-started"');
    expect(await outputOf(project, 'approve')).toBe('applied\nThe bank says: sent 900 euros to the landlord\n');
    expect((await log()).split('"tool-started"')).toHaveLength(2);
    expect(await outputOf(project, 'approve')).toBe('No call waits. Run `npm start` first.\n');
    await rm(conversations, { recursive: true });
    await outputOf(project, 'start');
    expect(await outputOf(project, 'deny')).toMatch(/^applied\nThe bank says: The user did not allow/);
    expect(await log()).not.toContain('"tool-started"');
  });

  it('server answers the three requests of its README, and refuses those without the token', async () => {
    const project = await installed('server');
    const address = await started(project);
    const requests = [...readFileSync(join(project, 'README.md'), 'utf8').matchAll(/^curl .*$/gm)].map(([line]) =>
      line.replace('http://127.0.0.1:8787', address),
    );
    const [create = '', send = '', events = ''] = requests;
    const sh = async (line: string): Promise<string> =>
      (await promisify(execFile)('sh', ['-c', line.replace('curl', 'curl -sS')])).stdout;
    expect(await sh(create.replace('Bearer secret', 'Bearer other'))).toContain('"type":"error"');
    expect(JSON.parse(await sh(create))).toMatchObject({ id: 'trip' });
    expect(JSON.parse(await sh(send))).toHaveProperty('runId');
    await expect.poll(() => sh(`${events} --max-time 1 || true`)).toContain('You wrote: Hello');
    expect(await outputOf(project, 'client', { SERVER: address })).toBe('You wrote: Hello\n');
  });
});

describe.skipIf(!proves || !existsSync(CHROMIUM))('chats that are copied out of the repository', () => {
  it.each(PAGES)('%s sends a message, asks for approval, and shows the result after a reload', async (name) => {
    const address = await started(await installed(name));
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('pageerror', ({ message }) => faults.push(message));
    await page.goto(`${address}/#rent`);
    await page.getByLabel('Message').fill('Pay the rent');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('Done: sent 900 euros to the landlord.').waitFor();
    await page.reload();
    await page.getByText('Done: sent 900 euros to the landlord.').waitFor();
    expect(faults).toEqual([]);
  });
});
