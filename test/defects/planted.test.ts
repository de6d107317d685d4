/** The list of planted defects matches the sources. `npm run defects` checks that each defect is detected. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { expect, it } from 'vitest';

interface Defect {
  id: string;
  about: string;
  witness?: string;
  edits: readonly (readonly [find: string, replace: string])[];
}
const here = import.meta.dirname;
const { defects } = (await import(join(here, 'allDefects.mjs'))) as { defects: readonly Defect[] };
type Keep = (file: { id: string }) => false | undefined;
interface Plant {
  planted(edits: Defect['edits']): Map<string, string>;
  testPlugin(changed: Map<string, string>): {
    load(id: string): string | undefined;
    configureVitest(context: { experimental_defineCacheKeyGenerator(keep: Keep): void }): void;
  };
}
const { planted, testPlugin } = (await import(join(here, 'plantDefect.mjs'))) as Plant;

it('each defect replaces a text that the sources contain exactly once', () => {
  const unfit = defects.flatMap(({ id, edits }) => {
    try {
      return planted(edits).size > 0 && edits.every(([find, replace]) => find !== replace)
        ? []
        : [`${id} changes nothing`];
    } catch (error) {
      return [`${id}: ${error instanceof Error ? error.message : error}`];
    }
  });
  expect(unfit).toEqual([]);
});

it('each leaves sources that can be parsed, so that a failing witness is due to the defect', async () => {
  const broken = defects.map(async ({ id, edits }) => {
    try {
      await Promise.all([...planted(edits).values()].map((source) => transform(source, { loader: 'ts' })));
      return [];
    } catch (error) {
      return [`${id}: ${error instanceof Error ? error.message : error}`];
    }
  });
  expect((await Promise.all(broken)).flat()).toEqual([]);
});

it('each has an existing witness, and every folder of the sources except inspect and testing has at least one', () => {
  const root = join(here, '../..');
  expect(defects.filter(({ witness }) => witness !== undefined && !existsSync(join(root, witness)))).toEqual([]);
  const folders = defects.flatMap(({ edits }) => [...planted(edits).keys()].map((file) => file.slice(root.length + 1)));
  const missing = [
    'machines/',
    'src/models/',
    'src/plugins/',
    'src/projector/',
    'src/stores/',
    'src/subAgents/',
    'src/tools/',
    'src/tools/coding/',
    'src/content/',
    'src/journals/',
    'src/cli/',
    'src/conversation/',
    'src/log/',
    'src/runtime/',
    'src/hooks/',
    'src/mcp/',
    'src/permissions/',
    'src/requestLoop/',
    'src/session/',
    'src/transports/',
  ].filter((folder) => !folders.some((file) => file.startsWith(folder)));
  expect(missing).toEqual([]);
  expect(defects.length).toBeGreaterThanOrEqual(120);
});

it('a planted text is loaded in place of the file, and is not cached for the next run', () => {
  const { load, configureVitest } = testPlugin(new Map([['/a.ts', 'planted']]));
  const kept: (false | undefined)[] = [];
  configureVitest({
    experimental_defineCacheKeyGenerator: (keep) => kept.push(keep({ id: '/a.ts?v=1' }), keep({ id: '/b.ts' })),
  });
  expect([load('/a.ts?v=1'), load('/b.ts')]).toEqual(['planted', undefined]);
  expect(kept).toEqual([false, undefined]);
});
