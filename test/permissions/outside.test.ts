/** File tools outside the working directory: a rule or a decision opens one place and no other. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/index.ts';
import { codingTools, hooks, type PermissionOptions, permissions } from '../../src/node.ts';
import { bench, only, resultText } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';

function place() {
  const root = temporaryFolder();
  for (const name of ['ws', 'ws-evil', 'other']) mkdirSync(join(root, name));
  writeFileSync(join(root, 'other/a.txt'), 'needle one\n');
  writeFileSync(join(root, 'other/b.txt'), 'needle two\n');
  writeFileSync(join(root, 'ws-evil/s'), 'secret\n');
  return { root, cwd: join(root, 'ws'), other: join(root, 'other') };
}

async function run(cwd: string, calls: readonly [string, Json][], options: PermissionOptions | undefined) {
  const parts = calls.map(([name, args], index) => call(`c${index + 1}`, name, args));
  const plugins = options ? [permissions(options)] : [];
  const replies = [...parts.map((each) => [each]), 'done', 'done'];
  const made = await bench({ tools: codingTools(), plugins, replies, cwd });
  const result = await made.conversation.send('go').result;
  const outcomes = () => only(made.conversation.log(), 'tool-result').map((each) => each.replace('tool-result ', ''));
  const text = (callId: string) => resultText(made.conversation.log(), callId);
  return { ...made, result, outcomes, text };
}

describe('a place outside the working directory', () => {
  it('an allow rule opens it to every file tool', async () => {
    const { root, cwd, other } = place();
    const allow = [`read(/${other}/**)`, `read(/${other})`, `edit(/${other}/**)`];
    const { outcomes, text } = await run(
      cwd,
      [
        ['Read', { file_path: `${other}/a.txt` }],
        ['Ls', { path: '../other' }],
        ['Glob', { pattern: '*.txt', path: other }],
        ['Grep', { pattern: 'needle', path: other }],
        ['Edit', { file_path: `${other}/a.txt`, old_string: 'one', new_string: 'three' }],
        ['Write', { file_path: `${other}/deep/new.txt`, content: 'new' }],
      ],
      { allow },
    );
    expect(outcomes()).toEqual([1, 2, 3, 4, 5, 6].map((each) => `c${each} succeeded`));
    expect(text('c2')).toContain('b.txt');
    expect(text('c3')).toContain(`${other}/a.txt`);
    expect(text('c4')).toContain('needle two');
    expect(readFileSync(join(other, 'a.txt'), 'utf8')).toBe('needle three\n');
    expect(readFileSync(join(root, 'other/deep/new.txt'), 'utf8')).toBe('new');
  });

  it('H-241 H-260 otherwise it requires approval, also in acceptEdits, and an approval opens that place for that call', async () => {
    const { cwd, other } = place();
    const write = { file_path: `${other}/new.txt`, content: 'x' };
    const { conversation, outcomes, result } = await run(
      cwd,
      [
        ['Write', write],
        ['Write', write],
      ],
      { mode: 'acceptEdits' },
    );
    expect(result.termination).toBe('Suspended');
    expect(existsSync(write.file_path)).toBe(false);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    const next = await conversation.resume().result;
    expect(outcomes()).toEqual(['c1 succeeded']);
    expect(readFileSync(write.file_path, 'utf8')).toBe('x');
    // The next call to the same place is another question.
    expect(next.termination).toBe('Suspended');
  });

  it('edited arguments, a hook that allows, and bypass mode open it, according to the arguments that run', async () => {
    const { cwd, other } = place();
    const asked = await run(cwd, [['Read', { file_path: '../ws-evil/s' }]], {});
    await asked.conversation.decide({ callId: 'c1', action: 'edit', args: { file_path: `${other}/a.txt` } });
    await asked.conversation.resume().result;
    expect(asked.text('c1')).toContain('needle one');
    const bypass = await run(cwd, [['Read', { file_path: `${other}/a.txt` }]], { mode: 'bypass' });
    expect(bypass.outcomes()).toEqual(['c1 succeeded']);
    const plugins = [permissions(), hooks({ PreToolUse: [{ run: () => ({ decision: 'allow' }) }] })];
    const replies = [[call('c1', 'Read', { file_path: `${other}/a.txt` })], 'done'];
    const hooked = await bench({ tools: codingTools(), plugins, replies, cwd });
    await hooked.conversation.send('go').result;
    expect(only(hooked.conversation.log(), 'tool-result')).toEqual(['tool-result c1 succeeded']);
  });

  it('H-260 H-261 it stays closed without permission rules, if a rule names another place, and if a link leads elsewhere', async () => {
    const { cwd, other, root } = place();
    const plain = await run(cwd, [['Read', { file_path: `${other}/a.txt` }]], undefined);
    expect(plain.outcomes()).toEqual(['c1 failed outside_workspace']);
    symlinkSync(join(root, 'ws-evil'), join(cwd, 'd'));
    const allow = [`read(/${other}/**)`, 'read(./**)'];
    const ruled = await run(cwd, [['Read', { file_path: '../ws-evil/s' }]], { allow, mode: 'dontAsk' });
    expect(ruled.outcomes()).toEqual(['c1 failed denied']);
    const linked = await run(cwd, [['Read', { file_path: 'd/s' }]], { allow, mode: 'dontAsk' });
    expect(linked.outcomes()).toEqual(['c1 failed denied']);
    symlinkSync(join(root, 'ws-evil/s'), join(other, 'link'));
    const outer = await run(cwd, [['Read', { file_path: `${other}/link` }]], { allow, mode: 'dontAsk' });
    expect(outer.outcomes()).toEqual(['c1 failed denied']);
  });

  it('it is judged once: a link that changes between the judgement and the tool opens nothing', async () => {
    const { cwd, other, root } = place();
    const turn = {
      name: 'turns the link',
      beforeToolExecute: () => {
        symlinkSync(join(root, 'ws-evil'), join(cwd, 'd'));
      },
    };
    const allow = [`read(/${other}/**)`, 'read(./**)'];
    const replies = [[call('c1', 'Read', { file_path: 'd/s' })], 'done'];
    const { conversation } = await bench({
      tools: codingTools(),
      plugins: [permissions({ allow }), turn],
      replies,
      cwd,
    });
    await conversation.send('go').result;
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed outside_workspace']);
  });
});

it('H-267 an invalid path is refused, and nobody is asked about it', async () => {
  const { cwd } = place();
  const bad = 'a\u0000.txt';
  const { outcomes, result } = await run(
    cwd,
    [
      ['Read', { file_path: bad }],
      ['Read', { file_path: '' }],
      ['Ls', { path: bad }],
      ['Glob', { pattern: '*', path: bad }],
      ['Grep', { pattern: 'x', path: bad }],
      ['Write', { file_path: bad, content: '' }],
      ['Edit', { file_path: bad, old_string: 'a', new_string: 'b' }],
    ],
    {},
  );
  expect(result.termination).toBe('NaturalEnd');
  expect(outcomes()).toEqual([1, 2, 3, 4, 5, 6, 7].map((each) => `c${each} failed invalid_arguments`));
});
