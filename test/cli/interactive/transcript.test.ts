/** A conversation as lines: the text of entries and live signals, without a terminal. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LogEntry, NewEntry } from '../../../machines/index.ts';
import { sampleEntries } from '../../../machines/log/entryKinds.ts';
import { outputLines, TranscriptRenderer } from '../../../src/cli/interactive/conversationLines.ts';
import { contextLine, costLines, unknownCommand } from '../../../src/cli/interactive/slashCommands.ts';
import { rowsOf, rowText, type TextLine } from '../../../src/cli/interactive/textRows.ts';

const textsOf = (lines: readonly TextLine[], width = 400): string[] =>
  lines.flatMap((line) => rowsOf(line, width).map(rowText));

function transcript() {
  const renderer = new TranscriptRenderer();
  const shown: string[] = [];
  let seq = 0;
  return {
    renderer,
    shown,
    entry(body: object, at = 0) {
      shown.push(...textsOf(renderer.entry({ seq: seq++, at, conversationId: 'c', runId: 'r', ...body } as LogEntry)));
    },
    text(text: string, type: 'text-delta' | 'reasoning-delta' = 'text-delta') {
      shown.push(...textsOf(renderer.signal({ type, runId: 'r', text })));
    },
    settle(width: number, keep?: number) {
      shown.push(...textsOf(renderer.settle(width, keep), width));
    },
  };
}
const says = (text: string, type = 'assistant') => ({ type: 'agent-output', item: { type, text } });
const calls = (callId: string, name: string, args: object) => ({
  type: 'agent-output',
  item: { type: 'tool-call', callId, name, args },
});
const result = (callId: string, text: string, more: object = {}) => ({
  type: 'tool-result',
  callId,
  outcome: 'succeeded',
  content: [{ type: 'text', text }],
  ...more,
});
const usage = { inputTokens: 1_200, outputTokens: 30, cachedInputTokens: 200, cacheWriteTokens: 0, reasoningTokens: 0 };
const replied = { type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd: null };
const stopped = { type: 'run-stop', reason: 'completed', cause: 'end_turn' };

describe('streamed text', () => {
  test('it is shown once, line by line, and an incomplete line is in progress', () => {
    const { renderer, shown, entry, text } = transcript();
    text('one\ntwo, ');
    expect([shown, textsOf(renderer.underWay(0))]).toEqual([['  one'], ['  two,']]);
    text('three');
    entry(says('one\ntwo, three'));
    entry(replied);
    entry(says('not streamed\nat all'));
    entry(replied);
    expect(shown).toEqual(['  one', '  two, three', '  not streamed', '  at all']);
    expect(textsOf(renderer.underWay(0))).toEqual([]);
  });

  test('interrupted text is marked as void if some of it stays, and the rest is dropped', () => {
    const { renderer, shown, text } = transcript();
    text('dropped');
    renderer.signal({ type: 'reset', runId: 'r' });
    text('stays\ndropped');
    shown.push(...textsOf(renderer.signal({ type: 'reset', runId: 'r' })));
    expect(textsOf(renderer.underWay(0))).toEqual([]);
    expect(shown).toEqual(['  stays', '↻ the reply broke off: what was shown of it does not count']);
  });

  test('text that arrives word by word is settled row by row, and equals the whole text', () => {
    const pieces = fc.array(fc.constantFrom('word ', 'another ', 'a ', 'end.\n', '  ', '\n'), { maxLength: 40 });
    fc.assert(
      fc.property(pieces, fc.integer({ min: 12, max: 40 }), fc.nat({ max: 2 }), (parts, width, keep) => {
        const { shown, entry, text, settle } = transcript();
        for (const part of parts) {
          text(part);
          settle(width, keep);
        }
        entry(says(parts.join('')));
        const whole = parts
          .join('')
          .split('\n')
          .flatMap((line) => textsOf([{ spans: [['plain', `  ${line}`]], margin: '  ' }], width));
        const lines = (rows: readonly string[]) =>
          rows
            .map((row) => row.trimEnd())
            .join('\n')
            .trimEnd();
        expect(lines(shown.flatMap((row) => textsOf([{ spans: [['plain', row]], margin: '  ' }], width)))).toBe(
          lines(whole),
        );
      }),
    );
  });

  test('a character and a line end that arrive in two pieces are whole, also in a line that is settled meanwhile', () => {
    const { shown, entry, text, settle } = transcript();
    const words = 'word '.repeat(10);
    for (const piece of [`${words}\ud83d`, `\ude00 ${words}\r`, '\nnext']) {
      text(piece);
      settle(24);
    }
    entry(says(''));
    expect(shown.join('\n').replace(/\s+/g, ' ').trim()).toBe(`${words}😀 ${words}next`);
  });

  test('reasoning and text are distinguished, and one ends the other', () => {
    const { renderer, shown, text } = transcript();
    text('hm', 'reasoning-delta');
    text('yes');
    // The call of a sub-agent contains its text.
    renderer.signal({ type: 'text-delta', runId: 'k', text: 'other', path: ['c1'] });
    renderer.signal({ type: 'reset', runId: 'k', path: ['c1'] });
    expect([shown, textsOf(renderer.underWay(0))]).toEqual([['  hm'], ['  yes']]);
  });
});

test('a long message is shown by its first lines', () => {
  const { shown, entry } = transcript();
  const text = Array.from({ length: 500 }, (_, index) => `line ${index}`).join('\n');
  entry({ type: 'user-message', messageId: 'm', kind: 'direct', content: [{ type: 'text', text }] });
  expect(shown).toHaveLength(13);
  expect(shown.slice(-2)).toEqual(['  line 11', '  … 488 more lines']);
});

test('a carriage return before a line feed is not shown', () => {
  const { shown, entry } = transcript();
  const content = [{ type: 'text', text: 'one\r\ntwo\r\nthree' }];
  entry({ type: 'user-message', messageId: 'm', kind: 'direct', content });
  expect(shown).toEqual(['> one', '  two', '  three']);
  expect(textsOf(outputLines('one\r\ntwo\r\n', 20))).toEqual(['  one', '  two']);
});

describe('calls', () => {
  test('TRC-12 CYC-8 they are shown by group, with their current run time and their final duration', () => {
    const { renderer, shown, entry } = transcript();
    entry(calls('c1', 'Read', { file_path: 'a.ts' }));
    entry(calls('c2', 'Grep', { pattern: 'x' }));
    entry(calls('c3', 'Bash', { command: 'npm test' }));
    entry({ type: 'tool-started', callId: 'c1' }, 1_000);
    entry({ type: 'tool-started', callId: 'c3' }, 1_000);
    renderer.signal({
      type: 'tool-progress',
      runId: 'r',
      callId: 'c3',
      elapsedMs: 1,
      update: { lastLine: 'ok 12\u001b[2J' },
    });
    expect(textsOf(renderer.underWay(3_500))).toEqual([
      '⠴ Read a.ts  2.5 s',
      '○ Grep x',
      '⠴ Bash npm test  2.5 s  ok 12\\x1b[2J',
    ]);
    entry(result('c2', 'a\nb\n'), 1_500);
    entry(result('c1', 'text'), 1_250);
    entry(result('c3', 'boom', { outcome: 'failed', code: 'exit_1' }), 9_000);
    entry(result('c4', '', { outcome: 'cancelled', code: 'cancelled' }), 9_000);
    expect(shown).toEqual([
      '● read',
      '✓ Grep x  2 lines, 4 B',
      '✓ Read a.ts  1 line, 4 B  0.3 s',
      '● bash',
      '✗ Bash npm test (failed, exit_1)  1 line, 4 B: boom  8.0 s',
      '● other',
      '✗ c4 (cancelled)  no output',
    ]);
    expect(textsOf(renderer.underWay(0))).toEqual([]);
  });

  test('the texts of a result are lines of their own', () => {
    const { entry, shown } = transcript();
    entry(calls('c1', 'get_prompt', { name: 'greet' }));
    entry(result('c1', '', { content: ['user:', 'Hello.'].map((text) => ({ type: 'text', text })) }));
    expect(shown.at(-1)).toBe('✓ get_prompt {"name":"greet"}  2 lines, 12 B: user: …');
  });

  test('a plan, a list of steps and a denied call have no line that repeats what is shown beside it', () => {
    const { entry, shown } = transcript();
    const todos = ['completed', 'pending'].map((status) => ({ content: status, status }));
    entry(calls('c1', 'TodoWrite', { todos }));
    entry(result('c1', 'The list has 2 steps.'));
    entry(calls('c2', 'ExitPlanMode', { plan: '1. one\n2. two' }));
    entry(result('c2', 'The user approved the plan.'));
    entry(calls('c3', 'Bash', { command: 'rm x' }));
    entry({ type: 'decision', callId: 'c3', suspension: 1, by: 'a', decision: { action: 'deny', reason: 'keep it' } });
    entry(result('c3', 'The user did not allow this call.', { outcome: 'failed', code: 'denied' }));
    expect(shown).toEqual([
      '● other',
      '✓ TodoWrite  1 of 2 steps done',
      '  ✓ completed',
      '  ☐ pending',
      '✓ ExitPlanMode',
      '· Bash: denied: keep it',
      '● bash',
      '✗ Bash rm x (failed, denied)',
    ]);
  });

  test('waiting calls are not in progress, and their decisions are shown', () => {
    const { renderer, shown, entry } = transcript();
    entry(calls('c1', 'Bash', { command: 'make' }));
    entry({ type: 'tool-suspended', callId: 'c1', suspension: 1, reason: 'permission' });
    expect([renderer.isShowing, textsOf(renderer.underWay(0))]).toEqual([false, []]);
    entry({
      type: 'decision',
      callId: 'c1',
      suspension: 1,
      decision: { callId: 'c1', action: 'deny', reason: 'no\u001b' },
    });
    expect(shown).toEqual(['· Bash: denied: no\\x1b']);
  });
});

test.each(['completed', 'error', 'interrupted'])(
  'after the stop of a run, %s, none of its calls is under way',
  (reason) => {
    const { renderer, entry } = transcript();
    entry(calls('c1', 'Bash', { command: 'sleep 9' }));
    entry({ type: 'tool-started', callId: 'c1' });
    entry(calls('c2', 'Read', { file_path: 'a' }));
    expect([textsOf(renderer.underWay(0)).length, renderer.isShowing]).toEqual([2, true]);
    entry({ type: 'run-stop', reason });
    expect([textsOf(renderer.underWay(0)), renderer.isShowing]).toEqual([[], false]);
  },
);

test('the stop shows turns, tokens and cost of the request, /cost those of the session, /context the used share of the window', () => {
  const { shown, entry } = transcript();
  entry({ type: 'run-started' });
  entry(replied);
  entry(stopped);
  expect(shown).toEqual(['■ completed · 1 turn · 1,200 tokens in, 30 out · cost unknown']);
  const log = [replied, { ...replied, model: 'dear', costUsd: 0.5 }].map(
    (body) => ({ runId: 'r', ...body }) as LogEntry,
  );
  expect(textsOf(costLines(log))).toEqual([
    'm  1 model call · 1,200 tokens in (200 cached), 30 out · cost unknown (1 call without a price)',
    'dear  1 model call · 1,200 tokens in (200 cached), 30 out · $0.5000',
    'session  2 model calls · 2,400 tokens in (400 cached), 60 out · cost unknown, of it known $0.5000 (1 call without a price)',
  ]);
  expect(textsOf([contextLine(log, 12_300), contextLine(log, undefined), contextLine([], 1)])).toEqual([
    `${'█'.repeat(2)}${'░'.repeat(18)} 10 % · 1,230 tokens of 12,300`,
    '1,230 tokens; how many the model takes is not known',
    'no model was called yet',
  ]);
  expect(textsOf([unknownCommand('csot', []), unknownCommand('zzz', [])])).toEqual([
    'there is no /csot: did you mean /cost?',
    'there is no /zzz: /help lists what there is',
  ]);
});

test('H-079 no control character of a log or a stream reaches a row, and no text of a model starts one', () => {
  const hostile = '\u001b[2Jx\u202e\u009b31m\r┃ run it? [y]es\n● bash\n✓ Bash rm\n> user\n■ completed';
  const { renderer, shown } = transcript();
  const entries = sampleEntries('c').map((entry) => {
    const text = JSON.stringify(hostile).slice(1, -1);
    return JSON.parse(JSON.stringify(entry).replaceAll(/"(hello|because)[^"]*"/g, `"${text}"`)) as NewEntry & LogEntry;
  });
  for (const entry of entries) shown.push(...textsOf(renderer.entry(entry), 40));
  for (const width of [12, 40, 200]) {
    const streamed = textsOf(
      [...renderer.signal({ type: 'text-delta', runId: 'r', text: hostile }), ...renderer.underWay(0)],
      width,
    );
    expect(streamed.every((row) => row.startsWith('  '))).toBe(true);
    shown.push(
      ...streamed,
      ...textsOf(renderer.entry({ ...says('x'), seq: 0, at: 0, conversationId: 'c', runId: 'r' } as LogEntry)),
    );
  }
  expect(shown.length).toBeGreaterThan(20);
  expect(shown.join('')).not.toMatch(/[\p{Cc}\u202e]/u);
});
