/** Sessions by name: selection, similar names, lists, completion and removal. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, onTestFinished, test } from 'vitest';
import { replayCommand } from '../../src/cli/replay/replayCommand.ts';
import { Screen } from '../../src/cli/screen.ts';
import { completionScript } from '../../src/cli/sessions/completion.ts';
import { sessionPlace } from '../../src/cli/sessions/sessionPlace.ts';
import { chosenSession, nearNames } from '../../src/cli/sessions/sessionStore.ts';
import {
  removeCommand,
  type SessionsOptions,
  sessionsCommand,
  sessionText,
} from '../../src/cli/sessions/sessionsCommand.ts';
import { createAgent } from '../../src/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { hasSqlite } from '../stores/sqlitePlace.ts';
import { scripted } from '../support/scriptedReplies.ts';

/** Two sessions of one directory and one of another, the latest last. `scheme`: the beginning of `--store`. */
async function sessions(scheme = '') {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-sessions-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const store = scheme + join(root, 'store');
  const place = await sessionPlace(store);
  const places: [string, string][] = [
    ['rent', root],
    ['trip', root],
    ['far', '/'],
  ];
  for (const [at, [id, cwd]] of places.entries()) {
    const ports = { now: () => 1_000_000 * (at + 1) };
    const agent = createAgent({ model: scripted(['hello']), store: place.store, cwd, ports });
    await (await agent.open(id)).send('hi').result;
    await agent.close();
  }
  await place.close();
  let printed = '';
  const output = {
    write(text: string) {
      printed += text;
    },
    styled: false,
  };
  const screen = new Screen({ reply: output, steps: output });
  const outputOf = async (act: Promise<unknown>) => {
    printed = '';
    return [await act, printed];
  };
  const list = (options: SessionsOptions = {}) =>
    outputOf(sessionsCommand({ store, cwd: root, ...options }, screen, 8_000_000_000));
  const remove = (...ids: string[]) => outputOf(removeCommand(ids, store, screen));
  const replay = (id: string) =>
    outputOf(replayCommand(id, { store }, { shown: output, notes: output }, new AbortController().signal));
  return { root, store, list, remove, replay };
}

describe('sessions', () => {
  test.each(['', ...(hasSqlite ? ['sqlite:'] : [])])(
    'with --store %s<path> they are listed by directory, the latest first, shown, and removed permanently',
    async (scheme) => {
      const { root, list, remove, replay } = await sessions(scheme);
      expect((await replay('trip'))[1]).toContain('hello');
      await expect(replay('trpi')).rejects.toThrow('Did you mean trip?');
      expect(await list({ ids: true })).toEqual([0, 'trip\nrent\n']);
      expect(await list({ ids: true, all: true })).toEqual([0, 'far\ntrip\nrent\n']);
      expect((await list())[1]).toMatch(/^trip +92 d +1 turn {2}cost unknown {2}idle {2}hi\nrent +92 d /);
      const rows = String((await list({ json: true }))[1])
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(rows).toMatchObject([{ id: 'trip', cwd: root, turns: 1 }, { id: 'rent' }]);
      expect(await remove('rent', 'rent')).toEqual([0, 'removed rent\n']);
      expect(await list({ ids: true })).toEqual([0, 'trip\n']);
      expect((await list({ cwd: tmpdir() }))[1]).toContain('no session in');
    },
  );

  test('none is removed if one name is wrong, and one in use stays', async () => {
    const { store, list, remove } = await sessions();
    await expect(remove('rent', 'trpi')).rejects.toThrow(`there is no session trpi in ${store}. Did you mean trip?`);
    const held = await jsonlStore(store).open('trip');
    const [code, output] = await remove('rent', 'trip');
    await held.close();
    expect(code).toBe(6);
    expect(output).toMatch(/^removed rent\ntrip is in use and stays: /);
    expect(await list({ ids: true })).toEqual([0, 'trip\n']);
  });

  test('they are selected by name, as the latest of the directory, or created', async () => {
    const { root, store } = await sessions();
    const of = (choice: object, cwd = root) => sessionPlace(store).then((place) => chosenSession(choice, place, cwd));
    expect(await of({})).toBeUndefined();
    expect(await of({ continue: true })).toBe('trip');
    expect([
      await of({ resume: 'rent' }),
      await of({ session: 'rent' }),
      await of({ session: 'new', new: true }),
    ]).toEqual(['rent', 'rent', 'new']);
    for (const [choice, wrong] of [
      [{ resume: 'rnet' }, 'there is no session rnet in'],
      [{ session: 'rnet' }, '--new begins one of that name'],
      [{ session: 'rent', new: true }, 'exists already'],
      [{ new: true }, 'give both'],
      [{ resume: true }, 'The latest are'],
      [{ resume: 'rent', continue: true }, 'give one of'],
    ] as const)
      await expect(of(choice)).rejects.toThrow(wrong);
    await expect(of({ continue: true }, '/nowhere')).rejects.toThrow('no session to continue');
  });

  test('a failed session is marked, and a session without a turn has no cost', () => {
    const info = { id: 'a', cwd: '/', createdAt: 0, updatedAt: 0, turns: 0, costUsd: 0, status: 'idle' as const };
    const rowOf = (more: object) => sessionText({ ...info, ...more }, 0).replaceAll(/ {2,}/g, '|');
    expect(rowOf({ lastCause: 'model' })).toBe('a|0 s|0 turns|no cost|failed (model)');
    expect(rowOf({ lastCause: 'cancelled', turns: 1 })).toBe('a|0 s|1 turn|$0|cancelled');
    expect(rowOf({ lastCause: 'crash', title: 'Fix it' })).toBe('a|0 s|0 turns|no cost|interrupted|Fix it');
    expect(rowOf({ lastCause: 'end_turn', turns: 1, costUsd: 0.001 })).toBe('a|0 s|1 turn|$0.001000|idle');
  });

  test('one whose process was killed reads interrupted, and --continue passes over one without a message', async () => {
    const { root, store, list } = await sessions();
    const at = { at: 3_000_000, conversationId: 'killed' };
    const handle = await jsonlStore(store).open('killed');
    const first = { seq: 0, ...at, runId: null, type: 'conversation', schema: 1, cwd: root };
    await handle.append([first, { seq: 1, ...at, runId: 'r', type: 'run-started' }] as never, 0);
    await handle.close();
    expect((await list())[1]).toMatch(/^killed +\d+ d +0 turns {2}no cost {2}interrupted\n/);
    expect(await chosenSession({ continue: true }, await sessionPlace(store), root)).toBe('trip');
  });

  test('shells complete them, with commands and options', () => {
    const program = new Command('runchart').option('-r, --resume [id]');
    program.command('serve').option('--port <number>');
    program.command('rm');
    const bash = `${completionScript('bash', program)}
      command() { printf 'trip\\nrent\\n'; }
      try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _runchart; echo "\${COMPREPLY[@]}"; }
      try runchart --resume re; try runchart s; try runchart rm t; try runchart serve --; try runchart --`;
    expect(execFileSync('bash', ['-c', bash], { encoding: 'utf8' }).split('\n')).toEqual([
      'rent',
      'serve',
      'trip',
      '--port',
      '--resume',
      '',
    ]);
    expect(() => completionScript('cmd', program)).toThrow('one of bash, zsh, fish');
  });
});

test('an id with shell syntax is listed, and not offered for completion', async () => {
  const { root, store, list } = await sessions();
  const odd = ['$(touch ran)', '`touch ran`', 'a b', '--store=x', ';touch ran', "it's"];
  for (const id of odd) {
    const agent = createAgent({ model: scripted(['hello']), store: jsonlStore(store), cwd: root });
    await (await agent.open(id)).send('hi').result;
    await agent.close();
  }
  const [, all] = await list();
  for (const id of odd) expect(all).toContain(id);
  const [, ids] = await list({ ids: true });
  expect(String(ids).trim().split('\n').sort()).toEqual(['rent', 'trip']);
  const program = new Command('runchart').option('-r, --resume [id]');
  program.command('rm');
  const script = `${completionScript('bash', program)}
    command() { printf '%s' "$ids"; }
    COMP_WORDS=(runchart -r ''); COMP_CWORD=2; _runchart; printf '%s\\n' "\${COMPREPLY[@]}"; ls ran 2>&1`;
  const env = { PATH: process.env.PATH, ids: String(ids) };
  const offered = spawnSync('bash', ['-c', script], { cwd: root, encoding: 'utf8', env }).stdout;
  expect(offered.split('\n').slice(0, 2).sort()).toEqual(['rent', 'trip']);
  expect(offered).toMatch(/No such file/);
});

test('a directory or an id of several lines is one line of the list', async () => {
  const session = {
    id: 'a\nrent',
    cwd: '/x\ntrip',
    status: 'idle',
    turns: 1,
    costUsd: 0,
    createdAt: 0,
    updatedAt: 0,
  } as const;
  expect(sessionText(session, 0, true)).not.toContain('\n');
  expect(sessionText(session, 0, true)).toContain('/x\\ntrip');
});

describe.each([
  [
    'zsh',
    // The interface of the completion system of zsh.
    `compdef() { :; }; _files() { print directories; }; compadd() { print -r -- "\${(@P)2}"; }`,
    `try() { words=("$@"); CURRENT=$#; _runchart; }
     try runchart -r ''; try runchart --permission-mode ''; try runchart --cwd ''; try runchart serve ''; try runchart rm ''; try runchart ''`,
  ],
  [
    'fish',
    '',
    `for typed in '-r ' '--permission-mode ' '--cwd /nowhere' 'serve --' 'rm ' '';  string join -- ' ' (complete -C"runchart $typed" | string split -f1 \\t | sort); echo; end`,
  ],
] as const)('completion in %s', (shell, before, after) => {
  const program = new Command('runchart')
    .option('-r, --resume [id]')
    .option('--permission-mode <mode>')
    .option('--cwd <directory>');
  program.command('serve').option('--port <number>');
  program.command('rm');
  const completions = async (): Promise<string[]> => {
    const bin = await mkdtemp(join(tmpdir(), 'runchart-bin-'));
    onTestFinished(() => rm(bin, { recursive: true, force: true }));
    await writeFile(join(bin, 'runchart'), "#!/bin/sh\nprintf 'trip\\nrent\\n'\n", { mode: 0o755 });
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: bin };
    const script = `${before}\n${completionScript(shell, program)}\n${after}`;
    return execFileSync(shell, [shell === 'zsh' ? '-f' : '-N', '-c', script], { encoding: 'utf8', env })
      .split('\n')
      .filter((line) => line !== '');
  };

  test('the script contains commands, options and the source of ids', () => {
    const script = completionScript(shell, program);
    for (const word of ['serve', 'rm', 'port', 'resume', 'sessions --all --ids']) expect(script).toContain(word);
  });

  test.skipIf(spawnSync(shell, ['-c', 'true']).status !== 0)(
    'ids, modes, directories, options and commands are offered',
    async () => {
      const words = (await completions()).map((line) => line.split(' ').sort().join(' '));
      expect(words[0]).toBe('rent trip');
      expect(words[1]).toBe('acceptEdits bypass default dontAsk plan');
      if (shell === 'zsh') expect(words[2]).toBe('directories');
      expect(words).toContain('--port');
      expect(words).toContain('rent trip');
      expect(words.at(-1)).toContain('rm serve');
    },
  );
});

describe('similar names', () => {
  const names = ['rent', 'renovation', 'trip-2026', '20261122-170000-a1b2c3', '20261122-170000-ffffff', 'ünïcode 🎉'];

  test.for<[string, string, string[]]>([
    ['two letters swapped', 'rnet', ['rent']],
    ['a letter left out', 'ret', ['rent']],
    ['a letter too many', 'rennt', ['rent']],
    ['another letter', 'vent', ['rent']],
    ['other cases', 'TRIP-2026', ['trip-2026']],
    ['a prefix alone', 'ren', ['rent', 'renovation']],
    ['a time alone', '20261122', ['20261122-170000-a1b2c3', '20261122-170000-ffffff']],
    ['the nearest of two', '20261122-170000-a1b2c4', ['20261122-170000-a1b2c3', '20261122-170000-ffffff']],
    ['an accent', 'unïcode 🎉', ['ünïcode 🎉']],
    ['nothing like it', 'holiday', []],
    ['too many letters changed', 'trap-1999', []],
    ['no name at all', '', []],
  ])('%s', ([, name, near]) => {
    expect(nearNames(name, names)).toEqual(near);
  });

  test('there are at most three, the most similar first', () => {
    const many = ['abcdef3', 'abcxxz', 'abcdef1', 'abcdef2', 'abcdxf'];
    expect(nearNames('abcdef', many)).toEqual(['abcdef3', 'abcdef1', 'abcdef2']);
    expect(nearNames('abcdxx', many)).toEqual(['abcdxf', 'abcxxz']);
  });
});
