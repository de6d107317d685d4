/** The machine of the projector as a table (docs/internals/model.md, Deterministic Construction). */
import { describe, expect, it } from 'vitest';
import { next, type Phase, type Signal, signalOf } from '../../src/projector/projectionState.ts';
import { readEntry } from '../../src/projector/readEntry.ts';
import { A, R, S, U } from './events.ts';

const transition = (phase: Phase, signal: Signal, whileActive: 'steer' | 'followUp' = 'followUp') => {
  const { move, to, odd } = next(phase, signal, whileActive);
  return odd === undefined ? `${move} → ${to}` : `${move} → ${to} (${odd})`;
};
const signal = (event: unknown) => signalOf(readEntry(event).reading);

describe('the state machine', () => {
  it.each<[Signal, string, string, string]>([
    ['message-direct', 'open-direct → active', 'queue → active (kind-overridden)', 'steer → active (kind-overridden)'],
    ['message-open', 'open-direct → active', 'queue → active', 'steer → active'],
    ['message-followUp', 'open-followUp → active', 'queue → active', 'queue → active'],
    ['message-steer', 'open-direct → active (kind-overridden)', 'steer → active', 'steer → active'],
    ['work', 'refuse → idle (orphan)', 'append → active', 'append → active'],
    ['boundary', 'refuse → idle (stop_while_idle)', 'close → idle', 'close → idle'],
    ['suspension', 'refuse → idle (orphan)', 'wait → active', 'wait → active'],
    ['resumption', 'reopen → active', 'reopen → active', 'reopen → active'],
  ])('%s moves as documented, idle, queueing and steering', (kind, idle, queueing, steering) => {
    expect([transition('idle', kind), transition('active', kind), transition('active', kind, 'steer')]).toEqual([
      idle,
      queueing,
      steering,
    ]);
    expect(transition('idle', kind, 'steer')).toBe(idle);
  });

  it('CYC-2 the three stop reasons are one signal', () => {
    const reasons = ['completed', 'interrupted', 'error'] as const;
    expect(reasons.map((reason) => signal(S(reason)))).toEqual(['boundary', 'boundary', 'boundary']);
  });

  it('CYC-3 a message has a kind or none, and all output is work', () => {
    expect([signal(U('a')), signal(U('a', 'steer')), signal(A('x')), signal(R('x'))]).toEqual([
      'message-open',
      'message-steer',
      'work',
      'work',
    ]);
    expect(signal({ type: 'notice' })).toBe(undefined);
  });
});
