/**
 * The results of a conversation's functions for many drawn moments, like those of a run in `runFunctions.ts`.
 * Invariant: every exported function is called, none by its name. A clause checks the logged entries and the inputs of
 * runs.
 */

import {
  type ActEvent,
  fatesOf,
  hasCancel,
  isCancelling,
  nextActs,
  nextRunOf,
  type PendingAct,
  placeOfRun,
  standingAfterActs,
} from '../../machines/conversation/actLife.ts';
import type { ConversationContext, ConversationEvent } from '../../machines/conversation/context.ts';
import * as conversationContext from '../../machines/conversation/context.ts';
import { conversationChart, conversationMachine } from '../../machines/conversation/conversation.machine.ts';
import * as entries from '../../machines/conversation/entries.ts';
import { type Act, acceptMessage, judgeAct, standingOf } from '../../machines/conversation/judgeAct.ts';
import type { ChartPolicies, ConversationStatus } from '../../machines/index.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { answered, answersOf, type Clause, drawn, type Fold, functionsOf, json, unnamed } from './drawnResults.ts';
import { hold } from './invariants.ts';
import { lostEntries } from './lostEntries.ts';
import { callOf, decisionsOf, idsOf, inputOf, resultsIn, some, spentOf, text } from './runFunctions.ts';

/** The functions that change a context. The others read its parts. */
const { contextOf: _c, runOf: _r, queued: _q, nextFollowUp: _n, ...assigns } = conversationContext;

interface Moment {
  context: ConversationContext;
  event: ConversationEvent;
  place: { status: ConversationStatus } & Pick<ChartPolicies, 'whileActive' | 'whileSuspended'>;
  /** Two acts that the chart has not taken. */
  calls: [PendingAct['act'], PendingAct['act']];
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

/** Returns the waiting calls as the log contains them, with decisions without their secrets. */
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
  const continued = draw.odds(0.6) && { of: { runId: 'p', counters, ...ended, ...waits } };
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
      ...continued,
    }),
    () => ({ type: 'resume.requested', runId: 'w', ...(draw.odds(0.5) && { continuation: 'Go on.' }), ...continued }),
    () => ({ type: 'promotion.requested', ...continued }),
    () => ({ type: 'rewind.requested', toSeq: draw.one([2, 5]), ...continued }),
    () => ({ type: 'message.returned', messageId: draw.one(['m1', 'f1', 'z']), why: 'host' }),
    () => ({
      type: draw.one(['cancel.requested', 'close.requested']),
      ...(draw.odds(0.5) && { partial: draw.one(['so f', '']) }),
    }),
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
const ACTS: readonly [Act, ...Act[]] = [
  { type: 'close.requested' },
  ...SENT,
  { type: 'message.sent', kind: 'direct', whileSuspended: 'denyAndRun' },
  // Its caller withdrew it before it was sent.
  Object.assign({ type: 'message.sent' as const, kind: 'direct' as const }, { withdrawn: true }),
  { type: 'resume.requested' },
  { type: 'promotion.requested' },
  { type: 'rewind.requested' },
  { type: 'cancel.requested' },
];
/** Acts that come to nothing by themselves. Later acts are judged as if the decision was applied. */
const OTHERS: readonly PendingAct['act'][] = [
  Object.assign({ type: 'decision.proposed' }, { decision: { callId: 's' } }),
  Object.assign({ type: 'decision.proposed' }, { decision: { callId: 's', suspension: 2 } }),
  { type: 'message.returned' },
];
const CALLED: readonly [PendingAct['act'], ...PendingAct['act'][]] = [...ACTS, ...OTHERS];
const STAGES: readonly (readonly [PendingAct['stage'], PendingAct['stage']])[] = [
  ['sent', 'sent'],
  ['storing', 'held'],
  ['sent', 'storing'],
  ['withdrawn', 'sent'],
  ['taken', 'held'],
];
const actIds = ['f1', 'o'];
const runIds = actIds.map((messageId) => conversationContext.runOf(messageId));
/** Two acts in the stages of each pair, of two runs and of one. */
const pendingOf = (acts: readonly PendingAct['act'][]): PendingAct[][] =>
  STAGES.flatMap((stages) =>
    [runIds, [runIds[0], runIds[0]]].map((runs) =>
      acts.map((act, index) => ({ id: actIds[index] ?? '', act, runId: runs[index], stage: stages[index] ?? 'sent' })),
    ),
  );

const lifeOf = (pending: readonly PendingAct[], standing: ReturnType<typeof standingOf>): unknown => {
  const [id = ''] = actIds;
  const events: readonly ActEvent[] = [
    ...(['imagesStored', 'imagesLost', 'deliver', 'durable', 'lost'] as const).map((type) => ({ type, id })),
    ...(['send', 'break', 'close'] as const).map((type) => ({ type })),
    ...(['cancel', 'close'] as const).map((by) => ({ type: 'giveUp' as const, by, standing })),
    { type: 'called', id: 'n', act: { type: 'message.returned' }, hasImages: false },
    { type: 'called', id: 'n', act: { type: 'settlement.proposed' }, hasImages: false },
    { type: 'called', id: 'n', act: { type: 'message.sent', kind: 'steer' }, hasImages: true },
  ];
  return events.map((event) => {
    const { acts, tasks } = nextActs(pending, event);
    const left = acts.map(({ id: own, act, runId, stage }) => [own, act.type, runId, stage].join(' '));
    return [left, tasks.map((task) => `${task.do} ${task.id}`)].join(' | ');
  });
};

/** The outcomes of two successive acts, and the life of each. */
function judgements({ context, place, calls: [first, second] }: Moment): unknown {
  const { status, ...policies } = place;
  const settings = { policies: { ...context.settings.policies, ...policies } };
  const standing = standingOf({ tags: new Set([status]), context: { ...context, settings } });
  const full = { ...standing, queued: settings.policies.limits.queue };
  const asked = [
    {},
    { kind: 'steer' as const },
    { kind: 'followUp' as const },
    ...(['reject', 'followUp', 'denyAndRun'] as const).map((whileSuspended) => ({ whileSuspended })),
  ];
  return [
    standing,
    asked.map((message) => [acceptMessage(standing, message), acceptMessage(full, message)]),
    ACTS.map((act) => judgeAct(standing, act)),
    CALLED.flatMap((other) => [
      [first, other],
      [other, second],
    ]).map((pair) =>
      pendingOf(pair).map((pending) => [
        { ...standingAfterActs(standing, pending), policies: 0 },
        nextRunOf(standing, pending),
        hasCancel(standing, pending),
        isCancelling(standing, pending),
        ...(['cancel', 'close', ...runIds.map((runId) => ({ runId }))] as const).map((by) =>
          fatesOf(standing, pending, by).join(),
        ),
        ...[...runIds, context.runId].map((runId) => placeOfRun(context, pending, runId)),
      ]),
    ),
    pendingOf([first, second]).map((pending) => lifeOf(pending, standing)),
  ];
}

const chartFunctions = functionsOf(conversationChart);
const FOLDS: Record<string, Fold<Moment>> = {
  acts: (moment) => chartFunctions.map((one) => json(answered(one, moment))),
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
      const open = [...idsOf(suspended), ...idsOf(kept), ...idsOf(reruns)];
      // A rewind also ends the calls that are to be retried.
      const retried = moment.event.type === 'rewind.requested' ? idsOf(moment.context.retries) : [];
      const due = [...open, ...retried].sort().join();
      for (const written of [entries.cancelledCallsAndStop(moment), entries.deniedCallsAndStop(moment)]) {
        const results = resultsIn(written).sort().join();
        hold(results === due, `${results} have results, and ${due} are open`);
        hold(written.filter(({ type }) => type === 'run-stop').length === 1, 'one stop');
        hold(written.at(-1)?.type === 'checkpoint', 'the checkpoint stands last');
      }
    },
  },
  {
    says: 'semantics 2, queueDrain: a run receives the queued steers, and the followUps that were promoted with it',
    holds: ({ context }) => {
      const { steers } = entries.runInput({ context });
      const taken = ({ messageId, kind }: ConversationContext['queue'][number]): boolean =>
        kind === 'steer' || context.drained.includes(messageId);
      const due = context.trigger.kind === 'retry' ? [] : context.queue.filter(taken);
      hold(JSON.stringify(steers) === JSON.stringify(due), `${steers.length} steers`);
    },
  },
  {
    says: 'semantics 2, promoteFollowUpOn: a followUp waits if the store lost entries of a call of the run before',
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
    calls: [draw.one(CALLED), draw.one(CALLED)],
  };
}
export const conversations = drawn('CONVERSATIONS', momentAt, FOLDS, clauses);
