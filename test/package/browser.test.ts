/**
 * The core in a browser. Rule: bundled from the sources the way an app does it, with nothing external; what the bundler
 * took in is read from its own account. What stands behind an `import()` is loaded when a conversation needs it and is
 * not counted; all that is loaded at the start is, gzipped as one: esbuild puts what a later part shares into a file of
 * its own, other bundlers leave it in the first.
 */
import { isBuiltin } from 'node:module';
import { relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { entries, root } from '../docs/documents.ts';

/** Bytes of `createAgent` with charts, xstate and rxjs, gzipped: what is reached, docs/decisions/2026-11-22-core-size.md. */
const CORE_BUDGET = 80_000;

interface Bundle {
  /** Packages whose files were read. */
  reached: string[];
  /** Packages of which something is in the bundle. */
  brought: string[];
  /** Node modules that a file which was read imports, whether or not the import is kept. */
  builtins: string[];
  /** Of the files that are loaded at the start. */
  gzipped: number;
  /** Sources in files that are loaded later. */
  later: string[];
  /** Minified bytes by package or folder, the most first. */
  shares: string;
}

/** What few conversations need. */
const LATER = [
  'src/history.ts',
  'src/images/gallery.ts',
  'src/models/jsonScan.ts',
  'src/models/textCalls.ts',
  'src/runtime/interpreter/inspection.ts',
  'src/runtime/interpreter/xstate.ts',
];

const ownerOf = (input: string): string =>
  /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? input.split('/').slice(0, -1).join('/');
const packagesAmong = (inputs: readonly string[]): string[] =>
  [...new Set(inputs.filter((input) => input.startsWith('node_modules/')).map(ownerOf))].sort();

/** The entry and all that it imports by `import … from`. */
function atStart(outputs: Metafile['outputs']): Set<string> {
  const first = new Set(Object.keys(outputs).filter((name) => outputs[name]?.entryPoint === '<stdin>'));
  for (const name of first) {
    for (const { kind, path } of outputs[name]?.imports ?? []) if (kind === 'import-statement') first.add(path);
  }
  return first;
}

async function bundled(code: string): Promise<Bundle> {
  const found = await build({
    stdin: { contents: code, resolveDir: root, loader: 'ts' },
    absWorkingDir: root,
    bundle: true,
    platform: 'browser',
    format: 'esm',
    minify: true,
    write: false,
    metafile: true,
    splitting: true,
    outdir: root,
    // Naming conditions switches esbuild's own `module` off; without it the bundle would hold CommonJS.
    conditions: ['module', 'production'],
    define: { 'process.env.NODE_ENV': '"production"' },
    // A Node module is counted here instead of being reported as an error there.
    plugins: [
      {
        name: 'builtin',
        setup: ({ onResolve }) =>
          onResolve({ filter: /.*/ }, ({ path }) => (isBuiltin(path) ? { path, external: true } : null)),
      },
    ],
    logLevel: 'silent',
  });
  const { outputs } = found.metafile;
  const first = atStart(outputs);
  const bytes = new Map<string, number>();
  for (const name of first) {
    for (const [input, { bytesInOutput }] of Object.entries(outputs[name]?.inputs ?? {})) {
      if (bytesInOutput > 0) bytes.set(ownerOf(input), (bytes.get(ownerOf(input)) ?? 0) + bytesInOutput);
    }
  }
  const shares = [...bytes].sort(([, a], [, b]) => b - a);
  const later = Object.keys(outputs).filter((name) => !first.has(name));
  const text = found.outputFiles.filter(({ path }) => first.has(relative(root, path))).map((file) => file.text);
  const imports = Object.values(found.metafile.inputs).flatMap((input) => input.imports);
  const reached = packagesAmong(Object.keys(found.metafile.inputs));
  const packages = new Set(reached);
  return {
    reached,
    brought: [...bytes.keys()].filter((owner) => packages.has(owner)).sort(),
    builtins: [...new Set(imports.filter(({ external }) => external).map(({ path }) => path))].sort(),
    gzipped: gzipSync(text.join(''), { level: 9 }).length,
    later: later.flatMap((name) => Object.keys(outputs[name]?.inputs ?? {})).sort(),
    shares: shares.map(([owner, size]) => `${owner} ${size}`).join(', '),
  };
}

describe('runchart in a browser', () => {
  it('createAgent needs no Node module, no zod and no vendor client: xstate and rxjs are all it brings', async () => {
    const core = await bundled("export { createAgent } from './src/index.ts'");
    expect(core.builtins).toEqual([]);
    expect(core.reached).toEqual(['rxjs', 'tslib', 'xstate']);
  });

  it(`createAgent is at most ${CORE_BUDGET} bytes, gzipped`, async () => {
    const { gzipped, shares } = await bundled("export { createAgent } from './src/index.ts'");
    expect(gzipped, `minified bytes: ${shares}`).toBeLessThanOrEqual(CORE_BUDGET);
  });

  it('images, calls in text, earlier histories, inspection and XState as interpreter are loaded when they are needed', async () => {
    const { later } = await bundled("export { createAgent } from './src/index.ts'");
    expect(later).toEqual(expect.arrayContaining(LATER));
  });

  it.each([
    "export { modelMessages } from './machines/index.ts'",
    "export { project, createProjector } from './src/projector/index.ts'",
  ])('%s brings no package at all', async (code) => {
    const pure = await bundled(code);
    expect(pure.builtins).toEqual([]);
    expect(pure.brought).toEqual([]);
  });

  it.each(['runchart', 'runchart/machines', 'runchart/projector'])(
    '%s as a whole needs no Node module',
    async (name) => {
      const whole = await bundled(`export * from './${entries.get(name)}'`);
      expect(whole.builtins).toEqual([]);
      expect(whole.reached.filter((owner) => !['rxjs', 'tslib', 'xstate'].includes(owner))).toEqual([]);
    },
  );

  it('a Node module or zod behind an entry would be found', async () => {
    const node = await bundled("export { codingTools } from './src/node.ts'");
    expect(node.builtins).toContain('node:fs/promises');
    expect(node.reached).toContain('zod');
  });
});
