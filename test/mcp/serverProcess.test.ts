/** A server process before its start, around its end, and everything a second time. */
import { describe, expect, it } from 'vitest';
import { ServerProcess } from '../../src/mcp/stdio/serverProcess.ts';

/** A program that answers each line with the same words, and ends with its input. */
const ECHO = 'process.stdin.on("data", (text) => process.stdout.write(text));';
const node = (program: string) => ({ command: process.execPath, args: ['-e', program] });
const env = { PATH: process.env.PATH ?? '' };

function processOf(program: string, more: object = {}) {
  const server = new ServerProcess({ ...node(program), ...more }, env);
  const seen = { messages: [] as unknown[], errors: [] as string[], closes: 0 };
  server.onmessage = (message) => void seen.messages.push(message);
  server.onerror = ({ message }) => void seen.errors.push(message);
  server.onclose = () => {
    seen.closes += 1;
  };
  return { server, seen };
}

describe('a server process', () => {
  it('before its start takes nothing, and its close does nothing', async () => {
    const { server, seen } = processOf(ECHO);
    await expect(server.send({})).rejects.toThrow('Not connected');
    await server.close();
    await server.close();
    expect([server.ending, seen.closes]).toEqual([undefined, 0]);
  });

  it('passes on what it writes, and reports its close once, however often it is closed', async () => {
    const { server, seen } = processOf(ECHO);
    await server.start();
    for (const id of [1, 2, 3]) await server.send({ id, text: 'é😀\n' });
    await expect.poll(() => seen.messages).toEqual([1, 2, 3].map((id) => ({ id, text: 'é😀\n' })));
    await Promise.all([server.close(), server.close()]);
    await server.close();
    expect([server.ending, seen.closes, seen.errors]).toEqual(['it ended with code 0', 1, []]);
    await expect(server.send({})).rejects.toThrow('Not connected');
  });

  it.each([
    ['process.exit(3)', 'it ended with code 3'],
    ['process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000)', 'it was ended by SIGTERM'],
  ])('that runs %s has a description of its end, and reports it once', async (program, ending) => {
    const { server, seen } = processOf(program);
    await server.start();
    await expect.poll(() => seen.closes).toBe(1);
    expect(server.ending).toBe(ending);
    await expect(server.send({})).rejects.toThrow('Not connected');
    await server.close();
    expect(seen.closes).toBe(1);
  });

  it('keeps the end of its stderr, and whole characters of it', async () => {
    const { server, seen } = processOf('process.stderr.write("a".repeat(20000) + "é".repeat(8191) + "z")');
    await server.start();
    await expect.poll(() => seen.closes).toBe(1);
    expect(server.stderr).toBe(`${'é'.repeat(8_191)}z`);
  });

  it('of words that are no messages reports an error a line, and reads on', async () => {
    const { server, seen } = processOf(
      'process.stdout.write("hello\\n\\n{\\"id\\":1}\\n{bad\\n{\\"id\\":2}\\n{\\"id\\":3")',
    );
    await server.start();
    await expect.poll(() => seen.closes).toBe(1);
    expect([seen.messages, seen.errors.length]).toEqual([[{ id: 1 }, { id: 2 }], 3]);
  });

  it.each([{ command: '/nowhere/program' }, { cwd: '/nowhere' }])(
    'that cannot be started (%j) is refused, and its close does nothing',
    async (more) => {
      const { server, seen } = processOf(ECHO, more);
      await expect(server.start()).rejects.toMatchObject({ code: 'ENOENT' });
      await server.close();
      expect(seen.closes).toBe(0);
    },
  );
});
