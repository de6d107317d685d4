/** The rules of COMPACTION (docs/internals/lifecycle.md, COMPACTION). */

import type { CompactionInput, CompactionOutput } from '../../machines/compaction/compaction.machine.ts';
import type { EffectRequest, EffectValue, SummaryValue } from '../../machines/index.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';
import { attemptsOf, holdRetry, type Turn } from './modelCall.invariants.ts';

type Failed = Extract<EffectValue, { kind: 'failed' }>;
type Heard = Extract<EffectValue, { kind: 'compact' }>;
type Asked = Extract<EffectRequest, { kind: 'summary' }>;
const json = (value: unknown): string => JSON.stringify(value);
const inputOf = ({ input }: Trace): CompactionInput => input as CompactionInput;
const asksIn = (asked: readonly EffectRequest[]): Asked[] =>
  asked.filter((request): request is Asked => request.kind === 'summary');

const answersOf = ({ steps }: Trace): EffectValue[] => steps.flatMap(({ answer }) => (answer ? [answer] : []));
const failuresOf = (trace: Trace): Failed[] =>
  answersOf(trace).flatMap((answer) => (answer.kind === 'failed' ? [answer] : []));
const heardOf = (trace: Trace): Heard | undefined =>
  answersOf(trace).find((answer): answer is Heard => answer.kind === 'compact');
const summaryOf = (trace: Trace): SummaryValue | undefined =>
  answersOf(trace).find((answer): answer is SummaryValue => answer.kind === 'summary');

function turnOf(trace: Trace): Turn {
  const { runId, turn, models, retry } = inputOf(trace);
  const asked = trace.steps.flatMap((step) => step.asked);
  return { runId, turn, models: models.length, retry, failures: failuresOf(trace), asked };
}
const isSpent = (trace: Trace): boolean => attemptsOf(turnOf(trace)).spent;

function endOf(trace: Trace): CompactionOutput['kind'] | undefined {
  if (heardOf(trace)?.block) return 'blocked';
  if (summaryOf(trace)) return 'compacted';
  return isSpent(trace) ? 'dropped' : undefined;
}

export const compactionInvariants: readonly ChartInvariant[] = [
  {
    says: 'TRC-6: it ends as compacted after a summary, as dropped without one, as blocked by a hook, and otherwise continues',
    holds: (trace) => {
      const { status, output } = trace.state;
      const due = endOf(trace);
      hold((status === 'done') === (due !== undefined), `${json(trace.state.value)} where ${due} is due`);
      if (status === 'done') hold((output as CompactionOutput).kind === due, `it ends ${json(output)}, not ${due}`);
    },
  },
  {
    says: 'semantics 8: one entry replaces the range at the end, and never before; a blocked compaction writes none',
    holds: (trace) => {
      const { upToSeq, runId } = inputOf(trace);
      const entries = trace.all('compaction');
      const due = endOf(trace);
      const made = due === 'compacted' || due === 'dropped';
      hold(entries.length === (made ? 1 : 0), `${entries.length} entries at ${due}`);
      hold(trace.now('compaction').length === entries.length, 'it is written by the step that ends it');
      for (const entry of entries) hold(entry.upToSeq === upToSeq && entry.runId === runId, `up to ${entry.upToSeq}`);
    },
  },
  {
    says: 'semantics 8: the entry contains the summary and the usage of its model, and the run receives the usage',
    holds: (trace) => {
      const [entry] = trace.now('compaction');
      const summary = summaryOf(trace);
      const spent = summary ?? failuresOf(trace).at(-1)?.spent;
      if (!entry) return;
      hold(!summary || (entry.summary === summary.text && entry.model === summary.model), json(entry));
      hold(json(entry.usage) === json(spent?.usage) && entry.costUsd === spent?.costUsd, `it took ${json(entry)}`);
      const reported = (trace.state.output as CompactionOutput).spent;
      hold(
        json(reported?.usage) === json(spent?.usage) && reported?.costUsd === spent?.costUsd,
        `reported ${json(reported)}`,
      );
    },
  },
  {
    says: 'S002-28: without a summary the messages are left out, required content stays, and a notice contains the reason',
    holds: (trace) => {
      const notices = trace.now('notice').filter(({ code }) => code === 'compaction_failed');
      const dropped = trace.event !== undefined && endOf(trace) === 'dropped';
      hold(notices.length === (dropped ? 1 : 0), `${notices.length} notices`);
      const last = failuresOf(trace).at(-1);
      if (!dropped || !last) return;
      hold(notices[0]?.text.includes(last.code) === true, `the notice is ${notices[0]?.text}`);
      const [entry] = trace.now('compaction');
      hold(entry?.summary.includes(last.kept ?? '') === true, `kept ${entry?.summary}`);
    },
  },
  {
    says: 'TRC-6, hooks: they run once and first; a block names its plugin, and then no model is called',
    holds: (trace) => {
      const { heard } = inputOf(trace);
      const phases = trace.asked.filter(({ kind }) => kind === 'phase');
      hold(phases.length === (heard && !trace.before ? 1 : 0), `${phases.length} phases`);
      const block = heardOf(trace)?.block;
      const notices = trace.now('notice').filter(({ code }) => code === 'compaction_blocked');
      hold(notices.length === (block ? 1 : 0), `${notices.length} notices of blocks`);
      if (!block) return;
      hold(notices[0]?.text.includes(block.by) === true && notices[0].text.includes(block.reason), json(notices));
      hold(asksIn(trace.steps.flatMap((step) => step.asked)).length === 0, 'a model is asked');
    },
  },
  {
    says: 'semantics 2, modelRetry: each attempt summarizes the same range with the same instructions, and counts as in a model call',
    holds: (trace) => {
      const { runId, upToSeq, turn } = inputOf(trace);
      const failures = failuresOf(trace);
      const all = asksIn(trace.steps.flatMap((step) => step.asked));
      for (const [index, request] of all.entries()) {
        const due = attemptsOf({ ...turnOf(trace), failures: failures.slice(0, index) });
        hold(!due.spent, `attempt ${request.attempt} follows a failure that is not repeated`);
        hold(request.attempt === index + 1 && request.model === due.model, `attempt ${json(request)}`);
        hold(request.upToSeq === upToSeq && request.runId === runId, `of ${json(request)}`);
        hold(request.instructions === heardOf(trace)?.instructions, `instructions ${request.instructions}`);
        hold(request.id.startsWith(`${runId}/t${turn}/compaction/`), request.id);
      }
    },
  },
  {
    says: 'semantics 8: each retry is in the log with attempt, wait and reason, before its wait begins',
    holds: (trace) => {
      if (!trace.before || trace.answer?.kind === 'compact') return;
      const asked = asksIn(trace.asked).length > 0;
      const again = trace.answer?.kind === 'failed' && !isSpent(trace);
      const { models } = inputOf(trace);
      const stand = new Proxy(trace, {
        // The attempts of a summary count like those of a model call.
        get: (turn, key) =>
          key === 'asked' ? [...turn.asked, ...(asked ? [{ kind: 'model' }] : [])] : Reflect.get(turn, key),
      });
      if (again) holdRetry(stand, turnOf(trace), models);
      else hold(trace.now('model-retry').length === 0, 'a retry of nothing');
    },
  },
  {
    says: 'semantics 8: one phase, one attempt or one wait is active at a time',
    holds: ({ situation, state, event, asked }) => {
      if (state.status === 'done') return;
      hold(situation.requests.length === 1, `${situation.requests.map(({ id }) => id)}`);
      if (event?.type === 'timer.elapsed')
        hold(asked[0]?.kind === 'summary', 'the wait is over and the attempt begins');
    },
  },
];
