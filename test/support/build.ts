/**
 * The package as it would be installed, built once for the tests that start it as a process: `dist` from the real
 * sources, `package.json` and `docs`, its dependencies and the vendor's client, and nothing else. What of them comes in
 * many files lies there in one, since those 500 take more than half of the time of a start; `e2e/install.test.ts`
 * installs them as they come. Rule: the package is private to one test run and removed after it; types are checked
 * elsewhere.
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
    /** Where the built package lies. */
    packageRoot: string;
  }
}

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
/** Their main entries, which are all that the package and its examples import of them. */
const IN_ONE_FILE = ['diff', 'openai', 'rxjs', 'string-width', 'tinyglobby', 'unbash', 'ws', 'xstate', 'zod'];
/** To Node it is CommonJS, which tells no names once it is bundled. */
const ENTRIES: Record<string, string> = { rxjs: './node_modules/rxjs/dist/esm/index.js' };
const TSC = join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc');

/** Vitest's `globalSetup`: builds, provides `packageRoot`, and answers what removes it. */
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
    // Names stay: some of them are told in messages.
    minifySyntax: true,
    minifyWhitespace: true,
    // Packages of the old kind ask for Node's modules by `require`.
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
