/** The waiting calls of sub-agents, as the payload of a suspended spawn call lists them. */
import { expect, it } from 'vitest';
import { pendingWithin } from '../../src/runtime/subAgentPort.ts';

it('each call has its own id, its path, and the details from the sub-agent', () => {
  const details = { callId: 'x', name: 'pay', args: { m: 1 }, reason: 'risky', suspension: 2, payload: 'why' };
  expect(pendingWithin('p', { waiting: [{ calls: ['x', 'y'], pending: [details] }, { calls: ['z'] }] })).toEqual([
    { callId: 'x', name: 'pay', args: { m: 1 }, reason: 'risky', suspension: 2, payload: 'why', path: ['p', 'x'] },
    { callId: 'y', name: '', args: null, reason: 'sub-agent', suspension: 1, path: ['p', 'y'] },
    { callId: 'z', name: '', args: null, reason: 'sub-agent', suspension: 1, path: ['p', 'z'] },
  ]);
});

it.each([undefined, null, 5, 'x', [], { waiting: 5 }, { waiting: [5, { calls: 5 }, { calls: [5], pending: 5 }] }])(
  'a payload of another form lists no call: %j',
  (payload) => {
    expect(pendingWithin('p', payload)).toEqual([]);
  },
);
