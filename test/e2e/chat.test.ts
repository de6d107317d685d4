/** `docs/examples/chat.ts` as a process: the end of a chat, from a terminal and from a pipe. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { proves } from '../support/tier.ts';
import { hasTerminals, type Program, start, startOnTerminal, storedEntries } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { explains, hangs, place } from './runDirectory.ts';

const CTRL_C = '\x03';
const CTRL_D = '\x04';
const main = (): string => join(inject('packageRoot'), 'docs', 'examples', 'chat.mjs');

beforeAll(async () => {
  const source = await readFile(new URL('../../docs/examples/chat.ts', import.meta.url), 'utf8');
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' });
  await writeFile(main(), code);
});

async function chat(begin: typeof start, input: string | null, ...scripts: Script[]) {
  const { cwd, env } = await place(await modelServer(...scripts));
  const program = begin([], { cwd, env: { ...env, OPENAI_MODEL: 'm1' }, main: main(), input });
  const stops = async () =>
    (await storedEntries(join(cwd, '.runchart'), 'chat')).flatMap((each) => (each.type === 'run-stop' ? [each] : []));
  return { program, stops };
}

/** Also of prompts, which are all equal. */
async function prompts(program: Program, count: number): Promise<void> {
  await expect.poll(() => program.stdout.split('\n> ').length - 1).toBeGreaterThanOrEqual(count);
}

describe.skipIf(!hasTerminals)('a chat on a terminal', () => {
  test('it ends at the prompt with Ctrl-D, code 0, and with Ctrl-C, code 130', async () => {
    for (const [key, code] of [
      [CTRL_D, 0],
      [CTRL_C, 130],
    ] as const) {
      const { program } = await chat(startOnTerminal, null);
      await prompts(program, 1);
      program.process.stdin?.write(key);
      expect(await program.ended).toEqual({ code, signal: null });
      expect(program.stdout).not.toMatch(/warning|error/i);
    }
  });

  if (proves)
    test('it continues after a reply that Ctrl-C ended', async () => {
      const { program, stops } = await chat(startOnTerminal, null, hangs, explains);
      await prompts(program, 1);
      program.process.stdin?.write('one\n');
      await program.says('Let me think');
      program.process.stdin?.write(CTRL_C);
      await prompts(program, 2);
      program.process.stdin?.write('two\n');
      await program.says('It counts words.');
      await prompts(program, 3);
      program.process.stdin?.write(CTRL_D);
      expect(await program.ended).toEqual({ code: 0, signal: null });
      expect((await stops()).map(({ reason }) => reason)).toEqual(['interrupted', 'completed']);
    });

  if (proves)
    test('Ctrl-D during a reply ends both at once, and the stop is in the log', async () => {
      const { program, stops } = await chat(startOnTerminal, null, hangs);
      await prompts(program, 1);
      program.process.stdin?.write('one\n');
      await program.says('Let me think');
      program.process.stdin?.write(CTRL_D);
      expect(await program.ended).toEqual({ code: 0, signal: null });
      expect((await stops()).map(({ reason }) => reason)).toEqual(['interrupted']);
    });
});

describe('a chat from a pipe', () => {
  test('it answers each complete line and ends with 0', async () => {
    const { program, stops } = await chat(start, 'one\n\ntwo\n', explains, explains);
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout.split('It counts words.')).toHaveLength(3);
    expect(program.stderr).toBe('');
    expect(await stops()).toHaveLength(2);
  });

  test('SIGINT ends the reply and the chat with 130', async () => {
    const { program, stops } = await chat(start, null, hangs);
    program.process.stdin?.write('one\n');
    await program.says('Let me think');
    program.process.kill('SIGINT');
    expect(await program.ended).toEqual({ code: 130, signal: null });
    expect((await stops()).map(({ reason }) => reason)).toEqual(['interrupted']);
  });
});
