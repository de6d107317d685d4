/**
 * Tests every field in the answer of a phase or a check: its phases, its accepted values, and the errors for others.
 */
import { describe, expect, it } from 'vitest';
import type { Phase } from '../../machines/internal.ts';
import { PHASES } from '../../src/plugins/plugin.ts';
import { type PhaseAnswer, readAnswer, readVerdict } from '../../src/plugins/readAnswer.ts';
import type { ResultLimits } from '../../src/tools/toolResult.ts';

const spec = { name: 'a', description: '', parameters: {} };
const STEPS: readonly Phase[] = ['stepStart', 'beforeInference', 'afterInference', 'stepEnd'];
const NO_TEXT = [1, true, null, {}, ['a']];

const FIELDS: { field: string; phases: readonly Phase[]; fit: readonly unknown[]; unfit: readonly unknown[] }[] = [
  { field: 'context', phases: PHASES, fit: ['', 'a'], unfit: NO_TEXT },
  { field: 'terminate', phases: STEPS, fit: ['', 'a'], unfit: NO_TEXT },
  { field: 'continue', phases: ['naturalEnd'], fit: ['', 'a'], unfit: NO_TEXT },
  { field: 'instructions', phases: ['preCompact'], fit: ['', 'a'], unfit: NO_TEXT },
  { field: 'block', phases: ['preCompact'], fit: ['', 'a'], unfit: NO_TEXT },
  { field: 'compact', phases: ['stepStart', 'beforeInference'], fit: [true, '', 'a'], unfit: [false, 1, null, {}] },
  {
    field: 'state',
    phases: ['runStart'],
    fit: [{}, { a: [1, null] }],
    unfit: ['a', 1, null, [1], new Map(), { a: 1n }, { a: () => 1 }],
  },
  { field: 'result', phases: ['afterToolExecute'], fit: ['', 'a', []], unfit: [1, true, null, {}] },
  { field: 'request', phases: ['runStart', ...STEPS], fit: [{}], unfit: ['a', 1, null, []] },
];
const REQUEST: { field: string; fit: readonly unknown[]; unfit: readonly unknown[] }[] = [
  { field: 'system', fit: ['', 'a'], unfit: NO_TEXT },
  {
    field: 'tools',
    fit: [[], [spec]],
    unfit: ['a', {}, [1], [{}], [spec, { ...spec, name: 1 }], [{ ...spec, parameters: [] }], new Array(1)],
  },
  { field: 'maxOutputTokens', fit: [1, 4_096], unfit: [0, -1, 1.5, '1', Number.POSITIVE_INFINITY, Number.NaN] },
  { field: 'temperature', fit: [0, 0.5, 2], unfit: [-0.1, '1', Number.POSITIVE_INFINITY, Number.NaN, null] },
];

describe('readAnswer', () => {
  const read = (phase: Phase, answer: unknown) => readAnswer('mine', phase, answer as PhaseAnswer);

  it.each(FIELDS)(
    'takes $field in the phases where it counts, and names plugin, phase and field in all others',
    (each) => {
      const { field, phases, fit, unfit } = each;
      for (const phase of PHASES) {
        for (const value of fit) {
          const answer = { [field]: value };
          if (phases.includes(phase)) expect(read(phase, answer)).toBe(answer);
          else
            expect(() => read(phase, answer)).toThrow(new RegExp(`"mine" answered ${phase} with a ${field} .* only`));
        }
        for (const value of unfit) {
          expect(() => read(phase, { [field]: value })).toThrow(`"mine" answered ${phase} with a ${field} `);
        }
        expect(read(phase, { [field]: undefined })).toEqual({});
      }
    },
  );

  it.each<[unknown, string]>([
    [7, 'number'],
    [null, 'null'],
    [['a'], 'a list that holds something else'],
    [{ a: 1n }, 'a value that is no JSON: .+'],
  ])('reports what it got: %o', (context, got) => {
    const expected = `^the plugin "mine" answered stepStart with a context that cannot be used: expected a text, got ${got}; leave context out to change nothing$`;
    expect(() => read('stepStart', { context })).toThrow(new RegExp(expected));
  });

  it.each(REQUEST)('takes request.$field where it can be sent', ({ field, fit, unfit }) => {
    for (const value of fit) {
      const answer = { request: { [field]: value } };
      expect(read('beforeInference', answer)).toBe(answer);
    }
    for (const value of unfit) {
      expect(() => read('beforeInference', { request: { [field]: value } })).toThrow(`with a request.${field} `);
    }
  });

  it('takes an answer with only unknown fields', () => {
    for (const phase of PHASES) expect(read(phase, { note: 1 })).toEqual({ note: 1 });
  });
});

describe('readVerdict', () => {
  const limits = { resultBytes: 20, redact: ((text: unknown) => text) as ResultLimits['redact'] };
  const read = (answer: unknown) => readVerdict(answer, limits);
  class Answer {
    allowed = true;
  }

  it.each([
    [undefined, undefined],
    [null, undefined],
    [{}, {}],
    [Object.create(null), {}],
    [{ block: '' }, { block: '' }],
    [{ block: 'no' }, { block: 'no' }],
    [{ args: { a: 1 } }, { args: { a: 1 } }],
    [{ args: null }, { args: null }],
    [
      { block: 'no', args: {}, note: 1 },
      { block: 'no', args: {} },
    ],
    [{ suspend: { reason: 'r' } }, { suspend: { kind: 'suspend', reason: 'r' } }],
    [{ suspend: { reason: 'r', payload: [1] } }, { suspend: { kind: 'suspend', reason: 'r', payload: [1] } }],
    [{ suspend: { reason: 'r', payload: null } }, { suspend: { kind: 'suspend', reason: 'r', payload: null } }],
    [{ suspend: { reason: 'r', payload: 'x'.repeat(18) } }, { suspend: { payload: 'x'.repeat(18) } }],
  ])('takes %j', (answer, verdict) => {
    if (verdict === undefined || Object.keys(verdict).length === 0) expect(read(answer)).toEqual(verdict);
    else expect(read(answer)).toMatchObject(verdict);
  });

  it.each<[unknown, RegExp]>([
    [false, /not a boolean/],
    [true, /not a boolean/],
    ['block', /not a string/],
    [{ block: true }, /block needs a reason/],
    [{ blocked: 'no' }, /not blocked/],
    [{ args: {}, allow: true }, /not allow/],
    [['block'], /not 0/],
    [[], /not a list or an instance/],
    [new Answer(), /not allowed/],
    [new Map([['block', 'no']]), /not a list or an instance/],
    [{ suspend: {} }, /suspend needs a reason/],
    [{ suspend: null }, /suspend needs a reason/],
    [{ suspend: { reason: 1 } }, /suspend needs a reason/],
    [{ suspend: { reason: 'r', payload: 1n } }, /payload of suspend is no JSON/],
    [{ suspend: { reason: 'r', payload: 'x'.repeat(19) } }, /longer than 20 bytes/],
    [{ suspend: { reason: 'r', payload: 'é'.repeat(10) } }, /longer than 20 bytes/],
    [{ args: 1n }, /args is no JSON/],
  ])('refuses %o, so that nothing passes for an allowance', (answer, why) => {
    expect(() => read(answer)).toThrow(why);
  });

  it('bounds the reason of a suspension', () => {
    const { suspend } = read({ suspend: { reason: 'y'.repeat(10_000) } }) ?? {};
    expect(suspend?.reason.length).toBeLessThanOrEqual(4_096);
  });
});
