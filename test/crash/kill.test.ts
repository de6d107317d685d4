/** The twelve runs in real processes that are killed after each append of their log file. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { sampled, volume } from '../support/tier.ts';
import { type CanonicalRun, canonicalModel, canonicalRuns, canonicalTools, goOn } from './canonical.ts';
import { expectSameEnd } from './compare.ts';

let folder = '';
let script = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runchart-kill-'));
  script = join(folder, 'child.mjs');
  const entryPoints = [fileURLToPath(new URL('./child.ts', import.meta.url))];
  await build({ entryPoints, bundle: true, platform: 'node', format: 'esm', outfile: script });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Ended {
  signal: string | null;
  output: string;
}
const child = (...args: string[]): Promise<Ended> =>
  new Promise((resolve) => {
    const process_ = execFile(process.execPath, [script, ...args], (_, output) =>
      resolve({ signal: process_.signalCode, output }),
    );
  });

const executions = async (ledger: string): Promise<string[]> =>
  existsSync(ledger) ? (await readFile(ledger, 'utf8')).split('\n').filter(Boolean) : [];

async function goneOn(run: CanonicalRun, directory: string, ran: string[]) {
  const agent = createAgent({
    model: canonicalModel(run),
    tools: canonicalTools((key) => ran.push(key)),
    policies: { ...run.policies, modelRetry: { baseMs: 1 } },
    store: jsonlStore(directory),
    cwd: '/',
  });
  const conversation = await agent.open('c');
  await goOn(conversation, run);
  const log = conversation.log();
  await agent.close();
  return log;
}

describe('a process killed after each append of its log file', () => {
  it.each(sampled(canonicalRuns, volume.killedRunOf))(
    'INV-5, I20, I21, CKPT-4: $name is gone on with to the same end',
    async (run) => {
      const place = (at: number): [string, string] => [
        join(folder, `${run.name} ${at}`),
        join(folder, `${run.name} ${at}.ran`),
      ];
      const whole = await child(run.name, ...place(0), '0');
      expect(whole.signal).toBeNull();
      const appends = Number(whole.output);
      expect(appends).toBeGreaterThan(3);
      const uncut = await goneOn(run, place(0)[0], []);
      const all = Array.from({ length: appends }, (_, index) => index + 1);
      const points = sampled(all, volume.killOf);
      const check = async (at: number): Promise<void> => {
        const [directory, ledger] = place(at);
        const { signal } = await child(run.name, directory, ledger, `${at}`);
        expect(signal).toBe('SIGKILL');
        const ran = await executions(ledger);
        expectSameEnd(uncut, await goneOn(run, directory, ran), ran);
      };
      // Two at once: a process spends most of its life starting.
      while (points.length > 0) await Promise.all(points.splice(0, 2).map(check));
    },
  );
});
