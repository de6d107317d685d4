/** `runchart replay` as a process, on logs of real runs. */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { project } from '../../src/projector/index.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { hasTerminals, start, startOnTerminal, storedEntries, temporaryDirectory } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { explains, hangs, place, QUESTION, readsMainGo } from './runDirectory.ts';

const CLIPBOARD = '\u001b]52;c;cm0gLXJm\u0007';
const FORBIDDEN = /(?!\n)[\p{Cc}\p{Bidi_Control}\u200b\u2028\u2029]/u;

/** Two requests in one session: their log, and the command that replays it. */
async function session(...scripts: Script[]) {
  const where = await place(await modelServer(...scripts));
  const { cwd, env, sessions } = where;
  let begun = false;
  const run = (prompt: string) => {
    const program = start(['run', prompt, '-m', 'm1', ...(begun ? [] : ['--new']), '--session', 's'], { cwd, env });
    begun = true;
    return program;
  };
  const replay = (...args: string[]) => start(['replay', ...args], { cwd, env });
  return { ...where, run, replay, log: join(sessions, 's.jsonl') };
}

describe('the log of real runs', () => {
  test('it is shown request by request, by path and by session, and is unchanged', async () => {
    const { run, replay, log } = await session(readsMainGo, explains, explains);
    expect((await run(QUESTION).ended).code).toBe(0);
    expect((await run('and in one word?').ended).code).toBe(0);
    const before = await readFile(log);
    const shown = replay(log);
    expect(await shown.ended).toEqual({ code: 0, signal: null });
    const lines = [
      '── 1 · direct',
      `> ${QUESTION}`,
      "│ I'll read the file.",
      '  read-group',
      '    → Read {"file_path":"main.go"}',
      expect.stringMatching(/^ {6}✓ 34 lines, .* package main/),
      '│ It counts words.',
      '■ completed · 2 turns · 200 tokens in, 40 out · cost unknown',
      '',
      '── 2 · direct',
      '> and in one word?',
      '│ It counts words.',
      '■ completed · 1 turn · 100 tokens in, 20 out · cost unknown',
      '',
      'together: 3 turns · 300 tokens in, 60 out · cost unknown',
      '',
    ];
    expect(shown.stdout.split('\n')).toEqual(lines);
    expect(shown.stderr).toBe('');
    const named = replay('s');
    expect((await named.ended).code).toBe(0);
    expect(named.stdout).toBe(shown.stdout);
    expect(await readFile(log)).toEqual(before);
  });

  if (proves)
    test('with --json it is the view of its entries, with --rounds the messages for the model', async () => {
      const { run, replay, sessions } = await session(readsMainGo, explains);
      expect((await run(QUESTION).ended).code).toBe(0);
      const json = replay('s', '--json');
      expect((await json.ended).code).toBe(0);
      const view = JSON.parse(JSON.stringify(project(await storedEntries(sessions, 's'))));
      expect(JSON.parse(json.stdout)).toEqual(view);
      const rounds = replay('s', '--rounds');
      expect((await rounds.ended).code).toBe(0);
      expect(rounds.stdout).toContain('  round 2 · 100 tokens in, 20 out\n  ← Read call_1\n    ✓ 34 lines');
    });

  test.skipIf(!proves)('it is shown while a run writes it, and up to its end after that run was killed', async () => {
    const { run, replay, log } = await session(readsMainGo, hangs);
    const writer = run(QUESTION);
    await writer.says('Let me think');
    const during = replay('s');
    expect((await during.ended).code).toBe(0);
    expect(during.stdout).toContain('… no stop: the log ends here');
    writer.process.kill('SIGKILL');
    await writer.ended;
    await writeFile(log, '{"seq":99,"at', { flag: 'a' });
    const after = replay('s');
    expect((await after.ended).code).toBe(0);
    expect(after.stdout).toBe(during.stdout);
    expect(after.stderr).toContain('the last line is torn and was left out');
  });

  if (proves)
    test('the log of the demo shows the approved call and its cost', async () => {
      const directory = await temporaryDirectory();
      const demo = start(['demo'], { cwd: directory, env: { TMPDIR: directory } });
      expect((await demo.ended).code).toBe(0);
      const [, path = ''] = /^log\s+(\S+\.jsonl)/m.exec(stripVTControlCharacters(demo.stdout)) ?? [];
      const shown = start(['replay', path], { cwd: directory });
      expect((await shown.ended).code).toBe(0);
      expect(shown.stdout).toContain('  write-group\n    → WriteNote {"file_name":"SUMMARY.md"');
      expect(shown.stdout).toMatch(/^together: 4 turns · [\d,]+ tokens in, \d+ out · \$0\.0\d+$/m);
    });
});

describe('H-079 hostile logs', () => {
  const hostile: Script = (reply) => {
    reply.text(`a${CLIPBOARD}\u009b2J\u202e\r■ completed`);
    reply.call('call_1', `Read${CLIPBOARD}`, JSON.stringify({ file_path: CLIPBOARD }));
    reply.finish('tool_calls');
  };

  test('text of a model does not reach the terminal unescaped, in any form of output', async () => {
    const { run, replay } = await session(hostile, explains);
    expect((await run(`see ${CLIPBOARD}`).ended).code).toBe(0);
    for (const options of sampled([[], ['--rounds'], ['--json']], volume.caseOf)) {
      const shown = replay('s', ...options);
      expect((await shown.ended).code).toBe(0);
      expect(shown.stdout).not.toMatch(FORBIDDEN);
      expect(shown.stdout).toMatch(options.includes('--json') ? /\\u001b\]52/ : /\\x1b\]52/);
    }
  });

  test.skipIf(!hasTerminals)("a terminal receives no sequences except the program's own colours", async () => {
    const { run, cwd, env } = await session(hostile, explains);
    expect((await run(`see ${CLIPBOARD}`).ended).code).toBe(0);
    const shown = startOnTerminal(['replay', 's'], { cwd, env });
    expect((await shown.ended).code).toBe(0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what is taken out
    const rest = shown.stdout.replace(/\u001b\[\d+m/g, '').replaceAll('\r\n', '\n');
    expect(rest).not.toMatch(FORBIDDEN);
    expect(shown.stdout).toContain('\u001b[1m');
  });

  test('a path with control characters is escaped in the error', async () => {
    const { replay } = await session();
    const refused = replay(`no${CLIPBOARD}`);
    expect((await refused.ended).code).toBe(2);
    expect(refused.stderr).not.toMatch(FORBIDDEN);
  });

  if (proves)
    test('a log with a line of 40 MB is shown, cut', async () => {
      const { replay, root } = await session();
      const events = [
        { type: 'user-message', messageId: 'm', content: [{ type: 'text', text: 'q' }] },
        { type: 'agent-output', item: { type: 'assistant', text: 'y'.repeat(40_000_000) } },
        { type: 'run-stop', reason: 'completed' },
      ];
      await writeFile(join(root, 'big.jsonl'), events.map((event) => `${JSON.stringify(event)}\n`).join(''));
      const shown = replay(join(root, 'big.jsonl'));
      expect((await shown.ended).code).toBe(0);
      expect(shown.stdout.length).toBeLessThan(25_000);
      expect(shown.stdout).toContain('… 39,980,000 more characters\n■ completed');
    });
});

describe('paths that cannot be shown', () => {
  test('a missing file, a directory, a pipe and a broken link are usage errors, and nothing waits', async () => {
    const { replay, root } = await session();
    await mkdir(join(root, 'folder'));
    await symlink(join(root, 'nowhere'), join(root, 'link'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    for (const [name, message] of [
      ['missing', 'there is no file'],
      ['folder', 'is no regular file'],
      ['pipe', 'is no regular file'],
      ['link', 'is no regular file'],
    ] as const) {
      const refused = replay(join(root, name));
      expect(await refused.ended).toEqual({ code: 2, signal: null });
      expect(refused.stderr).toContain(message);
      expect(refused.stderr).toContain("a session's id");
      expect(refused.stdout).toBe('');
    }
  });

  test('a file that is not a log ends with 1, and a missing argument with 2', async () => {
    const { replay, cwd } = await session();
    const refused = replay(join(cwd, 'main.go'));
    expect((await refused.ended).code).toBe(1);
    expect(refused.stderr).toContain('main.go is no log');
    const none = replay();
    expect((await none.ended).code).toBe(2);
    expect(none.stderr).toContain("missing required argument 'log'");
  });
});
