/**
 * The package as it would be installed, built once for the tests that start it as a process. It contains `dist` from
 * the real sources, `package.json`, `docs`, the dependencies and the vendor's client. Each dependency with many files
 * is bundled into one, since 500 files take more than half of the start time. `e2e/install.test.ts` installs the
 * unbundled files. Invariant: the package belongs to one test run and is removed after it. Types are checked elsewhere.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the built package. */
    packageRoot: string;
  }
}

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
/** The main entries of these packages; the package and its examples import nothing else from them. */
const IN_ONE_FILE = ['diff', 'openai', 'rxjs', 'string-width', 'tinyglobby', 'unbash', 'ws', 'xstate', 'zod'];
/** Node receives a CommonJS module, which exports no names after bundling. */
const ENTRIES: Record<string, string> = { rxjs: './node_modules/rxjs/dist/esm/index.js' };
const TSC = join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc');

/** Vitest's `globalSetup`: builds the package, provides `packageRoot`, and returns the function that removes it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const root = await mkdtemp(join(tmpdir(), 'runchart-package-'));
  const remove = (): Promise<void> => rm(root, { recursive: true, force: true });
  try {
    const options = ['-p', join(REPOSITORY, 'tsconfig.build.json'), '--outDir', join(root, 'dist')];
    await promisify(execFile)(process.execPath, [TSC, ...options, '--noCheck', '--declaration', 'false']);
    await cp(join(REPOSITORY, 'package.json'), join(root, 'package.json'));
    await cp(join(REPOSITORY, 'docs'), join(root, 'docs'), { recursive: true });
    await linkPackages(root);
    await bundlePackages(join(root, 'node_modules'));
  } catch (error) {
    await remove();
    throw error;
  }
  project.provide('packageRoot', root);
  return remove;
}

async function linkPackages(root: string): Promise<void> {
  const { dependencies } = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), 'openai']) {
    if (IN_ONE_FILE.includes(name)) continue;
    const place = join(root, 'node_modules', name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(join(REPOSITORY, 'node_modules', name), place, 'dir');
  }
}

async function bundlePackages(place: string): Promise<void> {
  await build({
    absWorkingDir: REPOSITORY,
    entryPoints: IN_ONE_FILE.map((name) => ({ in: ENTRIES[name] ?? name, out: join(name, 'index') })),
    outdir: place,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Names are kept because some of them appear in messages.
    minifySyntax: true,
    minifyWhitespace: true,
    // CommonJS packages load Node's modules with `require`.
    banner: {
      js: "import { createRequire as ofModule } from 'node:module'; const require = ofModule(import.meta.url);",
    },
    logLevel: 'warning',
  });
  for (const name of IN_ONE_FILE) {
    const { version } = JSON.parse(await readFile(join(REPOSITORY, 'node_modules', name, 'package.json'), 'utf8'));
    const manifest = { name, version, type: 'module', exports: { '.': './index.js' } };
    await writeFile(join(place, name, 'package.json'), JSON.stringify(manifest));
  }
}
