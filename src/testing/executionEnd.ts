/**
 * The end of a tool's execution. Invariant: the tool's return value is passed on unchanged. The end is reported once: a
 * promise settles, or a generator or async iterable is completed or closed.
 */
import { hasMethods } from '../validation.ts';

type Step = IteratorResult<unknown>;
/** A generator, or a similar object. */
interface Steps {
  next(...args: unknown[]): Step | Promise<Step>;
  return?(...args: unknown[]): Step | Promise<Step>;
}
/** `failure`: the thrown error. */
type Ended = (failure?: { readonly error: unknown }) => void;

const isIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
/** Lists and maps are values, not steps. */
const isSteps = (value: unknown): value is Steps =>
  hasMethods(value, 'next') && (isIterable(value) || Symbol.iterator in (value as object));

/** Wraps a tool's return value, so that it reports its end. */
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
  if (hasMethods(value, 'then')) return awaited(value as PromiseLike<unknown>, ended);
  if (isSteps(value)) return listened(value, ended);
  if (isIterable(value)) {
    const begin = (): unknown => reportingEnd(value[Symbol.asyncIterator](), ended);
    return { [Symbol.asyncIterator]: begin };
  }
  ended();
  return value;
}

function once(ended: Ended): Ended {
  let report = ended;
  return (failure) => {
    const first = report;
    report = () => undefined;
    first(failure);
  };
}

/** A promise of another library may do its work only when it is awaited, and may answer twice. */
function awaited(value: PromiseLike<unknown>, ended: Ended): PromiseLike<unknown> {
  const end = once(ended);
  return {
    // biome-ignore lint/suspicious/noThenProperty: it replaces the promise of the tool.
    then(resolve, reject) {
      try {
        return value.then(
          (answer) => resolve?.(reportingEnd(answer, end)) as never,
          (error: unknown) => {
            end({ error });
            return reject?.(error) as never;
          },
        );
      } catch (error) {
        end({ error });
        throw error;
      }
    },
  };
}

function listened(steps: Steps, ended: Ended): Steps {
  // A generator that has thrown may be closed afterwards.
  const end = once(ended);
  const take = (step: Step): void => void (step.done && end());
  const fail = (error: unknown): void => end({ error });
  for (const name of ['next', 'return'] as const) {
    const inner = steps[name];
    if (!inner) continue;
    steps[name] = (...args) => {
      try {
        const step = inner.apply(steps, args);
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
