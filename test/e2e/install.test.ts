/**
 * The package as `npm pack` makes it, in an empty project with the current node. Invariant: nothing is present except
 * the package, its dependencies and zod, and nothing is fetched: the dependencies are the ones installed here. In `npm
 * run prove` npm installs it. In `npm test` it is unpacked beside links to them.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { fencesOf, root } from '../docs/documents.ts';
import { copyPackages, type Names, npm, packInto } from '../support/offlineProject.ts';
import { proves } from '../support/tier.ts';

const run = promisify(execFile);
const fences = fencesOf('docs/models.md');
const example = fences.find(({ tag }) => tag === 'quickstart.ts#quickstart');
const printed = fences.find(({ tag }) => tag === 'quickstart.ts');

let project = '';
afterAll(() => rm(project, { recursive: true, force: true }));
beforeAll(async () => {
  project = await realpath(await mkdtemp(join(tmpdir(), 'runchart-project-')));
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { dependencies: Names };
  const dependencies = Object.keys(manifest.dependencies);
  const tarball = await packInto(project, inject('packageRoot'));
  if (proves) {
    await copyPackages(project, dependencies);
    const wanted = { runchart: `file:${tarball}`, zod: '*' };
    await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'first', dependencies: wanted }));
    // npm finds everything that it would fetch, and removes the rest.
    await npm(project, 'install', '--ignore-scripts');
    return;
  }
  // A linked package finds its dependencies at its real place.
  for (const name of dependencies) {
    const place = join('node_modules', name);
    await mkdir(dirname(join(project, place)), { recursive: true });
    await symlink(join(root, place), join(project, place), 'dir');
  }
  await run('tar', ['-xzf', tarball, '-C', 'node_modules'], { cwd: project });
  await rename(join(project, 'node_modules', 'package'), join(project, 'node_modules', 'runchart'));
});

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
      const [expected] = fencesOf('docs/testing.md').filter(({ language, tag }) => language === 'text' && tag === name);
      const graph = join('node_modules', '@xstate/graph');
      if (name === 'agentCases.ts') await cp(join(root, graph), join(project, graph), { recursive: true });
      const { code } = await transform(await readFile(join(root, 'docs/examples', name), 'utf8'), { loader: 'ts' });
      expect(await outputOf(name.replace('.ts', '.mjs'), code)).toBe(expected?.text);
    },
  );
});
