/** The rules of TOOL_CALL (docs/internals/lifecycle.md, TOOL_CALL). */

import type { ToolCallOutput } from '../../machines/calls.ts';
import { resultFingerprint } from '../../machines/fingerprint.ts';
import type { EffectRequest, GateValue, NewEntry, ToolValue } from '../../machines/index.ts';
import type { ToolCallInput } from '../../machines/tools/toolCall.machine.ts';
import type { Sent } from '../../src/testing/chartPaths/effectAnswers.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

type Request<K extends EffectRequest['kind']> = Extract<EffectRequest, { kind: K }>;
const inputOf = ({ input }: Trace): ToolCallInput => input as ToolCallInput;
const asksOf = <K extends EffectRequest['kind']>({ steps }: Trace, kind: K): Request<K>[] =>
  steps.flatMap(({ asked }) => asked.filter((request): request is Request<K> => request.kind === kind));
const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
const words = (text: string) => [{ type: 'text', text }];

/** Returns the answer of the gate, and the outcomes of the executions. */
const verdictOf = (trace: Trace): GateValue | undefined => trace.last('allow', 'block', 'refuse', 'suspend');
const outcomeOf = (trace: Trace): ToolValue | undefined => trace.last('succeeded', 'erred', 'pending');

/** Returns true if the host allows another execution and the policy has one left. */
function mayRepeat(trace: Trace): boolean {
  const { retry } = inputOf(trace);
  const ended = [...trace.steps].reverse().find(({ answer }) => /^(succeeded|erred|pending)$/.test(answer?.kind ?? ''));
  const value = ended?.answer;
  if (!ended || value?.kind !== 'erred' || !value.retry || retry === false) return false;
  return asksOf(ended, 'tool').length < retry.attempts;
}

type Due =
  | { outcome: 'succeeded' | 'failed'; code?: string; content: unknown }
  | { outcome: 'suspended'; reason: string }
  | undefined;
/** Returns the required outcome of the call. Undefined while the call is open. */
function dueOf(trace: Trace): Due {
  const { call, suspension, suspensionsMax } = inputOf(trace);
  if (call.refused) return { outcome: 'failed', code: call.refused.code, content: words(call.refused.text) };
  const verdict = verdictOf(trace);
  if (verdict?.kind === 'block' || verdict?.kind === 'refuse') {
    return { outcome: 'failed', code: verdict.code, content: words(verdict.text) };
  }
  const value = verdict?.kind === 'suspend' ? verdict : outcomeOf(trace);
  if (!value) return undefined;
  switch (value.kind) {
    case 'succeeded':
      return { outcome: 'succeeded', content: value.content };
    case 'erred':
      return { outcome: 'failed', code: value.code, content: value.content };
    default: {
      const within = value.kind === 'pending' && value.within === true;
      if (within || suspension < suspensionsMax) return { outcome: 'suspended', reason: value.reason };
      return {
        outcome: 'failed',
        code: 'suspend_limit',
        content: words(`suspended more than ${suspensionsMax} times`),
      };
    }
  }
}
const outputOf = ({ state }: Trace): ToolCallOutput | undefined => state.output as ToolCallOutput | undefined;

/** Returns true if the outcome of the call is decided. */
const isDecided = (trace: Trace): boolean => dueOf(trace) !== undefined && !mayRepeat(trace);
const startedOf = (trace: Trace) => trace.all('tool-started');

export const toolCallInvariants: readonly ChartInvariant[] = [
  {
    says: 'run-lifecycle, BeforeToolExecute → Failed: a refused call starts no tool, nor does a call that its gate refuses or blocks',
    holds: (trace) => {
      const stopped =
        inputOf(trace).call.refused ?? ['block', 'refuse', 'suspend'].includes(verdictOf(trace)?.kind ?? '');
      if (!stopped) return;
      hold(asksOf(trace, 'tool').length === 0, 'a tool was started');
      hold(startedOf(trace).length === 0, 'tool-started was written');
    },
  },
  {
    says: 'semantics 5: an unknown or invalid call passes no gate, and a gated call passes it before its tool',
    holds: (trace) => {
      const { call, id } = inputOf(trace);
      const gates = asksOf(trace, 'gate');
      hold(gates.length === (call.refused || !call.gated ? 0 : 1), `${gates.length} gates were asked`);
      const asked = gates.every((gate) => gate.id.startsWith(`${id}/`) && gate.callId === call.callId);
      hold(asked, 'the gate is requested for this call');
      if (call.gated && asksOf(trace, 'tool').length > 0) hold(verdictOf(trace)?.kind === 'allow', 'run unallowed');
    },
  },
  {
    says: 'semantics 14: a replay gives its decision and its suspension to gate and tool',
    holds: (trace) => {
      const { decision, suspension } = inputOf(trace);
      for (const request of trace.asked) {
        if (request.kind !== 'gate' && request.kind !== 'tool') continue;
        hold(
          same(request.decision, decision) && request.suspension === suspension,
          `${request.kind} of another decision`,
        );
      }
    },
  },
  {
    says: 'run-lifecycle, ExecuteTool: an allowed call runs, after one tool-started and the entry of its approval',
    holds: (trace) => {
      const { call, decision, suspension, id } = inputOf(trace);
      const verdict = verdictOf(trace);
      const runs = !call.refused && (!call.gated || verdict?.kind === 'allow');
      const started = startedOf(trace);
      hold(started.length === (runs ? 1 : 0), `${started.length} starts`);
      const tools = asksOf(trace, 'tool');
      hold(tools.length > 0 === runs, `${tools.length} executions`);
      hold(
        tools.every((tool) => tool.id.startsWith(`${id}/`) && tool.callId === call.callId),
        'the tool runs for this call',
      );
      if (!runs) return;
      const [allowed] = trace.all('tool-allowed');
      const by = verdict?.kind === 'allow' ? verdict.by : undefined;
      hold(allowed?.by === (by ?? (decision && suspension > 0 ? 'decision' : undefined)), `allowed by ${allowed?.by}`);
      const args = verdict?.kind === 'allow' ? verdict.args : undefined;
      hold(
        same(started[0]?.args, args) && started[0]?.callId === call.callId,
        'tool-started has the arguments that run',
      );
      const [first] = trace.steps.filter((step) => step.now('tool-started').length > 0);
      const types = first?.log.map(({ type }) => type).join() ?? '';
      hold(types.startsWith(allowed ? 'tool-allowed,tool-started' : 'tool-started'), `it starts with ${types}`);
    },
  },
  {
    says: 'semantics 6: one idempotency key over all executions, of conversation, call and suspension',
    holds: (trace) => {
      const { conversationId, call, suspension, idempotencyKey } = inputOf(trace);
      const part = (id: string): string => id.replaceAll('%', '%25').replaceAll('/', '%2F');
      const key = idempotencyKey ?? `${part(conversationId)}/${part(call.callId)}/${suspension}`;
      const keys = [...asksOf(trace, 'tool'), ...startedOf(trace)].map((each) => each.idempotencyKey);
      hold(
        keys.every((each) => each === key),
        `the keys are ${keys}, not ${key}`,
      );
    },
  },
  {
    says: 'semantics 2, toolRetry: only repeatable failures are repeated, as often as the policy allows, each with a notice before its wait',
    holds: (trace) => {
      const { retry, id } = inputOf(trace);
      const timers = asksOf(trace, 'timer');
      const notices = trace.all('notice');
      hold(timers.length === notices.length, `${notices.length} notices for ${timers.length} waits`);
      const failures = trace.steps.filter((step) => step.answer?.kind === 'erred');
      const repeated = failures.filter((step) => mayRepeat(step));
      hold(timers.length === repeated.length, `${timers.length} waits for ${repeated.length} failures to repeat`);
      const rang = trace.steps.filter(({ event }) => event?.type === 'timer.elapsed').length;
      const tools = asksOf(trace, 'tool');
      hold(tools.length <= 1 + rang, 'a repetition waits for its timer');
      hold(
        trace.event?.type !== 'timer.elapsed' || trace.asked.some(({ kind }) => kind === 'tool'),
        'a wait that is over',
      );
      if (retry === false) return;
      for (const [index, { ms, id: timer }] of timers.entries()) {
        const base = Math.min(retry.capMs, retry.baseMs * retry.factor ** index);
        hold(ms >= base && ms <= base * (1 + retry.jitter), `wait ${index + 1} is ${ms} ms`);
        const failed = repeated[index]?.answer;
        const random = failed?.kind === 'erred' ? (failed.retry?.random ?? 0) : 0;
        hold(Math.abs(ms - base * (1 + retry.jitter * random)) < 1, `wait ${index + 1} is ${ms} ms`);
        hold(timer.startsWith(`${id}/`), `${timer} is not of this call`);
        const { code, text } = notices[index] ?? { code: '', text: '' };
        const numbers = [`attempt ${index + 2}`, String(retry.attempts), `${ms} ms`];
        hold(code === 'tool_retry' && numbers.every((each) => text.includes(each)), `the notice is ${text}`);
      }
    },
  },
  {
    says: 'run-lifecycle, TOOL_CALL: gate and tool decide one outcome: blocked and refused calls failed, pending calls are suspended',
    holds: (trace) => {
      const output = outputOf(trace);
      hold(!output || isDecided(trace), 'the call ends before it is decided');
      const due = dueOf(trace);
      if (!output || !due) return;
      const { call, suspension } = inputOf(trace);
      hold(output.outcome === due.outcome, `${output.outcome}, and ${due.outcome} is due`);
      hold(output.code === (due.outcome === 'suspended' ? undefined : due.code), `code ${output.code}`);
      hold(output.callId === call.callId && output.name === call.name, 'the output is of this call');
      hold(output.fingerprint.startsWith(call.fingerprint), 'the fingerprint identifies the call');
      hold(output.suspension === suspension + (due.outcome === 'suspended' ? 1 : 0), `suspension ${output.suspension}`);
      if (due.outcome === 'suspended') hold(output.reason === due.reason, `waits for ${output.reason}`);
      const value = outcomeOf(trace);
      hold(
        same(output.writes, value?.kind === 'succeeded' ? value.writes : undefined),
        'the output has what the tool writes',
      );
      const failed = value?.kind === 'erred';
      hold(output.failure?.code === (failed ? value.code : undefined), 'a failure is the failure of the tool');
      const words = failed ? value.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [];
      if (failed)
        hold(output.failure?.message === words.join('\n').slice(0, 1_000), 'its message is the text of the error');
    },
  },
  {
    says: 'semantics 16: calls are identical only with identical results: another result has another fingerprint',
    holds: (trace) => {
      const output = outputOf(trace);
      const [result] = trace.all('tool-result');
      if (!output || !result) return;
      const fingerprint = resultFingerprint(inputOf(trace).call.fingerprint, result);
      hold(
        output.fingerprint === fingerprint,
        `${output.fingerprint} is not ${fingerprint}, the fingerprint of what is logged`,
      );
    },
  },
  {
    says: 'run-lifecycle, Suspended: keeps the call open: no result, one tool-suspended with its reason, payload and arguments',
    holds: (trace) => {
      const due = isDecided(trace) ? dueOf(trace) : undefined;
      const entries = trace.all('tool-suspended');
      hold(entries.length === (due?.outcome === 'suspended' ? 1 : 0), `${entries.length} suspensions`);
      if (due?.outcome !== 'suspended') return;
      hold(trace.all('tool-result').length === 0, 'a call that waits has a result');
      const value = verdictOf(trace)?.kind === 'suspend' ? verdictOf(trace) : outcomeOf(trace);
      const [entry] = entries as [NewEntry & { type: 'tool-suspended' }];
      const { call, suspension } = inputOf(trace);
      hold(entry.callId === call.callId && entry.suspension === suspension + 1, `suspension ${entry.suspension}`);
      const expected = value as { reason: string; payload?: unknown; args?: unknown };
      hold(
        same([entry.reason, entry.payload, entry.args], [expected.reason, expected.payload, expected.args]),
        'reason, payload and arguments are those of the suspension',
      );
    },
  },
  {
    says: 'semantics 5: AfterToolExecute runs for every outcome if a plugin takes part, and for nothing else',
    holds: (trace) => {
      const { after, call, id } = inputOf(trace);
      const due = isDecided(trace) ? dueOf(trace) : undefined;
      const asked = asksOf(trace, 'afterTool');
      hold(asked.length === (after && due ? 1 : 0), `asked ${asked.length} times`);
      const [request] = asked;
      if (!request || !due) return;
      hold(request.callId === call.callId && request.id.startsWith(`${id}/`), 'of this call');
      hold(request.outcome === due.outcome, `of ${request.outcome}`);
      const [code, content] = due.outcome === 'suspended' ? [undefined, []] : [due.code, due.content];
      hold(request.code === code && same(request.content, content), 'it receives the result');
      const concluded = trace.steps.flatMap((step) =>
        step.sentEvents.filter(({ event }) => event.type === 'call.concluded'),
      );
      hold(concluded.length === 1, 'the round receives the outcome of the call before a plugin does');
      const [{ event }] = concluded as [Sent];
      const { output } = event as unknown as { output: ToolCallOutput };
      const result = output.result as { outcome?: string; content?: unknown } | undefined;
      hold(output.outcome === due.outcome, `the round received ${output.outcome}`);
      hold(
        same([result?.outcome, result?.content], due.outcome === 'suspended' ? [] : [due.outcome, due.content]) ||
          (due.outcome === 'suspended' && !result),
        'with its result',
      );
    },
  },
  {
    says: 'semantics 1.2: a finished call has one result in the log, as the plugins changed it',
    holds: (trace) => {
      const results = trace.all('tool-result');
      const output = outputOf(trace);
      hold(results.length === (output && output.outcome !== 'suspended' ? 1 : 0), `${results.length} results`);
      const [entry] = results;
      const due = dueOf(trace);
      if (!entry || !due || due.outcome === 'suspended') return;
      const shown = trace.last('shown')?.content ?? due.content;
      hold(entry.callId === inputOf(trace).call.callId, 'the result is of this call');
      hold(
        same([entry.outcome, entry.code, entry.content], [due.outcome, due.code, shown]),
        'it is what the call came to',
      );
      hold((inputOf(trace).after === false) === (trace.last('shown') === undefined), 'plugins answer first');
    },
  },
  {
    says: 'run-lifecycle, [*]: a call ends when it is decided and no plugin handles it',
    holds: (trace) => {
      const waits = trace.situation.requests.length > 0;
      const heard = !inputOf(trace).after || trace.last('shown') !== undefined;
      const over = isDecided(trace) && heard;
      hold(
        (trace.state.status === 'done') === over,
        `${JSON.stringify(trace.state.value)} when ${over ? 'over' : 'not over'}`,
      );
      hold(waits !== over, 'it waits for what it asked');
    },
  },
];
