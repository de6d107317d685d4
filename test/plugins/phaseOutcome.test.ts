/** The combined outcome of several plugins' answers to one phase. */
import { describe, expect, it } from 'vitest';
import { type PhaseOutcome, REDUCERS } from '../../src/plugins/phaseOutcome.ts';
import type { PhaseAnswer } from '../../src/plugins/readAnswer.ts';

const outcomeOf = (phase: keyof typeof REDUCERS, ...answers: PhaseAnswer[]): PhaseOutcome =>
  answers.reduce<PhaseOutcome>((outcome, answer, at) => REDUCERS[phase](outcome, answer, `p${at + 1}`), {});

describe('the outcome of a phase', () => {
  it('contains the changed keys of the state after runStart, and the last plugin wins', () => {
    const outcome = outcomeOf('runStart', { state: { a: 1, b: 1 } }, {}, { state: { b: 2 } });
    expect(outcome).toEqual({ writes: { a: 1, b: 2 } });
  });

  it('contains a copy of the state, which the plugin may change afterwards', () => {
    const state = { a: [1] };
    const outcome = outcomeOf('runStart', { state });
    state.a.push(2);
    expect(outcome).toEqual({ writes: { a: [1] } });
  });

  it.each(['stepStart', 'beforeInference', 'afterInference', 'stepEnd'] as const)(
    'ends the run after %s for the first plugin that asks for it',
    (phase) => {
      const outcome = outcomeOf(phase, { context: 'x' }, { terminate: 'budget' }, { terminate: 'time' });
      expect(outcome).toEqual({ terminate: { kind: 'terminate', by: 'p2', reason: 'budget' } });
    },
  );

  it('continues after naturalEnd with the text of the first plugin that gives one', () => {
    expect(outcomeOf('naturalEnd', {})).toEqual({});
    expect(outcomeOf('naturalEnd', {}, { continue: 'Test it.' }, { continue: 'Again.' })).toEqual({
      continuation: 'Test it.',
    });
  });

  it('joins the instructions of all plugins after preCompact, and the first block counts', () => {
    expect(outcomeOf('preCompact', {})).toEqual({ compact: { kind: 'compact' } });
    expect(
      outcomeOf(
        'preCompact',
        { instructions: 'Keep names.' },
        { block: 'busy' },
        { instructions: 'Keep dates.' },
        { block: 'late' },
      ),
    ).toEqual({
      compact: { kind: 'compact', instructions: 'Keep names.\nKeep dates.', block: { by: 'p2', reason: 'busy' } },
    });
  });

  it('contains an answer whose text is empty: it counts, and no later one replaces it', () => {
    for (const phase of ['stepStart', 'beforeInference', 'afterInference', 'stepEnd'] as const)
      expect(outcomeOf(phase, { terminate: '' }, { terminate: 'late' })).toEqual({
        terminate: { kind: 'terminate', by: 'p1', reason: '' },
      });
    expect(outcomeOf('naturalEnd', { continue: '' }, { continue: 'late' })).toEqual({ continuation: '' });
    expect(outcomeOf('preCompact', { block: '' }, { block: 'late' })).toEqual({
      compact: { kind: 'compact', block: { by: 'p1', reason: '' } },
    });
    expect(
      outcomeOf('preCompact', { instructions: '' }, { instructions: 'Keep names.' }, { instructions: '' }),
    ).toEqual({
      compact: { kind: 'compact', instructions: 'Keep names.' },
    });
  });

  it('is the same after runEnd, whatever a plugin answers', () => {
    expect(outcomeOf('runEnd', { terminate: 'late', continue: 'more' })).toEqual({});
  });
});
