/** Inference rounds (docs/internals/model.md, InferenceLoop View). */
import { describe, expect, it } from 'vitest';
import { project } from '../../src/projector/index.ts';
import { A, C, callIn, R, reply, roundsOf, S, stamped, T, U } from './events.ts';

const checkpoint = { type: 'checkpoint', boundary: 'AssistantTurnCommitted' };

describe('inference rounds', () => {
  it('S000-19 CYC-6 each reply is a round, and its input is everything since the previous one', () => {
    const view = project([U('q'), A('t'), C('c1'), T('c1'), U('S', 'steer'), C('c2'), T('c2'), A('end'), S()]);
    expect(roundsOf(view)).toEqual([
      { messages: ['q'], results: [], texts: ['t'], calls: ['c1'] },
      { messages: ['S'], results: ['c1'], texts: [], calls: ['c2'] },
      { messages: [], results: ['c2'], texts: ['end'], calls: [] },
    ]);
    expect(view.cycles[0]?.rounds[1]?.input.results[0]).toBe(callIn(view, 'c1'));
  });

  it('results are in call order, in whatever order they arrived', () => {
    const view = project([U('q'), C('c1'), C('c2'), C('c3'), T('c3'), T('c1'), T('c2'), A('end')]);
    expect(roundsOf(view)?.[1]?.results).toEqual(['c1', 'c2', 'c3']);
  });

  it('reasoning, text and calls of one reply are one round, without the flag of a text', () => {
    const flagged = { type: 'agent-output', item: { type: 'assistant', text: 'no', flag: 'refusal' } };
    const view = project([U('q'), R('think'), flagged, C('c1')]);
    expect(view.cycles[0]?.rounds[0]?.output.texts).toEqual([
      { kind: 'reasoning', text: 'think' },
      { kind: 'assistant', text: 'no' },
    ]);
    expect(view.cycles[0]?.steps[2]).toMatchObject({ text: { kind: 'assistant', text: 'no', flag: 'refusal' } });
  });

  it('a result without a later reply is not input of a round', () => {
    const view = project([U('q'), C('c1'), T('c1'), S('interrupted'), U('p'), A('x')]);
    expect(roundsOf(view, 1)).toEqual([{ messages: ['p'], results: [], texts: ['x'], calls: [] }]);
  });

  it('the record of a reply ends its round and contains the usage, also of an empty reply', () => {
    const again = { type: 'continuation', text: 'Your last reply was empty.', why: 'empty' };
    const log = [U('q'), A('a'), reply(1), checkpoint, A('b'), reply(2), checkpoint, reply(3), checkpoint, again];
    const view = project(stamped([...log, A('c'), reply(4), S()]));
    expect(roundsOf(view)?.map(({ texts }) => texts)).toEqual([['a'], ['b'], [], ['c']]);
    expect(view.cycles[0]?.rounds.map(({ usage }) => usage?.outputTokens)).toEqual([1, 2, 3, 4]);
  });

  it('a record before its output belongs to the same round', () => {
    const view = project([U('q'), reply(1), A('a'), C('c1'), T('c1'), reply(2), A('b'), S()]);
    expect(roundsOf(view)).toEqual([
      { messages: ['q'], results: [], texts: ['a'], calls: ['c1'] },
      { messages: [], results: ['c1'], texts: ['b'], calls: [] },
    ]);
    expect(view.cycles[0]?.rounds.map(({ usage }) => usage?.outputTokens)).toEqual([1, 2]);
  });

  it('missing counts of a provider are zero, and a reply without usage shows none', () => {
    const view = project([U('q'), A('a'), { ...reply(), usage: { inputTokens: 7, outputTokens: 'x' } }]);
    expect(view.cycles[0]?.rounds[0]?.usage).toEqual({
      inputTokens: 7,
      outputTokens: 0,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    });
    expect(project([U('q'), A('a'), { ...reply(), usage: null }]).cycles[0]?.rounds[0]).not.toHaveProperty('usage');
  });

  it('a placeholder ends the round: the model was called again without the result', () => {
    const suspended = { type: 'tool-suspended', callId: 'c1', suspension: 1, reason: 'permission' };
    const view = project([U('q'), C('c1'), suspended, A('meanwhile'), T('c1'), A('done'), S()]);
    expect(roundsOf(view)).toEqual([
      { messages: ['q'], results: [], texts: [], calls: ['c1'] },
      { messages: [], results: [], texts: ['meanwhile'], calls: [] },
      { messages: [], results: ['c1'], texts: ['done'], calls: [] },
    ]);
  });
});
