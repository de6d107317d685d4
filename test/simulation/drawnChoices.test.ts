/** The draws and counts of a simulated life: decisions about calls in every state, and the facts of its log. */
import { describe, expect, it } from 'vitest';
import type { Decision, LogEntry, PendingCall } from '../../machines/internal.ts';
import { CONTEXT_WINDOW, REPLY_TOKENS, sharesToFill } from '../../src/testing/agentPaths/filledWindow.ts';
import { CallLog, type LoggedCall } from '../../src/testing/simulation/callLog.ts';
import { seeded } from '../../src/testing/simulation/choiceTape.ts';
import { type DecisionContext, drawDecision } from '../../src/testing/simulation/drawDecision.ts';
import type { SimulatedWorld } from '../../src/testing/simulation/world/simulatedWorld.ts';

const call = (name: string, isEnded: boolean): LoggedCall => ({ name, isEnded, suspension: 0 });
const pendingCall = (callId: string, suspension: number): PendingCall =>
  ({ callId, name: 'w', suspension, args: null, reason: 'permission', payload: null, path: [callId] }) as never;
const last: Decision = { callId: 'open', action: 'deny', by: 'before', reason: 'once' } as Decision;
const full: DecisionContext = {
  pending: [pendingCall('waits', 3), pendingCall('waits too', 1)],
  calls: new Map([
    ['open', call('o', false)],
    ['ended', call('e', true)],
  ]),
  last,
  argsOf: (name) => ({ of: name }),
};
const drawn = (context: DecisionContext) => {
  const tape = seeded(7);
  return Array.from({ length: 2_000 }, () => drawDecision(tape, context, 'by'));
};
const countsOf = (values: readonly string[]): { [value: string]: number } => {
  const counts: { [value: string]: number } = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
};

describe('a decision that is drawn', () => {
  it('is about a call in the state of its target, mostly one that waits, and names no suspension of another', () => {
    const all = drawn(full);
    const ids = {
      waiting: ['waits', 'waits too'],
      early: ['open'],
      late: ['ended'],
      twice: ['open'],
      nobody: ['nobody'],
    };
    for (const { target, decision } of all) {
      expect(ids[target]).toContain(decision.callId);
      expect(decision.by).toBe('by');
      const { suspension } = decision as { suspension?: number };
      if (target !== 'waiting') expect(suspension).toBeUndefined();
      else expect([undefined, decision.callId === 'waits' ? 3 : 1]).toContain(suspension);
    }
    const targets = countsOf(all.map(({ target }) => target));
    // Of 17.5 shares twelve wait, three come early, and half of one is about no call.
    for (const [target, share] of Object.entries({ waiting: 12, early: 3, late: 1, twice: 1, nobody: 0.5 }))
      expect(Math.abs((targets[target] ?? 0) / 2_000 - share / 17.5)).toBeLessThan(0.03);
    const suspensions = all
      .filter(({ target }) => target === 'waiting')
      .map(({ decision }) => 'suspension' in decision);
    expect(suspensions.filter(Boolean).length / suspensions.length).toBeCloseTo(0.5, 1);
  });

  it('has the fields of its action, also values that violate a schema, and approves most often', () => {
    const own = drawn({ ...full, last: undefined }).filter(({ target }) => target === 'waiting');
    const facts = countsOf(
      own.map(({ decision: { callId, by, suspension, ...fields } }: { decision: Decision & { suspension?: number } }) =>
        JSON.stringify(fields),
      ),
    );
    const kinds = [
      ...['{"action":"approve"}', '{"action":"edit","args":{"of":"w"}}', '{"action":"edit","args":5}'],
      ...['false', '0', '""'].map((payload) => `{"action":"answer","payload":${payload}}`),
      ...[0, 1, 2].map((number) => `{"action":"deny","reason":"reason ${number}"}`),
    ];
    expect(Object.keys(facts).sort()).toEqual(kinds.sort());
    expect((facts['{"action":"approve"}'] ?? 0) / own.length).toBeCloseTo(0.4, 1);
  });

  it('repeats the previous one as it was, and is about nobody where there is no such call', () => {
    const twice = drawn(full).filter(({ target }) => target === 'twice');
    expect(twice.map(({ decision }) => decision)).toEqual(twice.map(() => ({ ...last, by: 'by' })));
    const none = drawn({ ...full, pending: [], calls: new Map(), last: undefined });
    expect(new Set(none.map(({ target, decision }) => `${target} ${decision.callId}`))).toEqual(
      new Set(['nobody nobody']),
    );
    const early = drawn({ ...full, pending: [] });
    expect(new Set(early.map(({ target }) => target))).toEqual(new Set(['early', 'late', 'twice', 'nobody']));
  });
});

describe('the calls of a log', () => {
  it('are asked, ended and begun again, and each fact counts once by its kind', () => {
    const reached: string[] = [];
    const world = { reach: (kind: string, name: string) => void reached.push(`${kind}: ${name}`) };
    const log = new CallLog(world as unknown as SimulatedWorld);
    const states: string[] = [];
    const learn = (entry: object): void => {
      log.learn(entry as LogEntry);
      const one = log.calls.get('c');
      states.push(one ? `${one.name} ${one.isEnded} ${one.suspension}` : 'none');
    };
    learn({ type: 'tool-result', callId: 'c', outcome: 'succeeded' });
    learn({ type: 'agent-output', item: { type: 'tool-call', callId: 'c', name: 't' } });
    const decided = (action: string, suspension: number) => ({
      type: 'decision',
      callId: 'c',
      suspension,
      decision: { action },
    });
    learn(decided('approve', 1));
    learn({ type: 'tool-suspended', callId: 'c', suspension: 1 });
    learn(decided('deny', 1));
    learn(decided('edit', 2));
    learn({ type: 'tool-result', callId: 'c', outcome: 'failed', code: 'denied' });
    learn({ type: 'tool-started', callId: 'c' });
    learn({ type: 'tool-result', callId: 'c', outcome: 'succeeded' });
    learn({ type: 'run-stop', reason: 'error', cause: 'model' });
    expect(states).toEqual([
      ...['none', 't false 0', 't false 0', 't false 1', 't false 1', 't false 1'],
      ...['t true 1', 't false 1', 't true 1', 't true 1'],
    ]);
    expect(reached.filter((fact) => !fact.startsWith('entries'))).toEqual([
      ...['decisions: early approve', 'decisions: asked', 'decisions: deny', 'decisions: early edit'],
      ...['outcomes: failed denied', 'outcomes: succeeded', 'stops: error model'],
    ]);
    expect(reached.filter((fact) => fact.startsWith('entries'))).toHaveLength(10);
  });
});

describe('messages that fill the context window of a test', () => {
  const frame = { system: '', tools: [] };
  const beside = (JSON.stringify([]).length / 4 + REPLY_TOKENS) / CONTEXT_WINDOW;
  it.each<[string, object, number[]]>([
    ['nothing', {}, []],
    ['a summary from 80 %', { compact: 0.8 }, [0.9 - beside]],
    ['a summary from 80 % and an end at 95 %', { compact: 0.8, exhaust: 0.95 }, [0.875 - beside, 1]],
    ['an end alone', { exhaust: 0.9 }, [1]],
    ['an end before the summary', { compact: 0.9, exhaust: 0.8 }, [1]],
    ['an end at the summary', { compact: 0.8, exhaust: 0.8 }, [1]],
    ['a summary at once', { compact: 0, exhaust: 0.0001 }, [1]],
  ])('have the shares for the policy of %s', (_, context, shares) => {
    const found = sharesToFill({ context } as never, frame);
    expect(found).toHaveLength(shares.length);
    for (const [index, share] of shares.entries()) expect(found[index]).toBeCloseTo(share, 2);
  });
});
