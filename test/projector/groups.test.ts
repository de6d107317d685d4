/** Tool groups and results (docs/internals/model.md, ResolutionStep View). */
import { describe, expect, it } from 'vitest';
import { project } from '../../src/projector/index.ts';
import { A, C, callIn, codes, parts, R, S, stepsOf, T, U } from './events.ts';

describe('tool groups', () => {
  it('S000-04 CYC-8 adjacent calls of one kind are a group, and a repeated kind is a new group', () => {
    const names = ['ls', 'read', 'bash', 'read', 'edit', 'write', 'foo'];
    const view = project([U('q'), A('x'), ...names.map((name, i) => C(`${i}`, name)), S('interrupted')]);
    expect(stepsOf(view)[1]).toBe('assistant x [read 0 1] [bash 2] [read 3] [write 4 5] [other 6]');
  });

  it('S000-06 CYC-9 results are not steps and do not end a group, even across replies', () => {
    const view = project([U('q'), A('x'), C('c1'), T('c1'), C('c2'), T('c2'), S()]);
    expect(stepsOf(view)).toEqual(['non-steer q', 'assistant x [read c1 c2]']);
    expect(callIn(view, 'c1')?.result).toEqual({ outcome: 'succeeded', content: parts('result of c1') });
    expect(callIn(view, 'c2')?.result).toEqual({ outcome: 'succeeded', content: parts('result of c2') });
    expect(view.diagnostics).toEqual([]);
  });

  it('a text, a reasoning and a steer end a group', () => {
    const view = project([U('q'), C('c1'), A('x'), C('c2'), R('y'), C('c3'), U('s', 'steer'), C('c4')]);
    expect(stepsOf(view)).toEqual([
      'non-steer q',
      'no text [read c1]',
      'assistant x [read c2]',
      'reasoning y [read c3]',
      'steer s',
      'no text [read c4]',
    ]);
  });

  it('S000-21 names match without regard to case, and groupOf takes precedence', () => {
    const log = [U('q'), A('x'), C('1', 'Read'), C('2', 'LS'), C('3', 'mcp__x'), C('4', 'task')];
    expect(stepsOf(project(log))[1]).toBe('assistant x [read 1 2] [other 3 4]');
    const groupOf = (name: string) => (name === 'task' ? 'bash-group' : undefined);
    expect(stepsOf(project(log, { groupOf }))[1]).toBe('assistant x [read 1 2] [other 3] [bash 4]');
  });

  it("a tool's own group takes precedence over the table, and groupOf over both", () => {
    const log = [U('q'), C('1', 'read', {}, 'write-group'), C('2', 'deploy', {}, 'bash-group')];
    expect(stepsOf(project(log))[1]).toBe('no text [write 1] [bash 2]');
    expect(stepsOf(project(log, { groupOf: () => 'other-group' }))[1]).toBe('no text [other 1 2]');
  });

  it('a groupOf that throws or returns no group is ignored', () => {
    const log = [U('q'), C('1', 'read'), C('2', 'bash')];
    const throwing = () => {
      throw new Error('no');
    };
    expect(stepsOf(project(log, { groupOf: throwing }))[1]).toBe('no text [read 1] [bash 2]');
    const wrong = { groupOf: (() => 'bash') as never };
    expect(stepsOf(project(log, wrong))[1]).toBe('no text [read 1] [bash 2]');
  });

  it('an unknown group of a later version does not remove the call', () => {
    const call = { type: 'agent-output', item: { ...C('1', 'read').item, group: 'web-group' } };
    expect(stepsOf(project([U('q'), call]))[1]).toBe('no text [read 1]');
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'H-026 a call named %s is an ordinary call',
    (name) => {
      const view = project([U('q'), C(name, name, JSON.parse('{"__proto__":{"polluted":1},"a":1}')), T(name), S()]);
      expect(stepsOf(view)[1]).toBe(`no text [other ${name}]`);
      expect(callIn(view, name)).toMatchObject({ name, args: { a: 1 }, result: { outcome: 'succeeded' } });
      expect(Object.hasOwn(callIn(view, name)?.args as object, '__proto__')).toBe(false);
      expect([({} as { polluted?: number }).polluted, codes(view)]).toEqual([undefined, []]);
    },
  );
});

it.each([
  [undefined, true],
  ['interrupted', true],
  ['refusal', true],
  ['', false],
  [null, false],
  ['Refusal', false],
])('a text with the flag %j is shown with it: %s', (flag, isRead) => {
  const text = { type: 'agent-output', item: { type: 'assistant', text: 'x', flag } };
  const view = project([U('q'), text]);
  const [, block] = view.cycles[0]?.steps ?? [];
  const shown = flag === undefined ? { kind: 'assistant', text: 'x' } : { kind: 'assistant', text: 'x', flag };
  expect(block).toEqual(isRead ? { type: 'ai-block', text: shown, groups: [] } : undefined);
  expect(view.diagnostics.map(({ code }) => code)).toEqual(isRead ? [] : ['malformed']);
});
