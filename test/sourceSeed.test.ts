/** Tests that random test data depends on the sources alone. A change of a page cannot make a run fail. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { seedOfSources, sourceSeed } from './support/sourceSeed.ts';

describe('the first seed of what is drawn', () => {
  let root: string;
  const write = (file: string, text: string): void => {
    const path = join(root, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'runchart-seed-'));
    write('src/agent.ts', 'export const agent = 1;\n');
    write('src/tools/tool.ts', 'export const tool = 1;\n');
    write('machines/run.ts', 'export const run = 1;\n');
    write('docs/page.md', 'A page.\n');
    write('test/a.test.ts', 'it.todo();\n');
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(root, { recursive: true });
  });

  it.each(['docs/page.md', 'test/a.test.ts', 'README.md', 'src.md', 'src/notes.txt~', 'src/.DS_Store'])(
    'stays where %s changes',
    (file) => {
      const before = seedOfSources(root);
      write(file, 'Something else.\n');
      expect(seedOfSources(root)).toBe(before);
    },
  );

  it.each(['src/agent.ts', 'src/tools/tool.ts', 'machines/run.ts', 'src/tools/new.ts', 'machines/tsconfig.json'])(
    'is another where %s changes',
    (file) => {
      const before = seedOfSources(root);
      write(file, 'export const other = 1;\n');
      expect(seedOfSources(root)).not.toBe(before);
    },
  );

  it('is another where a file moves, and the same with the line ends of another system', () => {
    const before = seedOfSources(root);
    write('src/agent.ts', 'export const agent = 1;\r\n');
    expect(seedOfSources(root)).toBe(before);
    rmSync(join(root, 'src/agent.ts'));
    write('src/tools/agent.ts', 'export const agent = 1;\n');
    expect(seedOfSources(root)).not.toBe(before);
  });

  it('begins a thousand seeds of its own, far beyond the fixed ones', () => {
    const seed = seedOfSources(root);
    expect(seed % 1_000).toBe(0);
    expect(seed).toBeGreaterThanOrEqual(1_000_000);
    expect(seed).toBeLessThan(2 ** 31);
  });

  it('is the one of SEED where that is set', () => {
    vi.stubEnv('SEED', '12345678');
    expect(sourceSeed()).toBe(12_345_678);
  });
});

it('also decides what fast-check draws', () => {
  const drawn = (): number[] => fc.sample(fc.nat(), 20);
  expect(fc.readConfigureGlobal().seed).toBe(sourceSeed());
  expect(drawn()).toEqual(drawn());
});
