/**
 * A server that writes more at once than a pipe holds, so that its messages arrive in pieces which end anywhere. Invariant:
 * each line is one message, wherever the pieces end.
 */
import { expect, it } from 'vitest';
import { ServerProcess } from '../../src/mcp/stdio/serverProcess.ts';

const COUNT = 4_000;
/** Messages of every length up to 500 characters, with characters of one to four bytes. */
const PROGRAM = `
const lines = Array.from({ length: ${COUNT} }, (_, at) => JSON.stringify({ at, text: 'aé€😀'.repeat(at % 100) }) + '\\n');
process.stdout.write(lines.join(''));
process.stdin.resume();
`;

it('messages that fill the pipe many times arrive whole and in their order', async () => {
  const server = new ServerProcess({ command: process.execPath, args: ['-e', PROGRAM] }, {});
  const messages: unknown[] = [];
  const faults: Error[] = [];
  let stop = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    stop = resolve;
  });
  server.onerror = (error) => faults.push(error);
  server.onmessage = (message) => {
    messages.push(message);
    if ((message as { at: number }).at === COUNT - 1) stop();
  };
  await server.start();
  await done;
  await server.close();
  expect(faults).toEqual([]);
  expect(messages).toEqual(Array.from({ length: COUNT }, (_, at) => ({ at, text: 'aé€😀'.repeat(at % 100) })));
});
