/** Figures, ends and codes that the program prints: each value of a table, and both sides of each boundary. */
import { describe, expect, test } from 'vitest';
import type { LogEntry, StoredPart } from '../../machines/internal.ts';
import {
  costText,
  count,
  emptyTally,
  ReplaySpending,
  sumOfTallies,
  tallyText,
  withReply,
} from '../../src/cli/costTally.ts';
import { EXIT_CODES, exitCodeOf, exitCodeOfError } from '../../src/cli/exitCodes.ts';
import { contextLine } from '../../src/cli/interactive/slashCommands.ts';
import { windowAfter } from '../../src/cli/models/contextRecovery.ts';
import { outcomeText, resultText, sizeText } from '../../src/cli/renderLog.ts';
import { sessionFacts, sessionText } from '../../src/cli/sessions/sessionsCommand.ts';
import { AgentBusyError, ConfigurationError, LimitError, RunchartError, SessionBusyError } from '../../src/errors.ts';
import type { RunResult } from '../../src/index.ts';
import type { ConversationInfo } from '../../src/stores/logStore.ts';

describe('the exit code', () => {
  const SUBTYPES = [
    'success',
    'suspended',
    'error_max_turns',
    'error_max_budget_usd',
    'error_during_execution',
  ] as const;
  const OF_ERRORS: { readonly [subtype: string]: number } = { error_max_turns: 4, error_max_budget_usd: 5 };
  const CODES: readonly (readonly [RunResult['reason'], (subtype: string) => number])[] = [
    ['completed', () => 0],
    ['interrupted', () => 130],
    [null, () => 3],
    ['error', (subtype) => OF_ERRORS[subtype] ?? 1],
  ];

  test('of a run depends on its reason, and only for an error on its subtype', () => {
    for (const [reason, codeOf] of CODES)
      for (const subtype of SUBTYPES)
        expect([reason, subtype, exitCodeOf({ reason, subtype })]).toEqual([reason, subtype, codeOf(subtype)]);
  });

  test('of an error is 2 if arguments mend it, 6 for a session in use, and else 1', () => {
    const errors: readonly (readonly [unknown, number])[] = [
      [new ConfigurationError('x'), 2],
      [new SessionBusyError('x'), 6],
      [new AgentBusyError('agent_busy', 'x'), 1],
      [new LimitError('x'), 1],
      [new RunchartError('other', 'x'), 1],
      [new Error('x'), 1],
      ['x', 1],
      [undefined, 1],
    ];
    for (const [error, code] of errors) expect(exitCodeOfError(error)).toBe(code);
  });

  test('the help text names every code', () => {
    expect([...EXIT_CODES.matchAll(/\b\d+\b/g)].map(Number)).toEqual([0, 1, 2, 3, 4, 5, 6, 130]);
  });
});

const usage = { inputTokens: 1_200, outputTokens: 30, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const entry = (fields: object): LogEntry => ({ seq: 0, at: 0, conversationId: 'c', runId: 'r', ...fields }) as LogEntry;
const reply = (costUsd: number | null, more: object = {}) =>
  entry({ type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage: { ...usage, ...more }, costUsd }) as Extract<
    LogEntry,
    { type: 'model-reply' }
  >;

describe('a cost', () => {
  test.each([
    [0, '$0'],
    [0.000_001, '$0.000001'],
    [0.009_999, '$0.009999'],
    [0.01, '$0.0100'],
    [1.234_56, '$1.2346'],
    [null, 'cost unknown'],
  ])('of %s USD is shown as %s', (costUsd, text) => {
    expect(costText({ ...emptyTally, costUsd })).toBe(text);
  });

  test('and its tokens are summed over replies and over tallies, and one unknown price makes the sum unknown', () => {
    const one = withReply(emptyTally, reply(0.25));
    const two = withReply(one, reply(0.5));
    expect(two).toEqual({ turns: 2, inputTokens: 2_400, outputTokens: 60, costUsd: 0.75 });
    expect(tallyText(one)).toBe('1 turn · 1,200 tokens in, 30 out · $0.2500');
    expect(tallyText(two)).toBe('2 turns · 2,400 tokens in, 60 out · $0.7500');
    expect(sumOfTallies([one, two])).toEqual({ turns: 3, inputTokens: 3_600, outputTokens: 90, costUsd: 1 });
    const unknown = withReply(emptyTally, reply(null));
    for (const tallies of [
      [one, unknown],
      [unknown, one],
    ])
      expect(sumOfTallies(tallies).costUsd).toBeNull();
    expect(withReply(unknown, reply(0.5)).costUsd).toBeNull();
    expect(sumOfTallies([])).toEqual(emptyTally);
  });

  test('of a request in a log is that of its own runs: resumed ones and summaries count, steering begins no request', () => {
    const spending = new ReplaySpending();
    const message = (runId: string, messageId: string, kind = 'direct') => ({
      type: 'user-message',
      runId,
      messageId,
      kind,
    });
    const entries: readonly object[] = [
      message('r1', 'm1'),
      reply(0.25),
      { ...reply(0.5), runId: 'r1' },
      message('r1', 'm2', 'steer'),
      { type: 'compaction', runId: 'r1', usage, costUsd: 0.125 },
      { type: 'compaction', runId: 'r1' },
      { type: 'run-resumed', runId: 'r2', of: 'r1' },
      { ...reply(1), runId: 'r2' },
      message('r3', 'm3', 'queue'),
      { ...reply(8), runId: 'r3' },
      { type: 'run-resumed', runId: 'r9', of: 'unknown' },
      { ...reply(100), runId: 'r9' },
    ];
    for (const each of [null, 'x', ...entries]) spending.addEntry(each);
    const tallyOf = (messageId: string, usages: readonly (typeof usage | undefined)[] = [usage]) =>
      spending.tallyOf({ root: { messageId }, rounds: usages.map((each) => ({ usage: each })) } as never);
    expect(tallyOf('m1')?.costUsd).toBe(1.625);
    expect(tallyOf('m3')).toEqual({ turns: 1, inputTokens: 1_200, outputTokens: 30, costUsd: 8 });
    expect(tallyOf('m3', [usage, undefined, usage])).toMatchObject({ turns: 2, inputTokens: 2_400, outputTokens: 60 });
    expect([tallyOf('m2')?.costUsd, tallyOf('m1', [undefined]), tallyOf('m1', [])]).toEqual([
      null,
      undefined,
      undefined,
    ]);
  });
});

describe('an amount', () => {
  test('of one has no plural, and thousands are separated', () => {
    expect([0, 1, 2, 1_000].map((number) => count(number, 'line'))).toEqual([
      '0 lines',
      '1 line',
      '2 lines',
      '1,000 lines',
    ]);
  });

  const text = (words: string): StoredPart => ({ type: 'text', text: words });
  const image: StoredPart = { type: 'image', mediaType: 'image/png', data: 'aa' };
  const file: StoredPart = { type: 'file', mediaType: 'application/pdf', data: 'aa', name: 'a.pdf' };
  test.each<[StoredPart[], string]>([
    [[], 'no output'],
    [[text('')], 'no output'],
    [[text('a')], '1 line, 1 B'],
    [[text('a\n')], '1 line, 2 B'],
    [[text('a\n\n')], '2 lines, 3 B'],
    [[text('a'), text('b')], '2 lines, 3 B'],
    [[text('é'.repeat(499))], '1 line, 998 B'],
    [[text('a'.repeat(999))], '1 line, 999 B'],
    [[text('a'.repeat(1_000))], '1 line, 1.0 kB'],
    [[image], '0 lines, 0 B, 1 image'],
    [[text('a'), image, image, file], '1 line, 1 B, 2 images, 1 file'],
  ])('of output %# is %s', (content, size) => {
    expect(sizeText(content)).toBe(size);
  });

  test('of a result is followed by its first line, if there is a text', () => {
    expect(resultText([text('\n  first\nsecond')])).toBe('3 lines, 15 B: first …');
    expect([resultText([]), resultText([text('')])]).toEqual(['no output', 'no output']);
  });

  test('a code that repeats its outcome is left out', () => {
    expect([
      outcomeText('failed', undefined),
      outcomeText('failed', 'failed'),
      outcomeText('failed', 'exit_1'),
    ]).toEqual(['failed', 'failed', 'failed, exit_1']);
  });
});

const session = (more: object = {}): ConversationInfo =>
  ({
    id: 's',
    cwd: '/w',
    createdAt: 0,
    updatedAt: 0,
    turns: 1,
    costUsd: 0.5,
    status: 'idle',
    ...more,
  }) as ConversationInfo;

describe('a row of sessions', () => {
  test.each([
    [-5_000, '0 s'],
    [0, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_599_999, '59 min'],
    [3_600_000, '1 h'],
    [86_399_999, '23 h'],
    [86_400_000, '1 d'],
    [30 * 86_400_000, '30 d'],
  ])('after %s ms has the age %s', (ms, age) => {
    expect(sessionFacts(session(), ms).age).toBe(age);
  });

  test.each<readonly [ConversationInfo['status'], string | undefined, string]>([
    ['idle', undefined, 'idle'],
    ['idle', 'end_turn', 'idle'],
    ['idle', 'history', 'idle'],
    ...['cancelled', 'timeout', 'superseded', 'hook', 'a-plugin'].map((cause) => ['idle', cause, cause] as const),
    ...['max_turns', 'max_budget', 'max_total_tokens', 'max_tokens'].map((cause) => ['idle', cause, cause] as const),
    ...['context_exhausted', 'no_progress', 'empty_replies'].map((cause) => ['idle', cause, cause] as const),
    ...['model', 'store', 'executor', 'tool', 'state', 'internal'].map(
      (cause) => ['idle', cause, `failed (${cause})`] as const,
    ),
    ['idle', 'crash', 'interrupted'],
    ['waiting', 'model', 'waiting'],
    ['active', 'crash', 'active'],
  ])('that is %s after %s reads %s', (status, lastCause, state) => {
    expect(sessionFacts(session({ status, lastCause }), 0).state).toBe(state);
  });

  test('has its directory only if that is asked for, and is one printable line', () => {
    const row = session({ title: 'a\nb\u001b[2J', cwd: '/w\u202e' });
    expect(sessionText(row, 0)).not.toContain('/w');
    expect(sessionText(row, 0, true)).toContain('/w\\u202e');
    for (const text of [sessionText(row, 0), sessionText(row, 0, true)]) expect(text).not.toMatch(/\p{Cc}|\u202e/u);
    expect(sessionFacts(session({ turns: 0, costUsd: 0 }), 0).cost).toBe('no cost');
  });
});

describe('the share of the context', () => {
  test.each([
    [0, 'green', 0],
    [1, 'green', 1],
    [59, 'green', 12],
    [60, 'yellow', 12],
    [84, 'yellow', 17],
    [85, 'red', 17],
    [100, 'red', 20],
    [150, 'red', 20],
  ])('of %s per cent is %s with %s marks', (share, style, marks) => {
    const { spans } = contextLine([reply(0, { inputTokens: share, outputTokens: 0 })], 100);
    expect(spans[0]).toEqual([style, '█'.repeat(marks)]);
    expect(spans[1]).toEqual(['dim', '░'.repeat(20 - marks)]);
    expect(spans[2]).toEqual(['bold', ` ${share} %`]);
  });

  test('is that of the last reply, with its output, and unknown without a window or a reply', () => {
    const replies = [reply(0, { inputTokens: 90 }), reply(0, { inputTokens: 10, outputTokens: 5 })];
    expect(contextLine(replies, 100).spans[2]).toEqual(['bold', ' 15 %']);
    expect(contextLine(replies, undefined).spans).toEqual([
      ['plain', '15 tokens; how many the model takes is not known'],
    ]);
    expect(contextLine([], 100).spans).toEqual([['plain', 'no model was called yet']]);
  });
});

describe('the window after a request that was too long', () => {
  const windowFor = (message: string, contextWindow?: number, entries: readonly LogEntry[] = []) =>
    windowAfter({ code: 'bad-request', message }, contextWindow === undefined ? {} : { contextWindow }, entries);

  test.each([
    ['maximum context length is 999 tokens', 1_000],
    ['maximum context length is 1000 tokens', 1_000],
    ['maximum context length is 1_001 tokens', 1_001],
    ['maximum context length is 20,000,000 tokens', 20_000_000],
    ['maximum context length is 20,000,001 tokens', 1_000],
  ])('after "%s" is %s', (message, window) => {
    expect(windowFor(message)).toBe(window);
  });

  test('without a figure is four fifths of the tokens of the last reply, and at most of the context window', () => {
    const replies = [reply(0, { inputTokens: 90_000 }), reply(0, { inputTokens: 9_000, outputTokens: 1_000 })];
    expect(windowFor('prompt is too long', undefined, replies)).toBe(8_000);
    expect(windowFor('prompt is too long', 5_000, replies)).toBe(4_000);
    expect(windowFor('prompt is too long', 5_000, [reply(0, { inputTokens: 0, outputTokens: 0 })])).toBe(1_000);
  });

  test('is none if the request that is too long is the continued one, but a later request is continued again', async () => {
    const { CONTINUED } = await import('../../src/cli/models/contextRecovery.ts');
    const message = (words: string) => entry({ type: 'user-message', content: [{ type: 'text', text: words }] });
    expect(windowFor('prompt is too long', 5_000, [message('go'), message(CONTINUED)])).toBeUndefined();
    expect(windowFor('prompt is too long', 5_000, [message(CONTINUED), message('go')])).toBe(1_000);
  });
});
