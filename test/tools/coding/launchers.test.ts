/** The launcher of the sandbox that each command takes. Invariant: it is released once, however the command ends or is refused. */
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { bashTool } from '../../../src/tools/coding/bash.ts';
import { BackgroundCommands, RUNNING_MAX } from '../../../src/tools/coding/commands/backgroundCommands.ts';
import { answerOf, definitionOf, type ToolContext } from '../../../src/tools/tool.ts';

/** Bash with a sandbox that confines nothing, and counts its launchers. */
function counted(program = 'env') {
  const count = { taken: 0, released: 0 };
  const commands = new BackgroundCommands();
  const launch = async () => {
    count.taken += 1;
    const release = async (): Promise<void> => {
      count.released += 1;
    };
    return { program, args: [], release };
  };
  const definition = definitionOf(bashTool(launch, 'ask', commands));
  const run = async (args: object, signal = new AbortController().signal): Promise<void> => {
    const context = { conversationId: 'c', cwd: tmpdir(), signal, progress: () => {} };
    await definition?.execute(args as never, context as unknown as ToolContext);
  };
  const stopAll = (): Promise<unknown> => Promise.all(commands.running('c').map((command) => command.stop()));
  return { count, run, stopAll, running: () => commands.running('c').length };
}

const inBackground = { run_in_background: true };

/** Each way in which a command ends or does not start, with the number of its launchers. */
const WAYS: Readonly<
  Record<string, { program?: string; taken?: number; act(on: ReturnType<typeof counted>): Promise<unknown> }>
> = {
  'ends well': { act: ({ run }) => run({ command: 'true' }) },
  'ends with a code': { act: ({ run }) => run({ command: 'exit 3' }) },
  'is killed': { act: ({ run }) => run({ command: 'kill -9 $$' }) },
  'takes too long': { act: ({ run }) => run({ command: 'sleep 1000', timeoutMs: 50 }) },
  'cannot be started': { program: '/nowhere/program', act: ({ run }) => run({ command: 'true' }) },
  'is cancelled': {
    act: ({ run }) => {
      const stop = new AbortController();
      const running = run({ command: 'sleep 1000' }, stop.signal);
      stop.abort();
      return running.catch(() => undefined);
    },
  },
  'ends in the background': { act: ({ run }) => run({ command: 'true', ...inBackground }) },
  'takes too long in the background': {
    act: ({ run }) => run({ command: 'sleep 1000', timeoutMs: 50, ...inBackground }),
  },
  'cannot be started in the background': {
    program: '/nowhere/program',
    act: ({ run }) => run({ command: 'true', ...inBackground }),
  },
  'is stopped in the background': {
    act: async ({ run, stopAll }) => {
      await run({ command: 'sleep 1000', ...inBackground });
      await stopAll();
    },
  },
  'is cancelled before it starts in the background': {
    act: ({ run }) => run({ command: 'sleep 1000', ...inBackground }, AbortSignal.abort()),
  },
  'is one too many in the background': {
    taken: RUNNING_MAX + 1,
    act: async ({ run, running, stopAll }) => {
      for (let count = 0; count <= RUNNING_MAX; count += 1) await run({ command: 'sleep 1000', ...inBackground });
      expect(running()).toBe(RUNNING_MAX);
      await stopAll();
    },
  },
};

describe('a launcher is released once if its command', () => {
  it.each(Object.entries(WAYS))('%s', async (_, { program, taken = 1, act }) => {
    const on = counted(program);
    await act(on);
    await expect.poll(on.running).toBe(0);
    expect(on.count).toEqual({ taken, released: taken });
  });
});

describe('a launcher that fails', () => {
  const resultOf = async (script: string): Promise<unknown> => {
    const launch = async () => ({ program: 'sh', args: ['-c', script], release: async () => undefined });
    const context = { conversationId: 'c', cwd: tmpdir(), signal: new AbortController().signal, progress: () => {} };
    const definition = definitionOf(bashTool(launch, 'ask'));
    const answer = answerOf(await definition?.execute({ command: 'true' }, context as unknown as ToolContext));
    return answer && { ...answer };
  };

  it('gives its reason in one line, and the command counts as not started', async () => {
    const script = 'echo "warning" >&2; echo "sh: no room for /x" >&2; echo "sh: more" >&2; exit 1';
    expect(await resultOf(script)).toMatchObject({
      code: 'not_started',
      content: 'bash could not be started: sh: no room for /x; sh: more',
    });
  });

  it('has no part in the result of a command that printed something, or ended well', async () => {
    expect(await resultOf('echo "sh: x" >&2; exit 0')).toMatchObject({ status: 'success', content: '(no output)' });
    expect(await resultOf('echo printed; echo "sh: x" >&2; exit 2')).toMatchObject({ code: 'exit_2' });
    expect(await resultOf('echo "other: x" >&2; exit 2')).toMatchObject({ code: 'exit_2' });
  });
});
