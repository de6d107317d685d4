/** Titles of sessions that a model makes, with the built program and a scripted server. */
import { describe, expect, test } from 'vitest';
import { hasTerminals, start, storedEntries } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { CTRL_D, personTerminal } from './personTerminal.ts';
import { explains, hangs, place } from './runDirectory.ts';

const names: Script = (reply) => {
  reply.text('Words of ', 'main.go\u001b[2J');
  reply.finish('stop');
};

describe.skipIf(!hasTerminals)('the title of a session in the program', () => {
  test('the list and the chooser show the title that the model made, and the second session does not pay for another one', async () => {
    const server = await modelServer(explains, names, explains);
    const where = await place(server, { titleModel: 'small' });
    const first = personTerminal(where);
    await first.shows(/\n>$/);
    first.type('what is main.go?\r');
    await first.idle('■ completed');
    const [, session = ''] = /session (\S+)/.exec(first.text()) ?? [];
    const titles = async () =>
      (await storedEntries(where.sessions, session)).flatMap((each) => (each.type === 'renamed' ? [each.title] : []));
    await expect.poll(() => server.asked.map(({ model }) => model)).toEqual(['m1', 'small']);
    const list = async (): Promise<string> => {
      const listed = start(['sessions', '--json'], where);
      await listed.ended;
      return listed.stdout;
    };
    await expect.poll(list).toContain('"title":"Words of main.go [2J"');
    first.type(CTRL_D);
    expect(await first.program.ended).toEqual({ code: 0, signal: null });
    const second = personTerminal(where, ['-r']);
    await second.shows('Words of main.go [2J');
    second.type('1\r');
    await second.shows(`session ${session}`);
    second.type('and again?\r');
    await second.shows(/> and again\?\n {2}It counts words\.[\s\S]*■ completed[^\n]*\n>$/);
    second.type(CTRL_D);
    expect(await second.program.ended).toEqual({ code: 0, signal: null });
    expect(await titles()).toEqual(['Words of main.go [2J']);
    expect(server.asked.map(({ model }) => model)).toEqual(['m1', 'small', 'm1']);
    expect(JSON.stringify(server.asked[2]?.messages)).not.toContain('Words of');
  });

  test('a server that does not answer delays neither the prompt nor the end, and -p asks for no title', async () => {
    const server = await modelServer(explains, hangs, explains, explains);
    const where = await place(server, {});
    const first = personTerminal(where);
    await first.shows(/\n>$/);
    first.type('what is main.go?\r');
    await first.idle('■ completed');
    await expect.poll(() => server.asked.length).toBe(2);
    first.type('and again?\r');
    await first.shows(/> and again\?\n {2}It counts words\.[\s\S]*■ completed[^\n]*\n>$/);
    const before = Date.now();
    first.type(CTRL_D);
    expect(await first.program.ended).toEqual({ code: 0, signal: null });
    // The limit of a title is 20 s.
    expect(Date.now() - before).toBeLessThan(15_000);
    const printed = start(['-m', 'm1', '-p', 'hi there'], where);
    expect(await printed.ended).toEqual({ code: 0, signal: null });
    expect(server.asked).toHaveLength(4);
  });
});
