/**
 * Installs packages into a project outside the repository without a network. Invariant: npm fetches nothing; the packages are copied from
 * those installed here, so npm fails for a version that is not installed here.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../docs/documents.ts';

export type Names = { [name: string]: string };
/** A package with one program may name its file alone; the program has the name of the package. */
type Package = { dependencies?: Names; optionalDependencies?: Names; bin?: Names | string };

/** The tests' own node comes first, so that npm and its scripts run on it. */
export const environmentOf = (project: string): Record<string, string> => ({
  PATH: [dirname(process.execPath), process.env.PATH ?? ''].join(delimiter),
  HOME: project,
  npm_config_cache: join(project, '.npm'),
});

export async function npm(project: string, ...args: string[]): Promise<void> {
  await promisify(execFile)('npm', [...args, '--offline', '--no-audit', '--no-fund'], {
    cwd: project,
    env: environmentOf(project),
  });
}

/** Packs the package in this folder, and returns the name of the tarball in `place`. */
export async function packInto(place: string, packageRoot: string): Promise<string> {
  await npm(place, 'pack', packageRoot, '--ignore-scripts');
  const [tarball = ''] = (await readdir(place)).filter((name) => name.endsWith('.tgz'));
  return tarball;
}

/** These packages and all their dependencies; of the optional ones, those for this machine. */
async function neededPackages(names: readonly string[]): Promise<Set<string>> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: { [path: string]: Package };
  };
  const installed = new Set(await packageNames());
  const needed = new Set(names);
  for (const name of needed) {
    const { dependencies, optionalDependencies } = lock.packages[`node_modules/${name}`] ?? {};
    for (const inner of Object.keys({ ...dependencies, ...optionalDependencies }))
      if (installed.has(inner)) needed.add(inner);
  }
  return needed;
}

async function packageNames(): Promise<string[]> {
  const names = await readdir(join(root, 'node_modules'));
  const scoped = names.filter((name) => name.startsWith('@'));
  const inner = scoped.map(async (scope) =>
    (await readdir(join(root, 'node_modules', scope))).map((name) => `${scope}/${name}`),
  );
  return [...names, ...(await Promise.all(inner)).flat()];
}

/** Copies these packages with all their dependencies into the project. */
export async function copyPackages(project: string, names: readonly string[]): Promise<void> {
  for (const name of await neededPackages(names)) await copyPackage(project, name);
}

/** npm fetches a package again whose programs are not linked. */
async function copyPackage(project: string, name: string): Promise<void> {
  const place = join('node_modules', name);
  await mkdir(dirname(join(project, place)), { recursive: true });
  await cp(join(root, place), join(project, place), { recursive: true });
  const { bin = {} } = JSON.parse(await readFile(join(root, place, 'package.json'), 'utf8')) as Package;
  await mkdir(join(project, 'node_modules/.bin'), { recursive: true });
  for (const [program, file] of Object.entries(typeof bin === 'string' ? { [basename(name)]: bin } : bin))
    await symlink(join('..', name, file), join(project, 'node_modules/.bin', program));
}
