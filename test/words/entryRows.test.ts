/** The row of each kind of entry in the inspector's Events and its line in a terminal, for each of its forms. */
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import {
  diagnosticText,
  type EntryLine,
  entryWords,
  eventRow,
  markLabel,
  stepNote,
  terminalLine,
} from '../../src/words/entryWords.ts';

type Kind = LogEntry['type'];
const entry = (type: string, fields: object): LogEntry =>
  ({ seq: 7, at: 1_000, conversationId: 'c', runId: 'r', type, ...fields }) as unknown as LogEntry;
const content = [{ type: 'text', text: 'Hello\nyou' }];
const usage = { inputTokens: 1_200, outputTokens: 34, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const decision = (action: string, by?: string) => ({ callId: 'c1', suspension: 1, decision: { action, by } });
const yellow = (text: string): EntryLine => ({ style: 'yellow', text });
const dim = (text: string): EntryLine => ({ style: 'dim', text });

type Row = readonly [fields: object, row: string, line?: EntryLine];
/** For each form of an entry: its icon and words in Events, and its line in a terminal if it has one. */
const ROWS: { readonly [Type in Kind]: readonly Row[] } = {
  conversation: [[{ schema: 3, cwd: '/', createdAt: 1 }, 'none: schema 3']],
  history: [[{ messages: [] }, 'box: {"messages":[]}']],
  'user-message': [[{ messageId: 'm', kind: 'direct', content }, 'person: Hello you']],
  'agent-output': [
    [{ item: { type: 'assistant', text: 'Fine\n.' } }, 'model: Fine .'],
    [{ item: { type: 'reasoning', text: 'Well' } }, 'model: Well'],
    [{ item: { type: 'tool-call', callId: 'c1', name: 'read', args: { path: 'a.ts' } } }, 'model: read a.ts'],
  ],
  'tool-result': [
    [{ callId: 'c1', outcome: 'succeeded', content }, 'done: c1 succeeded'],
    [{ callId: 'c1', outcome: 'failed', content, code: 'denied' }, 'failed: c1 failed'],
    [{ callId: 'c1', outcome: 'cancelled', content }, 'cancelled: c1 cancelled'],
    [{ callId: 'c1', outcome: 'unknown', content }, 'cancelled: c1 unknown'],
  ],
  'run-stop': [
    [{ reason: 'completed', cause: 'end_turn' }, 'done: completed'],
    [{ reason: 'completed', cause: 'plugin' }, 'done: completed · plugin'],
    [{ reason: 'completed' }, 'done: completed'],
    [{ reason: 'interrupted', cause: 'cancelled' }, 'cancelled: interrupted · cancelled'],
    [{ reason: 'error', cause: 'model' }, 'failed: error · model'],
    [{ reason: 'later' }, 'failed: later'],
  ],
  'run-started': [[{}, 'flag: ']],
  'run-resumed': [[{ of: 'r0' }, 'flag: goes on']],
  'run-suspended': [[{ waiting: ['c1', 'c2'] }, 'waiting: c1, c2']],
  'message-queued': [
    [{ messageId: 'm', kind: 'steer', content }, 'person: steer · Hello you'],
    [{ messageId: 'm', kind: 'followUp', content }, 'person: follow-up · Hello you'],
  ],
  'message-returned': [[{ messageId: 'm', why: 'closed' }, 'person: closed']],
  'tool-allowed': [[{ callId: 'c1', by: 'rule' }, 'box: c1 · rule']],
  'tool-started': [[{ callId: 'c1', idempotencyKey: 'k' }, 'started: c1']],
  'tool-suspended': [[{ callId: 'c1', suspension: 2, reason: 'permission' }, 'waiting: c1 permission']],
  decision: [
    [decision('approve', 'ada'), 'person: c1 approve by ada'],
    [decision('edit'), 'person: c1 edit'],
    [decision('answer', 'ada'), 'person: c1 answer by ada'],
    [decision('deny', 'ada'), 'cancelled: c1 deny by ada'],
    [decision('deny'), 'cancelled: c1 deny'],
  ],
  'decision-consumed': [[{ callId: 'c1', suspension: 2 }, 'box: c1 · 2']],
  'call-settled': [[{ callId: 'c1', how: { retry: true } }, 'box: c1']],
  'state-changed': [
    [{ callId: 'c1', writes: { a: 1 } }, 'box: c1'],
    [{ writes: { a: 1 } }, 'box: {"writes":{"a":1}}'],
  ],
  continuation: [
    [
      { text: 'Go on.\nAll of it', why: 'length' },
      'box: Go on. All of it · length',
      dim('· the model is told: Go on. …'),
    ],
  ],
  'model-reply': [
    [{ turn: 1, model: 'm', finish: 'stop', usage, costUsd: 1 }, 'model: stop · 1,200 in · 34 out'],
    [{ turn: 1, model: 'm', finish: 'tool-calls', usage: null }, 'model: tool-calls · 0 in · 0 out'],
  ],
  'model-retry': [
    [
      { turn: 1, attempt: 2, waitMs: 1_540, model: 'm', reason: 'network' },
      'model: attempt 2 · m · network',
      yellow('↻ attempt 2 in 1.5 s: network'),
    ],
    [
      { turn: 1, attempt: 3, waitMs: 0, model: 'm', reason: 'x'.repeat(300) },
      `model: attempt 3 · m · ${'x'.repeat(144)}…`,
      yellow(`↻ attempt 3 in 0.0 s: ${'x'.repeat(199)}…`),
    ],
  ],
  compaction: [
    [
      { upToSeq: 3, summary: 'Short.' },
      'model: 3 · Short.',
      dim('· the older part of the conversation was summarised'),
    ],
  ],
  'context-warning': [
    [{ used: 900, limit: 1_000 }, 'model: 900 · 1000', yellow('! the context holds 900 of 1000 tokens')],
  ],
  'sub-agent': [[{ callId: 'c1', child: 'k', phase: 'ended' }, 'branch: c1 · k · ended']],
  checkpoint: [[{ boundary: 'RunFinished' }, 'checkpoint: RunFinished']],
  renamed: [[{ title: 'Rent\nand more' }, 'person: Rent and more']],
  rewound: [[{ toSeq: 0 }, 'person: to 0']],
  notice: [[{ code: 'n', text: 'Look\nhere' }, 'failed: n · Look here', yellow('! Look …')]],
  diagnostic: [
    [{ code: 'odd' }, 'failed: odd', dim('! odd')],
    [{ code: 'odd', detail: { a: 1 } }, 'failed: odd', dim('! odd {"a":1}')],
  ],
  extension: [[{ name: 'x', value: { a: 1 } }, 'box: x']],
};
const rows = Object.entries(ROWS).flatMap(([type, forms]) =>
  forms.map(([fields, row, line]) => [type, fields, row, line] as const),
);

it.each(rows)('%s with %j is the row and line it should be', (type, fields, row, line) => {
  const { icon, words } = eventRow(entry(type, fields));
  expect(`${icon}: ${words}`).toBe(row);
  expect(terminalLine(entry(type, fields))).toEqual(line);
});

it.each(['later-kind', 'constructor', 'toString'])(
  'an entry of the kind %s, of a later version, shows its fields and has no other words',
  (type) => {
    const later = entry(type, { name: 'x', size: 3, flag: true });
    expect(eventRow(later)).toEqual({ icon: 'box', words: 'x · 3' });
    expect(eventRow(entry(type, { flag: true }))).toEqual({ icon: 'box', words: '{"flag":true}' });
    expect([stepNote(later, undefined), markLabel(later), terminalLine(later)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  },
);

describe('the note of an entry', () => {
  const note = (type: string, fields: object, model?: string) => stepNote(entry(type, fields), model);
  const retry = { turn: 1, attempt: 2, waitMs: 0, model: 'small', reason: 'network: gone' };

  it('of a failed attempt is a fault, and names the model that failed only if another one is next', () => {
    const same = 'The model call failed. Attempt 2 asks small.';
    expect(note('model-retry', retry)).toEqual({ words: same, more: 'network: gone', isFault: true });
    expect(note('model-retry', retry, 'small')?.words).toBe(same);
    expect(note('model-retry', retry, 'large')?.words).toBe('The model large failed. Attempt 2 falls back to small.');
    expect(note('model-retry', { ...retry, waitMs: 1 })?.words).toBe(
      'The model call failed. Attempt 2 asks small after 1 ms.',
    );
  });

  it('of a notice and of a diagnostic is a fault, with the whole of it below', () => {
    expect(note('notice', { code: 'n', text: 'Look\nhere' })).toEqual({
      ...{ words: 'Look here', more: 'Look\nhere', isFault: true },
    });
    const words = 'Diagnostic: odd';
    expect(note('diagnostic', { code: 'odd' })).toEqual({ words, isFault: true });
    expect(note('diagnostic', { code: 'odd', detail: 'why' })).toEqual({ words, isFault: true, more: 'why' });
    expect(note('diagnostic', { code: 'odd', detail: null })).toEqual({ words, isFault: true, more: 'null' });
    expect(note('diagnostic', { code: 'odd', detail: { a: 1 } })?.more).toBe('{\n  "a": 1\n}');
  });

  it('of a summary has its text below, and of a continuation what the model was asked', () => {
    expect(note('compaction', { upToSeq: 1_200, summary: 'Short.', model: 'm' })).toEqual({
      ...{ words: 'A summary replaced the messages up to entry 1,200 (m).', more: 'Short.' },
    });
    expect(note('compaction', { upToSeq: 1, summary: 'Short.', usage })?.words).toContain('(1,200 in · 34 out)');
    expect(note('continuation', { text: 'Go on.', why: 'host' })?.more).toBe('Go on.');
  });

  it.each([
    ['empty_reply', /was empty/],
    ['length', /length limit/],
    ['pause', /^The provider paused/],
    ['results', /after the results was empty/],
    ['resume', /was resumed with a message/],
    ['stop_hook', /^A hook/],
    ['host', /^The application/],
    ['other_reason', /^The model was asked to continue: other_reason\.$/],
  ])('of a continuation contains the reason: %s', (why, words) => {
    expect(note('continuation', { text: '', why })?.words).toMatch(words);
    expect(markLabel(entry('continuation', { text: '', why }))).toBe(`continued: ${why.replace('_', ' ')}`);
  });

  it('of an earlier history counts its messages', () => {
    for (const [count, words] of [
      [0, '0 earlier messages'],
      [1, '1 earlier message'],
      [2, '2 earlier messages'],
    ] as const)
      expect(note('history', { messages: Array(count).fill(null) })?.words).toBe(
        `The conversation began with ${words}.`,
      );
  });

  it('is there for exactly the kinds that no row of Steps shows', () => {
    for (const [type, [form]] of Object.entries(ROWS)) {
      const { steps } = entryWords[type as Kind];
      expect(note(type, form?.[0] ?? {}) !== undefined, type).toBe(typeof steps === 'function');
    }
  });
});

describe('a diagnostic as one line', () => {
  const why = 'bwrap is not installed';

  it('is in its own words for a missing sandbox, and else its code and detail', () => {
    expect(diagnosticText({ code: 'sandbox_missing', detail: { why } }, 99)).toBe(
      `commands run without a sandbox: ${why}`,
    );
    expect(diagnosticText({ code: 'sandbox_missing', detail: { why: 5 } }, 99)).toBe('sandbox_missing {"why":5}');
    expect(diagnosticText({ code: 'sandbox_missing' }, 99)).toBe('sandbox_missing');
    expect(diagnosticText({ code: 'other', detail: { why } }, 99)).toBe(`other {"why":"${why}"}`);
    expect(diagnosticText({ code: 'other', detail: null }, 99)).toBe('other null');
    expect(diagnosticText({ code: 'other', detail: 'x' }, 99)).toBe('other "x"');
  });

  it('has as much of its text as the caller allows', () => {
    expect(diagnosticText({ code: 'sandbox_missing', detail: { why } }, 5)).toBe(
      'commands run without a sandbox: bwra…',
    );
    expect(diagnosticText({ code: 'other', detail: [1, 2, 3] }, 5)).toBe('other [1,2…');
  });
});
