/** `/undo` in the program: a process that was killed, a new one, and a person who changed a file in between. */
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hasTerminals, startOnTerminal } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { place, readsMainGo } from './runDirectory.ts';

const calls =
  (id: string, name: string, args: object): Script =>
  (reply) => {
    reply.call(id, name, JSON.stringify(args));
    reply.finish('tool_calls');
  };
const says =
  (text: string): Script =>
  (reply) => {
    reply.text(text);
    reply.finish('stop');
  };
const edits = (id: string, from: string, to: string): Script =>
  calls(id, 'Edit', { file_path: 'main.go', old_string: from, new_string: to });

describe.skipIf(!hasTerminals)('/undo', () => {
  test('takes back files and conversation after a kill, asks about a file that changed since, and needs no git', async () => {
    const server = await modelServer(
      ...[readsMainGo, edits('call_2', 'package main', 'package counted'), says('First done.')],
      ...[calls('call_3', 'Write', { file_path: 'new/notes.md', content: 'notes\n' }), says('Second done.')],
    );
    const { cwd, env, sessions } = await place(server);
    const options = ['-m', 'm1', '--permission-mode', 'acceptEdits'];
    const before = await readFile(join(cwd, 'main.go'), 'utf8');
    const begin = (more: string[] = []) =>
      startOnTerminal([...options, ...more], { cwd, env: { ...env, TERM: 'dumb', PATH: `${process.env.PATH}` } });
    const first = begin();
    await first.says('/help');
    first.process.stdin?.write('rename it\n');
    await first.says('First done.');
    await first.says('■ completed');
    first.process.stdin?.write('write notes\n');
    await first.says('Second done.');
    expect(existsSync(join(cwd, 'new', 'notes.md'))).toBe(true);
    // `first.process` is `script`, which provides the terminal. Its child is the program.
    const { pid } = first.process;
    const child = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim();
    process.kill(Number(child), 'SIGKILL');
    await first.ended;

    const second = begin(['-c']);
    await second.says('/help');
    second.process.stdin?.write('/undo\n');
    await second.says('removed new/notes.md, which was new');
    await second.says('in the line: write notes');
    expect(existsSync(join(cwd, 'new'))).toBe(false);

    await writeFile(join(cwd, 'main.go'), 'mine\n');
    second.process.stdin?.write('/undo\n');
    await second.says('main.go has changed since the agent wrote it');
    expect(await readFile(join(cwd, 'main.go'), 'utf8')).toBe('mine\n');
    second.process.stdin?.write('y\n');
    await second.says('your version is kept in');
    expect(await readFile(join(cwd, 'main.go'), 'utf8')).toBe(before);
    await second.says('in the line: rename it');
    second.process.stdin?.write('/undo\n');
    await second.says('there is no request to take back');
    expect((await readdir(cwd)).sort()).toEqual(
      (await readdir(new URL('../../docs/examples/sample', import.meta.url))).sort(),
    );
    expect(await readdir(join(sessions, 'history'))).not.toEqual([]);
  });
});
