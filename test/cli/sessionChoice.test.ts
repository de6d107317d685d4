/**
 * The session that a word, a number or an option selects, at the edges: other directories, the open session, letters of any case, links.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, onTestFinished, test } from 'vitest';
import { completionScript } from '../../src/cli/sessions/completion.ts';
import { SessionChooser } from '../../src/cli/sessions/sessionChooser.ts';
import { sessionPlace } from '../../src/cli/sessions/sessionPlace.ts';
import {
  chosenSession,
  isPlainWord,
  nearSessions,
  newSessionId,
  shellWord,
  workingDirectory,
} from '../../src/cli/sessions/sessionStore.ts';
import { createAgent } from '../../src/index.ts';
import { scripted } from '../support/scriptedReplies.ts';

async function temporary(): Promise<string> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-choice-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  return root;
}

/** Sessions of two directories, the latest last, with their titles. */
async function choosing(current = 'open') {
  const root = await temporary();
  const place = await sessionPlace(join(root, 'store'));
  const rows: [id: string, cwd: string, title: string | undefined][] = [
    ['rent', root, 'Pay the Rent'],
    ['trip', root, undefined],
    ['far', '/', 'Far away'],
    ['42', root, 'Answers'],
    ['open', root, 'Open now'],
  ];
  let now = 1_000_000;
  const ports = { now: () => now };
  for (const [id, cwd, title] of rows) {
    now += 1_000_000;
    const agent = createAgent({ model: scripted([]), store: place.store, cwd, ports });
    const conversation = await agent.open(id);
    if (title !== undefined) await conversation.rename(title);
    await agent.close();
  }
  const agent = createAgent({ model: scripted([]), store: place.store, cwd: root, ports });
  const notes: string[] = [];
  const listed: string[] = [];
  const chooser = new SessionChooser({
    made: () => ({ agent, cwd: root, sessions: place }) as never,
    currentId: () => current,
    say: (_, text) => void notes.push(text),
    terminal: {
      commit: (lines) => void listed.push(...lines.map(({ spans }) => spans.map(([, text]) => text.trim()).join('|'))),
    },
  });
  return { root, place, chooser, notes, listed };
}

describe('a list to choose from', () => {
  test('has the other sessions of the directory, the latest first, each by its title or its id', async () => {
    const { chooser, listed, notes } = await choosing();
    await chooser.list();
    expect(
      listed.map((row) =>
        row
          .split('|')
          .filter((_, at) => at !== 1)
          .slice(0, 2),
      ),
    ).toEqual([
      ['1', 'Answers'],
      ['2', 'trip'],
      ['3', 'Pay the Rent'],
    ]);
    expect(notes).toEqual(['a number opens one of them, /resume and a word searches']);
    expect(chooser.take(' 3 ')).toBe('/resume rent');
  });

  test.each([
    ['rent', ['rent']],
    ['RENT', ['rent']],
    ['pay the', ['rent']],
    ['r', ['42', 'trip', 'rent']],
    ['open', []],
    ['far', []],
  ])('by the word %j has those whose title or id contains it, in letters of any case: %j', async (query, ids) => {
    const { chooser, notes } = await choosing();
    await chooser.list(query);
    const chosen: (string | undefined)[] = [];
    for (const [index] of ids.entries()) {
      await chooser.list(query);
      chosen.push(chooser.take(String(index + 1)));
    }
    expect(chosen).toEqual(ids.map((id) => `/resume ${id}`));
    if (ids.length === 0) expect(notes).toEqual(['there is no other session of this directory']);
  });
});

describe('/resume with', () => {
  test.each([
    ['1', '42'],
    ['2', 'trip'],
    ['3', 'rent'],
    ['trip', 'trip'],
    ['far', 'far'],
    // A number without a row is an id.
    ['42', '42'],
    ['open', 'open'],
  ])('%j means the session %s', async (choice, id) => {
    expect(await (await choosing()).chooser.find(choice)).toBe(id);
  });

  test('a number means the row of the last list', async () => {
    const { chooser } = await choosing();
    expect(await chooser.find('r')).toBeUndefined();
    await chooser.list('rent');
    expect(await chooser.find('1')).toBe('rent');
  });

  test('a number that is the id of a session means that session, also if it has a row', async () => {
    const { chooser, place, root } = await choosing();
    const agent = createAgent({ model: scripted([]), store: place.store, cwd: root });
    await agent.open('3');
    await agent.close();
    await chooser.list();
    expect(chooser.take('1')).toBe('/resume 3');
    expect(await chooser.find('3')).toBe('3');
  });

  test('a number that is neither a row nor an id is an error', async () => {
    const { chooser } = await choosing();
    await expect(chooser.find('57')).rejects.toThrow('there is no session 57');
  });

  test('a word that finds sessions lists them, and one that finds none is an error with similar names', async () => {
    const { chooser, listed } = await choosing();
    expect(await chooser.find('ANSWER')).toBeUndefined();
    expect(listed).toHaveLength(1);
    expect(chooser.take('1')).toBe('/resume 42');
    await expect(chooser.find('trpi')).rejects.toThrow('Did you mean trip?');
  });
});

describe('options', () => {
  test('--continue means the latest session of the directory that has a title or a turn', async () => {
    const { root, place } = await choosing();
    const agent = createAgent({ model: scripted([]), store: place.store, cwd: root });
    await agent.open('left without a message');
    await agent.close();
    expect(await chosenSession({ continue: true }, place, root)).toBe('open');
    expect(await chosenSession({ continue: true }, place, '/')).toBe('far');
    await expect(chosenSession({ continue: true }, place, join(root, 'none'))).rejects.toThrow(
      `there is no session to continue: none in ${place.path} works in ${join(root, 'none')}`,
    );
  });

  test.each([
    [{ session: 'rent', continue: true }],
    [{ session: 'rent', resume: 'rent' }],
    [{ resume: true as const, continue: true }],
  ])('%j contradict each other', async (choice) => {
    const { root, place } = await choosing();
    await expect(chosenSession(choice, place, root)).rejects.toThrow('give one of --session, --continue and --resume');
  });

  test('that name no session are answered with the three latest', async () => {
    const { place } = await choosing();
    expect(await nearSessions(place, 'holiday')).toBe(' The latest are open, 42, far.');
    expect(await nearSessions(await sessionPlace(join(await temporary(), 'none')), 'x')).toBe('');
  });

  test('--cwd is followed to the real directory, and anything else is an error', async () => {
    const root = await temporary();
    await mkdir(join(root, 'real'));
    await symlink('real', join(root, 'link'));
    await writeFile(join(root, 'file'), '');
    expect(await workingDirectory(join(root, 'link'))).toBe(join(root, 'real'));
    expect(await workingDirectory()).toBe(await realpath('.'));
    await expect(workingDirectory(join(root, 'file'))).rejects.toThrow(`${join(root, 'file')} is not a directory`);
    await expect(workingDirectory(join(root, 'no'))).rejects.toThrow(`${join(root, 'no')} does not exist`);
  });

  test('--store sqlite: without a path is a directory of that name', async () => {
    for (const store of ['sqlite:', 'sqlite', 'SQLITE:x', 'a/sqlite:x'])
      expect((await sessionPlace(store)).path).toBe(join(process.cwd(), store));
  });
});

test('the id of a new session has its time to the second, and another end each time', () => {
  const at = new Date('2026-01-02T03:04:05.678Z');
  const ids = [newSessionId(at), newSessionId(at)];
  for (const id of ids) expect(id).toMatch(/^20260102-030405-[0-9a-f]{6}$/);
  expect(ids[0]).not.toBe(ids[1]);
});

test.each(['a', 'a-b', 'A.b@c%d+e:f', '@a', '-a', ':a', 'a b', "it's", '', '$x', 'ü', 'a\nb', '~', 'a=b', '#a'])(
  'the word %j is read by a shell as it is',
  (word) => {
    const script = `printf %s ${shellWord(word)}`;
    if (word !== '' && !word.startsWith('-'))
      expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe(word);
    expect(isPlainWord(word)).toBe(['a', 'a-b', 'A.b@c%d+e:f', '@a'].includes(word));
  },
);

describe('completion', () => {
  const program = new Command('runchart')
    .option('-r, --resume [id]')
    .option('--store <place>')
    .option('--cwd <directory>');
  for (const name of ['rm', 'replay', 'inspect', 'serve'])
    program.command(name).option('--store <place>').option('--open [page]');

  test.each([
    ['rm ""', true],
    ['replay ""', true],
    ['inspect ""', true],
    ['serve ""', false],
    ['-r ""', true],
    ['--resume ""', true],
    ['run --session ""', true],
  ])('in bash after %s offers ids: %s', (typed, offers) => {
    const script = `${completionScript('bash', program)}
      command() { printf 'trip\\nrent\\n'; }
      COMP_WORDS=(runchart ${typed}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _runchart; echo "\${COMPREPLY[@]}"`;
    expect(execFileSync('bash', ['-c', script], { encoding: 'utf8' }).includes('trip')).toBe(offers);
  });

  test('in fish and zsh names the same commands, directories for places, and values for options that have one', () => {
    const fish = completionScript('fish', program);
    expect(fish).toContain("'__fish_seen_subcommand_from rm replay inspect' -a");
    expect(fish).toContain("-l store -xa '(__fish_complete_directories)'");
    expect(fish).toContain("-l cwd -xa '(__fish_complete_directories)'");
    expect(fish).toMatch(/from serve' -l open -x\n/);
    expect(fish).toContain("-s r -l resume -xa '(");
    const zsh = completionScript('zsh', program);
    expect(zsh).toContain('rm|replay|inspect) offered+=');
    expect(zsh).toContain('-r|--resume|--session) offered=');
    expect(zsh).toContain('--store|--cwd) _files -/');
  });
});
