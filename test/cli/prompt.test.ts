import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type PromptOptions, readPrompt, showCall } from '../../src/cli/personInput.ts';
import { Screen } from '../../src/cli/screen.ts';
import { sessionsDirectory } from '../../src/cli/sessions/sessionPlace.ts';
import { newSessionId } from '../../src/cli/sessions/sessionStore.ts';

const options = (overrides: Partial<PromptOptions> = {}): PromptOptions => ({
  optional: true,
  note: () => {},
  signal: new AbortController().signal,
  ...overrides,
});
const piped = (...chunks: (string | Buffer)[]): PassThrough => {
  const input = new PassThrough();
  for (const chunk of chunks) input.write(chunk);
  input.end();
  return input;
};

describe('the prompt', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test.for([
    ['explain', ['a\n', 'b\n'], 'explain\n\na\nb'],
    ['', ['only this\n'], 'only this'],
    ['  only that ', [], 'only that'],
    ['', ['\n'], ''],
  ] as const)('the prompt %j and the pipe %j give %j', async ([words, chunks, prompt]) => {
    expect(await readPrompt(words, piped(...chunks), options())).toBe(prompt);
  });

  // Chunks that wait in a stream become one, so each of these is written when the one before was read.
  test.each(['naïve', 'a€b', '👍🏽', '日本語'])('it is decoded as UTF-8, wherever %j is split', async (text) => {
    const bytes = Buffer.from(text);
    for (let at = 1; at < bytes.length; at += 1) {
      const input = new PassThrough();
      const prompt = readPrompt('', input, options());
      input.write(bytes.subarray(0, at));
      await new Promise((resolve) => setImmediate(resolve));
      input.end(bytes.subarray(at));
      expect([at, await prompt]).toEqual([at, text]);
    }
  });

  test('a pipe that is silent for three seconds is ignored if there is another prompt', async () => {
    const notes: string[] = [];
    const prompt = readPrompt('hello', new PassThrough(), options({ note: (text) => notes.push(text) }));
    await vi.advanceTimersByTimeAsync(2_999);
    expect(notes).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(notes).toEqual(['nothing came on standard input within 3 s: going on without it']);
    expect(await prompt).toBe('hello');
  });

  test('a pipe that has sent some text is read to its end, however long that takes', async () => {
    const input = new PassThrough();
    const prompt = readPrompt('', input, options());
    input.write('first');
    await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(60_000);
    input.end(' last');
    expect(await prompt).toBe('first last');
  });

  test('without a prompt a silent pipe is awaited until an abort', async () => {
    const input = new PassThrough();
    const abort = new AbortController();
    const prompt = readPrompt('', input, options({ optional: false, signal: abort.signal }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(input.destroyed).toBe(false);
    abort.abort();
    expect(await prompt).toBe('');
  });

  test('more than 4 MiB is refused with the next step', async () => {
    const tooLong = piped(Buffer.alloc(4 * 1024 * 1024 + 1, 'x'));
    await expect(readPrompt('', tooLong, options())).rejects.toThrow('give the model a file to read');
  });
});

describe('sessions', () => {
  test('they are stored below XDG_STATE_HOME if it is an absolute path, otherwise below the home directory', () => {
    expect(sessionsDirectory(undefined, { XDG_STATE_HOME: '/var/state' })).toBe('/var/state/runchart');
    expect(sessionsDirectory(undefined, { XDG_STATE_HOME: 'state' })).toMatch(/\.local[\\/]state[\\/]runchart$/);
    expect(sessionsDirectory(undefined, {})).toBe(sessionsDirectory(undefined, { XDG_STATE_HOME: '' }));
  });

  test('they have ids that sort by time', () => {
    expect(newSessionId(new Date('2026-01-02T03:04:05Z'))).toMatch(/^20260102-030405-[0-9a-f]{6}$/);
  });
});

test('a waiting call is shown completely, with the matching rules for its command parts, and controls no terminal', () => {
  let shown = '';
  const output = {
    write(text: string) {
      shown += text;
    },
    styled: false,
  };
  const parts = [
    { text: 'git status', outcome: 'allow', by: 'read-only' },
    { text: 'make \u001b[2J', outcome: 'ask', by: 'mode default' },
  ];
  const args = { command: 'git status && make \u001b[2J' };
  const call = { callId: 'c1', name: 'Bash', args, reason: 'permission', suspension: 1, path: ['c1'] };
  showCall(new Screen({ reply: output, steps: output }), {
    ...call,
    payload: { by: 'mode default', parts, rules: [] },
  });
  expect(shown.split('\n')).toEqual([
    '? Bash waits for a decision (permission). It would run with',
    '    {',
    '      "command": "git status && make \\u001b[2J"',
    '    }',
    '    git status  allow (read-only)',
    '    make \\x1b[2J  ask (mode default)',
    '',
  ]);
});
