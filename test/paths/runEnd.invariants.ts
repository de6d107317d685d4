/**
 * The rules for the ends of a RUN (docs/internals/lifecycle.md, Terminations), and for the input of its gates
 * (docs/internals/lifecycle.md, Resume Gate).
 */

import type { Slot } from '../../machines/calls.ts';
import type { HeldDecision, NewEntry, RunChartOutput } from '../../machines/index.ts';
import type { ResumeToolCallInput } from '../../machines/tools/resumeToolCall.machine.ts';
import { documented, enters, legsOf } from './anyChart.invariants.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';
import { carriedOf, type Facts, factsOf, idsOf, inputOf, json, limitOf, same } from './runFacts.ts';

const TAIL = ['Terminate', 'NaturalEnd', 'Suspended', 'Cancelled', 'Error'] as const;
type Tail = (typeof TAIL)[number];
const isTail = (name: string): name is Tail => (TAIL as readonly string[]).includes(name);
const at = ({ state, chart }: Trace): string => documented(chart.id, state.value);

/** Returns the end state of the run, and the step that entered it. */
function exitOf(trace: Trace): { tail: Tail; step: Trace } | undefined {
  for (let step: Trace | undefined = trace; step; step = step.before) {
    const tail = legsOf(step)
      .map(([, to]) => to)
      .find(isTail);
    if (tail) return { tail, step };
  }
  return undefined;
}

/** Returns the expected termination and cause (docs/internals/lifecycle.md, Terminations). */
function endOf(trace: Trace): [termination: string, cause: string | undefined] | undefined {
  const { tail, step } = exitOf(trace) ?? {};
  if (!tail || !step) return undefined;
  const facts = factsOf(step);
  const { answer } = step;
  switch (tail) {
    case 'NaturalEnd':
      return ['NaturalEnd', 'end_turn'];
    case 'Suspended':
      return ['Suspended', undefined];
    case 'Cancelled':
      return ['Cancelled', causeOf(trace)];
    case 'Error':
      return ['Error', causeOf(trace)];
    case 'Terminate': {
      const asked = [...step.steps].reverse().find((each) => each.answer?.kind === 'terminate')?.answer;
      if (asked?.kind === 'terminate' && (facts.terminated || answer === asked)) return ['PluginRequested', asked.by];
      const limit = limitOf(step, facts);
      if (inputOf(trace).trigger.kind === 'retry') return ['NaturalEnd', limit];
      if (legsOf(step).some(([from, to]) => from === 'CommitAssistant' && to === 'Terminate'))
        return ['Stopped', 'max_tokens'];
      const { exhaust } = inputOf(trace).settings.context ?? {};
      const full =
        answer?.kind === 'context' &&
        exhaust !== undefined &&
        (answer.prunable?.used ?? answer.used) / answer.limit >= exhaust;
      return ['Stopped', full ? 'context_exhausted' : limit];
    }
  }
}

/** Returns the cause of an early end. The last one before the end counts, because the run waits for its round. */
function causeOf(trace: Trace): string | undefined {
  const { step, tail } = exitOf(trace) ?? {};
  for (let each = step; each; each = each.before) {
    const { type, cause } = (each.event ?? { type: '' }) as { type: string; cause?: string };
    if (type === 'run.cancelled') return 'cancelled';
    if (type === 'timer.elapsed') return 'timeout';
    if (type === 'append.failed') return 'store';
    if (type === 'effect.failed') return cause;
    if (each.answer?.kind === 'failed' && tail === 'Error') return 'model';
    const facts = factsOf(each);
    if (facts.conflict) return 'state';
    if (facts.failure && tail === 'Error') return 'tool';
  }
  return undefined;
}

const REASONS: Record<string, string> = {
  NaturalEnd: 'completed',
  PluginRequested: 'completed',
  Stopped: 'error',
  Cancelled: 'interrupted',
  Error: 'error',
};
const outputOf = ({ state }: Trace): RunChartOutput => state.output as RunChartOutput;

/** Returns the calls that a child of the run completed, even in an interrupted round. */
function answeredByChildren(trace: Trace): string[] {
  return trace.steps.flatMap(({ event }) => {
    const { type, output } = (event ?? { type: '' }) as { type: string; output?: unknown };
    if (type === 'call.settled') {
      const { callId, outcome } = output as { callId: string; outcome: string };
      return outcome === 'suspended' ? [] : [callId];
    }
    if (type !== 'xstate.done.actor.round') return [];
    return (output as { slots: Slot[] }).slots.flatMap(({ status, call }) => (status === 'done' ? [call.callId] : []));
  });
}
const madeBy = (trace: Trace): string[] =>
  trace.all('agent-output').flatMap(({ item }) => (item.type === 'tool-call' ? [item.callId] : []));

const isDecided = ({ decisions }: Facts, each: { callId: string; suspension: number }): HeldDecision | undefined =>
  decisions.find((held) => held.callId === each.callId && held.suspension === each.suspension);

/**
 * Returns the calls that are due at a gate: decided calls and reruns in call-id order, each followed by the calls that
 * wait for it.
 */
function gateDue(facts: Facts): string[] {
  const decided = facts.suspended.filter((each) => isDecided(facts, each)).map(({ callId }) => callId);
  const first = [...decided, ...idsOf(facts.reruns)].sort();
  const behind = (callId: string): string[] => {
    const next = facts.kept.find((kept) => kept.behind === callId);
    return next ? [next.call.callId, ...behind(next.call.callId)] : [];
  };
  const waiting = new Set([...facts.suspended.map(({ callId }) => callId), ...idsOf(facts.kept)]);
  const freed = facts.kept
    .filter((kept) => !waiting.has(kept.behind))
    .flatMap(({ call }) => [call.callId, ...behind(call.callId)]);
  return [...first.flatMap((id) => [id, ...behind(id)]), ...freed];
}
const GATES = ['ResumeReplay0', 'ResumeToolCall', 'ResumeAfterTool'];

export const closingInvariants: readonly ChartInvariant[] = [
  {
    says: 'run-lifecycle, RESUME_TOOL_CALL: a gate receives the decided calls in call-id order, with the calls that follow them; a decision belongs to its suspension',
    holds: (trace) => {
      const gates = trace.spawned
        .filter(({ src }) => src === 'resumeToolCall')
        .map(({ input }) => input as ResumeToolCallInput);
      hold(gates.length <= 1, `${gates.length} gates open at once`);
      const [gate] = gates;
      if (!gate) return;
      const facts = factsOf(trace);
      hold(!facts.stillOpen, 'a second gate opens beside the first');
      hold(!facts.failure, 'a run that a tool has failed decides no more');
      same(
        'to do',
        gate.replays.map(({ call }) => call.callId),
        gateDue(facts),
      );
      for (const { call, suspension, decision, behind } of gate.replays) {
        const waiting = facts.suspended.find(({ callId }) => callId === call.callId);
        const rerun = facts.reruns.find((each) => each.call.callId === call.callId);
        same('suspension', suspension, waiting?.suspension ?? rerun?.suspension ?? 0);
        same('decision', decision, waiting ? isDecided(facts, waiting)?.decision : rerun?.decision);
        if (behind !== undefined)
          hold(
            facts.kept.some((kept) => kept.call.callId === call.callId && kept.behind === behind),
            `${call.callId} after ${behind}`,
          );
        hold(call.gated, `${call.callId} passes no gate again`);
      }
      const { settings, runId } = inputOf(trace);
      const { policies, phases, conversationId } = settings;
      same(
        'policies',
        [gate.suspensionsMax, gate.retry, gate.phases, gate.runId, gate.conversationId],
        [policies.limits.suspensionsPerCall, policies.toolRetry, phases, runId, conversationId],
      );
      const ids = trace.steps.flatMap(({ spawned }) =>
        spawned.flatMap(({ src, input }) => (src === 'resumeToolCall' ? [(input as ResumeToolCallInput).id] : [])),
      );
      hold(new Set(ids).size === ids.length && gate.id.startsWith(`${runId}/`), `gates ask under ${ids}`);
    },
  },
  {
    says: 'semantics 2, decisionsDuringRound: decisions apply immediately during model calls and tools, or at the gates only',
    holds: (trace) => {
      if (trace.state.status !== 'active' || typeof trace.state.value === 'string') return;
      const opens = trace.spawned.some(({ src }) => src === 'resumeToolCall');
      const inWindow = !GATES.some((gate) => enters(trace, gate)) && ['LlmCall', 'ToolRound'].includes(at(trace));
      const done = trace.event?.type === 'xstate.done.actor.gate';
      const immediate = inputOf(trace).settings.policies.decisionsDuringRound === 'immediate';
      if (opens && inWindow && !done) hold(immediate, 'a gate opens in a window that is closed');
      if (opens && !inWindow && !done)
        hold(
          GATES.some((gate) => enters(trace, gate)),
          `a gate opens in ${at(trace)}`,
        );
      const facts = factsOf(trace);
      const arrived = ['decision.arrived', 'call.suspended'].includes(trace.event?.type ?? '');
      const running =
        json(trace.state.value).includes('"ToolRound":"running"') ||
        (at(trace) === 'LlmCall' && trace.event?.type === 'decision.arrived');
      if (arrived && running && immediate && !facts.failure)
        hold(facts.gate === facts.stillOpen || opens, 'no gate opens');
      if (arrived && running && immediate && !facts.failure && !facts.stillOpen)
        same('a gate opens', opens, gateDue(facts).length > 0);
    },
  },
  {
    says: 'run-lifecycle, RESUME_TOOL_CALL: the run waits at an open gate, and opens one whenever a call is due',
    holds: (trace) => {
      if (GATES.includes(at(trace))) hold(factsOf(trace).gate, `it rests in ${at(trace)} without a gate`);
      const facts = factsOf(trace);
      if (trace.event?.type === 'xstate.done.actor.gate' && typeof trace.state.value !== 'string' && !facts.failure) {
        same('the next gate', trace.spawned.length > 0, gateDue(facts).length > 0);
      }
      const first = legsOf(trace).find(([, to]) => GATES.includes(to));
      if (first && !facts.stillOpen && typeof trace.state.value !== 'string')
        same('a gate opens', facts.gate, gateDue(facts).length > 0);
    },
  },
  {
    says: 'semantics 7: after the end of a run only its last phases and its last commit start, and nothing else continues',
    holds: (trace) => {
      const exit = exitOf(trace);
      if (!exit) return;
      const work = trace.asked.filter(({ kind }) => kind !== 'phase' && kind !== 'commit' && kind !== 'ended');
      hold(work.length === 0, `${work.map(({ id }) => id)} is asked for`);
      hold(trace.spawned.length === 0, `${trace.spawned.map(({ id }) => id)} begins`);
      const open = trace.situation.requests.filter(
        (request) =>
          !exit.step.asked.includes(request) &&
          !trace.steps.some((step) => step.before && exitOf(step.before) && step.asked.includes(request)),
      );
      hold(open.length === 0, `${open.map(({ id }) => id)} continues`);
      const gate = trace.state.children.gate;
      hold(!gate || trace.situation.ended.includes(gate), 'a gate continues');
    },
  },
  {
    says: 'run-lifecycle, RunEnd: every end passes through RunEnd once, and its plugins receive the termination',
    holds: (trace) => {
      const times = trace.steps.flatMap((step) => legsOf(step).filter(([, to]) => to === 'RunEnd')).length;
      hold(times <= 1, `${times} times`);
      const asked = trace.asked.flatMap((request) =>
        request.kind === 'phase' && request.phases.includes('runEnd') ? [request] : [],
      );
      hold(asked.length === 0 || enters(trace, 'RunEnd'), 'runEnd is requested elsewhere');
      for (const { termination } of asked) same('they hear', termination, endOf(trace)?.[0]);
    },
  },
  {
    says: 'semantics 4: a run has one end: a run-stop with its cause, or a run-suspended with its waiting calls; its checkpoint is last',
    holds: (trace) => {
      const stops = trace.now('run-stop');
      const waits = trace.now('run-suspended');
      if (!enters(trace, 'CommitFinished')) {
        return hold(stops.length + waits.length === 0, `an end in ${at(trace)}`);
      }
      if (inputOf(trace).trigger.kind === 'retry') {
        return hold(stops.length + waits.length === 0, 'what is only retried ends no cycle');
      }
      const [termination, cause] = endOf(trace) ?? [];
      const last = trace.log.slice(-2).map(({ type }) => type);
      if (termination === 'Suspended') {
        hold(stops.length === 0 && waits.length === 1, 'a suspended run has no stop');
        same('in this order', last, ['run-suspended', 'checkpoint']);
        const waiting = carriedOf(trace).suspended.map(({ callId }) => callId);
        same('it waits for', [...(waits[0]?.waiting ?? [])].sort(), [...waiting].sort());
        return hold(waiting.length > 0, 'it waits for nothing');
      }
      hold(stops.length === 1 && waits.length === 0, `${stops.length} stops`);
      same('in this order', last, ['run-stop', 'checkpoint']);
      const reason = cause === 'timeout' ? 'error' : REASONS[termination ?? ''];
      same('the stop', [stops[0]?.reason, stops[0]?.cause], [reason, cause]);
    },
  },
  {
    says: 'semantics 14 and 16: an early decision expires with the run, with a diagnostic if its call never suspended',
    holds: (trace) => {
      if (!enters(trace, 'CommitFinished')) return;
      const over = trace.now('diagnostic').filter(({ code }) => code === 'decision_expired');
      const exit = exitOf(trace);
      const facts = exit ? factsOf(trace) : undefined;
      if (!facts || exit?.tail === 'Cancelled' || exit?.tail === 'Error') return;
      const open = [
        ...facts.suspended.map(({ callId }) => callId),
        ...(exit?.tail === 'Terminate' ? [] : idsOf(facts.kept)),
      ];
      const due = facts.decisions
        .filter(({ callId, suspension }) => !open.includes(callId) && suspension === 1)
        .map(({ callId }) => ({ callId }));
      same(
        'expired',
        over.map(({ detail }) => detail),
        due,
      );
    },
  },
  {
    says: 'semantics 4: the output of the run is its end, its counts, and its open calls',
    holds: (trace) => {
      if (trace.state.status !== 'done') return;
      const { end, durable, counters } = outputOf(trace);
      const lost = trace.event?.type === 'append.failed';
      same('durable', durable, !lost);
      // If the store does not answer, the command that abandoned the append ends the cycle of a suspended run.
      const isGivenUp = lost && (trace.event as unknown as { lost: NewEntry[] }).lost.length === 0;
      const due = isGivenUp && exitOf(trace)?.tail === 'Suspended' ? 'Suspended' : 'Error';
      if (lost) same('the end', [end.termination, end.cause], [due, 'store']);
      else same('the end', [end.termination, end.cause], endOf(trace));
      if (end.termination === 'Error' && end.cause !== 'tool')
        hold((end.error?.message.length ?? 0) > 0, 'an error has a message');
      const { replies, emptyReplies, tokens, costUsd, unpriced } = factsOf(trace);
      same(
        'the counts',
        [counters.turns, counters.emptyReplies, counters.tokens, counters.costUsd, counters.unpriced],
        [replies, emptyReplies, tokens, costUsd, unpriced],
      );
    },
  },
  {
    says: 'semantics 4 and 8: an error of the model contains its code and the number of attempts',
    holds: (trace) => {
      if (trace.state.status !== 'done' || outputOf(trace).end.cause !== 'model') return;
      const failures = trace.steps.flatMap(({ answer }) => (answer?.kind === 'failed' ? [answer] : []));
      const last = failures.at(-1);
      const { error } = outputOf(trace).end;
      same('code', error?.code, last?.code);
      hold(error?.message.includes(last?.message ?? '') === true, `${error?.message}`);
      const { failures: ofTurn } = factsOf(exitOf(trace)?.step ?? trace);
      same('it contains the number of attempts', error?.message.includes('attempts'), ofTurn.length > 1);
    },
  },
  {
    says: 'semantics 1.2 and 14: after a run each of its calls has one result, or waits and is listed',
    holds: (trace) => {
      if (trace.state.status !== 'done' || !outputOf(trace).durable) return;
      const { suspended, kept, reruns } = outputOf(trace);
      const { suspended: waited, kept: behind, reruns: again } = inputOf(trace);
      const results = trace.all('tool-result').map(({ callId }) => callId);
      const accounted = [...results, ...answeredByChildren(trace), ...idsOf([...suspended, ...kept, ...reruns])].sort();
      same('accounted for', accounted, [...madeBy(trace), ...idsOf([...waited, ...behind, ...again])].sort());
    },
  },
  {
    says: 'semantics 7 and 14: after a cancel no call waits: calls are cancelled, or skipped if they never started, in call order',
    holds: (trace) => {
      if (!enters(trace, 'Cancelled')) return;
      const results = trace.now('tool-result');
      for (const { outcome, code, content } of results) {
        const isKnown = outcome === 'succeeded';
        hold(
          isKnown || (outcome === 'cancelled' && (code === 'cancelled' || code === 'skipped')) || outcome === 'unknown',
          json([outcome, code]),
        );
        hold(isKnown || json(content).length > 12, 'a result has a text');
      }
      const order = [...madeBy(trace)];
      const own = results
        .map(({ callId }) => callId)
        .filter((id) => factsOf(trace).made.some(({ callId }) => callId === id));
      same(
        'in call order',
        own,
        [...own].sort((a, b) => order.indexOf(a) - order.indexOf(b)),
      );
      if (trace.event?.type !== 'xstate.done.actor.round') return;
      const { slots } = (trace.event as unknown as { output: { slots: Slot[] } }).output;
      for (const { call, status, output } of slots) {
        const result = results.find(({ callId }) => callId === call.callId);
        if (status === 'queued') same(call.callId, result?.code, 'skipped');
        if (status === 'running' && !output?.result) same(call.callId, result?.code, 'cancelled');
      }
    },
  },
  {
    says: 'semantics 5: after a termination by a plugin the calls of the reply are cancelled as terminated, and waiting calls continue to wait',
    holds: (trace) => {
      if (!enters(trace, 'Terminate')) return;
      const { made, suspended, kept } = factsOf(trace);
      const results = trace.now('tool-result');
      for (const { callId } of made) {
        const result = results.find((each) => each.callId === callId);
        same(callId, [result?.outcome, result?.code], ['cancelled', 'terminated']);
      }
      const closed = results.map(({ callId }) => callId);
      hold(
        suspended.every(({ callId }) => !closed.includes(callId) || factsOf(trace).stillOpen),
        `closed: ${closed}`,
      );
      hold(
        idsOf(kept).every((id) => closed.includes(id)),
        `kept: ${idsOf(kept)}`,
      );
    },
  },
  {
    says: 'semantics 2, partialReply: streamed text is kept as an interrupted reply if the policy keeps it, and otherwise dropped',
    holds: (trace) => {
      const { partial } = (trace.event ?? {}) as { partial?: string };
      const keeps =
        enters(trace, 'Cancelled') && partial !== undefined && inputOf(trace).settings.policies.partialReply === 'keep';
      const kept = trace
        .now('agent-output')
        .filter(({ item }) => item.type === 'assistant' && item.flag === 'interrupted');
      same(
        'kept',
        kept.map(({ item }) => (item as { text?: string }).text),
        keeps ? [partial] : [],
      );
      if (keeps) same('it stands first', trace.log[0]?.type, 'agent-output');
    },
  },
  {
    says: 'semantics 5 and 14: after an error waiting calls continue to wait, and running calls end as cancelled',
    holds: (trace) => {
      if (trace.state.status !== 'done' || !outputOf(trace).durable || exitOf(trace)?.tail !== 'Error') return;
      const { suspended } = outputOf(trace);
      const facts = factsOf(exitOf(trace)?.step ?? trace);
      const results = trace.all('tool-result').map(({ callId }) => callId);
      const open = facts.suspended.filter(({ callId }) => !results.includes(callId)).map(({ callId }) => callId);
      const stopped = exitOf(trace)?.step.event?.type === 'xstate.done.actor.round';
      if (!stopped) same('it waits', idsOf(suspended).sort(), open.sort());
    },
  },
  {
    says: 'semantics 5: entries that were lost during the end are written again with the next ones, except refused messages',
    holds: (trace) => {
      const { type, lost = [] } = (trace.event ?? { type: '' }) as { type: string; lost?: NewEntry[] };
      const from = trace.before ? at(trace.before) : '';
      if (type !== 'append.failed' || !['Error', 'RunEnd'].includes(from)) return;
      const due = lost.filter((entry) => entry.type !== 'message-queued');
      same('again', trace.log.slice(0, due.length), due);
    },
  },
  {
    says: 'semantics 5: a failed commit ends the run as Error; if the last commit fails, the end is not durable',
    holds: (trace) => {
      if (trace.event?.type !== 'append.failed' || !trace.before || at(trace.before) !== 'CommitFinished') return;
      const { lost } = trace.event as unknown as { lost: NewEntry[] };
      // A retry writes no end, so the last entry that it can lose is its result.
      const isEnd =
        lost.length === 0 ||
        inputOf(trace).trigger.kind === 'retry' ||
        lost.some((entry) => entry.type === 'checkpoint' && entry.boundary === 'RunFinished') ||
        lost.some(({ type }) => type === 'run-stop' || type === 'run-suspended');
      same('over', trace.state.status === 'done', isEnd);
    },
  },
];
