/** The rules of RESUME_TOOL_CALL (docs/internals/lifecycle.md, Decision Replay). */
import type { Replay, ToolCallOutput } from '../../machines/calls.ts';
import type { ResumeToolCallInput, ResumeToolCallOutput } from '../../machines/tools/resumeToolCall.machine.ts';
import type { ToolCallInput } from '../../machines/tools/toolCall.machine.ts';
import { commitsOf, enters } from './anyChart.invariants.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

const inputOf = ({ input }: Trace): ResumeToolCallInput => input as ResumeToolCallInput;
const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';
const same = (what: string, is: unknown, due: unknown): void =>
  hold(json(is) === json(due), `${what}: ${json(is)}, and ${json(due)} is due`);
const isDenied = ({ decision }: Replay): boolean => decision?.action === 'deny';

interface Handled {
  replay: Replay;
  /** Undefined if the call was denied. */
  output: ToolCallOutput | undefined;
}

/** Returns the calls that the gate has handled, in order, and the current one. */
function progressOf(trace: Trace): { handled: Handled[]; current: Replay | undefined } {
  const { replays, phases } = inputOf(trace);
  const ends = trace.steps.flatMap(({ event }) =>
    event?.type === 'xstate.done.actor.replay' ? [(event as unknown as { output: ToolCallOutput }).output] : [],
  );
  let shown = trace.steps.filter(({ answer }) => answer?.kind === 'shown').length;
  const waiting = new Set<string>();
  const handled: Handled[] = [];
  for (const replay of replays) {
    const { callId } = replay.call;
    if (replay.behind !== undefined && waiting.has(replay.behind)) waiting.add(callId);
    else if (isDenied(replay)) {
      if (phases.afterToolExecute && shown === 0) return { handled, current: replay };
      shown -= 1;
      handled.push({ replay, output: undefined });
    } else {
      const output = ends.shift();
      if (!output) return { handled, current: replay };
      if (output.outcome === 'suspended') waiting.add(callId);
      handled.push({ replay, output });
    }
  }
  return { handled, current: undefined };
}

export const resumeToolCallInvariants: readonly ChartInvariant[] = [
  {
    says: 'run-lifecycle, NoDecision: without a decision nothing is logged, requested or committed',
    holds: (trace) => {
      if (inputOf(trace).replays.length > 0) return;
      const { log, asked, spawned, state } = trace;
      hold(log.length + asked.length + spawned.length === 0, json({ log, asked, spawned }));
      hold(state.status === 'done' && enters(trace, 'NoDecision'), json(state.value));
    },
  },
  {
    says: 'run-lifecycle, ReplayResume: approved calls run once, in call-id order, one after the other',
    holds: (trace) => {
      const { conversationId, runId, id, suspensionsMax, retry, phases } = inputOf(trace);
      const { handled, current } = progressOf(trace);
      const due = [...handled.map(({ replay }) => replay), ...(current ? [current] : [])].filter(
        (each) => !isDenied(each),
      );
      const started = trace.steps.flatMap(({ spawned }) => spawned.map(({ input }) => input as ToolCallInput));
      same(
        'started',
        started.map(({ call }) => call.callId),
        due.map(({ call }) => call.callId),
      );
      for (const [index, { call, suspension, decision, idempotencyKey }] of due.entries()) {
        const { id: own, ...input } = started[index] ?? { id: '' };
        const shared = {
          conversationId,
          runId,
          call,
          suspension,
          suspensionsMax,
          retry,
          after: phases.afterToolExecute,
        };
        same(call.callId, sorted(input), sorted({ ...shared, decision, idempotencyKey }));
        hold(own.startsWith(`${id}/`), `${own} is not of this gate`);
      }
      const ids = started.map(({ id: own }) => own);
      hold(new Set(ids).size === ids.length, `two calls ask under one id: ${ids}`);
    },
  },
  {
    says: 'run-lifecycle, ReplayCancel: a denied call does not run: its result is failed, denied, with the reason of the decision',
    holds: (trace) => {
      const denied = progressOf(trace).handled.filter(({ replay }) => isDenied(replay));
      const results = trace.all('tool-result');
      same(
        'results',
        results.map(({ callId }) => callId),
        denied.map(({ replay }) => replay.call.callId),
      );
      for (const [index, { outcome, code, content }] of results.entries()) {
        same('outcome', [outcome, code], ['failed', 'denied']);
        const { decision } = denied[index]?.replay ?? {};
        const reason = decision?.action === 'deny' ? (decision.reason ?? '') : '';
        const shown = trace.last('shown')?.content;
        if (inputOf(trace).phases.afterToolExecute) same('content', content, shown);
        else
          hold(json(content).includes(reason) && json(content).includes('not run'), `the result is ${json(content)}`);
        if (!inputOf(trace).phases.afterToolExecute)
          same('a reason is named', json(content).includes('Reason'), reason !== '');
      }
    },
  },
  {
    says: 'semantics 5: AfterToolExecute receives a denial before its result is in the log',
    holds: (trace) => {
      const { phases, id } = inputOf(trace);
      const asked = trace.asked.filter(({ kind }) => kind === 'afterTool');
      const begins = enters(trace, 'ReplayCancel');
      hold(asked.length === (begins && phases.afterToolExecute ? 1 : 0), `${asked.length} are asked`);
      for (const request of asked) {
        if (request.kind !== 'afterTool') continue;
        const { current } = progressOf(trace);
        same('asked', [request.callId, request.outcome, request.code], [current?.call.callId, 'failed', 'denied']);
        hold(request.id.startsWith(`${id}/`), request.id);
        const reason = current?.decision?.action === 'deny' ? (current.decision.reason ?? '') : '';
        hold(
          json(request.content).includes(reason) && json(request.content).includes('not run'),
          json(request.content),
        );
      }
    },
  },
  {
    says: 'semantics 14: each decision that was carried out is consumed, also where the call waits again',
    holds: (trace) => {
      const due = progressOf(trace).handled.filter(({ replay }) => replay.decision);
      same(
        'consumed',
        trace.all('decision-consumed').map(({ callId, suspension }) => [callId, suspension]),
        due.map(({ replay }) => [replay.call.callId, replay.suspension]),
      );
    },
  },
  {
    says: 'run-lifecycle, ClearResolved: the run receives each settled call with its outcome',
    holds: (trace) => {
      const sent = trace.steps.flatMap((step) =>
        step.sentEvents.flatMap(({ to, event }) =>
          event.type === 'call.settled' && to === 'parent'
            ? [(event as unknown as { output: ToolCallOutput }).output]
            : [],
        ),
      );
      const { handled } = progressOf(trace);
      same(
        'sent to the run',
        sent.map(({ callId }) => callId),
        handled.map(({ replay }) => replay.call.callId),
      );
      for (const [index, { replay, output }] of handled.entries()) holdOutput(sent[index], replay, output);
    },
  },
  {
    says: 'run-lifecycle, SnapshotIfStateChanged: the state writes of the calls are in the log before the checkpoint',
    holds: (trace) => {
      const { handled, current } = progressOf(trace);
      const wrote = current
        ? []
        : handled.flatMap(({ output }) => (output?.writes ? [[output.callId, output.writes]] : []));
      same(
        'written',
        trace.all('state-changed').map(({ callId, writes }) => [callId, writes]),
        wrote,
      );
    },
  },
  {
    says: 'run-lifecycle, CommitReplay: one checkpoint a gate, ToolResultsCommitted, when all is done; it ends when that is durable',
    holds: (trace) => {
      if (inputOf(trace).replays.length === 0) return;
      const over = progressOf(trace).current === undefined;
      same(
        'checkpoints',
        trace.all('checkpoint').map(({ boundary }) => boundary),
        over ? ['ToolResultsCommitted'] : [],
      );
      const commits = trace.steps.flatMap(({ asked }) => commitsOf(asked));
      hold(commits.length === (over ? 1 : 0), `${commits.length} commits`);
      hold(
        commits.every(({ id }) => id.startsWith(`${inputOf(trace).id}/`)),
        'a commit of this gate',
      );
      const stored = trace.last('committed') !== undefined;
      hold((trace.state.status === 'done') === (over && stored), json(trace.state.value));
    },
  },
  {
    says: 'run-lifecycle, [*]: the output of the gate is the outcome of each call',
    holds: (trace) => {
      if (trace.state.status !== 'done') return;
      const { outputs } = trace.state.output as ResumeToolCallOutput;
      const { handled } = progressOf(trace);
      same(
        'outputs',
        outputs.map(({ callId }) => callId),
        handled.map(({ replay }) => replay.call.callId),
      );
      for (const [index, { replay, output }] of handled.entries()) holdOutput(outputs[index], replay, output);
    },
  },
];

const sorted = (object: object): unknown =>
  Object.entries(object)
    .filter(([, value]) => value !== undefined)
    .sort();

/** Checks that a denial is a failed call, and that an executed call has the output of its chart. */
function holdOutput(
  is: ToolCallOutput | undefined,
  { call, suspension }: Replay,
  output: ToolCallOutput | undefined,
): void {
  if (output) return same(call.callId, is, output);
  same('denied', [is?.outcome, is?.code, is?.name, is?.suspension], ['failed', 'denied', call.name, suspension]);
  hold(
    is?.fingerprint.startsWith(call.fingerprint) === true && is.fingerprint !== call.fingerprint,
    `the fingerprint is ${is?.fingerprint}`,
  );
}
