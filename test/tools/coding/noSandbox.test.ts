/** Machines without a working sandbox: the notice of a session, and the commands that still run without approval. */
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import type { LogEntry } from '../../../src/index.ts';
import { memoryStore } from '../../../src/index.ts';
import { diagnosticText } from '../../../src/words/entryWords.ts';
import { call, scripted } from '../../support/scriptedReplies.ts';

const place = await realpath(await mkdtemp(join(tmpdir(), 'runchart-no-sandbox-')));
afterAll(() => rm(place, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

const [without, failing, idle, silent] = ['without', 'failing', 'idle', 'silent'].map((name) => join(place, name)) as [
  string,
  string,
  string,
  string,
];
const programs = async (name: string): Promise<string> => {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = await realpath(join(directory, name)).catch(() => undefined);
    if (path) return path;
  }
  throw new Error(`${name} is not on this machine`);
};
for (const directory of [without, failing, idle, silent]) {
  await mkdir(directory);
  for (const name of ['bash', 'cat', 'ls', 'sh']) await symlink(await programs(name), join(directory, name));
}
const BROKEN = 'bwrap: No permissions to create new namespace';
await writeFile(join(failing, 'bwrap'), `#!${join(failing, 'bash')}\necho '${BROKEN}' >&2\nexit 1\n`);
// It starts the command unchanged.
await writeFile(
  join(idle, 'bwrap'),
  `#!${join(idle, 'bash')}\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n`,
);
await writeFile(join(silent, 'bwrap'), `#!${join(silent, 'bash')}\nexit 3\n`);
for (const directory of [failing, idle, silent]) await chmod(join(directory, 'bwrap'), 0o755);

/** The library as loaded by a program that starts with this `PATH`. */
async function loaded(path: string) {
  vi.stubEnv('PATH', path);
  vi.resetModules();
  const { createAgent } = await import('../../../src/agent.ts');
  const node = await import('../../../src/node.ts');
  return { createAgent, ...node };
}
const MISSING = 'sandbox_missing';
const lacks = (log: readonly LogEntry[]) =>
  log.flatMap((entry) => (entry.type === 'diagnostic' && entry.code === MISSING ? [entry] : []));

describe.runIf(process.platform === 'linux').each([
  ['without bubblewrap', without, 'bubblewrap (bwrap) is not installed'],
  ['with a bubblewrap that cannot create namespaces', failing, `bubblewrap does not work here: ${BROKEN}`],
  ['with a bubblewrap that restricts nothing', idle, 'bubblewrap does not keep a command from writing'],
  ['with a bubblewrap without output', silent, 'bubblewrap does not work here: it ends with exit code 3'],
])('a machine %s', (_, path, why) => {
  it('it is reported once in the life of a conversation, over runs and restarts, in one line with the reason', async () => {
    const { createAgent, codingTools, sandboxStatus } = await loaded(path);
    expect(sandboxStatus()).toEqual({ kind: 'none', why });
    const store = memoryStore();
    for (const restart of [1, 2]) {
      const model = scripted([[1, 2].map((each) => call(`c${restart}-${each}`, 'Bash', { command: 'ls' })), 'done']);
      const agent = createAgent({ model, tools: codingTools(), store, cwd: place });
      const conversation = await agent.open('c');
      expect(lacks(conversation.log())).toHaveLength(restart - 1);
      await conversation.send('go').result;
      const notices = lacks(conversation.log());
      expect(notices).toMatchObject([{ detail: { why } }]);
      expect(notices.map((each) => diagnosticText(each, 500))).toEqual([`commands run without a sandbox: ${why}`]);
      await agent.close();
    }
  });

  it('it is not reported if the host switched the sandbox off, and is an error if a sandbox is required', async () => {
    const { createAgent, codingTools } = await loaded(path);
    const model = scripted([[call('c1', 'Bash', { command: 'ls' })], 'done']);
    const agent = createAgent({ model, tools: codingTools({ sandbox: 'off' }), cwd: place });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    expect(lacks(conversation.log())).toEqual([]);
    await agent.close();
    expect(() => codingTools({ sandbox: 'required' })).toThrow(why);
  });

  it('only commands that certainly stay inside run without approval: no links that lead out, no doubtful patterns, no computed words', async () => {
    const { permissions } = await loaded(path);
    const cwd = await realpath(await mkdtemp(join(place, 'ws-')));
    await mkdir(join(cwd, 'src'));
    await writeFile(join(cwd, 'src/a.ts'), 'a');
    await symlink('/etc', join(cwd, 'out'));
    const rules = permissions();
    const verdicts = async (lines: readonly string[]) =>
      Promise.all(lines.map(async (command) => (await rules.explain('Bash', { command }, cwd)).outcome));
    const safe = ['ls', 'cat src/a.ts', 'cat src/*.ts', 'grep -rn a src | head -3', 'git status'];
    expect(await verdicts(safe)).toEqual(safe.map(() => 'allow'));
    const doubtful = ['cat out/hostname', 'cat */hostname', 'cat "$X"', 'cat $(ls)', 'ls | xargs cat', 'cat **/a'];
    expect(await verdicts(doubtful)).toEqual(doubtful.map(() => 'ask'));
    expect(await rules.explain('Bash', { command: 'cat "$X"' }, cwd)).not.toHaveProperty('sandboxed');
  });
});
