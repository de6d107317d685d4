/**
 * Errors of a request, and those that a tool is never executed again for (agent-loop-contract 1.1, 5.3). Rule: which errors
 * those are is known by their names as the document has them, so that the host's own classes of that name count too.
 */
import { RunchartError } from '../errors.ts';

/** The user wants no more of this request: thrown by a tool or a callback, or by an aborted `signal`. */
export class UserAbortError extends RunchartError {
  constructor(message = 'the user aborted the request', options?: { cause?: unknown }) {
    super('user_abort', message, options);
  }
}

/** The request took longer than `settings.globalRequestTimeoutSeconds`. */
export class GlobalRequestTimeoutError extends RunchartError {
  readonly timeoutSeconds: number;

  constructor(timeoutSeconds: number) {
    super(
      'request_timeout',
      `the request did not end within ${timeoutSeconds} s; raise settings.globalRequestTimeoutSeconds, or set it to 0 for no limit`,
    );
    this.timeoutSeconds = timeoutSeconds;
  }
}

/** The registry was asked about a call that nobody registered. */
export class UnregisteredCallError extends RunchartError {
  constructor(message: string) {
    super('unregistered_call', message);
  }
}

/** The arguments of a call are no JSON object. */
export class ValidationError extends RunchartError {
  constructor(message: string) {
    super('invalid_arguments', message);
  }
}

/** A tool wants the model to make its call in another way. */
export class ModelRetry extends RunchartError {
  constructor(message: string) {
    super('model_retry', message);
  }
}

/** A tool failed for good. */
export class ToolExecutionError extends RunchartError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('tool_execution', message, options);
  }
}

/** A tool could not read or write a file. */
export class FileOperationError extends RunchartError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('file_operation', message, options);
  }
}

const FINAL: ReadonlySet<string> = new Set([
  'UserAbortError',
  'ModelRetry',
  'ValidationError',
  'ConfigurationError',
  'ToolExecutionError',
  'FileOperationError',
]);

/** The names of an error: its own, its class's and those of the classes above. */
function* namesOf(error: object): Generator<unknown> {
  yield (error as { name?: unknown }).name;
  for (let at: unknown = error; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
    yield (at.constructor as { name?: unknown } | undefined)?.name;
  }
}

const isNamed = (error: unknown, wanted: (name: string) => boolean): boolean =>
  typeof error === 'object' && error !== null && [...namesOf(error)].some((name) => wanted(String(name)));

/** Whether a tool is not executed again behind this error, whatever the policy says. */
export const isFinalError = (error: unknown): boolean => isNamed(error, (name) => FINAL.has(name));
export const isUserAbort = (error: unknown): boolean => isNamed(error, (name) => name === 'UserAbortError');
