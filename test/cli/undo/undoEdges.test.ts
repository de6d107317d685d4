/** Undo at its edges: names outside of the directory, calls without a record, answers, lists, and states that cannot be restored. */
import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FileHistory, stateOf } from '../../../src/cli/undo/fileHistory.ts';
import { restoreFile, undoableRequests, undoPlan } from '../../../src/cli/undo/undoPlan.ts';
import type { Json } from '../../../src/index.ts';
import { call } from '../../support/scriptedReplies.ts';
import { edit, exists, read, undoing, write } from './undoBench.ts';

type Talk = Awaited<ReturnType<typeof undoing>>;

/** The plan to undo the last request. */
async function planOf({ conversation, history, cwd }: Talk) {
  const [request] = undoableRequests(conversation.log());
  if (!request) throw new Error('no request');
  return undoPlan(conversation.log(), request, history, cwd);
}

describe('a plan', () => {
  test('names a file in the directory by its relative path, and another one by its whole path', async () => {
    const talk = await undoing([write('a/b.txt', 'x\n'), 'ok']);
    await talk.ask('go');
    const [message] = undoableRequests(talk.conversation.log());
    const outside = join(talk.root, 'outside.txt');
    const place = { kind: 'place' as const, root: talk.root, path: outside, name: outside, type: 'missing' as const };
    await talk.history.before(message?.messageId ?? '', 'k', place);
    await writeFile(outside, 'x');
    const { unchanged, changedSince, lost } = await planOf(talk);
    const names = [...unchanged, ...changedSince, ...lost].map(({ name }) => name);
    expect(names).toEqual(['a/b.txt', outside]);
  });

  test.each<[string, string, Json]>([
    ['Write', 'succeeded', { file_path: 'a.txt', content: 'x\n' }],
    ['Edit', 'succeeded', { file_path: 'b.txt', old_string: 'one', new_string: '1' }],
    ['MultiEdit', 'succeeded', { file_path: 'b.txt', edits: [{ old_string: 'one', new_string: '1' }] }],
    ['Edit', 'failed', { file_path: 'b.txt', old_string: 'nothing', new_string: '1' }],
    ['Read', 'succeeded', { file_path: 'b.txt' }],
  ])('reports of a %s without a record that %s whether its file is lost', async (name, outcome, args) => {
    const talk = await undoing([read('b.txt'), [call('c', name, args)], 'ok']);
    await writeFile(talk.at('b.txt'), 'one\n');
    await talk.ask('go');
    const result = talk.conversation.log().find((entry) => entry.type === 'tool-result' && entry.callId === 'c');
    expect(result).toMatchObject({ outcome });
    await rm(talk.history.directory, { recursive: true, force: true });
    const { lost } = await planOf(talk);
    const isLost = name !== 'Read' && outcome === 'succeeded';
    const path = (args as { file_path: string }).file_path;
    expect(lost).toEqual(isLost ? [{ name: path, why: 'what it was is no longer kept' }] : []);
  });

  test('names only what is recorded of the request and the later ones', async () => {
    const talk = await undoing([
      ...[write('a.txt', 'a\n', 'w1'), 'ok', [call('b1', 'Bash', { command: 'echo first' })], 'ok'],
      ...[write('b.txt', 'b\n', 'x-w1'), [call('b2', 'Bash', { command: 'echo last' })], 'ok'],
    ]);
    for (const text of ['one', 'two', 'three']) await talk.ask(text);
    const requests = undoableRequests(talk.conversation.log());
    expect(requests.map(({ text }) => text)).toEqual(['three', 'two', 'one']);
    const plan = await planOf(talk);
    expect(plan.requests.map(({ text }) => text)).toEqual(['three']);
    expect([plan.commands, plan.unchanged.map(({ name }) => name), plan.lost]).toEqual([['echo last'], ['b.txt'], []]);
    const [, second] = requests;
    if (!second) throw new Error('no second request');
    const wider = await undoPlan(talk.conversation.log(), second, talk.history, talk.cwd);
    expect(wider.commands).toEqual(['echo first', 'echo last']);
    await rm(talk.history.directory, { recursive: true });
    expect((await planOf(talk)).lost.map(({ name }) => name)).toEqual(['b.txt']);
  });

  test('names a command as it ran, with the arguments that a person gave it', async () => {
    const talk = await undoing([[call('b', 'Bash', { command: 'echo model' })], 'ok']);
    await talk.ask('go');
    const args = { command: 'echo person' };
    const entries = talk.conversation
      .log()
      .map((entry) => (entry.type === 'tool-started' ? { ...entry, args } : entry));
    const [request] = undoableRequests(entries);
    if (!request) throw new Error('no request');
    expect((await undoPlan(entries, request, talk.history, talk.cwd)).commands).toEqual(['echo person']);
  });

  test('keeps in mind that somebody else changed a file, however often the agent changed it afterwards', async () => {
    const talk = await undoing(['ok']);
    await talk.ask('go');
    const { messageId = '' } = undoableRequests(talk.conversation.log())[0] ?? {};
    const path = talk.at('a.txt');
    const place = { kind: 'place' as const, root: talk.cwd, path, name: 'a.txt', type: 'file' as const };
    await writeFile(path, 'first\n');
    for (const key of ['k1', 'k2', 'k3']) {
      if (key === 'k2') await writeFile(path, 'mine\n');
      await talk.history.before(messageId, key, place);
      await writeFile(path, `${key}\n`);
      await talk.history.after(messageId, key, place);
    }
    const { unchanged, changedSince } = await planOf(talk);
    expect([unchanged, changedSince.map(({ name, isMixed }) => [name, isMixed])]).toEqual([[], [['a.txt', true]]]);
  });

  test('does not count a message that steered a request as a request', async () => {
    const talk = await undoing([write('a.txt', 'a\n'), 'ok']);
    await talk.ask('go');
    const log = talk.conversation.log();
    const message = log.find((entry) => entry.type === 'user-message');
    if (message?.type !== 'user-message') throw new Error('no message');
    const steer = { ...message, kind: 'steer' as const, messageId: 'steer', seq: message.seq + 1 };
    const entries = [
      ...log.slice(0, steer.seq),
      steer,
      ...log.slice(steer.seq).map((entry) => ({ ...entry, seq: entry.seq + 1 })),
    ];
    const requests = undoableRequests(entries);
    expect(requests.map(({ messageId }) => messageId)).toEqual([message.messageId]);
    const [request] = requests;
    if (!request) throw new Error('no request');
    const plan = await undoPlan(entries, request, talk.history, talk.cwd);
    expect(plan.requests.map(({ messageId }) => messageId)).toEqual([message.messageId]);
  });

  test('does not take the record of a call for that of another one whose id ends alike', async () => {
    const talk = await undoing([[...write('a.txt', 'a\n', 'w1'), ...write('b.txt', 'b\n', 'x-w1')], 'ok']);
    await talk.ask('go');
    const { changes } = await planOf(talk);
    await rm(talk.history.directory, { recursive: true });
    for (const [messageId, ofRequest] of changes)
      for (const { key, path } of ofRequest.filter((change) => change.key.endsWith('x-w1')))
        await talk.history.before(messageId, key, { kind: 'place', root: talk.cwd, path, name: path, type: 'missing' });
    expect((await planOf(talk)).lost.map(({ name }) => name)).toEqual(['a.txt']);
  });

  test('does not restore over a path that is no longer a file, and reports the reason', async () => {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\n');
    await talk.ask('go');
    await rm(talk.at('a.txt'));
    await mkdir(talk.at('a.txt'));
    const { lost, unchanged, changedSince } = await planOf(talk);
    expect([lost.map(({ name }) => name), unchanged, changedSince]).toEqual([['a.txt'], [], []]);
    expect(lost[0]?.why).not.toBe('');
  });
});

describe('a file that is restored', () => {
  async function planned() {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\n');
    await chmod(talk.at('a.txt'), 0o750);
    await talk.ask('go');
    return talk;
  }
  const firstOf = async (talk: Talk) => {
    const { unchanged, changedSince } = await planOf(talk);
    const [file] = [...unchanged, ...changedSince];
    if (!file) throw new Error('no file');
    return file;
  };

  test('is left alone if it changed after the plan', async () => {
    const talk = await planned();
    const file = await firstOf(talk);
    await writeFile(talk.at('a.txt'), 'mine\n');
    const restored = await restoreFile(file, talk.history, talk.cwd);
    expect(restored).toEqual({ name: 'a.txt', kind: 'failed', why: 'it changed just now: try again' });
    expect(await talk.textOf('a.txt')).toBe('mine\n');
  });

  test('stays if a version of the person is too large to be kept, and the reason is named', async () => {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok'], { limits: { fileMax: 1_000 } });
    await writeFile(talk.at('a.txt'), 'one\n');
    await talk.ask('edit it');
    const large = 'x'.repeat(1_001);
    await writeFile(talk.at('a.txt'), large);
    await talk.types('/undo files');
    expect(await talk.types('y')).toBe(
      '! not taken back: a.txt, what it is now cannot be kept: it has more than 1000 bytes',
    );
    expect(await talk.textOf('a.txt')).toBe(large);
  });

  test('has its mode again after it was removed', async () => {
    const talk = await planned();
    await rm(talk.at('a.txt'));
    const file = await firstOf(talk);
    expect(await restoreFile(file, talk.history, talk.cwd)).toEqual({ name: 'a.txt', kind: 'restored' });
    expect((await stat(talk.at('a.txt'))).mode & 0o777).toBe(0o750);
    expect(await talk.textOf('a.txt')).toBe('one\n');
  });

  test('fails if its content is gone after the plan', async () => {
    const talk = await planned();
    const file = await firstOf(talk);
    await rm(talk.history.directory, { recursive: true });
    const restored = await restoreFile(file, talk.history, talk.cwd);
    expect(restored).toMatchObject({ kind: 'failed', why: 'what it was is no longer kept' });
    expect(await talk.textOf('a.txt')).toBe('1\n');
  });
});

describe('the report of an undo', () => {
  test('of commands names three, and the number of the others', async () => {
    for (const [count, rest] of [
      [3, ''],
      [4, ' and 1 other'],
      [5, ' and 2 others'],
    ] as const) {
      const calls = Array.from({ length: count }, (_, at) => call(`b${at}`, 'Bash', { command: `echo ${at}` }));
      const talk = await undoing([...calls.map((each) => [each]), 'ok']);
      await talk.ask('go');
      const line = (await talk.types('/undo files')).split('\n').at(-1);
      expect(line).toBe(`! what commands changed is not known and stays: echo 0 · echo 1 · echo 2${rest}`);
    }
  });

  test('reaches the model only if the conversation continues, and a version of the agent is no copy of the person', async () => {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\n');
    await talk.ask('go');
    expect(await talk.types('/undo')).toContain('restored a.txt\n');
    expect(talk.notes).toEqual([]);
  });

  test('in a list counts each file once, and none that was taken back', async () => {
    const twice = [...edit('a.txt', 'one', '1', 'e1'), ...edit('a.txt', 'two', '2', 'e2')];
    const talk = await undoing([read('a.txt'), twice, write('b.txt', 'b\n'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\ntwo\n');
    await talk.ask('go');
    expect(await talk.types('/rewind')).toMatch(/^1 {2}go {2}2 files changed\n/);
    await talk.types('/undo files');
    expect(await talk.types('/rewind')).toMatch(/^1 {2}go\n/);
  });

  test('in a list are the last ten requests, and each can be chosen by its number', async () => {
    const texts = Array.from({ length: 12 }, (_, at) => `request ${at + 1}`);
    const talk = await undoing(texts.map(() => 'ok'));
    for (const text of texts) await talk.ask(text);
    const rows = (await talk.types('/rewind')).split('\n').slice(0, -1);
    expect(rows).toEqual(
      texts
        .slice(2)
        .reverse()
        .map((text, at) => `${at + 1}  ${text}`),
    );
    await talk.types('10');
    expect(talk.users()).toEqual(texts.slice(0, 2));
    expect(talk.line.text).toBe('request 3');
  });

  test.each([
    '/undo all',
    '/undo files now',
    '/undo files conversation',
    '/rewind x',
    '/rewind -1',
    '/rewind 1 x',
    '/rewind 1 both all more',
    '/rewind 1000',
  ])('to %s is how the commands are written', async (typed) => {
    const talk = await undoing([write('a.txt', 'a\n'), 'ok']);
    await talk.ask('go');
    expect(await talk.types(typed)).toMatch(/^\/undo takes back the last request/);
    expect([talk.users(), await exists(talk.at('a.txt'))]).toEqual([['go'], true]);
  });

  test.each(['/rewind 0', '/rewind 2', '/rewind 999'])('to %s is that there is no such request', async (typed) => {
    const talk = await undoing(['ok']);
    await talk.ask('go');
    expect(await talk.types(typed)).toBe(`there is no request ${typed.split(' ')[1]}`);
    expect(talk.users()).toEqual(['go']);
  });

  test.each(['active', 'cancelling'])('while the conversation is %s is to wait', async (status) => {
    const talk = await undoing([write('a.txt', 'a\n'), 'ok']);
    await talk.ask('go');
    const busy = Object.create(talk.conversation, { status: { value: status } }) as Talk['conversation'];
    for (const what of ['', 'files', 'conversation']) await talk.commands.undo(what, busy);
    expect(talk.lines).toEqual(Array.from({ length: 3 }, () => 'a request is under way: Escape stops it'));
    expect(await exists(talk.at('a.txt'))).toBe(true);
  });
});

describe('an answer', () => {
  test.each([
    ['y', 'one\n'],
    ['YES ', 'one\n'],
    ['n', 'mine\n'],
    [' no', 'mine\n'],
  ])('%j to the question about a changed file leaves %j in it, and the others are taken back', async (answer, left) => {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), write('b.txt', 'b\n'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\n');
    await talk.ask('go');
    await writeFile(talk.at('a.txt'), 'mine\n');
    await talk.types('/undo');
    await talk.types(answer);
    expect([await talk.textOf('a.txt'), await exists(talk.at('b.txt')), talk.users()]).toEqual([left, false, []]);
  });

  test('to an earlier question counts for nothing after another line', async () => {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\n');
    await talk.ask('go');
    await writeFile(talk.at('a.txt'), 'mine\n');
    await talk.types('/undo');
    await talk.types('hello');
    for (const typed of ['/rewind 1 both all', '/rewind 1 both others'])
      expect(await talk.types(typed)).toContain('take back these files too?');
    expect(await talk.textOf('a.txt')).toBe('mine\n');
  });
});

test('a tool works as without its record where the history cannot be written, and undo reports that no record is kept', async () => {
  const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
  await mkdir(join(talk.root, 'sessions'), { recursive: true });
  await writeFile(talk.history.directory, 'no directory');
  await writeFile(talk.at('a.txt'), 'one\n');
  await talk.ask('go');
  expect(await readFile(talk.at('a.txt'), 'utf8')).toBe('1\n');
  expect(await talk.types('/undo files')).toContain('not taken back: a.txt, what it was is no longer kept');
});

test('changes of one call in two histories of one directory are one list', async () => {
  const talk = await undoing([]);
  await writeFile(talk.at('a.txt'), 'one\n');
  const place = {
    kind: 'place' as const,
    root: talk.cwd,
    path: talk.at('a.txt'),
    name: 'a.txt',
    type: 'file' as const,
  };
  await talk.history.before('m', 'k', place);
  await writeFile(talk.at('a.txt'), 'two\n');
  const other = new FileHistory(talk.history.directory);
  await other.after('m', 'k', place);
  const [change] = await talk.history.changes('m');
  expect(change?.after).toEqual(await stateOf(place));
  await other.markUndone('m', change ? [change] : []);
  expect((await talk.history.changes('m'))[0]).toMatchObject({ isUndone: true, after: change?.after });
});

describe('a question or a list of undo is ended by the next line', () => {
  test.each<[string, string, string]>([
    ['a list', 'another message', '1'],
    ['a list', '', '1'],
    ['a list', '/cost', '1'],
    ['a list', '1', '1'],
    ['a question', 'another message', 'y'],
    ['a question', '', 'n'],
    ['a question', '/cost', 'yes'],
    ['a question', 'n', 'n'],
  ])('%s, after %j: %j is a message', async (asked, between, late) => {
    const talk = await undoing([read('a.txt'), edit('a.txt', 'one', '1'), 'ok']);
    await writeFile(talk.at('a.txt'), 'one\n');
    await talk.ask('go');
    await writeFile(talk.at('a.txt'), 'mine\n');
    await talk.types(asked === 'a list' ? '/rewind' : '/undo');
    talk.commands.take(between);
    expect(talk.commands.take(late)).toBeUndefined();
  });
});
