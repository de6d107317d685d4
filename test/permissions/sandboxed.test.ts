/**
 * The effect of a sandbox on permissions. Read-only commands run without approval, whatever their words name. The
 * network and leaving the sandbox are questions. A person sees the place of a command's execution. The verdicts apply
 * on every machine; commands run only if bubblewrap works.
 */
import { mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { codingTools, type PermissionOptions, permissions, sandboxStatus } from '../../src/node.ts';
import { bench, resultText } from '../support/agentBench.ts';
import { call as toolCall } from '../support/scriptedReplies.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const works = sandboxStatus().kind === 'bubblewrap';
beforeAll(async () => {
  await mkdir(join(ws, 'secrets'));
  await writeFile(join(ws, 'secrets/key'), 'CANARY');
});

describe.runIf(works)('the verdict in a sandbox', () => {
  const deny = ['read(./secrets/**)'];
  const inside = async (command: string, options: PermissionOptions = {}, more: object = {}) => {
    const { outcome, sandboxed } = await explain(options, 'Bash', { command, ...more }, ws);
    return [outcome, sandboxed?.outcome];
  };

  it('it allows read-only commands whose files are unknown before they run', async () => {
    for (const line of ['cat "$FILE"', 'cat s*/key', 'grep -rn KEY .', 'for f in *; do wc -l "$f"; done'])
      expect([line, ...(await inside(line, { deny }))]).toEqual([line, 'ask', 'allow']);
  });

  it('it asks about commands that change files, run other programs, or certainly name a place outside', async () => {
    for (const line of [
      'make',
      'cat $X | tee y',
      'cat ../ws-evil/s',
      'find . -delete',
      'python3 x.py',
      'f() { ls; }; f',
    ])
      expect([line, ...(await inside(line))]).toEqual([line, 'ask', 'ask']);
  });

  it('it asks if git may show hidden files from commits', async () => {
    for (const line of ['git diff', 'git log -p', 'git show HEAD:$X', 'git show "$X"'])
      expect([line, ...(await inside(line, { deny }))]).toEqual([line, 'ask', 'ask']);
  });

  it('it keeps the deny and ask rules', async () => {
    expect(await inside('cat secrets/key', { deny })).toEqual(['deny', 'deny']);
    expect(await inside('cat $X', { ask: ['bash(cat *)'] })).toEqual(['ask', 'ask']);
  });

  it('it asks about the network and about leaving the sandbox, whatever allows the command', async () => {
    const options: PermissionOptions = { allow: ['bash(npm ci)'] };
    expect(await inside('npm ci', options)).toEqual(['allow', 'allow']);
    expect(await inside('npm ci', options, { network: true })).toEqual(['allow', 'ask']);
    expect(await inside('ls', options, { unsandboxed: true })).toEqual(['allow', 'ask']);
    expect(await inside('ls', { mode: 'bypass' }, { unsandboxed: true })).toEqual(['allow', 'ask']);
  });

  it('it asks about them for each kind of command too: a command that reads unasked in the sandbox, and a command that is allowed or asked about anyway', async () => {
    const commands = ['cat "$FILE"', 'for f in *; do wc -l "$f"; done', 'ls', 'npm ci', 'make'];
    for (const command of commands)
      for (const more of [{ unsandboxed: true }, { network: true }, { unsandboxed: true, network: true }])
        for (const mode of ['default', 'acceptEdits'] as const) {
          const [, sandboxed] = await inside(command, { mode, allow: ['bash(npm ci)'] }, more);
          expect([command, more, mode, sandboxed]).toEqual([command, more, mode, 'ask']);
        }
  });
});

describe.runIf(works)('a command of an agent with permissions, in the sandbox', () => {
  const ran = async (command: string, options: PermissionOptions, decision?: 'approve', cwd = ws) => {
    const tools = codingTools({ sandbox: 'required' });
    const replies = [[toolCall('c1', 'Bash', { command })], 'done'];
    const { conversation } = await bench({ tools, plugins: [permissions(options)], replies, cwd });
    const { pending } = await conversation.send('go').result;
    const [call] = pending;
    if (call && decision) {
      await conversation.decide({ callId: 'c1', action: decision });
      await conversation.resume().result;
    }
    return { asked: call?.payload, text: resultText(conversation.log(), 'c1') };
  };

  it('a read-only command without approval finds neither denied files, places outside, nor a home directory', async () => {
    await symlink(join(ws, '..', 'ws-evil'), join(ws, 'out'));
    const line = 'for d in secrets out ~ /root; do for f in "$d"/*; do cat "$f"; done; done; cat src/*.ts';
    const { asked, text } = await ran(line, { deny: ['read(./secrets/**)'] });
    expect(asked).toBeUndefined();
    expect(text).not.toMatch(/CANARY|secret$/m);
    expect(text).toContain('a');
  });

  it('a read-only command without approval changes nothing, even if the name of a file becomes an option', async () => {
    await writeFile(join(ws, '-oREADME.md'), 'b\na\n');
    expect((await explain({}, 'Bash', { command: 'sort *.md' }, ws)).by).toContain('may become an option');
    const { asked } = await ran('sort *.md', {});
    expect(asked).toBeUndefined();
    expect(await readFile(join(ws, 'README.md'), 'utf8')).toBe('r');
  });

  it('an approved command reads nothing beside the working directory if a rule names the directory above both', async () => {
    // Not in `/tmp`, which is empty in the sandbox.
    const above = await realpath(await mkdtemp('/var/tmp/runchart-above-'));
    onTestFinished(() => rm(above, { recursive: true, force: true }));
    const cwd = join(above, 'ws');
    for (const name of ['ws', 'beside']) await mkdir(join(above, name));
    await writeFile(join(above, 'beside/s'), 'CANARY');
    await writeFile(join(cwd, 'show.sh'), 'cat ../beside/s; echo end\n');
    const line = 'sh show.sh';
    expect((await ran(line, {}, 'approve', cwd)).text).toContain('CANARYend');
    const { text } = await ran(line, { deny: [`read(/${above}/*/s)`] }, 'approve', cwd);
    expect(text).toContain('end');
    expect(text).not.toContain('CANARY');
  });

  it('an approved command changes files, finds denied ones empty, and leaves protected places unchanged', async () => {
    await writeFile(join(ws, '.git/config'), '[core]\n');
    const line = 'cat secrets/k*y; echo x > made; printf y >> .git/con"$(printf fig)"';
    const { asked, text } = await ran(line, { deny: ['read(./secrets/key)'] }, 'approve');
    expect(asked).toMatchObject({ runs: 'in the sandbox, changing the working directory, without the network' });
    expect(text).not.toContain('CANARY');
    expect(await readFile(join(ws, 'made'), 'utf8')).toBe('x\n');
    expect(await readFile(join(ws, '.git/config'), 'utf8')).toBe('[core]\n');
  });
});

describe('a path that was approved', () => {
  const asked: [tool: string, args: { [name: string]: string }][] = [
    ['Write', { file_path: 'held/new.txt', content: 'x' }],
    ['Edit', { file_path: 'held/f.txt', old_string: 'a', new_string: 'b' }],
    ['Read', { file_path: 'held/f.txt' }],
    ['Ls', { path: 'held' }],
    ['Glob', { pattern: '*', path: 'held' }],
    ['Grep', { pattern: 'a', path: 'held' }],
    ['Grep', { pattern: 'a', path: 'held/f.txt' }],
  ];
  it.each(
    asked.flatMap(([tool, args]) => ['../ws-evil', 'src', 'gone/deep'].map((target) => ({ tool, args, target }))),
  )('it is not used if it leads elsewhere when the call runs: $tool $args, $target', async ({ tool, args, target }) => {
    for (const directory of ['held', 'gone', 'src/held'])
      await rm(join(ws, directory), { recursive: true, force: true });
    for (const file of ['held/f.txt', 'held/deep/f.txt', '../ws-evil/f.txt', 'src/f.txt']) {
      await mkdir(join(ws, file, '..'), { recursive: true });
      await writeFile(join(ws, file), 'a');
    }
    const rules = permissions({ ask: ['read(./held)', 'edit(./held)'] });
    const replies = [[toolCall('c1', tool, args)], 'done'];
    const { conversation } = await bench({ tools: codingTools(), plugins: [rules], replies, cwd: ws });
    const { pending } = await conversation.send('go').result;
    expect(pending[0]?.payload).toMatchObject({ place: join(ws, args.file_path ?? args.path ?? '') });
    await rename(join(ws, 'held'), join(ws, 'gone'));
    await symlink(target, join(ws, 'held'));
    await conversation.decide({ callId: 'c1', action: 'approve' });
    await conversation.resume().result;
    expect(conversation.log().find(({ type }) => type === 'tool-result')).toMatchObject({ code: 'moved' });
  });
});
