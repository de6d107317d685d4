/**
 * The errors of a request, and the errors after which a tool is never executed again (docs/internals/contracts.md, 1.1
 * and 5.3). Invariant: names identify these errors, so that a host's own classes of these names count too.
 */
import { RunchartError } from '../errors.ts';

/** The user cancelled this request: thrown by a tool or a callback, or caused by an aborted `signal`. */
export class UserAbortError extends RunchartError {
  constructor(message = 'the user aborted the request', options?: { cause?: unknown }) {
    super('user_abort', message, options);
  }
}

/** The request took longer than `settings.globalRequestTimeoutSeconds`. */
export class GlobalRequestTimeoutError extends RunchartError {
  /** The limit that was exceeded, in seconds. */
  readonly timeoutSeconds: number;

  constructor(timeoutSeconds: number) {
    super(
      'request_timeout',
      `the request did not end within ${timeoutSeconds} s; raise settings.globalRequestTimeoutSeconds, or set it to 0 for no limit`,
    );
    this.timeoutSeconds = timeoutSeconds;
  }
}

/** The registry has no call of this id. */
export class UnregisteredCallError extends RunchartError {
  constructor(message: string) {
    super('unregistered_call', message);
  }
}

/** The arguments of a call are not a JSON object. */
export class ValidationError extends RunchartError {
  constructor(message: string) {
    super('invalid_arguments', message);
  }
}

/** The tool asks the model to make its call in another way. */
export class ModelRetry extends RunchartError {
  constructor(message: string) {
    super('model_retry', message);
  }
}

/** A tool failed permanently. */
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

/** Yields the names of an error: its own, its class's, and those of the superclasses. */
function* namesOf(error: object): Generator<unknown> {
  yield (error as { name?: unknown }).name;
  for (let at: unknown = error; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
    yield (at.constructor as { name?: unknown } | undefined)?.name;
  }
}

const isNamed = (error: unknown, wanted: (name: string) => boolean): boolean =>
  typeof error === 'object' && error !== null && [...namesOf(error)].some((name) => wanted(String(name)));

/** Returns true if a tool is never executed again after this error, whatever the policy is. */
export const isFinalError = (error: unknown): boolean => isNamed(error, (name) => FINAL.has(name));
export const isUserAbort = (error: unknown): boolean => isNamed(error, (name) => name === 'UserAbortError');
