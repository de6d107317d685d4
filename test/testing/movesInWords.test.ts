/** Every move of a script: its words, its fields and the values that they take. */
import { describe, expect, it } from 'vitest';
import { PHASES } from '../../src/plugins/plugin.ts';
import {
  callsOf,
  duringOf,
  filling,
  inWords,
  type Move,
  sentenceOf,
  shareFilled,
  toolNames,
  UNFIT,
  WINDOW_CHARACTERS,
} from '../../src/scripts/moves.ts';
import { scriptOf, testOf } from '../../src/scripts/scriptOf.ts';
import { checkScript } from '../../src/testing/agentPaths/pathOptions.ts';
import { endInWords } from '../../src/testing/agentPaths/runScript.ts';

const toolOf = (call: number): string => `tool ${call}`;
const words: readonly (readonly [Move, string])[] = [
  [{ do: 'send' }, 'a request comes'],
  [{ do: 'steer', text: 'x' }, 'a steer comes'],
  [{ do: 'followUp' }, 'a followUp comes'],
  [{ do: 'send', fills: 0.99 }, 'a request comes that fills the window'],
  [{ do: 'steer', fills: 1 }, 'a steer comes that does not fit the window'],
  [{ do: 'followUp', fills: 0 }, 'a followUp comes that fills the window'],
  [{ do: 'send', during: 'runStart' }, 'a request comes during runStart'],
  [{ do: 'cancel' }, 'it is cancelled'],
  [{ do: 'cancel', during: 'storing' }, 'it is cancelled while its end is being stored'],
  [{ do: 'resume' }, 'it is resumed'],
  [{ do: 'crash' }, 'the process dies'],
  [{ do: 'crash', lost: 2 }, 'the process dies with the result of tool 2'],
  [{ do: 'crash', during: 'runEnd' }, 'the process dies during runEnd'],
  [{ do: 'takeBack' }, 'the message is taken back'],
  [{ do: 'sumUp' }, 'earlier messages are summed up'],
  [{ do: 'deadline' }, 'the time is up'],
  [{ do: 'reply' }, 'the model answers'],
  [{ do: 'reply', text: 'x' }, 'the model answers'],
  [{ do: 'reply', text: '' }, 'the model says nothing'],
  [{ do: 'reply', text: '', finish: 'stop' }, 'the model says nothing'],
  [{ do: 'reply', text: UNFIT }, 'the model answers without fitting the schema'],
  [{ do: 'reply', text: '', finish: 'length' }, 'the reply is cut by its length'],
  [{ do: 'reply', text: UNFIT, finish: 'content-filter' }, 'the reply is filtered out'],
  [{ do: 'reply', text: 'x', finish: 'pause' }, 'the model pauses'],
  [{ do: 'reply', text: 'x', finish: 'tool-calls' }, 'the model promises calls and makes none'],
  [{ do: 'reply', calls: [{ name: 'a', args: {} }] }, 'the model calls a({})'],
  [
    {
      do: 'reply',
      text: '',
      calls: [
        { name: 'a', args: 1 },
        { name: 'b', args: null },
      ],
      finish: 'tool-calls',
    },
    'the model calls a(1) and b(null)',
  ],
  [{ do: 'reply', calls: [{ name: 'a', args: 1 }], finish: 'pause' }, 'the model calls a(1) and pauses'],
  [
    { do: 'reply', calls: [{ name: 'a', args: 1 }], finish: 'length' },
    'the model calls a(1) and the reply is cut by its length',
  ],
  [{ do: 'modelFails', retryable: true }, 'the model fails'],
  [{ do: 'modelFails', retryable: false }, 'the model refuses for good'],
  [{ do: 'tool', call: 1 }, 'tool 1 ends'],
  [{ do: 'tool', call: 2, made: 'fail' }, 'tool 2 fails'],
  [{ do: 'tool', call: 2, made: 'timeOut' }, 'tool 2 times out'],
  [{ do: 'decide', call: 1, action: 'approve' }, 'tool 1 is approved'],
  [{ do: 'decide', call: 1, action: 'deny' }, 'tool 1 is denied'],
  [{ do: 'decide', call: 1, action: 'edit', args: {} }, 'tool 1 is approved with other arguments'],
  [{ do: 'decide', call: 1, action: 'answer', payload: 1, during: 'runEnd' }, 'tool 1 is answered during runEnd'],
  [{ do: 'settle', call: 1, how: 'ran' }, 'tool 1 is known to have run'],
  [{ do: 'settle', call: 1, how: 'didNotRun' }, 'tool 1 is known not to have run'],
  [{ do: 'settle', call: 1, how: 'retry' }, 'tool 1 is to run again'],
];

describe('the words of a move', () => {
  it.each(words)('%j', (move, expected) => {
    expect(inWords(move, toolOf)).toBe(expected);
    expect(duringOf(move)).toBe('during' in move ? move.during : undefined);
  });

  it.each([
    ['x'.repeat(58), false],
    ['x'.repeat(59), true],
  ])('show at most 60 characters of arguments', (args, isCut) => {
    const text = isCut ? `"${'x'.repeat(58)}…` : `"${args}"`;
    expect(inWords({ do: 'reply', calls: [{ name: 'a', args }] }, toolOf)).toBe(`the model calls a(${text})`);
  });
});

describe('the calls of a script', () => {
  const script: Move[] = [
    { do: 'send' },
    {
      do: 'reply',
      calls: [
        { name: 'a', args: 1 },
        { name: 'b', args: 2 },
      ],
    },
    { do: 'reply', text: 'hm' },
    { do: 'reply', calls: [{ name: 'a', args: 3 }] },
  ];

  it('are counted from 1 in their order, and named by their number only if a tool has several', () => {
    expect(callsOf(script).map(({ args }) => args)).toEqual([1, 2, 3]);
    expect([0, 1, 2, 3, 4].map(toolNames(script))).toEqual(['call 0', 'a (call 1)', 'b', 'a (call 3)', 'call 4']);
  });

  it.each([
    [[{ do: 'send' }], 'a request comes: open'],
    [[{ do: 'send' }, { do: 'cancel' }], 'it is cancelled: open'],
    [[{ do: 'send', fills: 0.5 }, { do: 'cancel' }], 'a request comes that fills the window, it is cancelled: open'],
    [[{ do: 'steer' }, { do: 'cancel' }], 'a steer comes, it is cancelled: open'],
  ] as [Move[], string][])('a script is a sentence without its plain first request: %j', (moves, sentence) => {
    expect(sentenceOf(moves, 'open')).toBe(sentence);
  });
});

describe('a message that fills the window', () => {
  it.each([0.001, 0.25, 0.86, 1, 1.2])('is recognized by its share: %f', (share) => {
    const text = filling(share);
    expect(shareFilled(text)).toBe(share);
    expect(Math.abs(text.length - share * WINDOW_CHARACTERS)).toBeLessThanOrEqual(3);
    expect([shareFilled(`${text}x`), shareFilled(text.replace('w', 'v'))]).toEqual([undefined, undefined]);
  });

  it('is none that is empty or of another text', () => {
    expect(['', 'word', 'hello', 'x'.repeat(400)].map(shareFilled)).toEqual(Array(4).fill(undefined));
  });
});

const FIELDS: Readonly<Record<Move['do'], { [field: string]: readonly [good: unknown[], wrong: unknown[]] }>> = (() => {
  const during = [
    ['runStart', 'storing', ...PHASES],
    ['later', 5, null],
  ] as const;
  const call = [
    [1, 2],
    [0, 1.5, '1', null],
  ] as const;
  const message = {
    text: [
      ['', 'x'],
      [5, null],
    ],
    fills: [
      [0, 0.5, 2],
      [-1, Number.NaN, '1'],
    ],
    during,
  } as const;
  const fields = {
    ...{ send: message, steer: message, followUp: message, cancel: { during }, resume: {} },
    ...{ crash: { during, lost: call }, sumUp: {}, takeBack: {}, deadline: {} },
    reply: {
      text: [
        ['', 'x'],
        [5, null],
      ],
      calls: [
        [[], [{ name: 'a', args: null }]],
        [5, [5], [{ name: 'a' }], [{ args: 1 }], [{ name: 1, args: 1 }], [{ name: 'a', args: 1, id: 1 }]],
      ],
      finish: [
        ['stop', 'tool-calls', 'length', 'content-filter', 'pause'],
        ['error', null],
      ],
    },
    modelFails: {
      retryable: [
        [true, false],
        ['yes', null],
      ],
    },
    tool: {
      call,
      made: [
        ['fail', 'timeOut'],
        ['timeout', null],
      ],
    },
    decide: {
      call,
      action: [
        ['approve', 'deny', 'edit', 'answer'],
        ['allow', null],
      ],
      args: [[{}, null], []],
      payload: [[{}, null], []],
      during,
    },
    settle: {
      call,
      how: [
        ['ran', 'didNotRun', 'retry'],
        ['run', null],
      ],
      result: [[1, null], []],
    },
  };
  return fields as never;
})();
/** The smallest move of each kind, and the other fields that a field of one variant needs. */
const LEAST: Partial<Record<Move['do'], object>> = {
  modelFails: { retryable: true },
  tool: { call: 1 },
  decide: { call: 1, action: 'approve' },
  settle: { call: 1, how: 'retry' },
};
const BESIDE: Record<string, object> = {
  args: { action: 'edit' },
  payload: { action: 'answer' },
  result: { how: 'ran' },
};
const kinds = Object.keys(FIELDS) as Move['do'][];
const everyField = [...new Set(kinds.flatMap((kind) => Object.keys(FIELDS[kind])))];
const refusal = (move: unknown): string | undefined => {
  try {
    checkScript([{ do: 'send' }, move]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

describe.each(kinds)('the move %s', (kind) => {
  const least = { do: kind, ...LEAST[kind] };

  it('is taken with each good value of its fields, and refused with each other one, by its place and field', () => {
    expect(refusal(least)).toBeUndefined();
    for (const [field, [good, wrong]] of Object.entries(FIELDS[kind])) {
      const withField = (value: unknown) => refusal({ ...least, ...BESIDE[field], [field]: value });
      expect([field, good.map(withField)]).toEqual([field, good.map(() => undefined)]);
      for (const value of wrong)
        expect([field, value, withField(value)]).toEqual([
          field,
          value,
          expect.stringMatching(new RegExp(`^runScript: move 2 \\(${kind}\\): ${field}`)),
        ]);
    }
  });

  it('has no field of another move', () => {
    const strange = everyField.filter((field) => !Object.hasOwn(FIELDS[kind], field));
    for (const field of [...strange, 'other'])
      expect([field, refusal({ ...least, [field]: 1 })]).toEqual([
        field,
        expect.stringContaining(`${field} is unknown`),
      ]);
  });

  it('needs each field of its smallest form', () => {
    for (const field of Object.keys(LEAST[kind] ?? {}))
      expect(refusal({ ...least, [field]: undefined })).toBe(`runScript: move 2 (${kind}): ${field} is missing`);
  });
});

it.each([
  ['decide', 'args', 'action', ['approve', 'deny', 'answer'], 'edit'],
  ['decide', 'payload', 'action', ['approve', 'deny', 'edit'], 'answer'],
  ['settle', 'result', 'how', ['didNotRun', 'retry'], 'ran'],
])('%s takes %s for one variant only', (kind, field, by, others, value) => {
  for (const other of others)
    expect(refusal({ do: kind, call: 1, [by]: other, [field]: 1 })).toBe(
      `runScript: move 2 (${kind}): ${field} is for ${by} "${value}" only`,
    );
});

it.each([undefined, null, [], {}, 'send'])('a script is a list of moves that is not empty: not %j', (script) => {
  expect(() => checkScript(script)).toThrow(/runScript needs a list of moves/);
});

it.each([5, null, [], {}, { do: 'later' }, { do: null }, { do: 'constructor' }])(
  'a move is an object with its kind: not %j',
  (move) => {
    expect(refusal(move)).toMatch(/^runScript: move 2(: do)? must be (an object such as|one of "send")/);
  },
);

it.each([
  ['NaturalEnd', undefined, 'completed'],
  ['NaturalEnd', 'end_turn', 'completed'],
  ['PluginRequested', 'plugin', 'completed (plugin)'],
  ['Stopped', 'turns', 'stopped (turns)'],
  ['Suspended', 'x', 'waiting'],
  ['Cancelled', 'cancelled', 'interrupted (cancelled)'],
  ['Error', 'model', 'error (model)'],
  ['crashed', 'crash', 'crashed'],
] as const)('the end %s by %s is %s', (ends, cause, expected) => expect(endInWords(ends, cause)).toBe(expected));

describe('a test that is made of a log', () => {
  const entry = (type: string, fields: object = {}, seq = 0) =>
    ({ seq, at: 1, conversationId: 'c', runId: 'r', type, ...fields }) as never;
  const userMessage = (text: string) =>
    entry('user-message', { messageId: 'm', kind: 'direct', content: [{ type: 'text', text }] });
  const stop = (reason: string, cause?: string) => entry('run-stop', { reason, ...(cause && { cause }) });

  it.each([
    [
      [userMessage('go'), stop('completed', 'end_turn')],
      "'a request comes: completed'",
      "expect(result.reason).toBe('completed')",
    ],
    [[userMessage('go'), stop('completed', 'plugin')], 'completed (plugin)', "toBe('completed')"],
    [[userMessage('go'), stop('error', 'model')], 'error (model)', "toBe('error')"],
    [
      [userMessage('go'), entry('run-suspended', { waiting: ['a'] })],
      ': waiting',
      "expect(result.termination).toBe('Suspended')",
    ],
    [[userMessage('go')], ': open', "expect(result.reason).toBe('interrupted')"],
  ])('expects the end of the log: %#', (log, name, expected) => {
    const text = testOf(log);
    expect(text).toContain(name);
    expect(text).toContain(expected);
    expect(text).not.toContain('[redacted]');
  });

  it.each(["it's", 'a "b"', 'a\nb', 'a\\b', '`a` $b', '\u2028'])(
    'quotes what a person wrote, so that it is the same again: %j',
    (text) => {
      const literal = /\{ do: 'send', text: ('.*') \}/s.exec(testOf([userMessage(text)]))?.[1] ?? '';
      // biome-ignore lint/security/noGlobalEval: the text is the file that a person would run.
      expect(globalThis.eval(literal)).toBe(text);
    },
  );

  it('notes that a secret is missing, and only then', () => {
    expect(testOf([userMessage('key [redacted]')])).toContain('// [redacted] stands for a secret');
  });

  it.each([
    [{ 'a-b': 1, $c: [true, null], 'd e': {} }, "{ 'a-b': 1, $c: [true, null], 'd e': {} }"],
    [{ 1: 'x' }, "{ '1': 'x' }"],
    [JSON.parse('{"__proto__":1}'), "{ ['__proto__']: 1 }"],
    [[], '[]'],
    ['text', "'text'"],
    [0.5, '0.5'],
  ])('writes arguments as TypeScript: %j', (args, literal) => {
    const call = entry('agent-output', { item: { type: 'tool-call', callId: 'c1', name: 'note', args } });
    const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
    const replied = entry('model-reply', { turn: 1, model: 'm', finish: 'tool-calls', usage, costUsd: null });
    const log = [userMessage('go'), call, replied];
    expect(scriptOf(log).at(-1)).toEqual({ do: 'reply', calls: [{ name: 'note', args }] });
    expect(testOf(log)).toContain(`{ do: 'reply', calls: [{ name: 'note', args: ${literal} }] },`);
  });
});
