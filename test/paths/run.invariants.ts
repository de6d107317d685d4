/** The rules of RUN (docs/internals/lifecycle.md, State Machine and Checkpoint Triggers). */

import type { CompactionInput } from '../../machines/compaction/compaction.machine.ts';
import type { EffectRequest, NewEntry, Phase } from '../../machines/index.ts';
import type { ToolRoundInput } from '../../machines/tools/toolRound.machine.ts';
import { commitsOf, documented, enters, legsOf } from './anyChart.invariants.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';
import { holdAttempts, holdRetry, type Turn } from './modelCall.invariants.ts';
import { arrowInvariants, cameAs, isEmpty, wasStopped } from './run.arrows.ts';
import { closingInvariants } from './runEnd.invariants.ts';
import { type Facts, factsOf, idsOf, inputOf, json, limitOf, same } from './runFacts.ts';

type Request<K extends EffectRequest['kind']> = Extract<EffectRequest, { kind: K }>;
const asksOf = <K extends EffectRequest['kind']>(trace: Trace, kind: K): Request<K>[] =>
  trace.asked.filter((request): request is Request<K> => request.kind === kind);
const at = ({ state, chart }: Trace): string => documented(chart.id, state.value);

/** Returns the state after an event that ends a run in any state. */
function exitOf(trace: Trace, facts: Facts): 'Cancelled' | 'Error' | undefined {
  const { event, before } = trace;
  if (!before || typeof before.state.value === 'string') return undefined;
  const running = before.state.matches({ active: { ToolRound: 'running' } } as never);
  const cut = facts.cut;
  if (running) return wasStopped(trace) && cut ? cut : facts.conflict ? 'Error' : undefined;
  if (event?.type === 'run.cancelled') return 'Cancelled';
  if (event?.type === 'timer.elapsed' && (event as unknown as { id: string }).id.endsWith('/deadline'))
    return 'Cancelled';
  if (event?.type === 'append.failed' || event?.type === 'effect.failed') return 'Error';
  return undefined;
}

const PHASES: Readonly<Record<string, readonly Phase[]>> = {
  RunStart: ['runStart'],
  StepPrepare: ['stepStart', 'beforeInference'],
  AfterInference: ['afterInference', 'stepEnd'],
  RunEnd: ['runEnd'],
};
const CHECKPOINTS = {
  CommitUser: 'UserMessage',
  CommitAssistant: 'AssistantTurnCommitted',
  CommitTool: 'ToolResultsCommitted',
  CommitFinished: 'RunFinished',
};

function turnOf(trace: Trace): Turn & { models: number } {
  const { runId, settings } = inputOf(trace);
  const { turn, failures } = factsOf(trace);
  const asked = trace.steps.flatMap((step) =>
    step.asked.filter((request) => request.kind !== 'model' || request.turn === turn),
  );
  return { runId, turn, models: settings.models.length, retry: settings.policies.modelRetry, failures, asked };
}

/** Returns true if plugins handle the natural end. */
const endsNaturally = ({ state }: Trace): boolean =>
  !state.matches('active') && state.context.end.termination === 'NaturalEnd';
const hearsEnd = ({ state }: Trace): boolean => state.matches({ active: { CommitAssistant: 'hearing' } } as never);

const roundsBegun = ({ spawned }: Trace): ToolRoundInput[] =>
  spawned.flatMap(({ src, input }) => (src === 'toolRound' ? [input as ToolRoundInput] : []));

export const runInvariants: readonly ChartInvariant[] = [
  ...arrowInvariants,
  {
    says: 'CancellationToken Impact: a cancel, a deadline and a runtime error end the run in any state, and nothing else does',
    holds: (trace) => {
      const facts = factsOf(trace);
      const due = exitOf(trace, facts);
      const ways = ['Cancelled', 'Error'].filter((state) => enters(trace, state));
      const failed = trace.answer?.kind === 'failed' && at(trace) !== 'LlmCall';
      const tool = facts.failure && !due && ways.includes('Error');
      if (failed || tool) return same('it ends', ways, ['Error']);
      same('it ends', ways, due ? [due] : []);
    },
  },
  {
    says: 'semantics 7: before the run ends, a running round receives one stop, and the run waits for it',
    holds: (trace) => {
      const ended =
        ['run.cancelled', 'append.failed', 'effect.failed'].includes(trace.event?.type ?? '') ||
        (cameAs(trace, 'timer.elapsed') && exitLike(trace));
      const running = trace.before?.state.matches({ active: { ToolRound: 'running' } } as never) === true;
      const stops = trace.sentEvents.filter(({ to, event }) => to === 'round' && event.type === 'round.stopped');
      hold(stops.length === (ended && running ? 1 : 0), `${stops.length} stops are sent`);
      if (ended && running) same('it waits', trace.state.value, trace.before?.state.value);
    },
  },
  {
    says: 'run-lifecycle, RunStart: the log begins with the request of the run, and the run has its deadline',
    holds: (trace) => {
      if (trace.before)
        return hold(
          trace.now('run-started').length + trace.now('run-resumed').length === 0 || cameAs(trace, 'append.failed'),
          'begins anew',
        );
      const { trigger, runId, settings } = inputOf(trace);
      const { continuation } = trigger.kind === 'resume' ? trigger : { continuation: undefined };
      const due: NewEntry[] = [];
      if (trigger.kind === 'resume') due.push({ runId, type: 'run-resumed', of: trigger.of });
      if (continuation) due.push({ runId, type: 'continuation', text: continuation, why: 'resume' });
      if (trigger.kind === 'message') {
        due.push({ runId, type: 'run-started' }, { runId, type: 'user-message', ...trigger.message });
      }
      same('it begins with', trace.log.slice(0, due.length), due);
      hold(
        trace.log.slice(due.length).every(({ type }) => type === 'checkpoint'),
        json(trace.log),
      );
      const { runMs } = settings.policies.limits;
      same(
        'deadline',
        asksOf(trace, 'timer').map(({ id, ms, ofCycle }) => [id, ms, ofCycle]),
        runMs === false ? [] : [[`${runId}/deadline`, runMs, true]],
      );
    },
  },
  {
    says: 'run-lifecycle, Checkpoint Triggers: each commit state waits for its own boundary, and its checkpoint is in the log unless nothing is new',
    holds: (trace) => {
      for (const [state, boundary] of Object.entries(CHECKPOINTS)) {
        if (!enters(trace, state) || at(trace) !== state) continue;
        same(
          'commits',
          commitsOf(trace.asked).map((commit) => commit.boundary),
          [boundary],
        );
        const { kind } = inputOf(trace).trigger;
        const nothingNew =
          (state === 'CommitUser' && kind !== 'message') || (state === 'CommitFinished' && kind === 'retry');
        same('checkpoint', trace.log.filter(({ type }) => type === 'checkpoint').length, nothingNew ? 0 : 1);
      }
      const inCommit = Object.keys(CHECKPOINTS).includes(at(trace)) || at(trace) === 'ToolRound';
      if (!inCommit) hold(commitsOf(trace.asked).length === 0, `a commit in ${at(trace)}`);
    },
  },
  {
    says: 'semantics 16: a retry of a call of an ended cycle calls no model, and begins and ends no cycle',
    holds: (trace) => {
      if (inputOf(trace).trigger.kind !== 'retry') return;
      hold(asksOf(trace, 'model').length === 0, 'a model is called');
      const bounds = trace.log.filter(({ type }) => type.startsWith('run-') || type === 'user-message');
      hold(bounds.length === 0, `${bounds.map(({ type }) => type)} is written`);
    },
  },
  {
    says: 'semantics 5: the phases run in their states, in order, and only if a plugin takes part',
    holds: (trace) => {
      const { phases } = inputOf(trace).settings;
      const due = Object.entries(PHASES).flatMap(([state, all]) => {
        const wanted = enters(trace, state) ? all.filter((phase) => phases[phase]) : [];
        return wanted.length > 0 ? [wanted] : [];
      });
      const afterError =
        enters(trace, 'Error') && trace.answer?.kind === 'failed'
          ? (['afterInference', 'stepEnd'] as Phase[]).filter((phase) => phases[phase])
          : [];
      if (afterError.length > 0) due.unshift(afterError);
      if (hearsEnd(trace) && !(trace.before && hearsEnd(trace.before))) due.push(['naturalEnd']);
      const asked = asksOf(trace, 'phase');
      // If a step passes several states, only the phases of the last one are requested.
      same(
        'asked',
        asked.map((request) => request.phases),
        due.filter((_, index) => index < 1 || afterError.length === 0),
      );
      for (const request of asked) {
        hold(request.turn === factsOf(trace).turn, `of turn ${request.turn}`);
        hold(request.id.startsWith(`${inputOf(trace).runId}/`), request.id);
        if (request.phases.join() !== 'runEnd') continue;
        const cancelled = enters(trace, 'Cancelled') || cameAs(trace, 'run.cancelled');
        hold(
          (request.limitMs ?? Number.POSITIVE_INFINITY) <= (cancelled ? 30 : 5000),
          `runEnd has ${request.limitMs} ms`,
        );
        hold(request.termination !== undefined, 'runEnd receives the termination of the run');
      }
      if (afterError.length > 0) same('it hears of', asked[0]?.failure?.code, (trace.answer as { code?: string }).code);
    },
  },
  {
    says: 'semantics 5: the state writes of runStart are in the log',
    holds: (trace) => {
      if (!trace.before || documented('RUN', trace.before.state.value) !== 'RunStart') return;
      const { writes } = (trace.answer ?? {}) as { writes?: object };
      same(
        'written',
        trace.now('state-changed').map((entry) => entry.writes),
        writes && at(trace) !== 'RunStart' ? [writes] : [],
      );
    },
  },
  {
    says: 'semantics 5: steers enter the log before each model call, in arrival order, as many as the policy takes, and the conversation receives them',
    holds: (trace) => {
      // Lost entries are written again.
      if (cameAs(trace, 'append.failed')) return;
      const logged = trace
        .now('user-message')
        .filter(({ kind }) => kind === 'steer')
        .map(({ messageId }) => messageId);
      const waiting = trace.before ? factsOf(trace.before).steers : inputOf(trace).steers;
      const all = inputOf(trace).settings.policies.queueDrain === 'all';
      const due = enters(trace, 'StepPrepare')
        ? waiting.slice(0, all ? undefined : 1).map(({ messageId }) => messageId)
        : [];
      same('delivered', logged, due);
      const sentToParent = trace.sentEvents.flatMap(({ to, event }) =>
        event.type === 'steers.delivered' && to === 'parent'
          ? (event as unknown as { messages: { messageId: string }[] }).messages
          : [],
      );
      same(
        'sent to the conversation',
        sentToParent.map(({ messageId }) => messageId),
        due,
      );
    },
  },
  {
    says: 'semantics 8: the context is measured before each model call if the model has a window; the log contains warnings, their ends and pruned results',
    holds: (trace) => {
      const { context } = inputOf(trace).settings;
      const asked = asksOf(trace, 'context');
      if (!context) return hold(asked.length === 0, 'a model without a window is measured');
      for (const { pruneAbove, compactAbove } of asked) {
        same('above', [pruneAbove, compactAbove], [context.prune, context.compact]);
      }
      if (enters(trace, 'LlmCall')) hold(trace.answer?.kind === 'context', 'the model is called unmeasured');
      const preparing = trace.before && documented('RUN', trace.before.state.value) === 'StepPrepare';
      if (trace.answer?.kind !== 'context' || !preparing)
        return hold(trace.now('context-warning').length === 0, 'warned of nothing');
      const { used, limit, warned, prunable } = trace.answer;
      const above = used / limit > (context.warn ?? Number.POSITIVE_INFINITY);
      same(
        'warned',
        trace.now('context-warning').map((entry) => [entry.used, entry.limit]),
        above && !warned ? [[used, limit]] : [],
      );
      same(
        'pruned and eased',
        trace.now('extension').map(({ value }) => value),
        [...(!above && warned ? [{ used, limit }] : []), ...(prunable ? [{ callIds: prunable.callIds }] : [])],
      );
    },
  },
  {
    says: 'semantics 16: the log contains the parsed final answer of the run that ends with it, and no other',
    holds: (trace) => {
      // Entries that could not be stored are written again.
      if (cameAs(trace, 'append.failed')) return;
      const { answer, before } = trace;
      const isLast = answer?.kind === 'answer' && before !== undefined && hearsEnd(before) && endsNaturally(trace);
      const outputs = trace.now('extension').filter(({ name }) => name === 'output');
      same(
        'the answer',
        outputs.map(({ value }) => value),
        isLast ? [answer.value] : [],
      );
    },
  },
  {
    says: 'TRC-6: earlier messages are summarized at most once before a call, and only below the limits; then the context is measured again',
    holds: (trace) => {
      const facts = factsOf(trace);
      const { before, answer, spawned } = trace;
      const first = before?.state.matches({ active: { StepPrepare: 'measuring' } } as never) === true;
      const may = answer?.kind === 'context' ? answer.compactable : undefined;
      const due = first && may && limitOf(trace, facts) === undefined;
      const begun = spawned.flatMap(({ src, input }) => (src === 'compaction' ? [input as CompactionInput] : []));
      const { runId, settings } = inputOf(trace);
      const { phases, models, policies } = settings;
      const wanted = { runId, turn: facts.turn + 1, models, retry: policies.modelRetry };
      const input = due && { ...wanted, upToSeq: may.upToSeq, heard: phases.preCompact };
      same('begun', begun, input ? [input] : []);
      if (cameAs(trace, 'xstate.done.actor.compaction')) same('measured', asksOf(trace, 'context').length, 1);
    },
  },
  {
    says: 'run-lifecycle, LlmCall: each turn requests the model once, first the agent’s own model, with nothing beside it but gates',
    holds: (trace) => {
      const asked = asksOf(trace, 'model');
      if (enters(trace, 'LlmCall') && at(trace) === 'LlmCall') {
        same(
          'asked',
          asked.map(({ turn, attempt, model }) => [turn, attempt, model]),
          [[factsOf(trace).turn, 1, 0]],
        );
      }
      hold(at(trace) === 'LlmCall' || asked.length === 0, `asked in ${at(trace)}`);
      if (at(trace) !== 'LlmCall') return;
      const open = trace.situation.requests.filter(({ kind, id }) => kind !== 'timer' || !id.endsWith('/deadline'));
      hold(open.length === 1, `open: ${open.map(({ id }) => id)}`);
    },
  },
  {
    says: 'semantics 2, modelRetry: attempts count through the turn, and each model has as many as the policy allows',
    holds: (trace) =>
      holdAttempts({ ...turnOf(trace), asked: turnOf(trace).asked.filter(({ kind }) => kind === 'model') }),
  },
  {
    says: 'semantics 8: each retry is in the log with attempt, wait and reason, before its wait begins',
    holds: (trace) => {
      if (!trace.before || documented('RUN', trace.before.state.value) !== 'LlmCall') return;
      holdRetry(trace, turnOf(trace), inputOf(trace).settings.models);
    },
  },
  {
    says: 'run-lifecycle, AfterInference: a reply is in the log once: each of its items, then one model-reply',
    holds: (trace) => {
      const { answer } = trace;
      const replies = trace.now('model-reply');
      hold(replies.length === (answer?.kind === 'reply' ? 1 : 0), `${replies.length} replies`);
      if (answer?.kind !== 'reply') return;
      const types = trace.log.map(({ type }) => type);
      same(
        'items',
        trace.now('agent-output').map(({ item }) => item),
        answer.items,
      );
      hold(types.indexOf('model-reply') === answer.items.length, `in this order: ${types}`);
      const { model, finish, usage, costUsd } = answer;
      const [reply] = replies;
      same(
        'the reply',
        [reply?.model, reply?.finish, reply?.usage, reply?.costUsd, reply?.turn],
        [model, finish, usage, costUsd, factsOf(trace).turn],
      );
    },
  },
  {
    says: 'semantics 6: a continuation precedes a call whose request would end with the model’s own text, and contains the reason',
    holds: (trace) => {
      const facts = factsOf(trace);
      const entries = trace.now('continuation').filter(({ why }) => why !== 'resume');
      if (!legsOf(trace).some(([from, to]) => from === 'CommitAssistant' && to === 'LoopTop')) {
        return hold(entries.length === 0 || cameAs(trace, 'append.failed'), 'a continuation of nothing');
      }
      const { reply, steers, settled, settledDuringReply } =
        trace.before && legsOf(trace).length > 0 ? { ...facts, steers: factsOf(trace.before).steers } : facts;
      if (limitOf(trace, facts) !== undefined) return hold(entries.length === 0, 'the model is not called again');
      const notice = isEmpty(trace, facts) && inputOf(trace).settings.policies.onEmptyReply === 'notice';
      const results = !reply?.empty && settled > 0 && settled === settledDuringReply && steers.length === 0;
      const { answer } = trace;
      if (answer?.kind === 'continue' && steers.length === 0 && settled === 0) {
        const continuations = entries.map(({ why, text }) => [why, text]);
        return same('a plugin goes on', continuations, [['stop_hook', answer.text]]);
      }
      if (answer?.kind === 'context')
        return same(
          'a reply is cut',
          entries.map(({ why }) => why),
          ['length'],
        );
      const why = reply?.finish === 'pause' ? ['pause'] : results ? ['results'] : notice ? ['empty'] : [];
      hold(entries.length === why.length, `${json(entries)}, and ${why} is due`);
      hold(
        entries.every((entry) => entry.text.length > 5 && entry.why.startsWith((why[0] ?? '').slice(0, 5))),
        json(entries),
      );
    },
  },
  {
    says: 'run-lifecycle, ToolRound: each reply with calls has one round, under the tool policies',
    holds: (trace) => {
      const begun = roundsBegun(trace);
      const due = enters(trace, 'ToolRound');
      hold(begun.length === (due ? 1 : 0), `${begun.length} rounds begin`);
      const [round] = begun;
      if (!round) return;
      const { runId, settings } = inputOf(trace);
      const { policies, phases, conversationId } = settings;
      const { reply, turn } = factsOf(trace);
      same('calls', round.calls, reply?.calls);
      const readOnly = round.calls.every((call) => call.readOnly);
      const together =
        policies.toolExecution === 'parallel' || (policies.toolExecution === 'parallelIfReadOnly' && readOnly);
      same('at once', [round.sequential, round.window], together ? [false, policies.maxParallelTools] : [true, 1]);
      same(
        'policies',
        [round.suspensionsMax, round.retry, round.phases],
        [policies.limits.suspensionsPerCall, policies.toolRetry, phases],
      );
      same('of', [round.conversationId, round.runId], [conversationId, runId]);
      hold(round.id.startsWith(`${runId}/`) && round.id.includes(`${turn}`), round.id);
    },
  },
  {
    says: 'CommitTool: the state writes of the round are in the log, and calls that a steer kept from starting are skipped',
    holds: (trace) => {
      if (!cameAs(trace, 'xstate.done.actor.round') || wasStopped(trace) || factsOf(trace).conflict) return;
      const { slots, steered } = (
        trace.event as unknown as {
          output: {
            slots: { status: string; call: { callId: string }; output?: { writes?: object } }[];
            steered?: string;
          };
        }
      ).output;
      same(
        'written',
        trace.now('state-changed').map(({ callId, writes }) => [callId, writes]),
        slots.flatMap(({ call, output }) => (output?.writes ? [[call.callId, output.writes]] : [])),
      );
      const skipped =
        steered === undefined
          ? []
          : slots.filter(({ status }) => status === 'queued').map(({ call }) => [call.callId, 'cancelled', 'skipped']);
      same(
        'skipped',
        trace.now('tool-result').map(({ callId, outcome, code }) => [callId, outcome, code]),
        skipped,
      );
      hold(
        trace.now('tool-result').every(({ content }) => json(content).includes(steered ?? '')),
        'they name the message',
      );
    },
  },
  {
    says: 'semantics 2, steerAt: under steerAt afterTool the round receives a steer that arrives during it, and nobody else does',
    holds: (trace) => {
      const steered = trace.sentEvents.filter(({ event }) => event.type === 'round.steered');
      const running = trace.before?.state.matches({ active: { ToolRound: 'running' } } as never) === true;
      const due =
        cameAs(trace, 'message.steered') && running && inputOf(trace).settings.policies.steerAt === 'afterTool';
      const { message } = (trace.event ?? {}) as { message?: { messageId: string } };
      same(
        'sent to the round',
        steered.map(({ to, event }) => [to, (event as unknown as { messageId: string }).messageId]),
        due ? [['round', message?.messageId]] : [],
      );
    },
  },
  {
    says: 'semantics 6: calls that kept their turn get a result that they did not run if the run continues without them',
    holds: (trace) => {
      if (!legsOf(trace).some(([from, to]) => from === 'ResumeAfterTool' && to === 'LoopTop')) return;
      const before = trace.before ? factsOf(trace.before) : undefined;
      const due = cameAs(trace, 'xstate.done.actor.gate') || trace.answer ? idsOf(before?.kept ?? []) : [];
      same(
        'not started',
        trace.now('tool-result').map(({ callId, outcome, code }) => [callId, outcome, code]),
        due.map((id) => [id, 'cancelled', 'not_started']),
      );
    },
  },
  ...closingInvariants,
];

const exitLike = ({ event }: Trace): boolean => ((event as unknown as { id?: string }).id ?? '').endsWith('/deadline');
