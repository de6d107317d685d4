/** The rules of CONVERSATION (docs/internals/lifecycle.md, CONVERSATION). */

import type { Continued, ConversationContext } from '../../machines/conversation/context.ts';
import { judgeAct, standingOf } from '../../machines/conversation/judgeAct.ts';
import type { HeldDecision, NewEntry } from '../../machines/index.ts';
import { REPORT_KINDS } from '../../machines/ports.ts';
import { commitsOf } from './anyChart.invariants.ts';
import {
  type Came,
  cameOf,
  dueRun,
  endOf,
  idsOf,
  inputOf,
  isAccepted,
  isCut,
  isGivenBack,
  json,
  lastLogged,
  lastRun,
  lostSince,
  onlyRetries,
  openAt,
  openOf,
  placeOf,
  queueOf,
  retriesOf,
  rewindsAtRest,
  same,
  sentOf,
  sentTo,
  spentOf,
  startOf,
  sumsOf,
  superseder,
  supersedes,
  wasIn,
} from './conversationFacts.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

/** Returns the answer that an act requires, by its request and the state of the conversation. */
function dueAnswer(trace: Trace): string {
  const came = cameOf(trace);
  const { type, receipt, messageId } = came;
  if (isGivenBack(trace)) return 'returned';
  const queue = trace.before ? queueOf(trace.before) : [];
  if (type === 'message.returned') return queue.some((each) => each.messageId === messageId) ? 'returned' : 'nothing';
  if (type === 'sub-agent.changed') return 'applied';
  if (receipt) return String(receipt);
  if (type === 'close.requested' && isAtRest(trace)) return queue.length > 0 ? 'returned' : 'nothing';
  const standing = standingOf((trace.before ?? trace).state as never);
  const outcome = judgeAct(standing, came as never);
  return type === 'promotion.requested' && outcome === 'continued' && !startOf(trace) ? 'nothing' : outcome;
}

/** A close cancels a run, and leaves a waiting cycle as it is. */
const isCancel = (trace: Trace): boolean => ['cancel.requested', 'close.requested'].includes(cameOf(trace).type);
/** Calls that a rewind ends, because the host wanted them retried. */
const rewoundRetries = (trace: Trace): string[] =>
  cameOf(trace).type === 'rewind.requested' && trace.before ? retriesOf(trace.before) : [];
/** Entries of the cycle that ends, without what a rewind writes about others. */
const ownEntries = (trace: Trace): NewEntry[] => {
  const rewound = trace.log.findIndex(({ type }) => type === 'rewound');
  const others = rewound < 0 ? 0 : rewoundRetries(trace).length + 1;
  return trace.log.filter((_, at) => at > rewound || at <= rewound - others);
};
/** No run is active, and none is about to start. */
const isAtRest = (trace: Trace): boolean => !['busy', 'superseding'].includes(wasIn(trace));

export const conversationInvariants: readonly ChartInvariant[] = [
  {
    says: 'semantics 14: each act of a host is answered once, in the step that takes it, as it is judged',
    holds: (trace) => {
      const answers = trace.asked.flatMap((request) => (request.kind === 'answer' ? [request] : []));
      const { actId } = cameOf(trace);
      const due = actId === undefined ? [] : [[actId, dueAnswer(trace)]];
      same(
        'answers',
        answers.map(({ id, outcome }) => [id, outcome]),
        due,
      );
    },
  },
  {
    says: 'semantics 2 and 14: which act begins which run, and that no other does',
    holds: (trace) => {
      const due = dueRun(trace);
      const run = startOf(trace);
      hold(trace.spawned.length === (due ? 1 : 0), `${trace.spawned.length} runs begin, ${json(due)} is due`);
      hold(
        (placeOf(trace) === 'busy') === (wasIn(trace) === 'busy' && !endOf(trace) ? true : due !== undefined),
        json(trace.state.value),
      );
      if (!due || !run) return;
      const { trigger } = run;
      const { of } = cameOf(trace) as Came & { of?: Continued };
      const retries = of ? of.ended : endOf(trace) && onlyRetries(trace);
      if (due.resume) return same('a run begins as', trigger.kind, retries ? 'retry' : 'resume');
      hold(trigger.kind === 'message' && trigger.message.messageId === due.message, `begins with ${json(trigger)}`);
    },
  },
  {
    says: 'request-cycle-model, Boundary: a message opens a cycle of its own, with counts that begin anew',
    holds: (trace) => {
      const run = startOf(trace);
      if (run?.trigger.kind !== 'message') return;
      const { message } = run.trigger;
      const direct = sentOf(trace) ?? (wasIn(trace) === 'superseding' ? superseder(trace) : undefined);
      same('the message', [message.kind, message.content], [direct ? 'direct' : 'followUp', []]);
      same('the run', run.runId, `run_${message.messageId}`);
      const { turns, emptyReplies, streaks, rounds } = run.counters;
      same('its counts', [turns, emptyReplies, streaks, rounds], [0, 0, [], []]);
      same('calls to run again', run.reruns, []);
    },
  },
  {
    says: 'semantics 3, run-resumed: a resumption continues the last run, with its calls, decisions and retries',
    holds: (trace) => {
      const run = startOf(trace);
      if (!run || run.trigger.kind === 'message' || !trace.before) return;
      const { runId, continuation, of } = cameOf(trace) as Came & { of?: Continued };
      const last = lastRun(trace.before);
      const named = cameOf(trace).type === 'resume.requested';
      same('the run', run.runId, named ? runId : `${last}~`);
      same('continues', run.trigger.of, named && of ? of.runId : lastLogged(trace.before));
      if (run.trigger.kind === 'resume') same('continuation', run.trigger.continuation, continuation);
      const open = endOf(trace) || wasIn(trace) === 'late' ? openOf(trace) : openAt(trace);
      same('suspended', run.suspended, open.suspended);
      same('kept their turn', run.kept, open.kept);
      same('decided', run.decisions, open.decisions);
      same('to run again', idsOf(run.reruns), [...idsOf(open.reruns), ...retriesOf(trace.before)]);
      // Usage counts even if the log does not contain it.
      if (named && of?.waits) same('its counts', run.counters, of.counters);
    },
  },
  {
    says: 'semantics 2, queueDrain: a run receives the settings and the queued steers, in arrival order',
    holds: (trace) => {
      const run = startOf(trace);
      if (!run || !trace.before) return;
      const { settings } = inputOf(trace);
      if (run.trigger.kind === 'retry') return same('steers of what only retries', run.steers, []);
      same('settings', run.settings, settings);
      const queue = queueOf(trace);
      const together =
        settings.policies.queueDrain === 'all' &&
        run.trigger.kind === 'message' &&
        run.trigger.message.kind === 'followUp';
      const due = queue.filter(({ kind }) => kind === 'steer' || together).map(({ messageId }) => messageId);
      same(
        'steers',
        run.steers.map(({ messageId }) => messageId),
        due,
      );
      hold(
        run.steers.every(({ content }) => json(content) === '[]'),
        'a steer is what was sent',
      );
    },
  },
  {
    says: 'semantics 3: a message that cannot be delivered yet is message-queued; an active run receives a steer, and no followUp',
    holds: (trace) => {
      const message = sentOf(trace);
      const at = wasIn(trace);
      const isQueued = message !== undefined && at !== 'idle' && at !== 'late' && !supersedes(trace);
      const { messageId, kind } = message ?? {};
      const due = isQueued ? [[messageId, kind === 'steer' ? 'steer' : 'followUp', []]] : [];
      same(
        'queued',
        trace.now('message-queued').map((entry) => [entry.messageId, entry.kind, entry.content]),
        due,
      );
      const steered = sentTo(trace, 'run').flatMap((event) =>
        event.type === 'message.steered' ? [(event as unknown as { message: unknown }).message] : [],
      );
      const isActive = json(trace.before?.state.value) === '{"busy":"active"}';
      const steers = isQueued && isActive && kind === 'steer';
      same('sent to the run', steered, steers ? [{ messageId, kind, content: [] }] : []);
    },
  },
  {
    says: 'semantics 3: a withdrawn message is message-returned once, and the active run receives that; a close withdraws all',
    holds: (trace) => {
      const { type, messageId, why } = cameOf(trace);
      const queue = trace.before ? queueOf(trace.before) : [];
      const listed = type === 'message.returned' && queue.some((each) => each.messageId === messageId);
      const closed = type === 'close.requested' ? queue.map((each) => [each.messageId, 'closed']) : [];
      same(
        'returned',
        trace.now('message-returned').map((entry) => [entry.messageId, entry.why]),
        listed ? [[messageId, why]] : closed,
      );
      const returned = sentTo(trace, 'run').filter((event) => event.type === 'message.returned');
      hold(returned.length === (listed && wasIn(trace) === 'busy' ? 1 : 0), `${returned.length} are sent`);
    },
  },
  {
    says: 'semantics 7: a run receives the first cancel or close once; when idle, a cancel changes nothing',
    holds: (trace) => {
      const cancels = sentTo(trace, 'run').filter(({ type }) => type === 'run.cancelled');
      const { type, withdrawn } = cameOf(trace);
      const isFirst = isCancel(trace) && json(trace.before?.state.value) === '{"busy":"active"}';
      const isCancelled = isFirst || (withdrawn === true && startOf(trace) !== undefined);
      hold(cancels.length === (isCancelled ? 1 : 0), `${cancels.length} cancels are sent`);
      if (isCancelled) same('where it is', trace.state.value, { busy: 'cancelling' });
      if (type !== 'cancel.requested' || ['waiting', 'superseding'].includes(wasIn(trace))) return;
      same(
        'written and asked',
        [trace.log, trace.asked.filter((request) => !REPORT_KINDS.has(request.kind))],
        [[], []],
      );
    },
  },
  {
    says: 'semantics 7 and 14: cancelling a conversation that waits ends its calls as cancelled and its cycle as interrupted, in one append',
    holds: (trace) => {
      const ends = ['cancel.requested', 'rewind.requested'].includes(cameOf(trace).type);
      const cancelled = isCut(trace) || (wasIn(trace) === 'waiting' && ends);
      const superseded = supersedes(trace);
      same(
        'where it is',
        ['closing', 'superseding'].includes(placeOf(trace)) && ['waiting', 'busy'].includes(wasIn(trace)),
        cancelled || superseded,
      );
      const stops = trace.now('run-stop');
      hold(stops.length === (cancelled || superseded ? 1 : 0), `${stops.length} stops`);
      if (!cancelled && !superseded) return hold(trace.now('checkpoint').length === 0, 'a checkpoint');
      const { suspended, kept, reruns } = openOf(isCut(trace) ? trace : trace.before);
      const results = trace.now('tool-result');
      const due = [...idsOf([...suspended, ...kept, ...reruns]), ...rewoundRetries(trace)];
      same('results', results.map(({ callId }) => callId).sort(), due.sort());
      const how = cancelled ? ['cancelled', 'cancelled'] : ['failed', 'denied'];
      for (const { call } of suspended) {
        const result = results.find(({ callId }) => callId === call.callId);
        same(call.callId, [result?.outcome, result?.code], how);
        hold(json(result?.content).length > 12, 'a result has a text');
      }
      same('stop', [stops[0]?.reason, stops[0]?.cause], ['interrupted', cancelled ? 'cancelled' : 'superseded']);
      same(
        'of the run',
        ownEntries(trace).every(({ runId }) => runId === (trace.before && lastRun(trace.before))),
        true,
      );
      same(
        'commits',
        commitsOf(trace.asked).map(({ boundary }) => boundary),
        ['RunFinished'],
      );
      const types = ownEntries(trace).map(({ type }) => type);
      hold(
        types.indexOf('run-stop') > types.lastIndexOf('tool-result') && types.at(-1) === 'checkpoint',
        `in this order: ${types}`,
      );
    },
  },
  {
    says: 'semantics 6: the end of a cycle that waits holds when it is durable; if it is lost, the cycle still waits',
    holds: (trace) => {
      const at = wasIn(trace);
      if (at !== 'closing' && at !== 'late' && at !== 'superseding') return;
      const stored = trace.answer?.kind === 'committed';
      const { type, lost } = cameOf(trace) as { type: string; lost?: NewEntry[] };
      const isLost = type === 'append.failed' && (lost ?? []).some((entry) => entry.type === 'run-stop');
      const cancelled = at === 'superseding' && isCancel(trace);
      const place = placeOf(trace);
      // Without its suspension the cycle does not wait. In the log its run has failed, and its call is still open.
      const isOfSuspension = isLost && (lost ?? []).some((entry) => entry.type === 'run-suspended');
      if (isOfSuspension) {
        same('value', trace.state.value, { idle: 'error' });
        return hold(
          (trace.state.context as ConversationContext).open.suspended.length > 0,
          'the call of a lost suspension is open',
        );
      }
      if (isLost) return hold(place === 'waiting', `lost, and ${place}`);
      if (stored) return hold(place === 'idle' || place === 'busy', `stored, and ${place}`);
      if (rewindsAtRest(trace)) return same('value', trace.state.value, { idle: 'ready' });
      if (at === 'late' && startOf(trace)) return hold(place === 'busy', `begun, and ${place}`);
      const givenUp = at === 'closing' && type === 'append.failed' && lost?.length === 0;
      hold(place === (cancelled ? 'closing' : givenUp ? 'late' : at), `${place}`);
    },
  },
  {
    says: 'semantics 17: a rewind is on record with its place, unless a run is active; it ends every open call',
    holds: (trace) => {
      const { type, toSeq } = cameOf(trace);
      const rewinds = type === 'rewind.requested' && ['idle', 'late', 'waiting'].includes(wasIn(trace));
      same(
        'rewound',
        trace.now('rewound').map((entry) => [entry.runId, entry.toSeq]),
        rewinds ? [[null, toSeq]] : [],
      );
      if (!rewindsAtRest(trace)) return;
      const { suspended, kept, reruns } = wasIn(trace) === 'late' ? openOf(trace) : openAt(trace);
      const results = trace.now('tool-result').map(({ callId }) => callId);
      const due = [...idsOf([...suspended, ...kept, ...reruns]), ...rewoundRetries(trace)];
      same('results', results.sort(), due.sort());
      same(
        'nothing is asked',
        trace.asked.filter((request) => !REPORT_KINDS.has(request.kind)),
        [],
      );
      hold(trace.log.at(-1)?.type === 'rewound', 'the rewind comes last');
    },
  },
  {
    says: 'semantics 14: a decision is durable at once, whoever holds it; the active run receives it, and nothing resumes by itself',
    holds: (trace) => {
      const { type, held } = cameOf(trace) as { type: string; held?: HeldDecision };
      const due =
        type === 'decision.arrived' && held && isAccepted(trace) ? [[held.callId, held.suspension, held.decision]] : [];
      same(
        'logged',
        trace.now('decision').map((entry) => [entry.callId, entry.suspension, entry.decision]),
        due,
      );
      const decisions = sentTo(trace, 'run').flatMap((event) =>
        event.type === 'decision.arrived' ? [(event as unknown as { held: unknown }).held] : [],
      );
      same('sent to the run', decisions, wasIn(trace) === 'busy' && due.length > 0 ? [held] : []);
    },
  },
  {
    says: 'semantics 6: a settlement is on record, of the call it is about',
    holds: (trace) => {
      const { type, callId, how } = cameOf(trace);
      const due = type === 'outcome.settled' && isAccepted(trace) ? [[callId, how]] : [];
      same(
        'settled',
        trace.now('call-settled').map((entry) => [entry.callId, entry.how]),
        due,
      );
    },
  },
  {
    says: 'semantics 4: the host receives the end of each run once, and the end of a run whose message is returned before it begins',
    holds: (trace) => {
      const ends = trace.asked.flatMap((request) => (request.kind === 'ended' ? [request] : []));
      const end = endOf(trace);
      const before = trace.before;
      if (end && before) {
        hold(ends.length === 1, `${ends.length} ends`);
        const { termination, cause, error } = end.end;
        const { result } = ends[0] ?? {};
        same(
          'end',
          [result?.termination, result?.cause, result?.error, result?.durable],
          // An end that may not be stored is not reported.
          [end.durable ? termination : 'Error', cause, error, end.durable],
        );
        return same('of', [ends[0]?.runId, result?.runId], [lastRun(before), lastRun(before)]);
      }
      const gone =
        ['closing', 'late'].includes(wasIn(trace)) && trace.answer?.kind === 'committed'
          ? superseder(trace)
          : undefined;
      const alive = gone && !lostSince(trace);
      same(
        'ended before it began',
        ends.map(({ runId, result }) => [runId, result.termination, result.cause]),
        alive ? [[`run_${gone.messageId}`, 'Cancelled', 'cancelled']] : [],
      );
    },
  },
  {
    says: 'semantics 4: after a run the conversation waits if the run is suspended, has an error if it failed, and else is idle',
    holds: (trace) => {
      const end = endOf(trace);
      if (!end || dueRun(trace)) return;
      const { termination } = end.end;
      const waits = isCut(trace) ? { closing: 'storing' } : 'waiting';
      const due =
        termination === 'Suspended' && !onlyRetries(trace)
          ? waits
          : { idle: termination === 'Error' ? 'error' : 'ready' };
      same('where it rests', trace.state.value, due);
    },
  },
  {
    says: 'semantics 14: a conversation that was waiting when its log was opened is waiting',
    holds: (trace) => {
      if (!trace.before)
        same('where it opens', trace.state.value, inputOf(trace).waiting ? 'waiting' : { idle: 'ready' });
    },
  },
  {
    says: 'semantics 5: a failed append is an error of the conversation at rest, and the active run receives its own failed appends',
    holds: (trace) => {
      const { type, lost, error } = cameOf(trace) as { type: string; lost?: NewEntry[]; error?: unknown };
      const passedOn = sentTo(trace, 'run').filter((event) => event.type === 'append.failed');
      const isOwn =
        type === 'append.failed' &&
        (lost?.length === 0 || lost?.some(({ runId, type: what }) => what === 'decision' || runId === lastRun(trace)));
      hold(passedOn.length === (isOwn && wasIn(trace) === 'busy' ? 1 : 0), `${passedOn.length} are sent`);
      for (const event of passedOn) same('the failed append', event, { type, error, lost });
      if (type === 'append.failed' && wasIn(trace) === 'idle')
        same('where it rests', trace.state.value, { idle: 'error' });
    },
  },
  {
    says: 'semantics 5: the active run receives a failed effect',
    holds: (trace) => {
      const passedOn = sentTo(trace, 'run').filter((event) => event.type === 'effect.failed');
      same(
        'sent to the run',
        passedOn,
        cameOf(trace).type === 'effect.failed' && wasIn(trace) === 'busy' ? [trace.event] : [],
      );
    },
  },
  {
    says: 'semantics 9: the usage of a sub-agent is logged and counted in the conversation, and the active run receives it',
    holds: (trace) => {
      const { type, callId } = cameOf(trace);
      const due = type === 'sub-agent.changed';
      const entries = trace.now('sub-agent');
      same(
        'logged',
        entries.map((entry) => entry.callId),
        due ? [callId] : [],
      );
      hold(trace.now('extension').length === (due ? 1 : 0), 'its use is logged');
      const busy = wasIn(trace) === 'busy';
      for (const { runId } of due ? trace.log : []) same('of the run', runId, busy ? lastRun(trace) : null);
      const passedOn = sentTo(trace, 'run').filter((event) => event.type === 'sub-agent.changed');
      hold(passedOn.length === (due && busy ? 1 : 0), `${passedOn.length} are sent`);
      const run = startOf(trace);
      const { of } = cameOf(trace) as { of?: Continued };
      const counts = of?.waits ? sumsOf(of.counters) : spentOf(trace);
      if (run) same('its counts', sumsOf(run.counters), counts);
    },
  },
  {
    says: 'semantics 6: calls that a resumption might have run again are unknown to a new request',
    holds: (trace) => {
      if (startOf(trace)?.trigger.kind !== 'message' || wasIn(trace) !== 'idle') return;
      const { reruns } = openAt(trace);
      same(
        'unknown',
        trace.now('tool-result').map(({ callId, outcome }) => [callId, outcome]),
        idsOf(reruns).map((id) => [id, 'unknown']),
      );
    },
  },
];
