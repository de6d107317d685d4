/**
 * Every error that leaves the library. Rule: one base class, a stable `code`, and a message that says what was
 * expected, what came and what to do. `isRunchartError` works across duplicate installs.
 */

const MARK = Symbol.for('runchart.error');

export class RunchartError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    Object.defineProperty(this, MARK, { value: true });
  }

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

/** A decision that is malformed, or an action the call does not take. Nothing was changed. */
export class InvalidDecisionError extends RunchartError {
  constructor(message: string) {
    super('invalid_decision', message);
  }
}

/** `authorize` said no. Nothing was changed. */
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
  readonly line?: number;

  constructor(code: string, message: string, line?: number) {
    super(code, message);
    if (line !== undefined) this.line = line;
  }
}

const LONGEST = 8_192;

const bounded = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

/** The message of an error; of an object its own message or its JSON, of anything else its text. */
export function thrownMessage(error: unknown): string {
  try {
    if (typeof error !== 'object' || error === null) return bounded(String(error));
    const { message } = error as { message?: unknown };
    return bounded(typeof message === 'string' ? message : (JSON.stringify(error) ?? String(error)));
  } catch {
    return 'a value was thrown that cannot be shown';
  }
}

/** The same behind the error's name. */
export function thrownText(error: unknown): string {
  const message = thrownMessage(error);
  try {
    return `${error instanceof Error ? bounded(error.name) : 'Error'}: ${message}`;
  } catch {
    return `Error: ${message}`;
  }
}
