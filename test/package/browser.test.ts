/**
 * The core in a browser. Invariant: bundled from the sources as an app does it, with nothing external. The bundler's
 * own report lists the included files. The measured size is that of the app's first file. A module that code loads with
 * `import()` becomes a separate file, which is not counted. Code that it shares with the first file is counted there.
 */
import { isBuiltin } from 'node:module';
import { relative, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { entries, root } from '../docs/documents.ts';

/**
 * The size of `createAgent` with charts, xstate and rxjs, gzipped, in bytes: docs/decisions/2026-11-22-core-size.md.
 */
const CORE_BUDGET = 74_000;
/** The same with all modules that an agent with tools and a store in memory loads, in one file. */
const WITH_TOOLS_BUDGET = 80_000;
/** The same with every part that is loaded on demand, in one file; without XState and the scaling of images. */
const WHOLE_BUDGET = 107_500;

/** `connect`, with the projector and the folds of a log. */
const CLIENT_BUDGET = 32_000;

const CORE = "export { createAgent } from './src/index.ts'";
const FOR_TOOLS = ['conversation/decisions', 'plugins/toolGate', 'stores/memory', 'tools/execute'];

interface Bundle {
  /** Packages whose files were read. */
  reached: string[];
  /** Packages with code in the bundle. */
  brought: string[];
  /** Node modules that a read file imports, whether or not the import is kept. */
  builtins: string[];
  gzipped: number;
  /** The modules of `import()`: the files that are loaded later. */
  later: string[];
  /** Minified bytes by package or folder, the largest first. */
  shares: string;
}

const ownerOf = (input: string): string =>
  /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? input.split('/').slice(0, -1).join('/');
const packagesAmong = (inputs: readonly string[]): string[] =>
  [...new Set(inputs.filter((input) => input.startsWith('node_modules/')).map(ownerOf))].sort();

const ANY = /./;
const NOTHING = /^$/;
const XSTATE_AND_IMAGES = /interpreter\/(xstate|inspection)\.ts$|attachmentPreparer\.ts$/;

/** `outside`: the modules of `import()` that stay outside; otherwise all are in one file. */
async function bundled(code: string, { outside = NOTHING } = {}): Promise<Bundle> {
  const later: string[] = [];
  const found = await build({
    stdin: { contents: code, resolveDir: root, loader: 'ts' },
    absWorkingDir: root,
    bundle: true,
    platform: 'browser',
    format: 'esm',
    minify: true,
    write: false,
    metafile: true,
    // Named conditions switch off esbuild's own `module`; without it the bundle would contain CommonJS.
    conditions: ['module', 'production'],
    define: { 'process.env.NODE_ENV': '"production"' },
    // A Node module is counted here instead of being reported as an error there.
    plugins: [
      {
        name: 'builtin',
        setup: ({ onResolve }) =>
          onResolve({ filter: /.*/ }, ({ path }) => (isBuiltin(path) ? { path, external: true } : null)),
      },
      {
        name: 'later',
        setup: ({ onResolve }) =>
          onResolve({ filter: /.*/ }, ({ path, kind, resolveDir }) => {
            if (kind !== 'dynamic-import' || !outside.test(path)) return null;
            later.push(relative(root, resolve(resolveDir, path)));
            return { path, external: true };
          }),
      },
    ],
    logLevel: 'silent',
  });
  const [output] = Object.values(found.metafile.outputs);
  const bytes = new Map<string, number>();
  for (const [input, { bytesInOutput }] of Object.entries(output?.inputs ?? {})) {
    if (bytesInOutput > 0) bytes.set(ownerOf(input), (bytes.get(ownerOf(input)) ?? 0) + bytesInOutput);
  }
  const shares = [...bytes].sort(([, a], [, b]) => b - a);
  const imports = Object.values(found.metafile.inputs).flatMap((input) => input.imports);
  return {
    reached: packagesAmong(Object.keys(found.metafile.inputs)),
    brought: packagesAmong(Object.keys(output?.inputs ?? {}).filter((input) => bytes.has(ownerOf(input)))),
    builtins: [...new Set(imports.filter(({ external }) => external).map(({ path }) => path))].sort(),
    gzipped: gzipSync(found.outputFiles[0]?.contents ?? '', { level: 9 }).length,
    later: later.sort(),
    shares: shares.map(([owner, size]) => `${owner} ${size}`).join(', '),
  };
}

describe('runchart in a browser', () => {
  it('createAgent needs no Node module, no zod and no vendor client: it contains only rxjs, and xstate on request', async () => {
    const core = await bundled(CORE);
    expect(core.builtins).toEqual([]);
    // partial-json is loaded where somebody reads an answer while it streams.
    expect(core.reached).toEqual(['partial-json', 'rxjs', 'tslib', 'xstate']);
  });

  it(`createAgent is at most ${CORE_BUDGET} bytes, gzipped, without the modules that few conversations need`, async () => {
    const { gzipped, later, brought, shares } = await bundled(CORE, { outside: ANY });
    // Compiled plans run the charts. XState is loaded for `interpreter: 'xstate'` and `inspect`.
    expect(brought).toEqual(['rxjs', 'tslib']);
    expect(later).toEqual([
      'src/content/attachmentPreparer.ts',
      'src/content/storedAttachments.ts',
      'src/conversation/decisions.ts',
      'src/conversation/history.ts',
      'src/conversation/partialOutput.ts',
      'src/conversation/served/remoteActs.ts',
      'src/log/entryShape.ts',
      'src/log/factLog.ts',
      'src/log/redact.ts',
      'src/models/textCalls.ts',
      'src/plugins/phases.ts',
      'src/plugins/toolGate.ts',
      'src/plugins/workObserver.ts',
      'src/runtime/contextWindow.ts',
      'src/runtime/finalAnswers.ts',
      'src/runtime/interpreter/inspection.ts',
      'src/runtime/interpreter/xstate.ts',
      'src/runtime/summary.ts',
      'src/stores/blobReference.ts',
      'src/stores/conversationSummary.ts',
      'src/stores/memory.ts',
      'src/stores/rowTable.ts',
      'src/stores/rowTable.ts',
      'src/tools/execute.ts',
    ]);
    expect(gzipped, `minified bytes: ${shares}`).toBeLessThanOrEqual(CORE_BUDGET);
  });

  it(`createAgent with tools and a store in memory is at most ${WITH_TOOLS_BUDGET} bytes, gzipped`, async () => {
    const parts = FOR_TOOLS.map((part) => `export * from './src/${part}.ts';`).join('\n');
    const { gzipped, shares } = await bundled(`${CORE};\n${parts}`, { outside: ANY });
    expect(gzipped, `minified bytes: ${shares}`).toBeLessThanOrEqual(WITH_TOOLS_BUDGET);
  });

  it(`createAgent with all parts but XState and the scaling of images is at most ${WHOLE_BUDGET} bytes in one file`, async () => {
    const { gzipped, brought, shares } = await bundled(CORE, { outside: XSTATE_AND_IMAGES });
    expect(brought).toEqual(['partial-json', 'rxjs', 'tslib']);
    expect(gzipped, `minified bytes: ${shares}`).toBeLessThanOrEqual(WHOLE_BUDGET);
  });

  it.each([
    "export { modelMessages } from './machines/index.ts'",
    "export { project, createProjector } from './src/projector/index.ts'",
  ])('%s contains no package at all', async (code) => {
    const pure = await bundled(code);
    expect(pure.builtins).toEqual([]);
    expect(pure.brought).toEqual([]);
  });

  it.each(['runchart', 'runchart/machines', 'runchart/projector'])(
    '%s as a whole needs no Node module',
    async (name) => {
      const whole = await bundled(`export * from './${entries.get(name)}'`);
      expect(whole.builtins).toEqual([]);
      expect(whole.reached.filter((owner) => !['partial-json', 'rxjs', 'tslib', 'xstate'].includes(owner))).toEqual([]);
    },
  );

  it(`runchart/client needs no Node module, and is at most ${CLIENT_BUDGET} bytes, gzipped`, async () => {
    const entry = `export * from './${entries.get('runchart/client')}'`;
    expect((await bundled(entry)).builtins).toEqual([]);
    const client = await bundled(entry, { outside: ANY });
    expect(client.brought).toEqual(['eventsource-parser', 'rxjs', 'tslib']);
    expect(client.gzipped, `minified bytes: ${client.shares}`).toBeLessThanOrEqual(CLIENT_BUDGET);
  });

  it('a Node module or zod in an entry would be found', async () => {
    const node = await bundled("export { codingTools } from './src/node.ts'");
    expect(node.builtins).toContain('node:fs/promises');
    expect(node.reached).toContain('zod');
  });
});
