/**
 * The end of an execution of a tool. Rule: what the tool returns is handed on as it is, and the end is reported once it has come: a
 * promise settles, a generator or an async iterable gives its last value or is closed.
 */
import { hasMethods } from '../validation.ts';

type Step = IteratorResult<unknown>;
/** A generator, or what is like one. */
interface Steps {
  next(...given: unknown[]): Step | Promise<Step>;
  return?(...given: unknown[]): Step | Promise<Step>;
}
/** `failure`: what was thrown. */
type Ended = (failure?: { readonly error: unknown }) => void;

const isIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
/** Lists and maps are values themselves. */
const isSteps = (value: unknown): value is Steps =>
  hasMethods(value, 'next') && (isIterable(value) || Symbol.iterator in (value as object));

/** What a tool returned, in a form that reports its end. */
export function reportingEnd(value: unknown, ended: Ended): unknown {
  if (value instanceof Promise) {
    return value.then(
      (answer: unknown) => reportingEnd(answer, ended),
      (error: unknown) => {
        ended({ error });
        throw error;
      },
    );
  }
  if (isSteps(value)) return listened(value, ended);
  if (isIterable(value)) {
    const begin = (): unknown => reportingEnd(value[Symbol.asyncIterator](), ended);
    return { [Symbol.asyncIterator]: begin };
  }
  ended();
  return value;
}

function listened(steps: Steps, ended: Ended): Steps {
  const take = (step: Step): void => void (step.done && ended());
  const fail = (error: unknown): void => ended({ error });
  for (const name of ['next', 'return'] as const) {
    const inner = steps[name];
    if (!inner) continue;
    steps[name] = (...given) => {
      try {
        const step = inner.apply(steps, given);
        if (step instanceof Promise) step.then(take, fail);
        else take(step);
        return step;
      } catch (error) {
        fail(error);
        throw error;
      }
    };
  }
  return steps;
}
