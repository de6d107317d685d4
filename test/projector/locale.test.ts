/** The view is the same in any time zone and language. Each case runs in a separate process. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { project } from '../../src/projector/index.ts';
import { stepsOf } from './events.ts';
import { randomLogs, scenarioLogs, trickyLog } from './scenarioLogs.ts';

const run = promisify(execFile);
const source = fileURLToPath(new URL('../../src/projector/index.ts', import.meta.url));

const logs: unknown = JSON.parse(JSON.stringify([...Object.values(scenarioLogs), ...randomLogs(11, 100)]));

describe('H-342 INV-9 time zone and language', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'projector-'));
    await build({ entryPoints: [source], bundle: true, format: 'esm', outfile: join(folder, 'projector.mjs') });
    await writeFile(join(folder, 'logs.json'), JSON.stringify(logs));
    const read = `JSON.parse(readFileSync(new URL('./logs.json', import.meta.url), 'utf8'))`;
    const imports = `import { readFileSync } from 'node:fs';\nimport { project } from './projector.mjs';\n`;
    await writeFile(
      join(folder, 'main.mjs'),
      `${imports}process.stdout.write(JSON.stringify(${read}.map((log) => project(log))));`,
    );
  });
  afterAll(() => rm(folder, { recursive: true }));

  it.each([
    ['Pacific/Apia', 'tr_TR.UTF-8'],
    ['America/St_Johns', 'lt_LT.UTF-8'],
    ['UTC', 'C'],
  ])('%s and %s change nothing', async (TZ, LANG) => {
    const env = { ...process.env, TZ, LANG, LC_ALL: LANG };
    const { stdout } = await run(process.execPath, [join(folder, 'main.mjs')], { env, maxBuffer: 1 << 26 });
    expect(stdout).toBe(JSON.stringify((logs as unknown[][]).map((log) => project(log))));
  });

  it('names match by simple lower case', () => {
    expect(stepsOf(project(trickyLog))[1]).toBe(
      'assistant ß [read İ0] [write İ1 İ2] [other İ3 İ4 İ5] [bash İ6] [other İ7 İ8]',
    );
  });
});
