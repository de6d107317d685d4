/**
 * What the functions of a conversation say of many drawn moments of one, as `runFunctions.ts` asks those of a run. Rule: every
 * exported function is asked, none by its name, and a clause looks at what is logged and what a run is given.
 */

import type { ConversationContext, ConversationEvent } from '../../machines/conversation/context.ts';
import * as conversationContext from '../../machines/conversation/context.ts';
import { conversationChart, conversationMachine } from '../../machines/conversation/conversation.machine.ts';
import * as entries from '../../machines/conversation/entries.ts';
import {
  type Act,
  acceptMessage,
  fatesOf,
  judgeAct,
  judgePending,
  type PendingAct,
  standingOf,
} from '../../machines/conversation/judgeAct.ts';
import type { ChartPolicies, ConversationStatus } from '../../machines/index.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { answered, answersOf, type Clause, drawn, type Fold, functionsOf, json, unnamed } from './drawnResults.ts';
import { hold } from './invariants.ts';
import { lostEntries } from './lostEntries.ts';
import { callOf, decisionsOf, idsOf, inputOf, resultsIn, some, spentOf, text } from './runFunctions.ts';

/** What changes a context; the others read its parts. */
const { contextOf: _c, runOf: _r, queued: _q, nextFollowUp: _n, ...assigns } = conversationContext;

interface Moment {
  context: ConversationContext;
  event: ConversationEvent;
  place: { status: ConversationStatus } & Pick<ChartPolicies, 'whileActive' | 'whileSuspended'>;
}

const retriesOf = (draw: Chance, ids: readonly string[]) =>
  some(draw, 0.5, ids).map((id) => ({ call: callOf(draw, id), suspension: draw.below(2) }));
const queueOf = (draw: Chance) =>
  some(draw, 0.6, ['m1', 'f1', 'm2', 'f2']).map((messageId) => ({
    messageId,
    kind: messageId.startsWith('m') ? ('steer' as const) : ('followUp' as const),
    content: text(messageId),
  }));

function contextOf(draw: Chance): ConversationContext {
  const { suspended, kept, reruns, decisions, ...input } = inputOf(draw);
  const next = { messageId: 'n', content: text('instead') };
  return {
    ...input,
    open: { suspended, kept, reruns, decisions },
    retries: retriesOf(draw, ['y', 'z']),
    queue: queueOf(draw),
    waiting: draw.odds(0.5),
    drained: some(draw, 0.4, ['f1', 'f2']),
    next: draw.odds(0.5) ? next : undefined,
  };
}

/** As the log has it: what was decided is there without its secrets. */
function waitsOf(draw: Chance) {
  const { suspended, kept, reruns, decisions } = inputOf(draw);
  const marked = decisions.map((held) => ({ ...held, decision: { ...held.decision, by: 'log' } }));
  return { suspended, kept, reruns, decisions: marked, queue: queueOf(draw) };
}

function eventOf(draw: Chance): ConversationEvent {
  const error = { code: 'disk', message: 'no space left' };
  const { counters } = inputOf(draw);
  const ended = draw.odds(0.5) && { ended: draw.odds(0.5) };
  const waits = draw.odds(0.6) && { waits: waitsOf(draw) };
  const of = draw.odds(0.6) && { of: { runId: 'p', counters, ...ended, ...waits } };
  const output = (): object => {
    const { suspended, kept, reruns, decisions } = inputOf(draw);
    const end = draw.one<() => object>([
      () => ({ termination: 'NaturalEnd', cause: 'end_turn' }),
      () => ({ termination: 'Suspended' }),
      () => ({ termination: 'Cancelled', cause: draw.one(['cancelled', 'timeout']) }),
      () => ({ termination: 'Error', cause: 'model', error }),
      () => ({ termination: 'Error', cause: 'store', error, lost: lostEntries(draw) }),
      () => ({ termination: 'Error', cause: 'store', error, lost: lostEntries(draw) }),
    ])();
    return { end, durable: draw.odds(0.7), counters, suspended, kept, reruns, decisions };
  };
  const lost = (): object[] => [
    ...lostEntries(draw),
    ...some(draw, 0.4, [{ runId: 'r', type: 'model-reply', turn: 1, model: 'm', finish: 'stop', ...spentOf(draw) }]),
    ...some(draw, 0.4, [{ runId: 'r', type: 'extension', name: 'runchart.sub-agent-usage', value: spentOf(draw) }]),
    ...(draw.odds(0.3)
      ? [{ runId: 'r', type: 'call-settled' as const, callId: 'y', how: { retry: true as const } }]
      : []),
  ];
  return draw.one<() => object>([
    () => ({
      type: 'message.sent',
      messageId: draw.one(['o', 'f1']),
      content: text('so'),
      kind: draw.one(['direct', 'steer', 'followUp']),
      ...of,
    }),
    () => ({ type: 'resume.requested', runId: 'w', ...(draw.odds(0.5) && { continuation: 'Go on.' }), ...of }),
    () => ({ type: 'promotion.requested', ...of }),
    () => ({ type: 'message.returned', messageId: draw.one(['m1', 'f1', 'z']), why: 'host' }),
    () => ({ type: 'cancel.requested', ...(draw.odds(0.5) && { partial: draw.one(['so f', '']) }) }),
    () => ({
      type: 'decision.arrived',
      held: decisionsOf(draw, ['s', 's', 's'])[0] ?? { callId: 's', suspension: 1 },
      receipt: draw.one(['applied', 'held', 'duplicate']),
    }),
    () => ({
      type: 'outcome.settled',
      callId: 'y',
      how: { retry: true },
      receipt: draw.one(['applied', 'unknown']),
      retry: retriesOf(draw, ['y', 'y', 'y'])[0],
    }),
    () => ({ type: 'steers.delivered', messages: queueOf(draw) }),
    () => ({
      type: 'sub-agent.changed',
      callId: 'a',
      conversationId: 'k',
      phase: draw.one(['started', undefined]),
      spent: draw.one([spentOf(draw), undefined]),
    }),
    () => ({ type: 'effect.failed', id: 'r/', cause: 'executor', error }),
    () => ({ type: 'append.failed', error, lost: lost() }),
    () => ({ type: 'append.failed', error, lost: lost() }),
    () => ({ type: 'xstate.done.actor.run', actorId: 'run', output: output() }),
    () => ({ type: 'xstate.done.actor.run', actorId: 'run', output: output() }),
  ])() as ConversationEvent;
}

const STATUSES = ['idle', 'error', 'active', 'waiting', 'cancelling'] as const;
const SENT = (['direct', 'steer', 'followUp'] as const).map((kind) => ({ type: 'message.sent' as const, kind }));
const ACTS: readonly Act[] = [
  ...SENT,
  { type: 'message.sent', kind: 'direct', whileSuspended: 'denyAndRun' },
  { type: 'resume.requested' },
  { type: 'promotion.requested' },
  { type: 'cancel.requested' },
];
/** The acts pending in three ways: no image is being stored, the first act's image is, and the second act's is. */
const pendingOf = (acts: readonly Act[]): PendingAct[][] => [
  acts.map((act) => ({ act, isHeld: false, isStoring: false })),
  acts.map((act, index) => ({ act, isHeld: true, isStoring: index === 0 })),
  acts.map((act, index) => ({ act, isHeld: index > 0, isStoring: index === 1 })),
];

/** The outcomes of two successive acts, and the fate of each if it is withdrawn. */
function judgements({ context, place }: Moment): unknown {
  const { status, ...policies } = place;
  const settings = { policies: { ...context.settings.policies, ...policies } };
  const standing = standingOf({ tags: new Set([status]), context: { ...context, settings } });
  const full = { ...standing, queued: settings.policies.limits.queue };
  const asked = [{}, { kind: 'steer' as const }, { kind: 'followUp' as const }, { whileSuspended: 'reject' as const }];
  return [
    standing,
    asked.map((message) => [acceptMessage(standing, message), acceptMessage(full, message)]),
    ACTS.flatMap((first) => ACTS.map((second) => [first, second])).map((pair) => [
      judgePending(standing, pair).standing.status,
      pair.map((act) => judgeAct(standing, act)),
      pendingOf(pair).flatMap((pending) =>
        (['cancel', 'close', 0, 1, -1] as const).map((by) => fatesOf(standing, pending, by).join()),
      ),
    ]),
  ];
}

const given = functionsOf(conversationChart);
const FOLDS: Record<string, Fold<Moment>> = {
  acts: (moment) => given.map((one) => json(answered(one, moment))),
  changes: (moment) => unnamed(answersOf(assigns, moment)),
  entries: (moment) => unnamed(answersOf(entries, moment)),
  guards: (moment) => answersOf(conversationMachine.implementations.guards, moment),
  judged: (moment) => json(judgements(moment)),
};

const clauses: readonly Clause<Moment>[] = [
  {
    says: 'request-cycle-model, Boundary Rule: a cycle that is closed while it waits gives each open call one result, and has one stop',
    holds: (moment) => {
      const { suspended, kept, reruns } = moment.context.open;
      const due = [...idsOf(suspended), ...idsOf(kept), ...idsOf(reruns)].sort().join();
      for (const written of [entries.closingEntries(moment), entries.supersedingEntries(moment)]) {
        const given = resultsIn(written).sort().join();
        hold(given === due, `${given} have results, and ${due} are open`);
        hold(written.filter(({ type }) => type === 'run-stop').length === 1, 'one stop');
        hold(written.at(-1)?.type === 'checkpoint', 'the checkpoint stands last');
      }
    },
  },
  {
    says: 'semantics 2, queueDrain: a run is given the steers that wait, and of followUps those that were promoted with it',
    holds: ({ context }) => {
      const { steers } = entries.runInput({ context });
      const taken = ({ messageId, kind }: ConversationContext['queue'][number]): boolean =>
        kind === 'steer' || context.drained.includes(messageId);
      const due = context.trigger.kind === 'retry' ? [] : context.queue.filter(taken);
      hold(JSON.stringify(steers) === JSON.stringify(due), `${steers.length} steers`);
    },
  },
  {
    says: 'semantics 2, promoteFollowUpOn: a followUp waits where the store lost something of a call of the run before',
    holds: ({ context, event }) => {
      if (event.type !== 'xstate.done.actor.run') return;
      const callIds = event.output.end.lost?.flatMap((entry) => ('callId' in entry ? [entry.callId] : [])) ?? [];
      const promotes = conversationMachine.implementations.guards.promotes as (moment: object) => boolean;
      hold(
        callIds.length === 0 || !promotes({ context, event }),
        `${callIds} lost something, and a followUp is promoted`,
      );
    },
  },
];

function momentAt(seed: number): Moment {
  const draw = chance(seed * 104_729);
  return {
    context: contextOf(draw),
    event: eventOf(draw),
    place: {
      status: draw.one(STATUSES),
      whileActive: draw.one(['reject', 'steer', 'followUp']),
      whileSuspended: draw.one(['reject', 'followUp', 'denyAndRun']),
    },
  };
}
export const conversations = drawn('CONVERSATIONS', momentAt, FOLDS, clauses);
