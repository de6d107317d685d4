/** Request cycles as stories (docs/internals/model.md, RequestCycle). */
import { describe, expect, it } from 'vitest';
import { project } from '../../src/projector/index.ts';
import { A, C, callIn, codes, parts, queued, R, roundsOf, S, stamped, stepsOf, T, U } from './events.ts';

describe('request cycles', () => {
  it('S000-01 CYC-5 one direct request is one cycle with a root, a block and a stop', () => {
    expect(project([U('hi'), A('hello'), S('completed', 'end_turn')])).toEqual({
      state: 'idle',
      cycles: [
        {
          id: 'hi',
          root: { messageId: 'hi', kind: 'direct', content: parts('hi') },
          steps: [
            { type: 'non-steer', messageId: 'hi', content: parts('hi') },
            { type: 'ai-block', text: { kind: 'assistant', text: 'hello' }, groups: [] },
          ],
          rounds: [
            {
              input: { messages: [{ messageId: 'hi', kind: 'direct', content: parts('hi') }], results: [] },
              output: { texts: [{ kind: 'assistant', text: 'hello' }], calls: [] },
            },
          ],
          stop: { reason: 'completed', cause: 'end_turn' },
          waiting: [],
        },
      ],
      queued: [],
      diagnostics: [],
    });
  });

  it.each(['completed', 'interrupted', 'error'] as const)('CYC-2 a stop with %s closes like any other', (reason) => {
    const view = project([U('a'), A('x'), U('b', 'followUp'), S(reason), A('y'), S()]);
    expect(view.cycles.map(({ id, stop }) => [id, stop?.reason])).toEqual([
      ['a', reason],
      ['b', 'completed'],
    ]);
    expect(view.state).toBe('idle');
  });

  it('S000-03 CYC-7 texts never merge: each is a separate block', () => {
    const view = project([U('q'), R('think'), A('a'), A('b'), S()]);
    expect(stepsOf(view)).toEqual(['non-steer q', 'reasoning think', 'assistant a', 'assistant b']);
  });

  it('S000-07 CYC-3 a steer is a step inside its cycle, and the next call opens a separate block', () => {
    const view = project([U('q'), A('x'), C('c1'), T('c1'), U('use B', 'steer'), A('ok'), S()]);
    expect(view.cycles).toHaveLength(1);
    expect(stepsOf(view)).toEqual(['non-steer q', 'assistant x [read c1]', 'steer use B', 'assistant ok']);
    const without = project([U('q'), A('x'), C('c1'), U('use B', 'steer'), C('c2')]);
    expect(stepsOf(without)).toEqual(['non-steer q', 'assistant x [read c1]', 'steer use B', 'no text [read c2]']);
  });

  it('S000-09 CYC-4 CYC-10 followUps become roots first in, first out, each at the preceding stop', () => {
    const view = project([U('a'), U('b', 'followUp'), U('c', 'followUp'), A('1'), S(), A('2'), S(), A('3'), S()]);
    expect(view.cycles.map(({ id, root }) => [id, root.kind])).toEqual([
      ['a', 'direct'],
      ['b', 'followUp'],
      ['c', 'followUp'],
    ]);
    expect([0, 1, 2].map((cycle) => stepsOf(view, cycle)[1])).toEqual(['assistant 1', 'assistant 2', 'assistant 3']);
  });

  it('S000-10 a steer stays in the cycle while a followUp waits after it', () => {
    const log = [U('P'), queued('S', 'steer'), queued('F'), A('A1'), U('S', 'steer'), A('A2'), S(), U('F', 'followUp')];
    const view = project(stamped([...log, A('A3'), S()]));
    expect(stepsOf(view, 0)).toEqual(['non-steer P', 'assistant A1', 'steer S', 'assistant A2']);
    expect(stepsOf(view, 1)).toEqual(['non-steer F', 'assistant A3']);
    expect([view.queued, view.diagnostics]).toEqual([[], []]);
  });

  it('S000-12 S000-13 a steer that waited for the whole batch follows both calls', () => {
    const view = project([
      U('P'),
      A('T'),
      C('c1', 'echo'),
      C('c2', 'echo'),
      T('c1'),
      T('c2'),
      U('S', 'steer'),
      A('A2'),
    ]);
    expect(stepsOf(view)).toEqual(['non-steer P', 'assistant T [other c1 c2]', 'steer S', 'assistant A2']);
    expect(roundsOf(view)?.[1]).toEqual({ messages: ['S'], results: ['c1', 'c2'], texts: ['A2'], calls: [] });
  });

  it('S000-15 a call that a steer skipped has its error like any result', () => {
    const cut = { ...T('c2', 'not run: a message waits', 'cancelled'), code: 'skipped' };
    const view = project([U('P'), C('c1'), C('c2'), T('c1'), cut, U('S', 'steer'), A('A2'), S()]);
    expect(callIn(view, 'c2')?.result).toEqual({
      outcome: 'cancelled',
      content: parts('not run: a message waits'),
      code: 'skipped',
    });
    expect(roundsOf(view)?.[1]).toMatchObject({ messages: ['S'], results: ['c1', 'c2'] });
  });

  it('S000-16 S000-18 a message that a runtime queued and a stop did not promote stays queued until its own user-message', () => {
    const log = stamped([U('P'), queued('F1'), queued('S1', 'steer'), S('error'), U('P2', 'direct'), A('A2'), S()]);
    const before = project(log);
    expect(before.state).toBe('idle');
    expect(before.queued.map(({ messageId, kind }) => [messageId, kind])).toEqual([
      ['F1', 'followUp'],
      ['S1', 'steer'],
    ]);
    const after = project([...log, ...stamped([U('F1', 'followUp'), A('A3'), S()], 'r2', log.length)]);
    expect(after.cycles.map(({ id, root }) => [id, root.kind])).toEqual([
      ['P', 'direct'],
      ['P2', 'direct'],
      ['F1', 'followUp'],
    ]);
    expect(after.queued.map(({ messageId }) => messageId)).toEqual(['S1']);
  });

  it('a returned message is no longer queued, and the return of an unqueued one is a diagnostic', () => {
    const returned = (messageId: string) => ({ type: 'message-returned', messageId, why: 'closed' });
    const view = project([U('P'), queued('F'), returned('F'), returned('G')]);
    expect(view.queued).toEqual([]);
    expect(view.diagnostics).toEqual([{ code: 'message_missing', detail: { messageId: 'G' } }]);
  });

  it('CYC-3 an impossible kind is replaced, with a diagnostic', () => {
    const idle = project([U('a', 'steer'), A('x')]);
    expect([idle.cycles[0]?.root.kind, codes(idle)]).toEqual(['direct', ['kind-overridden']]);
    const active = project([U('a'), U('b', 'direct')]);
    expect([active.queued.map(({ messageId }) => messageId), codes(active)]).toEqual([['b'], ['kind-overridden']]);
    const steered = project([U('a'), U('b', 'direct')], { whileActive: 'steer' });
    expect([stepsOf(steered), codes(steered)]).toEqual([['non-steer a', 'steer b'], ['kind-overridden']]);
  });

  it('a followUp while nothing runs opens a cycle of that kind', () => {
    const view = project([U('a', 'followUp'), A('x'), S()]);
    expect([view.cycles[0]?.root.kind, view.diagnostics]).toEqual(['followUp', []]);
  });

  it('a repeated message id of a second cycle gets a suffix', () => {
    const view = project([U('m'), S(), U('m~1'), S(), U('m'), S(), U('m'), S()]);
    expect(view.cycles.map(({ id }) => id)).toEqual(['m', 'm~1', 'm~2', 'm~3']);
    expect(view.cycles.map(({ root }) => root.messageId)).toEqual(['m', 'm~1', 'm', 'm']);
    expect(codes(view)).toEqual(['message_repeated', 'message_repeated']);
    expect(project([U('m~1'), S(), U('m'), S(), U('m')]).cycles.map(({ id }) => id)).toEqual(['m~1', 'm', 'm~2']);
  });

  it('a cycle whose suffixed id exists gets another suffix', () => {
    const view = project([U('m'), S(), U('m~2'), S(), U('m'), S()]);
    expect(view.cycles.map(({ id }) => id)).toEqual(['m', 'm~2', 'm~2~']);
  });
});
