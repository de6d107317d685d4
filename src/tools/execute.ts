/**
 * The executor of tool calls. Rule: whatever a tool does, the answer is one value: a result, an error or a suspension;
 * a tool that does not settle in time is left behind, and what it says later counts for nothing.
 */
import type { StoredPart, ToolValue } from '../../machines/index.ts';
import { RunchartError } from '../errors.ts';
import { thrownText } from '../thrown.ts';
import { answerOf, type ToolContext } from './define.ts';
import type { PreparedCall } from './prepare.ts';
import { cut, type Erred, erred, type ResultLimits, toolValue } from './result.ts';
import { retryOf, type ToolRetrying } from './retry.ts';
import { limitTime } from './timeLimit.ts';

export interface Execution extends ResultLimits {
  context: ToolContext;
  /** Aborted when the time is up. */
  abort: AbortController;
  timeoutMs: number;
  setTimer(ms: number, fire: () => void): () => void;
  /** Undefined where no tool is executed again. */
  retrying?: ToolRetrying;
  /** Hears of what a tool says after its answer was taken. */
  late(): void;
}

const textOf = (content: readonly StoredPart[]): string =>
  content.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join('\n');

/** A failure that nobody threw, as the host is asked about it. */
const returned = (failure: Erred, retrying: ToolRetrying | undefined): Erred => ({
  ...failure,
  ...retryOf(new RunchartError(failure.code, textOf(failure.content)), retrying),
});

/** Runs one prepared call; never rejects. */
export function executeTool({ definition, args }: PreparedCall, execution: Execution): Promise<ToolValue> {
  const { context, abort, timeoutMs, setTimer, late, redact, resultBytes, retrying } = execution;
  return new Promise((resolve) => {
    let settled = false;
    const stop = setTimer(timeoutMs, () => {
      settled = true;
      const words = `${definition.name} did not finish within ${timeoutMs} ms. It may still have an effect.`;
      resolve(returned(erred('timeout', words), retrying));
      abort.abort(new DOMException('the tool call timed out', 'TimeoutError'));
    });
    limitTime(abort.signal, timeoutMs);
    abort.signal.addEventListener('abort', stop, { once: true });
    const settle = (value: ToolValue): void => {
      // A tool that heeds its signal rejects; that is no news.
      if (settled && value.kind !== 'erred') return late();
      settled = true;
      stop();
      resolve(value);
    };
    const fail = (error: unknown): void => {
      const failure = erred('error', cut(redact(thrownText(error)), resultBytes));
      // What was cancelled, or is over already, is not asked about.
      settle(settled || abort.signal.aborted ? failure : { ...failure, ...retryOf(error, retrying) });
    };
    const succeed = (value: unknown): void => {
      try {
        const answer = answerOf(value) ?? { status: 'success' as const, content: value };
        const read = toolValue(answer, execution);
        settle(answer.status === 'error' && read.kind === 'erred' ? returned(read, retrying) : read);
      } catch (error) {
        settle(erred('not_json', cut(redact(`the tool's result cannot be read: ${thrownText(error)}`), resultBytes)));
      }
    };
    try {
      const value = definition.execute(args as never, context);
      if (value instanceof Promise) value.then(succeed, fail);
      else if (isThenable(value)) adopted(value, late).then(succeed, fail);
      else succeed(value);
    } catch (error) {
      fail(error);
    }
  });
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

/** A promise of somebody else's making may call back twice: the first call counts, `late` hears of the others. */
function adopted(value: PromiseLike<unknown>, late: () => void): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let answered = false;
    const once =
      (act: (settled: unknown) => void) =>
      (settled: unknown): void => {
        if (answered) return late();
        answered = true;
        act(settled);
      };
    const fail = once(reject);
    try {
      value.then(once(resolve), fail);
    } catch (error) {
      fail(error);
    }
  });
}
