/** The entries of a run for a call that is open at an early end, for every place and progress of the call. */
import { describe, expect, it } from 'vitest';
import type { RoundCall, ToolCallOutput } from '../../machines/calls.ts';
import type { NewEntry } from '../../machines/index.ts';
import {
  closeCalls,
  type Ending,
  FATES,
  LOST_ENTRIES,
  type LostEntry,
  openCallsAfter,
  type Place,
  type Progress,
} from '../../machines/run/closeCalls.ts';
import type { RunContext } from '../../machines/run/runContext.ts';

const runId = 'r';
const call: RoundCall = { callId: 'a', name: 'write', gated: true, readOnly: false, fingerprint: 'f' };
const outcome = { callId: 'a', name: 'write', fingerprint: 'f' };
const content = [{ type: 'text' as const, text: 'its own' }];
const concluded: ToolCallOutput = {
  ...outcome,
  outcome: 'succeeded',
  suspension: 1,
  result: { runId, type: 'tool-result', callId: 'a', outcome: 'succeeded', content },
};
const suspendedAs = (suspension: number): ToolCallOutput => ({ ...outcome, outcome: 'suspended', suspension });
const decision = { callId: 'a', action: 'approve' as const };
const held = { callId: 'a', suspension: 1, decision };

const AT_GATE: Record<Progress, Partial<RunContext>> = {
  waiting: {},
  executing: { replaying: ['a'] },
  concluded: { replaying: ['a'], concluded: [concluded] },
  suspending: { replaying: ['a'], concluded: [suspendedAs(2)] },
};
const RUNNING: Record<Progress, ToolCallOutput | undefined> = {
  waiting: undefined,
  executing: undefined,
  concluded,
  suspending: suspendedAs(1),
};

function contextOf(place: Place, progress: Progress): RunContext {
  const output = RUNNING[progress];
  const suspended = [{ call, suspension: 1 }];
  const places: Record<Place, Partial<RunContext>> = {
    called: { calls: [call] },
    queued: { calls: [call], slots: [{ call, status: 'queued' }] },
    running: { calls: [call], slots: [{ call, status: 'running', ...(output && { output }) }] },
    suspendedInRound: { suspended, slots: [{ call, status: 'suspended' }], ...AT_GATE[progress] },
    suspended: { suspended, ...AT_GATE[progress] },
    rerun: { reruns: [{ call, suspension: 1, decision }], ...AT_GATE[progress] },
    keptTurn: { kept: [{ call, behind: 'z' }], ...AT_GATE[progress] },
  };
  const empty = { suspended: [], kept: [], reruns: [], calls: [], slots: [], replaying: [], concluded: [] };
  return { runId, ...empty, decisions: [held], ...places[place] } as unknown as RunContext;
}

const lostEntries: Record<LostEntry, NewEntry> = {
  decision: { runId: null, type: 'decision', callId: 'a', suspension: 1, decision },
  'agent-output': { runId, type: 'agent-output', item: { type: 'tool-call', callId: 'a', name: 'write', args: {} } },
  'tool-started': { runId, type: 'tool-started', callId: 'a', idempotencyKey: 'c/a/1' },
  'tool-suspended': { runId, type: 'tool-suspended', callId: 'a', suspension: 1, reason: 'permission' },
};

/** The result of the call, `waits` if the run leaves it waiting, and `used` if its decision is consumed. */
function endOf(place: Place, progress: Progress, ending: Ending, lost: readonly LostEntry[] = []): string {
  const context = contextOf(place, progress);
  const entries = lost.map((type) => lostEntries[type]);
  const written = closeCalls(context, ending, entries).map((entry) =>
    entry.type === 'tool-result' ? (entry.code ?? entry.outcome) : entry.type === 'decision-consumed' ? 'used' : '?',
  );
  const waits = openCallsAfter(context, ending, entries).suspended.map(() => 'waits');
  return [...waits, ...written].join(', ') || 'nothing';
}
const rows = (Object.keys(FATES) as Place[]).flatMap((place) =>
  (Object.keys(FATES[place]) as Progress[]).map((progress) => ({ place, progress, row: FATES[place][progress] })),
);

describe('a run that ends early', () => {
  it.each([
    // place, progress, after a cancel, after any other end
    ['called', 'waiting', 'skipped', 'skipped'],
    ['queued', 'waiting', 'skipped', 'skipped'],
    ['running', 'executing', 'cancelled', 'cancelled'],
    ['running', 'concluded', 'succeeded', 'succeeded'],
    ['running', 'suspending', 'cancelled', 'waits'],
    ['suspendedInRound', 'waiting', 'cancelled', 'waits'],
    ['suspendedInRound', 'executing', 'cancelled', 'cancelled'],
    ['suspendedInRound', 'concluded', 'succeeded, used', 'succeeded, used'],
    ['suspendedInRound', 'suspending', 'cancelled, used', 'waits, used'],
    ['suspended', 'waiting', 'cancelled', 'waits'],
    ['suspended', 'executing', 'cancelled', 'cancelled'],
    ['suspended', 'concluded', 'succeeded, used', 'succeeded, used'],
    ['suspended', 'suspending', 'cancelled, used', 'waits, used'],
    ['rerun', 'waiting', 'unknown', 'unknown'],
    ['rerun', 'executing', 'cancelled', 'cancelled'],
    ['rerun', 'concluded', 'succeeded, used', 'succeeded, used'],
    ['rerun', 'suspending', 'cancelled, used', 'waits, used'],
    ['keptTurn', 'waiting', 'skipped', 'skipped'],
    ['keptTurn', 'executing', 'cancelled', 'cancelled'],
    ['keptTurn', 'concluded', 'succeeded', 'succeeded'],
    ['keptTurn', 'suspending', 'cancelled', 'waits'],
  ] as const)('a %s call that is %s: %s after a cancel, %s after any other end', (place, progress, cancel, other) => {
    expect(endOf(place, progress, 'cancelled')).toBe(cancel);
    expect(endOf(place, progress, 'stopped')).toBe(other);
  });

  it.each([
    ['called', 'waiting', 'agent-output', 'nothing'],
    ['running', 'executing', 'tool-started', 'skipped'],
    ['running', 'suspending', 'tool-suspended', 'unknown'],
    ['suspendedInRound', 'waiting', 'decision', 'waits'],
    ['suspendedInRound', 'waiting', 'tool-suspended', 'unknown'],
    ['suspendedInRound', 'executing', 'decision', 'waits'],
    ['suspendedInRound', 'concluded', 'decision', 'nothing'],
    ['suspendedInRound', 'suspending', 'decision', 'waits'],
    ['suspendedInRound', 'suspending', 'tool-suspended', 'cancelled, used'],
    ['suspended', 'waiting', 'decision', 'waits'],
    ['suspended', 'waiting', 'tool-suspended', 'unknown'],
    ['suspended', 'executing', 'decision', 'waits'],
    ['suspended', 'concluded', 'decision', 'nothing'],
    ['suspended', 'suspending', 'decision', 'waits'],
    ['suspended', 'suspending', 'tool-suspended', 'unknown'],
    ['rerun', 'suspending', 'tool-suspended', 'cancelled, used'],
    ['keptTurn', 'suspending', 'tool-suspended', 'cancelled'],
  ] as const)('a %s call that is %s and whose %s was lost: %s', (place, progress, lost, expected) => {
    expect(endOf(place, progress, 'stopped', [lost])).toBe(expected);
  });

  it('no other lost entry changes a fate', () => {
    for (const { place, progress, row } of rows) {
      const others = LOST_ENTRIES.filter((type) => !row?.[type] && type !== 'tool-suspended');
      for (const type of others)
        expect([place, progress, type, endOf(place, progress, 'stopped', [type])]).toEqual([
          place,
          progress,
          type,
          endOf(place, progress, 'stopped'),
        ]);
    }
  });

  it('a call whose result was lost gets no second result', () => {
    const result: NewEntry = { runId, type: 'tool-result', callId: 'a', outcome: 'succeeded', content };
    for (const { place, progress } of rows) {
      const written = closeCalls(contextOf(place, progress), 'stopped', [result]);
      expect(written).toMatchObject([{ type: 'tool-result', callId: 'a', outcome: 'unknown' }]);
    }
  });

  it.each([
    ['of a denied call is written again, with the use of its decision', 'denied', [], 'denied, used'],
    [
      'of a denied call is written again alone, if its decision was lost too',
      'denied',
      [lostEntries.decision],
      'denied',
    ],
    ['of a call that ran becomes unknown, and its decision stays', undefined, [], 'unknown'],
  ] as const)('a lost result %s', (_, code, others, expected) => {
    const result: NewEntry = {
      runId,
      type: 'tool-result',
      callId: 'a',
      outcome: 'failed',
      content,
      ...(code && { code }),
    };
    const used: NewEntry = { runId, type: 'decision-consumed', callId: 'a', suspension: 1 };
    const written = closeCalls(contextOf('suspended', 'waiting'), 'stopped', [...others, result, used]);
    expect(
      written
        .map((entry) =>
          entry.type === 'tool-result'
            ? (entry.code ?? entry.outcome)
            : entry.type.replace('decision-consumed', 'used'),
        )
        .join(', '),
    ).toBe(expected);
  });
});
