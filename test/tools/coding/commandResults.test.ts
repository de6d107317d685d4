/** The words about a command: its output, the place of the rest, its end, and the commands that still run. */
import { tmpdir } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type BackgroundCommand,
  BackgroundCommands,
  type BackgroundEnd,
} from '../../../src/tools/coding/commands/backgroundCommands.ts';
import { bashOutputTool, endText, killBashTool } from '../../../src/tools/coding/commands/backgroundTools.ts';
import { commandText, endNotes } from '../../../src/tools/coding/commands/commandResult.ts';
import { Output, type ShellEnd } from '../../../src/tools/coding/shell.ts';
import { answerOf, definitionOf, type Tool, type ToolContext } from '../../../src/tools/tool.ts';

type Known = Exclude<ShellEnd, { kind: 'not_started' }>;
const LEFT = 'what it left running was ended';
const UP = 'timed out after 1500 ms and was ended';

/** Each end, its notes in the foreground, and its words in the background. */
const ENDS: readonly (readonly [end: Known, notes: readonly string[], words: string])[] = [
  [{ kind: 'exited', code: 0, leftRunning: false }, [], 'exit code 0'],
  [{ kind: 'exited', code: 0, leftRunning: true }, [LEFT], `${LEFT}; exit code 0`],
  [{ kind: 'exited', code: 3, leftRunning: false }, ['exit code 3'], 'exit code 3'],
  [{ kind: 'exited', code: 3, leftRunning: true }, [LEFT, 'exit code 3'], `${LEFT}; exit code 3`],
  [{ kind: 'killed', by: 'SIGKILL', leftRunning: false }, ['killed by SIGKILL'], 'killed by SIGKILL'],
  [{ kind: 'killed', by: 'SIGTERM', leftRunning: true }, [LEFT, 'killed by SIGTERM'], `${LEFT}; killed by SIGTERM`],
  [{ kind: 'timeout', unended: 0 }, [UP], UP],
  ...[1, 2].map((unended): [Known, string[], string] => {
    const notes = [UP, `${unended} of its processes could not be ended`];
    return [{ kind: 'timeout', unended }, notes, notes.join('; ')];
  }),
];

describe('the end of a command', () => {
  it.each(ENDS)('%j is described in the foreground and in the background', (end, notes, words) => {
    expect(endNotes(end, 1_499.6)).toEqual(notes);
    expect(endText({ end, timeoutMs: 1_499.6 })).toBe(words);
  });

  it.each<[BackgroundEnd | undefined, string]>([
    [undefined, 'still running'],
    [{ kind: 'stopped' }, 'it was stopped'],
    [{ kind: 'not_started', why: 'no bash' }, 'bash could not be started: no bash'],
  ])('%j is described in the background only', (end, words) => {
    expect(endText({ end, timeoutMs: Number.POSITIVE_INFINITY })).toBe(words);
  });
});

describe('the text of a command', () => {
  const output = (text: string, spilled?: { path: string; bytes: number }): Output => {
    const made = new Output();
    made.push(Buffer.from(text));
    return Object.defineProperty(made, 'spilled', { value: spilled });
  };

  it.each<[Output, string[], string]>([
    [output(''), [], ''],
    [output('\n'), [], ''],
    [output(''), ['a', 'b'], '[a]\n[b]'],
    [output('one\ntwo\n\n'), [], 'one\ntwo'],
    [output('  one\n'), ['a'], '  one\n[a]'],
    [output('x', { path: '/f', bytes: 1 }), ['a'], 'x\n[all of it can be read in /f]\n[a]'],
    [output('xyz', { path: '/f', bytes: 2 }), ['a'], 'xyz\n[the first 2 bytes can be read in /f]\n[a]'],
  ])('is what it printed, the file of the rest, then the notes (%#)', (printed, notes, text) => {
    expect(commandText(printed, notes)).toBe(text);
  });
});

describe('a command in the background', () => {
  /** The commands of conversation `c`, and calls of the two tools that reach them. */
  function opened() {
    const commands = new BackgroundCommands();
    const started: BackgroundCommand[] = [];
    const context = (signal = new AbortController().signal, conversationId = 'c') =>
      ({ conversationId, cwd: tmpdir(), signal }) as unknown as ToolContext;
    const start = (command: string): BackgroundCommand | undefined => {
      const options = { command, cwd: tmpdir(), timeoutMs: Number.POSITIVE_INFINITY, launcher: undefined };
      const made = commands.start(context(), options);
      if (made) started.push(made);
      return made;
    };
    onTestFinished(async () => void (await Promise.all(started.map((each) => each.stop()))));
    const ask = async (tool: Tool, args: object, asker = context()) => {
      const definition = definitionOf(tool);
      const checked = await definition?.parameters['~standard'].validate(args);
      if (!checked || checked.issues) return { status: 'invalid' };
      return answerOf(await definition?.execute(checked.value, asker)) as { status: string; content: string };
    };
    return { commands, context, start, ask, output: bashOutputTool(commands), kill: killBashTool(commands) };
  }
  const none = (id: string, others: string) =>
    `there is no background command ${id}. A command ends when the conversation is closed or the program ends: ` +
    `if this one began before that, it is gone with its output and has to be started again. ${others}`;

  it('with an unknown id is answered with the commands that run in this conversation, each shortened', async () => {
    const { ask, context, output, kill, start } = opened();
    for (const tool of [output, kill])
      expect(await ask(tool, { bash_id: 'x' })).toMatchObject({
        content: none('x', 'None runs now.'),
        code: 'not_found',
      });
    const long = `sleep 1000 # ${'y'.repeat(300)}`;
    const [one, two] = [start('sleep 1000'), start(long)];
    const running = `These run now: ${one?.id} (sleep 1000), ${two?.id} (${long.slice(0, 200)}).`;
    for (const tool of [output, kill]) {
      expect(await ask(tool, { bash_id: 'x' })).toMatchObject({ content: none('x', running) });
      const other = await ask(tool, { bash_id: one?.id }, context(undefined, 'other'));
      expect(other).toMatchObject({ content: none(one?.id ?? '', 'None runs now.') });
    }
  });

  it.each([
    [{ bash_id: '' }, false],
    [{ bash_id: 'x'.repeat(64) }, true],
    [{ bash_id: 'x'.repeat(65) }, false],
    [{ bash_id: 'x', waitMs: 0 }, true],
    [{ bash_id: 'x', waitMs: -1 }, false],
    [{ bash_id: 'x', waitMs: 1.5 }, false],
    [{ bash_id: 'x', waitMs: 60_000 }, true],
    [{ bash_id: 'x', waitMs: 60_001 }, false],
  ])('is asked for with %j: valid is %s', async (args, isValid) => {
    const { ask, output } = opened();
    expect((await ask(output, args)).status === 'invalid').toBe(!isValid);
  });

  it('is awaited until it ends, its time is up, or the call is cancelled, and the signal and the timer are released', async () => {
    const { ask, context, output, start } = opened();
    const command = start('sleep 1000');
    const stop = new AbortController();
    const { signal } = stop;
    const [added, removed] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')];
    const listening = (): number =>
      added.mock.calls.filter(([, listener]) => !removed.mock.calls.some(([, gone]) => gone === listener)).length;
    const args = { bash_id: command?.id, waitMs: 1 };
    expect(await ask(output, args, context(signal))).toMatchObject({
      content: expect.stringContaining('still running'),
    });
    expect(listening()).toBe(0);
    const [timers, cleared] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
    const waiting = ask(output, { ...args, waitMs: 60_000 }, context(signal));
    await expect.poll(listening).toBe(1);
    stop.abort(new Error('cancelled'));
    await expect(waiting).rejects.toThrow('cancelled');
    expect([listening(), command?.isRunning]).toEqual([0, true]);
    const timer = timers.mock.results[timers.mock.calls.findIndex(([, ms]) => ms === 60_000)]?.value;
    expect(cleared.mock.calls).toContainEqual([timer]);
    for (const spy of [timers, cleared]) spy.mockRestore();
    await command?.stop();
    expect(await ask(output, { ...args, waitMs: 60_000 })).toMatchObject({ content: '[ended: it was stopped]' });
  });

  it('reports its start and its end to watchers, until they leave', async () => {
    const { commands, start } = opened();
    const changes: string[] = [];
    const leave = commands.watch(({ command, isRunning }) => changes.push(`${command} ${isRunning}`));
    await start('exit 1')?.ended;
    await expect.poll(() => changes).toEqual(['exit 1 true', 'exit 1 false']);
    leave();
    await start('exit 2')?.ended;
    expect(changes).toHaveLength(2);
  });

  it('counts no more once it has ended: another one may start', async () => {
    const { commands, start } = opened();
    const first = start('sleep 1000');
    for (let count = 1; count < 16; count += 1) start('sleep 1000');
    expect([start('true'), commands.running('c').length]).toEqual([undefined, 16]);
    await first?.stop();
    expect(start('sleep 1000')?.isRunning).toBe(true);
  });
});
