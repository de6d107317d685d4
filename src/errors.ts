/**
 * Every error that leaves the library. Invariant: there is one base class with a stable `code`. A message contains the
 * expectation, the received value and the remedy. `isRunchartError` works across duplicate installs.
 */

/**
 * The codes of the errors that the library throws, each with its class. Each comment is the row of the code in docs/errors.md: the cause,
 * and after `@remedy` the remedy. Invariant: each code that is thrown has a row.
 */
interface ThrownErrors {
  /**
   * `send()` was called under the policy `reject` while a run is active or calls wait. @remedy `cancel()`, `steer()`,
   * `followUp()` or `decide()`; or another `whileActive` or `whileSuspended`.
   */
  agent_busy: 'AgentBusyError';
  /** `send()` was called during a cancel. @remedy Wait until `cancel()` resolves. */
  cancellation_in_progress: 'AgentBusyError';
  /** An option, policy, tool, content part or id cannot work. @remedy The message names it and the values that it accepts. */
  configuration: 'ConfigurationError';
  /**
   * A message has an image or a file of a media type that the model of its request does not accept. Nothing was logged.
   * @remedy Leave it out, send its text, or choose a model that accepts it; see [images and files](images.md).
   */
  media_type: 'MediaTypeError';
  /**
   * A decision or settlement is malformed, is not JSON, exceeds 1 MiB, answers a call that waits for approval, or has a
   * field of another action. @remedy Send one of the forms in [approvals](approvals.md).
   */
  invalid_decision: 'InvalidDecisionError';
  /** `authorize` did not return true, or threw. @remedy Let an authorized person decide. */
  decision_refused: 'DecisionRefusedError';
  /**
   * `limits.queue` or `limits.decisions` is reached, every place of `sessions` is in use, or a handler has reached one of
   * its `limits`. @remedy Wait, or raise the limit.
   */
  limit: 'LimitError';
  /** `await run.text` of a run that did not complete. @remedy Look at `error.result`. */
  run: 'RunError';
  /** The conversation, agent or log is closed. @remedy Open it again. */
  closed: 'RunchartError';
  /**
   * The conversation is open already, here or in another living process. @remedy Close it there; the lease of a dead
   * process is taken over automatically.
   */
  session_busy: 'SessionBusyError';
  /**
   * The store contains other entries than the writer expected: there are two writers. @remedy Open the conversation again;
   * only one writer may append.
   */
  store_conflict: 'StoreConflictError';
  /**
   * The store could not read, write or hold an entry, or did not answer a close within 5 s. @remedy See the `cause`: disk,
   * rights, an entry that is not JSON.
   */
  store: 'RunchartError';
  /**
   * Another process holds the conversation, and has not answered in time. @remedy Try again: after its lease, another process
   * takes the conversation over.
   */
  unavailable: 'RunchartError';
  /**
   * In place of the log is a link that leaves the store, something that is not a regular file, or a file with hard links.
   * @remedy Move it away; keep one name of a file with hard links, or replace it by a copy.
   */
  not_a_file: 'CorruptLogError';
  /** A line is not valid UTF-8. @remedy Restore the file; it was not changed. */
  encoding: 'CorruptLogError';
  /** A line is longer than any that the library writes. @remedy Move the file away. */
  line_too_long: 'CorruptLogError';
  /** The first line is not a runchart header, or the database is not one of runchart. @remedy Open a file that is one. */
  no_header: 'CorruptLogError';
  /** The log has a newer version, or one that never existed. @remedy Use a newer runchart, or restore the file. */
  version: 'CorruptLogError';
  /**
   * A line or an entry cannot be read, or the file changed while it was open. The message contains the place. @remedy
   * Restore the file.
   */
  corrupt: 'CorruptLogError';
  /** An entry is missing. @remedy Restore the file. */
  gap: 'CorruptLogError';
  /**
   * Two different entries have one number, or an entry occurs twice or late: two histories were mixed. @remedy Restore the
   * file.
   */
  fork: 'CorruptLogError';
  /** A recording does not fit the agent that replays it. @remedy Replay it with the options of its agent. */
  replay: 'RunchartError';
  /** The model server of `runchart demo` did not start. @remedy The message quotes the reason. */
  demo: 'RunchartError';
  /**
   * A server of [MCP tools](mcp.md) cannot be reached, or the connection broke. @remedy Check that the server runs; the
   * message quotes the reason.
   */
  mcp: 'RunchartError';
  /**
   * A request to a transport does not have the form of its path: not JSON, an unknown field, a wrong type. @remedy Send
   * the form that [transports](transports.md) describes.
   */
  malformed: 'RunchartError';
  /** `authorize` of a transport did not return true. @remedy Send the token. */
  unauthorized: 'RunchartError';
  /** A message over HTTP makes a choice that the server does not allow. @remedy Leave it out, or allow it with `allow` of the handler. */
  not_allowed: 'RunchartError';
  /** No conversation or path has that name. @remedy `GET /conversations` lists the conversations. */
  not_found: 'RunchartError';
  /** The path takes another HTTP method. @remedy See [transports](transports.md). */
  method: 'RunchartError';
  /** The body of a request is not declared as JSON. @remedy Send `content-type: application/json`. */
  content_type: 'RunchartError';
  /** A request is larger than `bodyBytesMax`. @remedy Send less, or raise it. */
  too_large: 'RunchartError';
  /**
   * In `runchart/client`: the server cannot be reached, also after repetitions. @remedy Send it again under the same
   * `messageId`; nothing runs twice.
   */
  network: 'RunchartError';
  /**
   * In `runchart/client`: the server's answer does not follow the protocol. @remedy Check `baseURL` and any proxy, and
   * that server and client have the same version.
   */
  bad_answer: 'RunchartError';
  /**
   * In `runchart/request-loop`: `signal` was aborted, or a tool or a callback threw it. @remedy The next request works as
   * usual.
   */
  user_abort: 'UserAbortError';
  /** A request took longer than `settings.globalRequestTimeoutSeconds`. @remedy Raise it, or set it to 0. */
  request_timeout: 'GlobalRequestTimeoutError';
  /**
   * A tool return, or a change of the registry, for a call that was not registered. @remedy `register()` the call with its
   * arguments first.
   */
  unregistered_call: 'UnregisteredCallError';
  /** The arguments of a call are not a JSON object. @remedy The message shows their beginning. */
  invalid_arguments: 'ValidationError';
  /**
   * Thrown by a tool: the model should make its call in another way. The call is not executed again. @remedy None is
   * needed: the model receives the message.
   */
  model_retry: 'ModelRetry';
  /** Thrown by a tool that failed finally. The call is not executed again. @remedy See the `cause`. */
  tool_execution: 'ToolExecutionError';
  /** Thrown by a tool that could not read or write a file. The call is not executed again. @remedy See the `cause`. */
  file_operation: 'FileOperationError';
}

const MARK = Symbol.for('runchart.error');

/** The base class of all errors that the library throws. */
export class RunchartError extends Error {
  /** The stable code of the error. docs/errors.md lists the codes. */
  readonly code: string;

  /** `code`: one of the library's, or of your own. */
  constructor(
    code: keyof ThrownErrors | (string & Record<never, never>),
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    Object.defineProperty(this, MARK, { value: true });
  }

  /** Returns whether a value is an error of this library, also of another copy of the package. */
  static isRunchartError(error: unknown): error is RunchartError {
    return typeof error === 'object' && error !== null && (error as { [MARK]?: unknown })[MARK] === true;
  }
}

/** A message was sent while the agent works and the policy is to reject. Codes: agent_busy, cancellation_in_progress. */
export class AgentBusyError extends RunchartError {}

/** An option, policy or argument that cannot work. */
export class ConfigurationError extends RunchartError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('configuration', message, options);
  }
}

/** The model of a request does not accept the media type of an image or a file. Nothing was logged. */
export class MediaTypeError extends ConfigurationError {
  /** Always `media_type`. */
  override readonly code = 'media_type';
}

/** A decision that is malformed, or an action the call does not take. Nothing was changed. */
export class InvalidDecisionError extends RunchartError {
  constructor(message: string) {
    super('invalid_decision', message);
  }
}

/** `authorize` refused the decision. Nothing was changed. */
export class DecisionRefusedError extends RunchartError {
  constructor(message: string) {
    super('decision_refused', message);
  }
}

/** A limit of `policies.limits` refuses the call. Nothing was changed. */
export class LimitError extends RunchartError {
  constructor(message: string) {
    super('limit', message);
  }
}

/** Another opener holds this conversation. */
export class SessionBusyError extends RunchartError {
  constructor(message: string) {
    super('session_busy', message);
  }
}

/** The store holds another sequence number than the writer expected. */
export class StoreConflictError extends RunchartError {
  constructor(message: string) {
    super('store_conflict', message);
  }
}

/** A log that cannot be opened for writing. Codes: corrupt, gap, fork, version, no_header, encoding, line_too_long, not_a_file. */
export class CorruptLogError extends RunchartError {
  /** The number of the faulty line, if one line is the reason. */
  readonly line?: number;

  constructor(code: string, message: string, line?: number) {
    super(code, message);
    if (line !== undefined) this.line = line;
  }
}

const LONGEST = 8_192;

const bounded = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

/** Returns the message of an error, the own message or the JSON of an object, or the text of any other value. */
export function thrownMessage(error: unknown): string {
  try {
    if (typeof error !== 'object' || error === null) return bounded(String(error));
    const { message } = error as { message?: unknown };
    return bounded(typeof message === 'string' ? message : (JSON.stringify(error) ?? String(error)));
  } catch {
    return 'a value was thrown that cannot be shown';
  }
}

/** Returns the name and the message of an error. */
export function thrownText(error: unknown): string {
  const message = thrownMessage(error);
  try {
    return `${error instanceof Error ? bounded(error.name) : 'Error'}: ${message}`;
  } catch {
    return `Error: ${message}`;
  }
}
