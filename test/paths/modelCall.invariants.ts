/** The rules of LLM_CALL (docs/internals/lifecycle.md, LLM_CALL). */
import type { EffectRequest, ModelValue } from '../../machines/index.ts';
import type { ModelCallInput } from '../../machines/modelCall.machine.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

type Failed = Extract<ModelValue, { kind: 'failed' }>;
type Retry = ModelCallInput['retry'];
const inputOf = ({ input }: Trace): ModelCallInput => input as ModelCallInput;
type Request<K extends EffectRequest['kind']> = Extract<EffectRequest, { kind: K }>;

/** The failures and requests since the start of the turn. */
export interface Turn {
  runId: string;
  turn: number;
  models: number;
  retry: Retry;
  failures: readonly Failed[];
  asked: readonly EffectRequest[];
}

/** Returns the attempts of the current model after its failures, or that no other attempt may follow. */
export function attemptsOf({ retry, models, failures }: Pick<Turn, 'retry' | 'models' | 'failures'>) {
  let [model, ofModel, spent] = [0, 1, false];
  for (const failed of failures) {
    const tooLong = retry.respectRetryAfter && (failed.retryAfterMs ?? 0) > retry.maxRetryAfterMs;
    const named = failed.nextModel;
    // A model that comes later in the list, never one that was tried.
    const next = named !== undefined && named > model ? named : model + 1;
    if (!failed.retryable || tooLong) spent = true;
    else if (ofModel < retry.attempts) ofModel += 1;
    else if (next < models) [model, ofModel] = [next, 1];
    else spent = true;
  }
  return { attempt: failures.length + 1, model, ofModel, spent };
}

/** Returns the milliseconds between a failure and the next attempt of the same model. */
export function waitBehind(retry: Retry, { retryAfterMs, random }: Failed, ofModel: number): number {
  if (retry.respectRetryAfter && retryAfterMs !== undefined) return retryAfterMs;
  return Math.min(retry.capMs, retry.baseMs * retry.factor ** (ofModel - 2)) * (1 + retry.jitter * random);
}

/**
 * Checks that attempts are numbered through the turn, that one is active, and that each follows from the previous one.
 */
export function holdAttempts({ runId, turn, models, retry, failures, asked }: Turn): void {
  const attempts = asked.filter((request): request is Request<'model'> => request.kind === 'model');
  for (const [index, request] of attempts.entries()) {
    const due = attemptsOf({ retry, models, failures: failures.slice(0, index) });
    hold(!due.spent, `attempt ${request.attempt} follows a failure that is not repeated`);
    hold(
      request.attempt === index + 1 && request.model === due.model,
      `attempt ${request.attempt} of model ${request.model}`,
    );
    hold(
      request.turn === turn && request.runId === runId && request.id.startsWith(`${runId}/`),
      `${request.id} is of another turn`,
    );
  }
}

const failuresOf = ({ steps }: Trace): Failed[] =>
  steps.flatMap(({ answer }) => (answer?.kind === 'failed' ? [answer] : []));
const turnOf = (trace: Trace): Turn => {
  const { runId, turn, models, retry } = inputOf(trace);
  const asked = trace.steps.flatMap((step) => step.asked);
  return { runId, turn, models: models.length, retry, failures: failuresOf(trace), asked };
};

/** Checks that attempts are visible: the logged wait equals the requested wait. */
export function holdRetry(trace: Trace, turn: Turn, modelIds: readonly string[]): void {
  const { retry, failures } = turn;
  const failed = trace.answer?.kind === 'failed' ? trace.answer : undefined;
  const before = attemptsOf({ ...turn, failures: failures.slice(0, -1) });
  const due = attemptsOf(turn);
  const again = failed !== undefined && !due.spent;
  const entries = trace.now('model-retry');
  hold(entries.length === (again ? 1 : 0), `${entries.length} retries are logged`);
  const timers = trace.asked.filter((request): request is Request<'timer'> => request.kind === 'timer');
  const waits = again && due.model === before.model;
  hold(timers.length === (waits ? 1 : 0), `${timers.length} waits begin`);
  const [entry] = entries;
  if (!entry || !failed) return;
  const ms = waits ? waitBehind(retry, failed, due.ofModel) : 0;
  hold(Math.abs(entry.waitMs - ms) < 1, `the wait is ${entry.waitMs} ms, and ${ms} are due`);
  hold(
    timers.every((timer) => timer.ms === entry.waitMs),
    'what is logged is what is waited',
  );
  hold(entry.attempt === due.attempt && entry.turn === turn.turn, `attempt ${entry.attempt}`);
  // The request may have chosen a model that is not among the agent's: a repeated attempt names the model that failed.
  const model = waits ? failed.model : modelIds[due.model];
  hold(entry.model === model && entry.runId === turn.runId, `model ${entry.model}`);
  hold(entry.reason.includes(failed.code) && entry.reason.includes(failed.message), `the reason is ${entry.reason}`);
  const attempted = trace.asked.some(({ kind }) => kind === 'model');
  hold(attempted !== waits, waits ? 'the attempt waits' : 'a fallback is asked at once');
}

export const modelCallInvariants: readonly ChartInvariant[] = [
  {
    says: 'semantics 2, modelRetry: attempts count through the turn, and each model has as many as the policy allows',
    holds: (trace) => holdAttempts(turnOf(trace)),
  },
  {
    says: 'semantics 8: each retry is in the log with attempt, wait and reason, before its wait begins',
    holds: (trace) => holdRetry(trace, turnOf(trace), inputOf(trace).models),
  },
  {
    says: 'semantics 8: a reply ends the call, and so does a failure that is final: neither is tried again',
    holds: (trace) => {
      const replied = trace.last('reply') !== undefined;
      const failed = attemptsOf(turnOf(trace)).spent;
      const { status, output } = trace.state;
      hold((status === 'done') === (replied || failed), `${JSON.stringify(trace.state.value)}`);
      if (status !== 'done') return;
      hold(
        (output as { kind: string }).kind === (replied ? 'replied' : 'failed'),
        `the output is ${JSON.stringify(output)}`,
      );
    },
  },
  {
    says: 'semantics 8: one attempt or one wait is under way',
    holds: ({ situation, state, event, asked }) => {
      if (state.status === 'done') return;
      hold(situation.requests.length === 1, `${situation.requests.map(({ id }) => id)}`);
      if (event?.type === 'timer.elapsed') hold(asked[0]?.kind === 'model', 'the wait is over and the attempt begins');
    },
  },
];
