/**
 * The files that rules hide from a command in the sandbox where a path of a rule contains a symbolic link. Rule: a rule
 * hides the place that its path leads to, so that neither the link nor the real path shows the file.
 */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { codingTools, permissions, sandboxStatus } from '../../src/node.ts';
import { hiddenPaths } from '../../src/permissions/hiding/hiddenPaths.ts';
import { type PathPattern, pathPattern, surroundingsOf } from '../../src/permissions/pathRules.ts';
import { bench, resultText } from '../support/agentBench.ts';
import { call as toolCall } from '../support/scriptedReplies.ts';

// Not in `/tmp`, which is empty in the sandbox.
const above = await realpath(await mkdtemp('/var/tmp/runchart-links-'));
afterAll(() => rm(above, { recursive: true, force: true }));
const ws = join(above, 'ws');
for (const directory of ['ws/store/deep', 'ws/conf', 'ws/src', 'ws/pkg/node_modules', 'out/deep', 'other', 'elsewhere'])
  await mkdir(join(above, directory), { recursive: true });
await writeFile(join(above, 'elsewhere/file'), 'CANARY');
await symlink('../elsewhere/file', join(above, 'other/linked'));
for (const file of ['ws/store/key', 'ws/store/deep/key', 'out/key', 'out/deep/key', 'ws/src/key.ts', 'ws/conf/file'])
  await writeFile(join(above, file), 'CANARY');
for (const [path, target] of [
  ['inside', 'store'],
  ['outside', '../out'],
  ['twice', 'inside'],
  ['conf/keys', '../store'],
  ['file', 'store/key'],
  ['outFile', '../out/key'],
  ['.env', '../out/key'],
  ['up', '..'],
  ['self', '.'],
  ['pkg/node_modules/pkg', '..'],
  ['system', '/usr/lib'],
  ['null', '/dev/null'],
  ['gone', 'nowhere'],
  ['beside', '../other'],
] as const)
  await symlink(target, join(ws, path));

const found = async (specs: readonly string[], most?: { entries: number; hidden: number }) =>
  hiddenPaths(
    specs.map((spec) => pathPattern(spec) as PathPattern),
    await surroundingsOf(ws),
    most,
  );
const hidden = async (...specs: string[]): Promise<string[] | undefined> =>
  (await found(specs))?.hide.map((path) => path.slice(above.length + 1)).sort();

describe('a rule whose path contains a link hides where it leads', () => {
  it.each([
    ['a directory inside', './inside/**', ['ws/store/deep', 'ws/store/key']],
    ['a directory inside, as a whole', './inside', ['ws/store']],
    ['a directory outside', 'outside/**', ['out/deep', 'out/key']],
    ['a directory outside, as a whole', './outside/', ['out']],
    ['a link to a link', './twice/key', ['ws/store/key']],
    ['an earlier part of the path', './inside/deep/key', ['ws/store/deep/key']],
    ['a later part of the path', './conf/keys/deep/*', ['ws/store/deep/key']],
    ['a part that a wildcard matches', './c*/k*/key', ['ws/store/key']],
    ['a link below any directory', '**/keys/key', ['ws/store/key']],
    ['a directory of any depth', 'keys', ['ws/store']],
    ['a file', './file', ['ws/store/key']],
    ['a file outside', './outFile', ['out/key']],
    ['a file of any depth', '.env', ['out/key']],
    ['a path with any directories in it', './outside/**/key', ['out/deep/key', 'out/key']],
    ['an absolute path', `/${ws}/outside/deep/key`, ['out/deep/key']],
    ['an absolute path with a link outside', `/${above}/ws/up/out/key`, ['out/key']],
    ['a directory above', './up/out/**', ['out/deep', 'out/key']],
    ['another case of the letters', './INSIDE/KEY', ['ws/store/key']],
  ])('%s: %s', async (_, spec, paths) => {
    expect(await hidden(spec)).toEqual(paths);
  });

  it('a rule does not hide programs, devices or what does not exist', async () => {
    expect(await hidden('./system/**', './system', './null', './gone', './gone/**')).toEqual([]);
  });

  it('the target of a link that no rule names is hidden only by the rules for its own path', async () => {
    expect(await hidden('./src/**', '*.pem')).toEqual(['ws/src/key.ts']);
    expect(await hidden('key.ts')).toEqual(['ws/src/key.ts']);
  });

  it('a rule for the real path of a link hides its target, also where another rule leads to the link', async () => {
    expect(await hidden('./beside/absent', '**/other/linked')).toEqual(['elsewhere/file']);
  });

  it('a rule for a link to a directory above hides everything in it, but not the way to the working directory', async () => {
    const paths = await hidden('./up/**');
    expect(paths).toEqual(expect.arrayContaining(['out', 'ws/src', 'ws/store']));
    expect(paths).not.toContain('ws');
  });

  it('links that form a cycle end the search, and hide what their rule matches', async () => {
    expect(await hidden('./self/**/key')).toEqual(['out/deep/key', 'out/key', 'ws/store/deep/key', 'ws/store/key']);
    expect(await hidden('./pkg/**/nothing')).toEqual([]);
  });

  it('no directory on the way to the link or to its target can be moved', async () => {
    const hold = async (spec: string) => (await found([spec]))?.hold.map((path) => path.slice(ws.length + 1)).sort();
    expect(await hold('./conf/keys/deep/key')).toEqual(['conf', 'store', 'store/deep']);
    expect(await hold('./outside/key')).toEqual([]);
  });

  it('a directory that no rule can match is not searched', async () => {
    expect((await found(['./inside/key'], { entries: 20, hidden: 10 }))?.hide).toEqual([join(ws, 'store/key')]);
    expect(await found(['key'], { entries: 20, hidden: 10 })).toBeUndefined();
  });
});

describe.runIf(sandboxStatus().kind === 'bubblewrap')('a command in the sandbox', () => {
  const ran = async (command: string, deny: string[], approves: boolean): Promise<string> => {
    const tools = codingTools({ sandbox: 'required' });
    const replies = [[toolCall('c1', 'Bash', { command })], 'done'];
    const { conversation } = await bench({ tools, plugins: [permissions({ deny })], replies, cwd: ws });
    const { pending } = await conversation.send('go').result;
    expect(pending.length).toBe(approves ? 1 : 0);
    if (approves) {
      await conversation.decide({ callId: 'c1', action: 'approve' });
      await conversation.resume().result;
    }
    return resultText(conversation.log(), 'c1');
  };
  const reading = 'cat "$(printf %s';
  it.each([
    ['read(./inside/**)', ['inside/key', 'store/key']],
    ['read(./outside/**)', ['outside/key', '../out/key']],
    ['read(./outside)', ['outside/deep/key', '../out/key']],
    ['read(./file)', ['file', 'store/key']],
    ['read(./conf/keys/key)', ['conf/keys/key', 'store/key', 'inside/key', 'twice/key']],
  ])(
    'reads no file of %s through the link or at its real path, whether it only reads or may change files',
    async (rule, paths) => {
      for (const path of paths) {
        const write = `echo begin; cat "$(printf %s ${path})"; touch made`;
        expect(await ran(write, [], true)).toContain('CANARY');
        const text = await ran(write, [rule], true);
        expect([path, text]).toEqual([path, expect.stringMatching(/^begin\n/)]);
        expect([path, text]).toEqual([path, expect.not.stringContaining('CANARY')]);
        const read = await ran(`echo begin; ${reading} ${path})"`, [rule], false);
        expect([path, read]).toEqual([path, expect.not.stringContaining('CANARY')]);
      }
    },
  );
});
