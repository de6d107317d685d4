/**
 * The results of a run's functions at an early end, a reply, a measured context, a round or a replayed call, for many
 * drawn moments. Invariant: lost entries belong to the run's own calls, so that each rule about losses applies.
 */
import type { NewEntry } from '../../machines/index.ts';
import { ofUnstarted } from '../../machines/log/reconcile.ts';
import * as assigns from '../../machines/run/assigns.ts';
import { runGuards } from '../../machines/run/guards.ts';
import { type RunArgs, type RunContext, type RunEvent, roundOf } from '../../machines/run/runContext.ts';
import * as entries from '../../machines/run/runEntries.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { answersOf, drawn, type Fold, unnamed } from './drawnResults.ts';
import { hold } from './invariants.ts';
import { asStored } from './lostEntries.ts';
import { callOf, decisionsOf, endClauses, idsOf, momentOf, outputOfCall, slotOf, some, text } from './runFunctions.ts';

/** Returns the entries of a call in order, some of which may not be stored yet. */
function lifeOf(draw: Chance, callId: string, suspension: number): NewEntry[] {
  const call: NewEntry = {
    runId: 'r',
    type: 'agent-output',
    item: { type: 'tool-call', callId, name: 'write', args: {} },
  };
  const decision = { callId, action: 'approve' as const };
  const ofEnd = draw.one<object>([
    { outcome: 'succeeded' },
    { outcome: 'failed', code: 'error' },
    { outcome: 'failed', code: 'denied' },
    { outcome: 'failed', code: 'denied' },
    { outcome: 'cancelled', code: 'cancelled' },
  ]);
  const result = { runId: 'r', type: 'tool-result', callId, content: text('lost'), ...ofEnd } as NewEntry;
  return [
    ...some<NewEntry>(draw, 0.5, [call]),
    ...some<NewEntry>(draw, 0.3, [
      { runId: 'r', type: 'tool-suspended', callId, suspension, reason: 'permission' },
      { runId: null, type: 'decision', callId, suspension, decision },
      { runId: 'r', type: 'tool-started', callId, idempotencyKey: `c/${callId}/${suspension}` },
    ]),
    ...(draw.odds(0.3) ? [result] : []),
    ...some<NewEntry>(draw, 0.3, [{ runId: 'r', type: 'decision-consumed', callId, suspension }]),
  ];
}

function lostOf(draw: Chance, { suspended, kept, reruns, calls, slots }: RunContext): NewEntry[] {
  const open = [...suspended, ...reruns, ...[...kept, ...slots].map(({ call }) => ({ call, suspension: 1 }))];
  const all = new Map([...calls.map((call) => [call.callId, 1] as const), ...open.map(suspensionOf)]);
  const continuation: NewEntry = { runId: draw.one(['r', 'q']), type: 'continuation', text: 'Go on.', why: 'resume' };
  return [
    ...some(draw, 0.2, [continuation]),
    ...[...all].flatMap(([callId, suspension]) => (draw.odds(0.6) ? lifeOf(draw, callId, suspension) : [])),
  ];
}
const idsOfCalls = (calls: RunContext['calls']): string[] => calls.map(({ callId }) => callId);
const suspensionOf = ({ call, suspension }: RunContext['suspended'][number]) => [call.callId, suspension] as const;

/** Returns a moment during a round, at a gate, or after both. */
function endAt(seed: number): RunArgs {
  const draw = chance(seed * 86_028_121);
  const context = momentOf(draw);
  const error = { code: 'disk', message: 'no space left' };
  const round: object = {
    type: 'xstate.done.actor.round',
    actorId: 'round',
    output: {
      kind: 'stopped',
      slots: context.calls.map((call) => slotOf(draw, call)),
      ...(draw.odds(0.3) && { steered: 'm1' }),
    },
  };
  const lost = lostOf(draw, context);
  const failed: object = { type: 'append.failed', error, lost };
  const isRound = context.calls.length > 0 && draw.odds(0.7);
  const end = isRound && draw.odds(0.7) ? { ...context.end, termination: 'Error' as const, lost } : context.end;
  // Some decisions are early: their call runs, or plugins handle its suspension.
  const decisions = [...context.decisions, ...decisionsOf(draw, idsOfCalls(context.calls))];
  return asStored({ context: { ...context, end, decisions }, event: (isRound ? round : failed) as RunEvent });
}

/** Returns all results for one event at the moment. */
function resultsOf(context: RunContext, event: object): unknown[] {
  const moment = { context, event: event as RunEvent };
  const changes = unnamed(answersOf(assigns, moment));
  return [unnamed(answersOf(entries, moment)), changes, answersOf(runGuards, moment)];
}
const done = (value: object): object => ({ type: 'effect.done', id: 'r/', value });

const FOLDS: Record<string, Fold<RunArgs>> = {
  end: ({ context, event }) => resultsOf(context, event),
  replayed: ({ context }, draw) => {
    const callId = context.replaying[0] ?? 's';
    const output = outputOfCall(draw, callId, draw.one(['suspended', 'suspended', 'failed']));
    return assigns.settleCall({ context, event: { type: 'call.settled', output } });
  },
  measured: ({ context }, draw) => {
    const used = draw.one([79, 80, 80, 81, 94, 95, 95, 96]);
    const prunable = draw.odds(0.4) && { prunable: { callIds: ['o'], used: used - draw.below(3) } };
    return resultsOf(context, done({ kind: 'context', used, limit: 100, warned: draw.odds(0.5), ...prunable }));
  },
  replied: ({ context }, draw) => {
    const items = ['so', 'and', 'then'].slice(draw.below(4)).map((words) => ({ type: 'assistant', text: words }));
    const extra = draw.odds(0.5) && { extra: { id: 'x' } };
    const calls = some(draw, 0.4, ['d', 'e']).map((id) => callOf(draw, id));
    const usage = { inputTokens: 1, outputTokens: 2, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
    const reply = { kind: 'reply', items, ...extra, calls, finish: 'stop', empty: false, model: 'm', usage };
    return resultsOf(context, done({ ...reply, costUsd: 0 }));
  },
  heard: ({ context }, draw) => {
    const why = draw.one(['stop_hook', 'output'] as const);
    const heard = draw.one<object>([
      { kind: 'continue', text: 'Once more.', why },
      { kind: 'answer', value: { sum: 1 } },
      { kind: 'terminate', by: 'guard', reason: 'enough', ...(draw.odds(0.5) && { stopped: true }) },
    ]);
    const reply = { ...context.reply, judged: draw.one([true as const, undefined]) };
    return resultsOf({ ...context, reply }, done(heard));
  },
  unstarted: (_, draw) => {
    const outcome = draw.one(['succeeded', 'failed', 'cancelled', 'unknown'] as const);
    const code = draw.one(['cancelled', 'skipped', 'failed', 'unknown', undefined]);
    const runId = draw.one(['r', null]);
    return ofUnstarted({
      runId,
      type: 'tool-result',
      callId: 'a',
      outcome,
      content: text('own'),
      ...(code && { code }),
    });
  },
};

const clauses = [
  ...endClauses,
  {
    says: 'semantics 6: a call whose suspension was lost does not wait',
    holds: ({ context, event }: RunArgs) => {
      const lost = event.type === 'append.failed' ? event.lost : (context.end.lost ?? []);
      const suspensions = lost.flatMap((entry) => (entry.type === 'tool-suspended' ? [entry.callId] : []));
      const end = { ...context.end, lost };
      const open = assigns.keepOpenCalls({ context: { ...context, end }, event });
      const both = idsOf(open.suspended ?? []).filter((callId) => suspensions.includes(callId));
      if (both.length > 0) throw new Error(`${both} waits, and no entry lists it`);
    },
  },
  {
    says: 'semantics 6: after the end no decision is held for a suspension that no longer waits',
    holds: (moment: RunArgs) => {
      const { suspended, slots, end } = moment.context;
      // A lost suspension does not count.
      const gone = (end.lost ?? []).flatMap((entry) => (entry.type === 'tool-suspended' ? [entry.callId] : []));
      const heard = [...slots, ...roundOf(moment.event).slots].flatMap(({ status, call, output }) =>
        status === 'running' && output?.outcome === 'suspended' ? [{ call, suspension: output.suspension }] : [],
      );
      const came = [...suspended, ...heard]
        .filter(({ call }) => !gone.includes(call.callId))
        .map(({ call, suspension }) => `${call.callId}/${suspension}`);
      for (const open of [assigns.closeOpenCalls(moment), assigns.keepOpenCalls(moment)]) {
        const waiting = (open.suspended ?? []).map(({ call, suspension }) => `${call.callId}/${suspension}`);
        const held = (open.decisions ?? []).map(({ callId, suspension }) => `${callId}/${suspension}`);
        const stale = held.filter((each) => came.includes(each) && !waiting.includes(each));
        hold(stale.length === 0, `${stale} is held, and nothing waits for it`);
      }
    },
  },
];
export const ends = drawn('ENDS', endAt, FOLDS, clauses);
