/** Views share unchanged parts, and never change. */
import { describe, expect, it } from 'vitest';
import { createProjector, project } from '../../src/projector/index.ts';
import { A, C, S, stepsOf, T, U } from './events.ts';

function started(...events: readonly unknown[]) {
  const projector = createProjector();
  for (const event of events) projector.push(event);
  return projector;
}

describe('structural sharing', () => {
  it('an unchanged cycle is the same object in the next view', () => {
    const projector = started(U('a'), A('x'), S(), U('b'), A('y'), C('c1'));
    const before = projector.view();
    projector.push(A('z'));
    const after = projector.view();
    expect(after.cycles[0]).toBe(before.cycles[0]);
    expect(after.cycles[1]).not.toBe(before.cycles[1]);
    projector.push(S());
    projector.push(U('c'));
    expect(projector.view().cycles[0]).toBe(before.cycles[0]);
    expect(projector.view().cycles[1]?.steps[0]).toBe(before.cycles[1]?.steps[0]);
  });

  it('unchanged steps, groups and calls of the open cycle are the same objects', () => {
    const projector = started(U('a'), A('x'), C('c1'), C('c2', 'bash'), T('c1'));
    const before = projector.view().cycles[0]?.steps ?? [];
    projector.push(C('c3', 'bash'));
    const block = projector.view().cycles[0]?.steps[1];
    const blockBefore = before[1];
    if (block?.type !== 'ai-block' || blockBefore?.type !== 'ai-block') throw new Error('expected two blocks');
    expect(projector.view().cycles[0]?.steps[0]).toBe(before[0]);
    expect(block.groups[0]).toBe(blockBefore.groups[0]);
    expect(block.groups[1]).not.toBe(blockBefore.groups[1]);
    expect(block.groups[1]?.calls[0]).toBe(blockBefore.groups[1]?.calls[0]);
  });

  it('an open cycle with a new diagnostic only is the same object', () => {
    const projector = started(U('a'), A('x'), C('c1'), T('c1'));
    const before = projector.view().cycles[0];
    projector.push(null);
    expect(projector.view().cycles[0]).toBe(before);
    expect(projector.view().diagnostics).toHaveLength(1);
  });

  it('a result changes its call, group, block, rounds and cycle, and nothing else', () => {
    const projector = started(U('a'), C('c1'), A('x'), C('c2'), S(), U('b'), A('y'));
    const [old, current] = projector.view().cycles;
    projector.push(T('c2'));
    const [oldAfter, currentAfter] = projector.view().cycles;
    expect(oldAfter).not.toBe(old);
    expect(oldAfter?.steps[1]).toBe(old?.steps[1]);
    expect(oldAfter?.steps[2]).not.toBe(old?.steps[2]);
    expect(currentAfter).toBe(current);
  });

  it('the view is the same object until a change', () => {
    const projector = started(U('a'), A('x'));
    const before = projector.view();
    projector.push({ type: 'checkpoint', boundary: 'RunFinished' });
    projector.push({ type: 'notice', code: 'n', text: 't' });
    expect(projector.view().cycles[0]).toBe(before.cycles[0]);
    expect(projector.view().queued).toBe(before.queued);
  });

  it('views are frozen, and later changes of pushed objects do not affect them', () => {
    const message = U('a');
    const projector = started(message, C('c1', 'read', { path: 'x' }), U('f', 'followUp'));
    const view = projector.view();
    const bytes = JSON.stringify(view);
    message.content[0] = { type: 'text', text: 'changed' };
    expect(() => (view.cycles as unknown[]).push(1)).toThrow(TypeError);
    expect(() => view.cycles[0]?.root.content.pop()).toThrow(TypeError);
    expect(() => Object.assign(view, { state: 'idle' })).toThrow(TypeError);
    projector.push(T('c1'));
    projector.push(S());
    expect(JSON.stringify(view)).toBe(bytes);
  });

  it('an old view that is read late shows its own state, also of long cycles', () => {
    const projector = createProjector();
    const views = [];
    const log: unknown[] = [U('q')];
    for (let i = 0; i < 150; i++) log.push(A(`${i}`), C(`c${i}`), T(`c${i}`));
    for (const entry of log) {
      projector.push(entry);
      views.push(projector.view());
    }
    const newest = projector.view();
    expect(newest).toEqual(project(log));
    for (const at of [0, 1, 2, 3, 200, 201, 202, 203, 449]) expect(views[at]).toEqual(project(log.slice(0, at + 1)));
    expect(projector.view().cycles[0]).toBe(newest.cycles[0]);
    expect(newest.cycles[0]?.steps.slice(0, 60)).toEqual(views[449]?.cycles[0]?.steps.slice(0, 60));
  });

  it('cycles are the same objects whether an older or a newer view is read first', () => {
    const projector = createProjector();
    const views = [];
    for (let i = 0; i < 5; i++) {
      for (const event of [U(`m${i}`), C(`c${i}`), A('x'), S()]) projector.push(event);
      views.push(projector.view());
    }
    const [, second, third, , newest] = views;
    expect(newest?.cycles).toHaveLength(5);
    expect(second?.cycles[0]).toBe(newest?.cycles[0]);
    expect(third?.cycles.slice(0, 2)).toEqual(newest?.cycles.slice(0, 2));
    projector.push(T('c1'));
    const late = projector.view();
    expect(late.cycles.map((cycle, i) => cycle === newest?.cycles[i])).toEqual([true, false, true, true, true]);
    expect(newest?.cycles[1]?.steps).toEqual(project([U('m1'), C('c1'), A('x'), S()]).cycles[0]?.steps);
  });
});

describe('a result after the stop', () => {
  it('it is in later views only, whichever is read first', () => {
    const log = [U('a'), C('c1'), S(), U('b'), A('x')];
    const projector = started(...log);
    const before = projector.view();
    projector.push(T('c1'));
    const after = projector.view();
    expect(after).toEqual(project([...log, T('c1')]));
    expect(before).toEqual(project(log));
  });
});

describe('long queues', () => {
  it('they keep their order through promotion, delivery and return', () => {
    const projector = started(U('q'), ...Array.from({ length: 300 }, (_, i) => U(`f${i}`, 'followUp')));
    const before = projector.view();
    expect(before.queued.map(({ messageId }) => messageId)).toEqual(Array.from({ length: 300 }, (_, i) => `f${i}`));
    for (let i = 0; i < 250; i++) projector.push(S());
    projector.push({ type: 'message-returned', messageId: 'f270', why: 'closed' });
    const queuedIds = projector.view().queued.map(({ messageId }) => messageId);
    expect(queuedIds).toEqual(Array.from({ length: 50 }, (_, i) => `f${250 + i}`).filter((id) => id !== 'f270'));
    expect(stepsOf(projector.view())).toEqual(['non-steer f249']);
    expect(before.queued).toHaveLength(300);
  });

  it('a stop promotes the first wire followUp, before those that a runtime queued', () => {
    const held = (i: number) => ({ type: 'message-queued', messageId: `r${i}`, kind: 'steer', content: [] });
    const mixed = Array.from({ length: 200 }, (_, i) => (i % 2 ? U(`w${i}`, 'followUp') : held(i)));
    const view = project([U('q'), ...mixed, ...Array.from({ length: 99 }, () => S())]);
    expect(view.cycles.slice(1).map(({ id }) => id)).toEqual(Array.from({ length: 99 }, (_, i) => `w${2 * i + 1}`));
    expect(view.queued.map(({ messageId }) => messageId)).toEqual([
      ...Array.from({ length: 100 }, (_, i) => `r${2 * i}`),
      'w199',
    ]);
    expect(view.diagnostics).toEqual([]);
  });

  it('a message that is queued again moves to the end', () => {
    const view = project([U('q'), U('a', 'followUp'), U('b', 'followUp'), U('a', 'followUp')]);
    expect(view.queued.map(({ messageId }) => messageId)).toEqual(['b', 'a']);
  });
});
