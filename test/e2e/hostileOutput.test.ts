/** H-079: untrusted text on its way to a terminal. Control sequences are shown as text, not executed. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { proves } from '../support/tier.ts';
import { hasTerminals, start, startOnTerminal, storedEntries } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { entriesIn, place } from './runDirectory.ts';

const CLIPBOARD = '\u001b]52;c;cm0gLXJm\u0007';
const HOSTILE = `a${CLIPBOARD}b\u001b[2Jc\u009b31md\u202ee\u2066f\u200bg\u0008h\u007fi\rj\u001bPq\u001b\\k`;
const FORBIDDEN = /(?!\n)[\p{Cc}\p{Bidi_Control}\u200b\u2028\u2029]/u;

/** Every unit in a separate piece: sequences are split everywhere. */
const repliesHostile: Script = (reply) => {
  reply.delta({ reasoning_content: HOSTILE });
  reply.text(...HOSTILE);
  reply.call('call_1', `Read${CLIPBOARD}`, JSON.stringify({ file_path: HOSTILE }));
  reply.finish('tool_calls');
};
const readsFile: Script = (reply) => {
  reply.call('call_2', 'Read', '{"file_path":"hostile.txt"}');
  reply.finish('tool_calls');
};
const endsHostile: Script = (reply) => {
  reply.text(HOSTILE);
  reply.finish('stop');
};
const refusesHostile: Script = (reply) => reply.refuse(400, { error: { message: HOSTILE } });

async function hostilePlace(...scripts: Script[]) {
  const where = await place(await modelServer(...scripts));
  await writeFile(join(where.cwd, 'hostile.txt'), `${HOSTILE}\n`);
  return where;
}

describe('H-079 hostile text', () => {
  test('in a reply, reasoning, a tool name, arguments and a result it is shown as escapes; the log contains it unchanged', async () => {
    const { cwd, env, sessions } = await hostilePlace(repliesHostile, readsFile, endsHostile);
    const program = start(['run', `see ${HOSTILE}`, '-m', 'm1', '--new', '--session', 's'], { cwd, env });
    expect((await program.ended).code).toBe(0);
    expect(program.stdout).not.toMatch(FORBIDDEN);
    expect(program.stderr).not.toMatch(FORBIDDEN);
    expect(program.stdout).toContain(
      'a\\x1b]52;c;cm0gLXJm\\x07b\\x1b[2Jc\\x9b31md\\u202ee\\u2066f\\u200bg\\x08h\\x7fi\\rj',
    );
    expect(program.stderr).toContain('→ Read\\x1b]52;c;cm0gLXJm\\x07');
    const entries = await storedEntries(sessions, 's');
    const texts = entries.flatMap((entry) =>
      entry.type === 'agent-output' && entry.item.type === 'assistant' ? [entry.item.text] : [],
    );
    expect(texts).toEqual([HOSTILE, HOSTILE]);
  });

  if (proves)
    test('in JSON lines it is escaped too, and the parsed value is the same', async () => {
      const { cwd, env, sessions } = await hostilePlace(repliesHostile, readsFile, endsHostile);
      const program = start(['run', HOSTILE, '-m', 'm1', '--json', '--new', '--session', 's'], { cwd, env });
      expect((await program.ended).code).toBe(0);
      expect(program.stdout).not.toMatch(FORBIDDEN);
      expect(entriesIn(program.stdout)).toEqual(await storedEntries(sessions, 's'));
    });

  if (proves)
    test('in an error of the server it does not reach the terminal', async () => {
      const { cwd, env } = await hostilePlace(refusesHostile);
      const program = start(['run', 'hi', '-m', 'm1'], { cwd, env });
      expect((await program.ended).code).toBe(1);
      expect(program.stderr).toContain('error (bad-request)');
      expect(program.stderr).not.toMatch(FORBIDDEN);
    });

  test.skipIf(!hasTerminals)("a terminal receives no sequences except the program's own colours", async () => {
    const { cwd, env } = await hostilePlace(repliesHostile, readsFile, endsHostile);
    const program = startOnTerminal(['run', 'hi', '-m', 'm1'], { cwd, env });
    expect((await program.ended).code).toBe(0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are made of them
    const colour = /\u001b\[(?:0|1|2|22|31|32|33|36|39)m/g;
    expect(program.stdout).toMatch(colour);
    expect(program.stdout.replace(colour, '').replaceAll('\r\n', '\n')).not.toMatch(FORBIDDEN);
    expect(await readFile(join(cwd, 'hostile.txt'), 'utf8')).toContain(CLIPBOARD);
  });
});
