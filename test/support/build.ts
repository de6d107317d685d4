/**
 * The package as it would be installed, built once for the tests that start it as a process: `dist` from the real
 * sources, `package.json` and `docs`, its dependencies and the vendor's client, and nothing else. RxJS lies there in one
 * file, since its 220 take a third of the time of a start; `e2e/install.test.ts` installs it as it comes. Rule: the
 * package is private to one test run and removed after it; types are checked elsewhere.
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
    await bundleRxJS(join(root, 'node_modules', 'rxjs'));
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
    if (name === 'rxjs') continue;
    const place = join(root, 'node_modules', name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(join(REPOSITORY, 'node_modules', name), place, 'dir');
  }
}

async function bundleRxJS(place: string): Promise<void> {
  await build({
    entryPoints: [join(REPOSITORY, 'node_modules', 'rxjs', 'dist', 'esm', 'index.js')],
    outfile: join(place, 'index.js'),
    bundle: true,
    format: 'esm',
    logLevel: 'warning',
  });
  const manifest = { name: 'rxjs', type: 'module', exports: { '.': './index.js' } };
  await writeFile(join(place, 'package.json'), JSON.stringify(manifest));
}
