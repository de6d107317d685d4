/** Undo with real files: the tools of the program with a scripted model, and the state of files before each request. */
import { chmod, lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Screen } from '../../../src/cli/screen.ts';
import { removeCommand } from '../../../src/cli/sessions/sessionsCommand.ts';
import { changeKey } from '../../../src/cli/undo/fileHistory.ts';
import { forkConversation } from '../../../src/index.ts';
import { jsonlStore } from '../../../src/stores/jsonl/jsonlStore.ts';
import { call, type Reply } from '../../support/scriptedReplies.ts';
import { edit, exists, read, undoing, write } from './undoBench.ts';

describe('/undo', () => {
  test('takes back the files of the last request and the request, and only those', async () => {
    const replies = [
      write('kept.txt', 'kept\n', 'w1'),
      'ok',
      read('a.txt'),
      edit('a.txt', 'one', '1'),
      write('new/deep/b.txt', 'b\n'),
      'done',
    ];
    const { types, ask, at, textOf, users, line, cwd } = await undoing(replies);
    await writeFile(at('a.txt'), 'one\r\ntwo\r\n');
    await ask('first');
    await ask('second');
    expect(await textOf('a.txt')).toBe('1\r\ntwo\r\n');
    const output = await types('/undo');
    expect(output).toContain('restored a.txt');
    expect(output).toContain('removed new/deep/b.txt');
    expect(await textOf('a.txt')).toBe('one\r\ntwo\r\n');
    expect(await exists(at('new'))).toBe(false);
    expect(await textOf('kept.txt')).toBe('kept\n');
    expect(users()).toEqual(['first']);
    expect(line.text).toBe('second');
    expect((await readdir(cwd)).sort()).toEqual(['a.txt', 'kept.txt']);
    await types('/undo');
    expect(await exists(at('kept.txt'))).toBe(false);
    expect(users()).toEqual([]);
    expect(await types('/undo')).toContain('there is no request');
  });

  test('removes a new directory with all files that were made in it', async () => {
    const replies = [write('new/a.txt', 'a\n', 'w1'), write('new/deep/b.txt', 'b\n', 'w2'), 'ok'];
    const { types, ask, cwd } = await undoing([...replies, write('new/c.txt', 'c\n', 'w3'), 'ok']);
    await ask('first');
    await ask('second');
    await types('/rewind 2 files');
    expect(await readdir(cwd)).toEqual([]);
  });

  test('takes back later changes unasked after an earlier undo of the files', async () => {
    const { types, ask, at, textOf } = await undoing([
      ...[read('a.txt', 'r1'), edit('a.txt', 'one', 'two', 'e1'), 'ok'],
      ...[read('a.txt', 'r2'), edit('a.txt', 'one', 'three', 'e2'), 'ok'],
    ]);
    await writeFile(at('a.txt'), 'one\n');
    await ask('first');
    await types('/undo files');
    expect(await textOf('a.txt')).toBe('one\n');
    await ask('second');
    expect(await textOf('a.txt')).toBe('three\n');
    expect(await types('/rewind 2 files')).toContain('restored a.txt');
    expect(await textOf('a.txt')).toBe('one\n');
  });

  test('takes back only the files, with a note to the model, or only the conversation', async () => {
    const { types, ask, at, users, notes } = await undoing([
      write('a.txt', 'a\n'),
      'ok',
      write('b.txt', 'b\n', 'w2'),
      'ok',
    ]);
    await ask('first');
    await ask('second');
    await types('/undo files');
    expect(await exists(at('b.txt'))).toBe(false);
    expect(users()).toEqual(['first', 'second']);
    expect(notes).toEqual([expect.stringContaining('b.txt')]);
    expect(await types('/undo files')).toContain('no file of it');
    await types('/undo conversation');
    expect(users()).toEqual(['first']);
    expect(await exists(at('a.txt'))).toBe(true);
  });

  test('of a request also takes back what later requests changed, those that were rewound included', async () => {
    const { types, ask, textOf, at } = await undoing([
      ...[read('a.txt'), edit('a.txt', 'one', '1', 'e1'), 'ok'],
      ...[edit('a.txt', '1', '2', 'e2'), 'ok'],
    ]);
    await writeFile(at('a.txt'), 'one\n');
    await ask('first');
    await ask('second');
    await types('/undo conversation');
    expect(await textOf('a.txt')).toBe('2\n');
    await types('/undo');
    expect(await textOf('a.txt')).toBe('one\n');
  });

  test('lists the commands that ran, because their changes are not recorded', async () => {
    const { types, ask, at } = await undoing([[call('b', 'Bash', { command: 'echo x > made.txt' })], 'ok']);
    await ask('run');
    const output = await types('/undo');
    expect(output).toContain('what commands changed is not known and stays: echo x > made.txt');
    expect(await exists(at('made.txt'))).toBe(true);
  });
});

describe('/rewind', () => {
  test('lists requests with the files that they changed, and a number takes them back', async () => {
    const { types, ask, users, at } = await undoing([
      write('a.txt', 'a\n'),
      'ok',
      'two',
      write('c.txt', 'c\n', 'w2'),
      'ok',
    ]);
    for (const text of ['first', 'second', 'third']) await ask(text);
    const list = await types('/rewind');
    expect(list).toContain('1  third  1 file changed');
    expect(list).toContain('2  second\n');
    await types('2');
    expect(users()).toEqual(['first']);
    expect(await exists(at('c.txt'))).toBe(false);
    expect(await exists(at('a.txt'))).toBe(true);
    expect(await types('/rewind 9')).toContain('there is no request 9');
    expect(await types('/rewind all of it')).toContain('/undo takes back');
  });
});

describe('a file that changed since', () => {
  async function changed() {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), write('b.txt', 'b\n'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\n');
    await talk.ask('edit');
    await writeFile(talk.at('a.txt'), 'mine\n');
    return talk;
  }

  test('is named and asked about, and nothing is taken back without an answer', async () => {
    const { types, textOf, users, at } = await changed();
    expect(await types('/undo')).toContain('a.txt has changed since the agent wrote it');
    await types('what?');
    expect(await textOf('a.txt')).toBe('mine\n');
    expect(await exists(at('b.txt'))).toBe(true);
    expect(users()).toEqual(['edit']);
    // The answer comes too late, and so does an answer without a question.
    await types('y');
    await types('/rewind 1 both all');
    expect(await textOf('a.txt')).toBe('mine\n');
  });

  test('stays after a no, and the others are taken back', async () => {
    const { types, textOf, at, users } = await changed();
    await types('/undo');
    expect(await types('n')).toContain('left as it is: a.txt');
    expect(await textOf('a.txt')).toBe('mine\n');
    expect(await exists(at('b.txt'))).toBe(false);
    expect(users()).toEqual([]);
  });

  test('that stays is offered again, and the note to the model does not list it', async () => {
    const { types, textOf, notes } = await changed();
    await types('/undo files');
    await types('n');
    expect(notes).toEqual([expect.stringMatching(/: b\.txt\. Read/)]);
    expect(await types('/undo files')).toContain('a.txt has changed since the agent wrote it');
    await types('y');
    expect(await textOf('a.txt')).toBe('one\n');
    expect(await types('/undo files')).toContain('no file of it');
  });

  test('is taken back after a yes, and the replaced version is kept', async () => {
    const { types, textOf } = await changed();
    await types('/undo');
    const output = await types('y');
    expect(await textOf('a.txt')).toBe('one\n');
    const [, copy = ''] = /your version is kept in (\S+)/.exec(output) ?? [];
    expect(await readFile(copy, 'utf8')).toBe('mine\n');
  });

  test('is asked about again if it changes between question and answer', async () => {
    const { types, textOf, at } = await changed();
    await types('/undo');
    await writeFile(at('a.txt'), 'mine too\n');
    expect(await types('y')).toContain('has changed since');
    expect(await textOf('a.txt')).toBe('mine too\n');
  });

  test('is asked about too if somebody changed it between two changes of the agent', async () => {
    const { types, ask, textOf, at } = await undoing([
      ...[read('a.txt'), edit('a.txt', 'one', '1', 'e1'), 'ok'],
      ...[read('a.txt', 'r2'), edit('a.txt', '1', '2', 'e2'), 'ok'],
    ]);
    await writeFile(at('a.txt'), 'one\n');
    await ask('first');
    await writeFile(at('a.txt'), '1\nmine\n');
    await ask('second');
    expect(await types('/rewind 2')).toContain('a.txt was also changed by somebody else');
    await types('nothing');
    expect(await textOf('a.txt')).toBe('2\nmine\n');
    // Only the last request is the agent's without doubt.
    await types('/undo');
    expect(await textOf('a.txt')).toBe('1\nmine\n');
  });

  test('is not asked about because of changes of one round', async () => {
    const both: Reply = [...edit('a.txt', 'one', '1', 'e1'), ...edit('a.txt', 'two', '2', 'e2')];
    const twice: Reply = [...write('b.txt', 'b\n', 'w1'), ...write('b.txt', 'bb\n', 'w2')];
    const { types, ask, textOf, at } = await undoing([read('a.txt'), both, twice, 'ok']);
    await writeFile(at('a.txt'), 'one\ntwo\n');
    await ask('edit');
    expect(await textOf('a.txt')).toBe('1\n2\n');
    // Two calls of one round have no order.
    expect(['b\n', 'bb\n']).toContain(await textOf('b.txt'));
    expect(await types('/undo')).not.toContain('┃');
    expect(await exists(at('b.txt'))).toBe(false);
    expect(await textOf('a.txt')).toBe('one\ntwo\n');
  });

  test('counts as changed when it was removed, and when its mode is another one', async () => {
    const { types, at, textOf } = await changed();
    await rm(at('a.txt'));
    expect(await types('/undo files')).toContain('a.txt was removed since');
    await types('y');
    expect(await textOf('a.txt')).toBe('one\n');
    const other = await undoing([read('x.sh'), edit('x.sh', 'one', '1'), 'ok']);
    await writeFile(other.at('x.sh'), 'one\n');
    await other.ask('edit');
    await chmod(other.at('x.sh'), 0o755);
    expect(await other.types('/undo')).toContain('x.sh has changed since');
  });
});

describe('the kept copy of a file', () => {
  test('has its bytes and its mode, whatever they are', async () => {
    const { types, ask, at } = await undoing([read('x.sh'), edit('x.sh', 'one', '1'), 'ok']);
    const bytes = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('#!/bin/sh\r\none\n')]);
    await writeFile(at('x.sh'), bytes);
    await chmod(at('x.sh'), 0o750);
    await ask('edit');
    await types('/undo');
    expect(await readFile(at('x.sh'))).toEqual(bytes);
    expect((await stat(at('x.sh'))).mode & 0o777).toBe(0o750);
  });

  test('is the file that a link leads to: the link stays, and a link that leads elsewhere since is not followed', async () => {
    const { types, ask, at, textOf, root } = await undoing([
      read('link'),
      edit('link', 'one', '1'),
      write('d/b.txt', 'b\n'),
      'ok',
    ]);
    await writeFile(at('real.txt'), 'one\n');
    await symlink('real.txt', at('link'));
    await ask('edit');
    expect(await textOf('real.txt')).toBe('1\n');
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'b.txt'), 'b\n');
    await rm(at('d'), { recursive: true });
    await symlink(outside, at('d'));
    const output = await types('/undo');
    expect(output).toContain('not taken back: d/b.txt, its path leads elsewhere now');
    expect(await readFile(join(outside, 'b.txt'), 'utf8')).toBe('b\n');
    expect(await textOf('real.txt')).toBe('one\n');
    expect((await lstat(at('link'))).isSymbolicLink()).toBe(true);
  });

  test('is nothing above the bound of one file, and the oldest requests go above the bound of all', async () => {
    const long = 'x'.repeat(2_000);
    const large = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok'], { limits: { fileMax: 1_000 } });
    await writeFile(large.at('a.txt'), `one${long}`);
    await large.ask('edit');
    expect(await large.types('/undo files')).toContain(
      'not taken back: a.txt, what it was is not kept: it has more than 1000 bytes',
    );
    expect(await large.textOf('a.txt')).toBe(`1${long}`);
    const many = await undoing(
      [
        ...[read('a.txt'), edit('a.txt', 'one', '1', 'e1'), 'ok'],
        ...[read('b.txt', 'r2'), edit('b.txt', 'one', '1', 'e2'), 'ok'],
      ],
      { limits: { totalMax: 3_000 } },
    );
    for (const name of ['a.txt', 'b.txt']) await writeFile(many.at(name), `one${long}`);
    await many.ask('first');
    await many.ask('second');
    const output = await many.types('/rewind 2 files');
    expect(output).toContain('restored b.txt');
    expect(output).toContain('not taken back: a.txt, what it was is no longer kept');
  });

  test('is kept of files with equal contents that change at the same time', async () => {
    const { history, cwd, at } = await undoing([]);
    const names = Array.from({ length: 8 }, (_, index) => `f${index}.txt`);
    for (const name of names) await writeFile(at(name), 'equal\n');
    const place = (name: string) => ({
      kind: 'place' as const,
      root: cwd,
      path: at(name),
      name,
      type: 'file' as const,
    });
    await Promise.all(names.map((name) => history.before('m', name, place(name))));
    const changes = await history.changes('m');
    expect(changes.map(({ before }) => before.kind)).toEqual(names.map(() => 'file'));
    const stored = await readdir(history.fileOf('m', ''));
    expect(stored).toHaveLength(2);
  });

  test('survives a restart, also one in the middle of a change, and is removed with its session', async () => {
    const first = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    await writeFile(first.at('a.txt'), 'one\n');
    await first.ask('edit');
    await first.agent.close();
    const second = await undoing([], { root: first.root });
    await second.types('/undo');
    expect(await second.textOf('a.txt')).toBe('one\n');
    // The process ended after the file was changed, and before that was recorded.
    const { history, conversation, cwd, at } = second;
    const path = at('c.txt');
    await second.ask('again');
    const [message] = conversation
      .log()
      .filter(({ type }) => type === 'user-message')
      .slice(-1);
    if (message?.type !== 'user-message') throw new Error('no message');
    const place = { kind: 'place' as const, root: cwd, path, name: 'c.txt', type: 'missing' as const };
    await history.before(message.messageId, changeKey({ conversationId: 's', callId: 'c' }), place);
    await writeFile(path, 'half');
    expect(await second.types('/undo')).toContain('c.txt has changed since');
    await second.agent.close();
    const silent = { write: () => undefined, styled: false };
    await removeCommand(['s'], join(first.root, 'sessions'), new Screen({ reply: silent, steps: silent }));
    expect(await readdir(history.directory)).toEqual([]);
  });

  test('is shared by a session and its fork: it goes with the last of them', async () => {
    const first = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    const { root, history } = first;
    await writeFile(first.at('a.txt'), 'one\n');
    await first.ask('edit');
    await first.agent.close();
    const sessions = join(root, 'sessions');
    await forkConversation(jsonlStore(sessions), 's', 'copy');
    const silent = { write: () => undefined, styled: false };
    const screen = new Screen({ reply: silent, steps: silent });
    await removeCommand(['s'], sessions, screen);
    const copy = await undoing([], { root, id: 'copy' });
    const output = await copy.types('/undo files');
    expect(output).toContain('restored a.txt');
    expect(output).not.toContain('not taken back');
    expect(await copy.textOf('a.txt')).toBe('one\n');
    await copy.agent.close();
    await removeCommand(['copy'], sessions, screen);
    expect(await readdir(history.directory)).toEqual([]);
  });

  test('of a session stays while its fork is in use', async () => {
    const first = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    await writeFile(first.at('a.txt'), 'one\n');
    await first.ask('edit');
    await first.agent.close();
    await forkConversation(jsonlStore(join(first.root, 'sessions')), 's', 'copy');
    const copy = await undoing([], { root: first.root, id: 'copy' });
    const silent = { write: () => undefined, styled: false };
    await removeCommand(['s'], join(first.root, 'sessions'), new Screen({ reply: silent, steps: silent }));
    expect(await copy.types('/undo files')).toContain('restored a.txt');
  });
});
