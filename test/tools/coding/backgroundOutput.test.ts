/** The resources that the end of a command in the background releases, for every end and whether or not its output was read. */
import { readdir, readlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAgent } from '../../../src/index.ts';
import { codingTools } from '../../../src/node.ts';
import { scriptedModel } from '../../../src/testing/index.ts';
import { BackgroundCommand, backgroundCommandsOf } from '../../../src/tools/coding/commands/backgroundCommands.ts';
import { temporaryFolder } from '../../support/temporaryFolder.ts';
import { hasProc } from './liveProcesses.ts';

const LONG = 'head -c 200000 /dev/zero | tr "\\0" x; echo';
const started = (command: string, more: Partial<{ timeoutMs: number; release: () => Promise<void> }> = {}) => {
  const { timeoutMs = Number.POSITIVE_INFINITY, release } = more;
  const launcher = release && { program: 'env', args: [], hasFirstProcess: false, release };
  return new BackgroundCommand('bash_1', { command, cwd: tmpdir(), timeoutMs, launcher });
};

/** The files of long outputs that this process holds open. */
async function openOutputs(): Promise<string[]> {
  const names = await readdir('/proc/self/fd');
  const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return targets.filter((target) => target.includes('runchart-output-')).sort();
}

const ENDS: readonly (readonly [end: string, command: string, timeoutMs: number, stops: boolean])[] = [
  ['exited', LONG, Number.POSITIVE_INFINITY, false],
  ['exited', `${LONG}; exit 3`, Number.POSITIVE_INFINITY, false],
  ['killed', `${LONG}; kill -9 $$`, Number.POSITIVE_INFINITY, false],
  ['timeout', `${LONG}; sleep 1000`, 1_000, false],
  ['stopped', `${LONG}; echo up; sleep 1000`, Number.POSITIVE_INFINITY, true],
];

describe.skipIf(!hasProc)('a command whose long output nobody has read', () => {
  it.each(ENDS)(
    'that is %s (%s) leaves no file open, and its output can be read once',
    async (kind, line, timeoutMs, stops) => {
      const before = await openOutputs();
      const released: string[] = [];
      const command = started(line, { timeoutMs, release: async () => void released.push('places') });
      if (stops) {
        await expect.poll(openOutputs).not.toEqual(before);
        await command.stop();
      }
      expect((await command.ended).kind).toBe(kind);
      expect(released).toEqual(['places']);
      expect([command.isRunning, await openOutputs()]).toEqual([false, before]);
      const output = command.read();
      // On a busy machine the time may be up before the command has printed anything.
      if (kind !== 'timeout') expect(output.bytes).toBeGreaterThanOrEqual(200_000);
      if (output.bytes >= 200_000) expect(output.spilled?.bytes).toBe(output.bytes);
      expect(command.read().bytes).toBe(0);
      expect(await openOutputs()).toEqual(before);
    },
  );

  it('is ended once, however often it is stopped, and its places are released once', async () => {
    const released: string[] = [];
    const command = started('sleep 1000', { release: async () => void released.push('places') });
    await Promise.all([command.stop(), command.stop()]);
    await command.stop();
    expect([command.end, released]).toEqual([{ kind: 'stopped' }, ['places']]);
  });

  it('ends although its places cannot be released', async () => {
    const command = started('exit 2', { release: () => Promise.reject(new Error('busy')) });
    expect(await command.ended).toEqual({ kind: 'exited', code: 2, leftRunning: false });
  });
});

const sleepCall = (callId: string) => ({
  ...({ type: 'tool-call', callId, name: 'Bash' } as const),
  args: JSON.stringify({ command: 'sleep 1000', run_in_background: true }),
});

describe('a command whose output is read while it runs', () => {
  it('splits no character between two readings, and its last bytes are never lost', async () => {
    const folder = temporaryFolder();
    const step = (name: string): string => `until [ -e ${join(folder, name)} ]; do sleep 0.01; done`;
    const printed = ['a\\xc3', '\\xa9b\\xf0\\x9f', '\\x8e\\x89c\\xc3'].map((bytes) => `printf '${bytes}'`);
    const command = started([printed[0], step('1'), printed[1], step('2'), printed[2]].join('; '));
    onTestFinished(() => command.stop());
    for (const [index, wanted] of ['a', 'éb'].entries()) {
      let text = '';
      const read = (): string => {
        text += command.read().text();
        return text;
      };
      await expect.poll(read).toBe(wanted);
      await writeFile(join(folder, String(index + 1)), '');
    }
    await command.ended;
    expect(command.read().text()).toBe('🎉c\ufffd');
  });
});

describe('the commands of a conversation', () => {
  it('are ended by each of its closes, however often it is opened', async () => {
    const tools = codingTools({ sandbox: 'off', extra: ['Background'] });
    const running = (): number => backgroundCommandsOf(tools)?.running('c').length ?? 0;
    const replies = [1, 2, 3].flatMap((each) => [
      { parts: [sleepCall(`c${each}`), { type: 'finish', reason: 'tool-calls' } as const] },
      'done',
    ]);
    const agent = createAgent({ model: scriptedModel(replies), tools, cwd: tmpdir() });
    onTestFinished(() => agent.close());
    for (let opened = 1; opened <= 3; opened++) {
      const conversation = await agent.open('c');
      await conversation.send('start it').result;
      expect([opened, running()]).toEqual([opened, 1]);
      await conversation.close();
      await expect.poll(() => [opened, running()]).toEqual([opened, 0]);
    }
  });
});
