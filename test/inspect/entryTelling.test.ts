/**
 * The page's text for each kind of entry, and its agreement with the executed calls: Steps, timeline, tree and round in
 * one table.
 */
import { describe, expect, it } from 'vitest';
import {
  argsAt,
  argsStateAt,
  type CallState,
  callAt,
  callNotes,
  editedAt,
  roundState,
} from '../../inspector/model/callStates.ts';
import { foldLog } from '../../inspector/model/logFacts.ts';
import { LIFE_LINES, mermaidOf, type SequenceRow, sequenceOf } from '../../inspector/model/sequence.ts';
import { cyclesAt } from '../../inspector/model/stepRows.ts';
import { lanesOf } from '../../inspector/model/timeLanes.ts';
import { markOfCall, runRows } from '../../inspector/model/treeRows.ts';
import { entryKinds } from '../../machines/internal.ts';
import type { LogEntry, RuntimeEntry, WireEvent } from '../../machines/vocabulary.ts';
import { entryWords, markLabel, stepNote } from '../../src/words/entryWords.ts';

type Body = WireEvent | RuntimeEntry;
const text = (words: string) => [{ type: 'text' as const, text: words }];
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const replied = (turn = 1, finish: 'stop' | 'tool-calls' = 'stop'): Body => ({
  ...{ type: 'model-reply', turn, model: 'large', finish, usage, costUsd: 0 },
});
const asks: Body = { type: 'checkpoint', boundary: 'UserMessage' };
const began: Body[] = [
  { type: 'conversation', schema: 1, cwd: '/', createdAt: 0 },
  { type: 'run-started' },
  { type: 'user-message', messageId: 'm', kind: 'direct', content: text('Write it') },
  asks,
];
const ended: Body[] = [
  { type: 'run-stop', reason: 'completed', cause: 'end_turn' },
  { type: 'checkpoint', boundary: 'RunFinished' },
];
const reply: Body = { type: 'agent-output', item: { type: 'assistant', text: 'Fine.' } };
const called: Body[] = [
  { type: 'agent-output', item: { type: 'tool-call', callId: 'c0', name: 'write', args: { path: 'a' } } },
  replied(1, 'tool-calls'),
  { type: 'checkpoint', boundary: 'AssistantTurnCommitted' },
];
const asked: Body = { type: 'tool-suspended', callId: 'c0', suspension: 1, reason: 'permission' };
const suspended: Body[] = [
  asked,
  { type: 'run-suspended', waiting: ['c0'] },
  { type: 'checkpoint', boundary: 'RunFinished' },
];
const decided = (
  decision: { action: 'approve' } | { action: 'deny' } | { action: 'edit'; args: { path: string } },
): Body => ({
  ...{ type: 'decision', callId: 'c0', suspension: 1, decision: { callId: 'c0', by: 'ada', ...decision } },
});
const started: Body = { type: 'tool-started', callId: 'c0', idempotencyKey: 'k' };
const result = (outcome: 'succeeded' | 'failed' | 'cancelled' | 'unknown', code?: string): Body => ({
  ...{ type: 'tool-result', callId: 'c0', outcome, content: text('x') },
  ...(code !== undefined && { code }),
});

const logOf = (...bodies: readonly Body[]): LogEntry[] => {
  let run = 'r';
  return bodies.map((body, seq): LogEntry => {
    if (body.type === 'run-resumed') run = 'r2';
    const runId = body.type === 'conversation' || body.type === 'decision' ? null : run;
    return { seq, at: seq * 10, conversationId: 'c', runId, ...body };
  });
};

/** All text that a person reads of a log. */
function readableText(...bodies: readonly Body[]) {
  const entries = logOf(...bodies);
  const facts = foldLog(entries);
  const index = entries.length - 1;
  const moment = { entries, facts, index, now: index * 10 };
  const rows = cyclesAt(moment).flatMap((cycle) => cycle.rows);
  const call = facts.calls.get('c0');
  return {
    notes: rows.flatMap((row) => (row.kind === 'note' ? [row.note.words] : [])),
    kinds: rows.map(({ kind }) => kind),
    call: call && [callAt(call, index), ...callNotes(call, index)].join(', '),
    bars: lanesOf(entries, facts).flatMap(({ name, bars }) =>
      bars.map(({ label, note, kind }) => `${name || kind}: ${label}${note === undefined ? '' : ` (${note})`}`),
    ),
    round: runRows(moment, () => true, false).find(({ machine }) => machine === 'TOOL_ROUND')?.mark,
    sequence: sequenceOf(entries, facts, 1, index).flatMap((row) => (row.kind === 'message' ? [row.words] : [])),
    facts,
    index,
  };
}

interface Telling {
  /** The log after its request. */
  readonly log: readonly Body[];
  /** A note in Steps, the words of the call's row, or the kinds of the rows; empty if only Events shows it. */
  readonly steps?: { note: string | RegExp } | { call: string } | { row: 'text' | 'steer' | 'round' | 'stop' | 'call' };
  readonly bar?: string;
}
const retry = (model: string, waitMs = 0): Body => ({
  ...{ type: 'model-retry', turn: 1, attempt: 2, waitMs, model, reason: 'network: no route' },
});

/**
 * The kinds of entries whose place in Steps and on the timeline depends on other entries, and examples of others. For a kind
 * without a row `toldBySample` makes one.
 */
const TOLD: { readonly [Type in Body['type']]?: Telling | readonly Telling[] } = {
  conversation: { log: [] },
  history: {
    log: [{ type: 'history', messages: [{ role: 'user', content: text('x') }] }],
    steps: { note: 'The conversation began with 1 earlier message.' },
  },
  'run-started': { log: [] },
  'user-message': {
    log: [{ type: 'user-message', messageId: 's', kind: 'steer', content: text('Quick') }],
    steps: { row: 'steer' },
  },
  'agent-output': [
    { log: [reply, replied()], steps: { row: 'text' }, bar: 'model: turn 1' },
    { log: called, steps: { call: 'queued' }, bar: 'model: turn 1' },
  ],
  'model-reply': { log: [reply, replied()], steps: { row: 'round' }, bar: 'model: turn 1' },
  'model-retry': [
    {
      log: [retry('large', 1500), reply, replied(), ...ended],
      steps: { note: 'The model call failed. Attempt 2 asks large after 1.5 s.' },
      bar: 'model: turn 1 (failed)',
    },
    {
      log: [
        ...called,
        result('succeeded'),
        { type: 'checkpoint', boundary: 'ToolResultsCommitted' },
        retry('small'),
        reply,
      ],
      steps: { note: 'The model large failed. Attempt 2 falls back to small.' },
    },
    {
      log: [retry('large'), { type: 'run-stop', reason: 'error', cause: 'model' }],
      steps: { note: 'The model call failed. Attempt 2 asks large.' },
      bar: 'model: turn 1 again',
    },
  ],
  compaction: [
    {
      log: [{ type: 'compaction', upToSeq: 9, summary: 'Short.' }],
      steps: { note: 'A summary replaced the messages up to entry 9.' },
      bar: 'model: summary',
    },
    {
      log: [{ type: 'compaction', upToSeq: 9, summary: 'Short.', usage, model: 'small' }],
      steps: { note: 'A summary replaced the messages up to entry 9 (small · 1 in · 1 out).' },
      bar: 'model: summary',
    },
  ],
  continuation: ['empty_reply', 'length', 'pause', 'results', 'resume', 'stop_hook', 'host', 'other'].map((why) => ({
    log: [{ type: 'continuation' as const, why, text: 'Go on.' }],
    steps: { note: /^The (reply|provider|run|application)|^A hook|^The model was asked to continue: other\.$/ },
    bar: `model: continued: ${why.replace('_', ' ')}`,
  })),
  'context-warning': {
    log: [{ type: 'context-warning', used: 900, limit: 1000 }],
    steps: { note: 'The context is nearly full: 900 of 1,000 tokens.' },
    bar: 'model: context nearly full',
  },
  renamed: {
    log: [{ type: 'renamed', title: 'Rent' }],
    steps: { note: 'The conversation was renamed to Rent.' },
  },
  rewound: {
    log: [{ type: 'rewound', toSeq: 4 }],
    steps: { note: 'The conversation was rewound. It continues after entry 4.' },
  },
  notice: { log: [{ type: 'notice', code: 'n', text: 'Look here.' }], steps: { note: 'Look here.' } },
  diagnostic: { log: [{ type: 'diagnostic', code: 'odd' }], steps: { note: 'Diagnostic: odd' } },
  'run-resumed': { log: [{ type: 'run-resumed', of: 'r' }], steps: { note: 'The run was resumed.' } },
  'run-suspended': { log: [...called, ...suspended], steps: { call: 'waiting' }, bar: 'you: write waits for you' },
  'tool-suspended': { log: [...called, asked], steps: { call: 'waiting' }, bar: 'you: write waits for you' },
  'message-queued': { log: [{ type: 'message-queued', messageId: 'q', kind: 'followUp', content: text('Later') }] },
  'message-returned': {
    log: [{ type: 'message-returned', messageId: 'q', why: 'cancelled' }],
    steps: { note: 'A queued message was given back: cancelled.' },
  },
  'tool-allowed': {
    log: [...called, { type: 'tool-allowed', callId: 'c0', by: 'rule write(*)' }, started],
    steps: { call: 'running, allowed by rule write(*)' },
    bar: 'tools: write a',
  },
  'tool-started': { log: [...called, started], steps: { call: 'running' }, bar: 'tools: write a' },
  'tool-result': [
    { log: [...called, started, result('succeeded')], steps: { call: 'done' }, bar: 'tools: write a' },
    { log: [...called, started, result('failed', 'threw')], steps: { call: 'failed, failed' } },
    { log: [...called, started, result('cancelled')], steps: { call: 'cancelled, cancelled' } },
    { log: [...called, started, result('unknown')], steps: { call: 'unknown, may have run' } },
    { log: [...called, result('failed', 'denied')], steps: { call: 'denied, denied' } },
  ],
  decision: [
    {
      log: [...called, ...suspended, decided({ action: 'approve' })],
      steps: { call: 'decided, allowed by ada' },
      bar: 'you: write waits (allowed by ada)',
    },
    {
      log: [...called, ...suspended, decided({ action: 'deny' })],
      steps: { call: 'denied, denied by ada' },
      bar: 'you: write waits (denied by ada)',
    },
    {
      log: [...called, ...suspended, decided({ action: 'edit', args: { path: 'b' } })],
      steps: { call: 'decided, edited by ada' },
      bar: 'you: write waits (edited by ada)',
    },
  ],
  'call-settled': {
    log: [...called, started, result('unknown'), { type: 'call-settled', callId: 'c0', how: { didNotRun: true } }],
    steps: { call: 'unknown, may have run, settled: it did not run' },
  },
  'sub-agent': {
    log: [...called, started, { type: 'sub-agent', callId: 'c0', child: 'k', phase: 'started' }],
    steps: { call: 'running' },
    bar: 'k: ',
  },
  'run-stop': { log: [reply, replied(), ...ended], steps: { row: 'stop' } },
};

/** The place of a kind whose words do not depend on other entries: its sample has the note and the mark of `entryWords`. */
function tellingOfSample(type: Body['type']): Telling {
  if (entryWords[type].steps === 'shown') {
    throw new Error(
      `src/words/entryWords.ts shows ${type} in Steps: add a row to TOLD with the row, call or note that shows it`,
    );
  }
  const body = { type, ...entryKinds[type].sample } as Body;
  const [entry] = logOf(body) as [LogEntry];
  const [note, mark] = [stepNote(entry, undefined)?.words, markLabel(entry)];
  return {
    log: [body],
    ...(note !== undefined && { steps: { note } }),
    ...(mark !== undefined && { bar: `model: ${mark}` }),
  };
}

const matching = (note: string | RegExp): unknown => (typeof note === 'string' ? note : expect.stringMatching(note));

describe('every kind of entry', () => {
  const types = Object.keys(entryWords) as Body['type'][];
  const table = types.flatMap((type) =>
    [TOLD[type] ?? tellingOfSample(type)].flat().map((telling) => ({ type, telling })),
  );
  it.each(table)('it is shown in its place: $type, $telling.steps', ({ telling: { log, steps, bar } }) => {
    const page = readableText(...began, ...log);
    if (!steps) expect(page.notes).toEqual([]);
    else if ('note' in steps) expect(page.notes).toContainEqual(matching(steps.note));
    if (steps && 'call' in steps) expect(page.call).toBe(steps.call);
    if (steps && 'row' in steps) expect(page.kinds).toContain(steps.row);
    if (bar !== undefined) expect(page.bars).toContain(bar);
  });

  it('it is in Steps at its time, between the rows before and after it', () => {
    const { kinds } = readableText(
      ...began,
      retry('large'),
      reply,
      replied(),
      { type: 'compaction', upToSeq: 2, summary: '' },
      ...ended,
    );
    expect(kinds).toEqual(['note', 'text', 'round', 'note', 'stop']);
  });
});

describe('a call whose arguments a person edited', () => {
  const edited = [...began, ...called, ...suspended, decided({ action: 'edit', args: { path: 'b' } })];
  const ran = [
    ...edited,
    { type: 'run-resumed', of: 'r' } as const,
    { type: 'tool-allowed', callId: 'c0', by: 'decision' } as const,
    { ...started, args: { path: 'b' } } as Body,
    result('succeeded'),
  ];

  it('it shows the executed arguments and the editor, in Steps, on the timeline and in the sequence', () => {
    const { facts, index, call, bars, sequence } = readableText(...ran);
    const one = facts.calls.get('c0');
    expect(one && argsAt(one, index)).toEqual({ path: 'b' });
    expect(one && argsAt(one, began.length)).toEqual({ path: 'a' });
    expect(call).toBe('done, edited by ada');
    expect(bars).toContain('tools: write b (edited by ada)');
    expect(sequence).toContain('write b');
  });

  it('it shows the arguments that will run before it is resumed', () => {
    const { facts, index } = readableText(...edited);
    const one = facts.calls.get('c0');
    expect(one && [argsAt(one, index), editedAt(one, index)]).toEqual([{ path: 'b' }, 'edited by ada']);
  });

  it('it names a plugin if no person changed them, and nobody if they are the same', () => {
    const by = (args: { path: string }) => {
      const { facts, index } = readableText(...began, ...called, { ...started, args } as Body);
      const one = facts.calls.get('c0');
      return one && editedAt(one, index);
    };
    expect([by({ path: 'b' }), by({ path: 'a' })]).toEqual(['changed by a plugin', undefined]);
  });

  it("it names a plugin too if it changed a person's edit", () => {
    const by = (path: string) => {
      const { facts, index } = readableText(...edited, { ...started, args: { path } } as Body);
      const one = facts.calls.get('c0');
      return one && editedAt(one, index);
    };
    expect([by('b'), by('c')]).toEqual(['edited by ada', 'edited by ada, then changed by a plugin']);
  });

  it.each<[string, Body[], object]>([
    ['before it is resumed', [], { toRun: 'b' }],
    ['as it runs', [{ ...started, args: { path: 'b' } } as Body], { ran: 'b' }],
    ['with arguments that its tool refuses', [result('failed', 'invalid_arguments')], { notRun: 'b' }],
  ])('it shows whether it ran with them: %s', (_, more, state) => {
    const { facts, index } = readableText(...edited, { type: 'run-resumed', of: 'r' }, ...more);
    const one = facts.calls.get('c0');
    expect(one && { [argsStateAt(one, index)]: Object(argsAt(one, index)).path }).toEqual(state);
  });
});

describe('a run that never called a model', () => {
  const stop = (reason: 'error' | 'interrupted' | 'completed', cause: string): Body => ({
    type: 'run-stop',
    reason,
    cause,
  });
  const turns = (...bodies: readonly Body[]): string[] =>
    readableText(...began, ...bodies).bars.filter((bar) => bar.startsWith('model: turn'));

  it.each(['budget', 'turns', 'history', 'state', 'store', 'plugin', 'tool', 'context_exhausted'])(
    'it has no turn on the timeline: %s',
    (cause) => expect(turns(stop('error', cause))).toEqual([]),
  );

  it("it has none for an attempt that a cancel, or the run's time limit, prevented", () => {
    const waits = retry('large', 50);
    const stopped = (gap: readonly Body[], cause = 'cancelled') => turns(waits, ...gap, stop('interrupted', cause));
    const ticks = Array.from({ length: 5 }, () => ({ type: 'notice', code: 'x', text: 'x' }) as const);
    expect(stopped([])).toEqual(['model: turn 1 (failed)']);
    expect(turns(waits, stop('error', 'timeout'))).toEqual(['model: turn 1 (failed)']);
    expect(stopped(ticks)).toEqual(['model: turn 1 (failed)', 'model: turn 1 again']);
  });

  it('it has none if it was resumed only to deny its call, or was cancelled at once', () => {
    const denied = [...called, ...suspended, decided({ action: 'deny' }), { type: 'run-resumed', of: 'r' } as const];
    expect(turns(...denied, result('failed', 'denied'), stop('completed', 'end_turn'))).toEqual(['model: turn 1']);
    const [request, cancelled] = logOf(...began, stop('interrupted', 'cancelled')).slice(-2);
    if (!request || !cancelled) throw new Error('expected two entries');
    const entries = [...logOf(...began), { ...cancelled, at: request.at }];
    expect(lanesOf(entries, foldLog(entries))[0]?.bars).toEqual([]);
  });

  it('it has one if the model was called and failed, or was interrupted', () => {
    expect(turns(stop('error', 'model'))).toEqual(['model: turn 1']);
    expect(turns(stop('interrupted', 'cancelled'))).toEqual(['model: turn 1']);
  });
});

describe('the mark of a round', () => {
  const states: readonly CallState[] = [
    ...(['queued', 'running', 'waiting', 'decided', 'denied', 'done', 'failed', 'cancelled', 'unknown'] as const),
  ];
  const all = states.flatMap((one) => states.flatMap((other) => states.map((third) => [one, other, third])));

  it('it is a check only if one of its calls is done and none continues', () => {
    for (const each of all) {
      const goesOn = each.some((one) => ['queued', 'running', 'waiting', 'decided', 'unknown'].includes(one));
      expect(markOfCall(roundState(each)) === 'done', each.join()).toBe(!goesOn && each.includes('done'));
    }
    expect(all).toHaveLength(729);
  });

  it('for one call it is the mark of that call', () => {
    for (const one of states) expect(markOfCall(roundState([one])), one).toBe(markOfCall(one));
  });

  it('for a cancelled only call it is cancelled in the tree', () => {
    const stop: Body = { type: 'run-stop', reason: 'interrupted', cause: 'cancelled' };
    expect(readableText(...began, ...called, started, result('cancelled'), stop).round).toBe('cancelled');
    expect(readableText(...began, ...called, started, stop).round).toBe('cancelled');
  });
});

it('a sequence as mermaid text has one line for each row, with its ends and look, and no words of a log act in it', () => {
  const hostile = ['a; b', '#35; C#', 'x\ny', '<br>', '%% a', '\n#;<>\n'];
  const looks = { plain: '->>', answer: '-->>', failed: '--x', cancelled: '->>' } as const;
  const rows = hostile.flatMap((words) =>
    Object.keys(looks).map((look, at): SequenceRow => {
      const [from, to] = [LIFE_LINES[at % 4] ?? 'you', LIFE_LINES[(at + 1) % 4] ?? 'model'];
      return { kind: 'message', at, from, to, words, look: look as keyof typeof looks };
    }),
  );
  rows.push({ kind: 'wait', at: 0, words: '2 s' }, { kind: 'round', at: 0, words: 'round 1' });
  const [title, ...lines] = mermaidOf(rows).trimEnd().split('\n');
  const heads = ['  actor you', '  participant runtime', '  participant model', '  participant tools'];
  expect([title, ...lines.splice(0, heads.length)]).toEqual(['sequenceDiagram', ...heads]);
  expect(lines.splice(-2)).toEqual(['  Note over you: waited 2 s', '  Note over runtime: round 1']);
  const beginnings = rows.flatMap((row) =>
    row.kind === 'message' ? `  ${row.from}${looks[row.look]}${row.to}: ` : [],
  );
  expect(lines.map((line, at) => line.startsWith(beginnings[at] ?? '?'))).toEqual(beginnings.map(() => true));
  expect(lines.map((line, at) => line.slice(beginnings[at]?.length)).filter((words) => /[;#<>\n]/.test(words))).toEqual(
    [],
  );
});
