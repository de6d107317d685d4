/** One hook run alone: its valid answers, its failures, and the limit of a command's output. */
import { realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { type Hook, type HookAnswer, type HookInput, type HookPorts, runHook } from '../../src/hooks/runHook.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const cwd = realpathSync(tmpdir());
const input: HookInput = { event: 'PreToolUse', conversationId: 'c', runId: 'r', cwd, args: { a: 1 } };
const answerOf = (hook: Hook, ports: Partial<HookPorts> = {}): Promise<HookAnswer> => {
  const { setTimer } = new VirtualClock();
  return runHook(hook, input, { setTimer, signal: new AbortController().signal, ...ports });
};
const saidOutput = (output: object) => ({ kind: 'said', output });
const failed = (...words: string[]) => ({
  kind: 'failed',
  message: expect.stringMatching(new RegExp(words.join('.*'), 's')),
});

describe('the answer of a function', () => {
  it.each([undefined, null, {}])('%j has no effect', async (answer) => {
    expect(await answerOf({ run: () => answer as never })).toEqual(saidOutput({}));
  });

  it.each([
    ...[{ continue: true }, { continue: false }, { suppressOutput: true }, { suppressOutput: false }],
    ...[{ decision: 'allow' }, { decision: 'ask' }, { decision: 'block' }],
    ...[{ reason: '' }, { stopReason: 'a' }, { additionalContext: 'a' }],
    ...[{ updatedInput: null }, { updatedInput: { a: [1] } }],
  ])('%j is used', async (answer) => {
    expect(await answerOf({ run: () => answer as never })).toEqual(saidOutput(answer));
  });

  it.each([
    ...['continue', 'suppressOutput'].flatMap((key) =>
      [1, 'true', null, {}].map((value) => [{ [key]: value }, `${key} must be true or false`] as const),
    ),
    ...['reason', 'stopReason', 'additionalContext'].flatMap((key) =>
      [1, true, null, ['a']].map((value) => [{ [key]: value }, `${key} must be a text`] as const),
    ),
    ...['deny', 'Allow', '', 1, null].map((decision) => [{ decision }, 'decision must be'] as const),
    ...['allow', 1, true, [{ decision: 'allow' }]].map((value) => [value, 'an object, or nothing'] as const),
    [{ updatedInput: 1n }, 'a hook answers JSON'] as const,
  ])('%o is a failure, because it is ambiguous', async (answer, why) => {
    expect(await answerOf({ run: () => answer as never })).toEqual(failed(why));
  });

  it('it is awaited until its time limit, which is 5 s by default', async () => {
    for (const [options, ms] of [
      [{}, 5_000],
      [{ timeoutMs: 70 }, 70],
    ] as const) {
      const clock = new VirtualClock();
      const answer = answerOf({ ...options, run: () => new Promise(() => undefined) }, { setTimer: clock.setTimer });
      expect(await clock.until(answer, 10_000)).toBe(ms);
      expect(await answer).toEqual(failed('took longer than', `${ms}`));
    }
  });

  it('an error is a failure, and rejects only after a cancel', async () => {
    const fails: Hook = {
      run: () => {
        throw new Error('broken');
      },
    };
    expect(await answerOf(fails)).toEqual(failed('broken'));
    const signal = AbortSignal.abort(new Error('cancelled'));
    await expect(answerOf(fails, { signal })).rejects.toThrow('cancelled');
  });

  it('it cannot change the event of the next hook', async () => {
    const changes: Hook = {
      run(event) {
        event.toolName = 'another';
      },
    };
    expect(await answerOf(changes)).toMatchObject({ kind: 'failed' });
    expect(input.toolName).toBeUndefined();
  });
});

describe('the answer of a command', () => {
  it.each<[string, string, object]>([
    ['an object on its output', `echo ' {"reason":"a"} '`, saidOutput({ reason: 'a' })],
    ['nothing, if it prints something else', 'echo fine', saidOutput({})],
    ['nothing, if it prints nothing', 'true', saidOutput({})],
    [
      'a block, by exit code 2, with its error output',
      'echo " no " >&2; exit 2',
      saidOutput({ decision: 'block', reason: 'no' }),
    ],
    ['a block without a reason', 'exit 2', saidOutput({ decision: 'block', reason: 'blocked by a hook' })],
    ['a failure, by another exit code, with its error output', 'echo oh >&2; exit 3', failed('exit code 3: oh')],
    ['a failure, by a signal that ended it', 'kill -9 $$', failed('SIGKILL')],
    ['a failure, if its output is not JSON', `echo '{a}'`, failed('JSON')],
    [
      'its complete characters, if they arrive in pieces',
      `printf '{"reason":"\\303'; sleep 0.05; printf '\\251"}'`,
      saidOutput({ reason: 'é' }),
    ],
    ['its variable of the working directory', `printf '{"reason":"%s"}' "$RUNCHART_CWD"`, saidOutput({ reason: cwd })],
    ['although it does not read its input', `exec <&-; echo '{"reason":"a"}'`, saidOutput({ reason: 'a' })],
  ])('is %s', async (_, command, expected) => {
    expect(await answerOf({ command })).toEqual(expected);
  });

  it('a reason has at most 16 KiB, and an output over 1 MiB is not read to its end', async () => {
    const long = 'head -c 20000 /dev/zero | tr "\\0" x >&2';
    expect(await answerOf({ command: `${long}; exit 2` })).toEqual(
      saidOutput({ decision: 'block', reason: 'x'.repeat(16_384) }),
    );
    const pair = `head -c 16383 /dev/zero | tr "\\0" x >&2; printf '🎉' >&2`;
    expect(await answerOf({ command: `${pair}; exit 2` })).toEqual(
      saidOutput({ decision: 'block', reason: 'x'.repeat(16_383) }),
    );
    const failure = await answerOf({ command: `${long}; exit 1` });
    expect(failure.kind === 'failed' && failure.message.length).toBeLessThan(16_384 + 100);
    const command = `printf '{"reason":"'; head -c 3000000 /dev/zero | tr "\\0" x; printf '"}'`;
    expect(await answerOf({ command })).toMatchObject({ kind: 'failed' });
  });
});
