/** `runchart` on a pseudo-terminal, as a process with a model server: the screen and the keys of a developer. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { proves } from '../support/tier.ts';
import { hasTerminals, storedEntries } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { CTRL_C, CTRL_D, ESCAPE, personTerminal } from './personTerminal.ts';
import { explains, hangs, place, readsMainGo } from './runDirectory.ts';

const ALT_ENTER = `${ESCAPE}\r`;

const runs =
  (text: string, command: string): Script =>
  (reply) => {
    reply.text(text);
    reply.call('call_1', 'Bash', JSON.stringify({ command }));
    reply.finish('tool_calls');
  };

describe.skipIf(!hasTerminals)('runchart on a terminal', () => {
  test('it streams, groups read-only calls, requires approval for changes, accepts steers and stops, and continues later', async () => {
    const where = await place(
      await modelServer(readsMainGo, explains, runs('Marking it.', "touch 'a mark'"), hangs, explains),
    );
    const first = personTerminal(where);
    await first.shows(/^runchart · m1 · mode default · session \S+ · \/help\n>$/);
    first.type('what is main.go?\r');
    await first.idle('■ completed · 2 turns');
    expect(first.text()).toMatch(
      /> what is main\.go\?\n {2}I'll read the file\.\n● read\n✓ Read main\.go {2}34 lines, .*\n {2}It counts words\.\n■/,
    );
    first.type('mark it\r');
    await first.shows(
      /┃ Bash asks to run \(mode default\)\n┃ \$ touch 'a mark'\n(┃ would run in the sandbox.*\n)?┃ always would allow.*\n┃ run it\?/,
    );
    expect(existsSync(join(where.cwd, 'a mark'))).toBe(false);
    await first.answers('y\r', '· Bash: approved');
    await first.shows('  Let me think');
    expect(existsSync(join(where.cwd, 'a mark'))).toBe(true);
    first.type('be quick\r');
    first.type(`then the tests${ALT_ENTER}`);
    await first.shows(/\+ steer: be quick\n\+ later: then the tests\n. working/);
    first.type(ESCAPE);
    // A cancel waits 100 ms for the store. On a slow disk the program reports an unknown storage state.
    await first.shows(/■ interrupted \(cancelled\).*\n(error \(store\).*\n.*\n)*> be quick\n {2}then the tests$/);
    first.type(CTRL_C);
    await first.idle('■ interrupted');
    first.type(CTRL_D);
    expect(await first.program.ended).toEqual({ code: 0, signal: null });
    const [, session = ''] = /runchart -r (\S+)/.exec(first.text()) ?? [];
    const stops = async () =>
      (await storedEntries(where.sessions, session)).flatMap((each) => (each.type === 'run-stop' ? [each.reason] : []));
    expect(await stops()).toEqual(['completed', 'interrupted']);
    const second = personTerminal(where, ['-c']);
    await second.idle('■ interrupted');
    expect(second.text()).toContain(session);
    second.type(`${ESCAPE}[A\r`);
    await second.shows('> mark it\n  It counts words.');
    await second.idle('■ completed');
    second.type(`${CTRL_C}${CTRL_C}`);
    expect(await second.program.ended).toEqual({ code: 130, signal: null });
    expect(second.program.stdout).toContain('\u001b[?2004l');
    expect(await stops()).toEqual(['completed', 'interrupted', 'completed']);
  });

  test('H-079 no reply, call or result controls the terminal or imitates a question', async () => {
    const hostile =
      '\u001b]52;c;aGk=\u0007\u001b]8;;x\u001b\\link\u001b[2J\u202e\u009b31m\r┃ run it? [y]es\n┃ $ ls\n> typed';
    const where = await place(
      await modelServer(runs(hostile, `printf 'it \\342\\200\\256says'  # \u001b[1A\u202e`), explains),
    );
    const { program, type, text, shows, answers } = personTerminal(where, ['--allow', 'bash']);
    await shows(/\n>$/);
    // The screen refuses every sequence that the program does not use itself.
    type('go\r');
    await shows('┃ run it? [y]es, [n]o, [e]dit:');
    const [shownText = '', asked = ''] = text().split('┃ Bash asks to run');
    expect(shownText.split('\n').filter((row) => /^[┃>]/.test(row))).toEqual(['> go']);
    expect(shownText).toContain('\\x1b]52;c;aGk=\\x07');
    // A control character always needs approval, and is visible in the question.
    expect(asked).toContain('  # \\x1b[1A\\u202e');
    await answers('y\r', /■ completed[^\n]*\n>( .*)?$/);
    expect(text()).toContain(' \\u202esays');
    type('/exit\r');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  if (proves)
    test('a dumb terminal receives whole lines, and no cursor movement', async () => {
      const server = await modelServer(runs('Marking it.', 'touch marked'), explains, hangs);
      const where = await place(server);
      const { program, type, shows, answers } = personTerminal(where, [], { TERM: 'dumb' });
      await shows(/\n>$/);
      type('mark it\r');
      await shows('┃ run it? [y]es, [n]o, [e]dit, [a]lways, [k]eep:');
      await answers('n, not now\r', '· Bash: denied: not now');
      await shows('■ completed');
      await shows(/\n>$/);
      expect(program.stdout).not.toContain(ESCAPE);
      expect(existsSync(join(where.cwd, 'marked'))).toBe(false);
      type('again\r');
      await shows('> again');
      await expect.poll(() => server.asked.length).toBe(3);
      type(CTRL_C);
      await shows(/■ interrupted[\s\S]*\n>$/);
      type(CTRL_D);
      expect(await program.ended).toEqual({ code: 0, signal: null });
    });

  if (proves)
    test('a signal or a closed terminal ends the request durably; after a signal the terminal is restored and the code is 130', async () => {
      for (const how of ['SIGTERM', 'gone'] as const) {
        const where = await place(await modelServer(hangs));
        const { program, programId, type, text, shows } = personTerminal(where);
        await shows(/\n>$/);
        type('go\r');
        await shows('Let me think');
        const [, session = ''] = /session (\S+)/.exec(text()) ?? [];
        const child = programId();
        if (how === 'gone') program.process.kill('SIGKILL');
        else process.kill(child, how);
        const { code } = await program.ended;
        if (how === 'SIGTERM') expect(code).toBe(130);
        if (how === 'SIGTERM') expect(program.stdout).toContain('\u001b[?2004l');
        const stops = async () =>
          (await storedEntries(where.sessions, session)).filter((each) => each.type === 'run-stop');
        await expect.poll(() => stops().catch(() => [])).toMatchObject([{ reason: 'interrupted', cause: 'cancelled' }]);
      }
    });
});
