/**
 * The package as `npm pack` makes it, in an empty project with the current node. Invariant: nothing is present except
 * the package, its dependencies and zod, and nothing is fetched: the dependencies are the ones installed here. In `npm
 * run prove` npm installs it. In `npm test` it is unpacked beside links to them.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { fencesOf, root } from '../docs/documents.ts';
import { proves } from '../support/tier.ts';

const run = promisify(execFile);
const fences = fencesOf('docs/models.md');
const example = fences.find(({ tag }) => tag === 'quickstart.ts#quickstart');
const printed = fences.find(({ tag }) => tag === 'quickstart.ts');

type Names = { [name: string]: string };
/** A package with one program may name its file alone; the program has the name of the package. */
type Packages = { [path: string]: { dependencies?: Names; bin?: Names | string } };

/** These packages and all their dependencies. */
async function needed(names: readonly string[]): Promise<Set<string>> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as { packages: Packages };
  const found = new Set(names);
  for (const name of found) {
    for (const inner of Object.keys(lock.packages[`node_modules/${name}`]?.dependencies ?? {})) found.add(inner);
  }
  return found;
}

let project = '';
afterAll(() => rm(project, { recursive: true, force: true }));
beforeAll(async () => {
  project = await realpath(await mkdtemp(join(tmpdir(), 'runchart-project-')));
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Packages[string];
  const wanted = Object.keys(manifest.dependencies ?? {});
  // A linked package finds its dependencies at its real place.
  for (const name of proves ? await needed(wanted) : wanted) {
    const place = join('node_modules', name);
    await mkdir(dirname(join(project, place)), { recursive: true });
    if (proves) await copied(name, place);
    else await symlink(join(root, place), join(project, place), 'dir');
  }
  const { PATH = '' } = process.env;
  const npm = (...args: string[]) =>
    run('npm', [...args, '--offline', '--no-audit', '--no-fund'], {
      cwd: project,
      env: { PATH, HOME: project, npm_config_cache: join(project, '.npm') },
    });
  await npm('pack', inject('packageRoot'), '--ignore-scripts');
  const [tarball = ''] = (await readdir(project)).filter((name) => name.endsWith('.tgz'));
  if (!proves) {
    await run('tar', ['-xzf', tarball, '-C', 'node_modules'], { cwd: project });
    await rename(join(project, 'node_modules', 'package'), join(project, 'node_modules', 'runchart'));
    return;
  }
  const dependencies = { runchart: `file:${tarball}`, zod: '*' };
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'first', dependencies }));
  // npm finds everything that it would fetch, and removes the rest.
  await npm('install', '--ignore-scripts');
});

/** npm fetches a package again whose programs are not linked. */
async function copied(name: string, place: string): Promise<void> {
  await cp(join(root, place), join(project, place), { recursive: true });
  const { bin = {} } = JSON.parse(await readFile(join(root, place, 'package.json'), 'utf8')) as Packages[string];
  await mkdir(join(project, 'node_modules/.bin'), { recursive: true });
  for (const [program, file] of Object.entries(typeof bin === 'string' ? { [basename(name)]: bin } : bin))
    await symlink(join('..', name, file), join(project, 'node_modules/.bin', program));
}

/** The output of a module of the project. */
async function outputOf(name: string, source: string): Promise<string> {
  await writeFile(join(project, name), source);
  const { stdout, stderr } = await run(process.execPath, [name], { cwd: project });
  expect(stderr).toBe('');
  return stdout;
}

describe('the package in an empty project', () => {
  test.runIf(proves)('it contains its dependencies and no optional peer', async () => {
    const installed = await readdir(join(project, 'node_modules'));
    expect(installed).toEqual(expect.arrayContaining(['runchart', 'xstate', 'rxjs', 'zod']));
    for (const peer of ['@xstate', '@pydantic', 'openai', 'sharp', 'typescript']) expect(installed).not.toContain(peer);
  });

  test('it runs the example with a scripted model unchanged, and prints the documented output', async () => {
    expect(await outputOf('first.mjs', example?.text ?? '')).toBe(printed?.text);
  });

  test('it has a scripted model, a simulation and the suite of stores without @xstate/graph', async () => {
    const source = `
      import { createAgent, memoryStore } from 'runchart';
      import { drawChart, logStoreSuite, scriptedModel, simulate } from 'runchart/testing';
      import { toolCallMachine } from 'runchart/machines';
      const agent = createAgent({ model: scriptedModel(['hello']) });
      console.log(await (await agent.open()).send('hi').text);
      await agent.close();
      const { log } = await simulate({ seed: 1 });
      let cases = 0;
      logStoreSuite(async () => memoryStore(), { describe: (_, body) => body(), test: () => void (cases += 1) });
      console.log(log.length > 0, cases > 80, drawChart(toolCallMachine).startsWith('stateDiagram-v2'));
    `;
    expect(await outputOf('testing.mjs', source)).toBe('hello\ntrue true true\n');
  });

  test('coverPaths without @xstate/graph reports the missing package', async () => {
    const source = `
      import { coverPaths } from 'runchart/testing';
      import { createMachine } from 'xstate';
      try {
        coverPaths(createMachine({}), { input: undefined, cases: {}, projection: () => 0 });
      } catch ({ code, message }) {
        console.log(code, message);
      }
    `;
    const errorText = 'configuration coverPaths needs @xstate/graph: npm install --save-dev @xstate/graph\n';
    expect(await outputOf('paths.mjs', source)).toBe(errorText);
  });

  /** Generated cases take seconds. */
  test.each(['stories.ts', ...(proves ? ['agentCases.ts'] : [])])(
    'it runs %s of the guide to tests, and prints the output in the guide',
    async (name) => {
      const [said] = fencesOf('docs/testing.md').filter(({ language, tag }) => language === 'text' && tag === name);
      const graph = join('node_modules', '@xstate/graph');
      if (name === 'agentCases.ts') await cp(join(root, graph), join(project, graph), { recursive: true });
      const { code } = await transform(await readFile(join(root, 'docs/examples', name), 'utf8'), { loader: 'ts' });
      expect(await outputOf(name.replace('.ts', '.mjs'), code)).toBe(said?.text);
    },
  );
});
