/**
 * Describes a failed attempt of a model call: a mistake in the model's code, an error that it names, or a lost
 * connection. Invariant: the thrown value is never lost, and nothing here throws.
 */
import { isCount, type ModelValue } from '../../machines/internal.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { display } from '../validation.ts';
import { type Model, ModelError } from './model.ts';

const CODE_LONGEST = 64;

/** The error for a model whose `stream()` did not return parts. */
export function noStream(value: unknown, { id }: Model): ModelError {
  const message = `stream() of the model ${id} must return an async iterable of parts, got ${display(value, true)}`;
  return new ModelError({ code: DEFECT, message });
}

type Failed = Omit<Extract<ModelValue, { kind: 'failed' }>, 'random' | 'model'>;
type Fields = { retryable?: unknown; retryAfterMs?: unknown };

/** The code for a mistake in the model's own code. */
const DEFECT = 'defect';
const DEFECTS: readonly string[] = ['TypeError', 'ReferenceError', 'SyntaxError'];
/**
 * Codes of a lost connection, and of one that TLS refused. Node, and the HTTP client in its `fetch`, put them into the cause
 * of a TypeError.
 */
const NETWORK_CODE =
  /^(E(AI_|CONN|HOST|NET|NOTFOUND|PIPE|PROTO|TIMEDOUT|ADDRNOTAVAIL)|HPE_|UND_ERR_(?!INVALID|NOT_SUPPORTED)|ERR_(SSL|TLS)_|CERT_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF))\w*$/;
/** Messages of browsers for a lost connection. Their `fetch` gives no cause. */
const BROWSER_FETCH = /^(Failed to fetch|Load failed|network error|NetworkError when attempting to fetch resource\.?)$/;

/** Describes a thrown value in one line: its name unless that is Error, its message, and the code of its cause. */
function thrownLine(error: unknown): { code: string; message: string } {
  const message = thrownMessage(error);
  const { name, cause } = (error ?? {}) as { name?: unknown; cause?: { code?: unknown } | null };
  const causeCode = typeof cause?.code === 'string' ? cause.code.slice(0, CODE_LONGEST) : '';
  const shown = causeCode === '' || message.includes(causeCode) ? message : `${message} (${causeCode})`;
  const isNamed = typeof name === 'string' && name !== '' && name !== 'Error';
  const isDefect = DEFECTS.includes(name as string) && !NETWORK_CODE.test(causeCode) && !BROWSER_FETCH.test(message);
  return {
    code: isDefect ? DEFECT : 'network',
    message: isNamed ? `${name.slice(0, CODE_LONGEST)}: ${shown}` : shown,
  };
}

/**
 * Classifies a thrown value: a mistake in the model's code is final. Everything else but a ModelError counts as a
 * network error.
 */
export function failureOf(error: unknown): Failed {
  try {
    const { retryable, retryAfterMs } = (error ?? {}) as Fields;
    // A ModelError of another copy of the library counts too.
    if (RunchartError.isRunchartError(error) && typeof retryable === 'boolean') {
      const failed = { kind: 'failed' as const, code: String(error.code), message: thrownMessage(error), retryable };
      return isCount(retryAfterMs) ? { ...failed, retryAfterMs } : failed;
    }
    const line = thrownLine(error);
    return { kind: 'failed', ...line, retryable: line.code !== DEFECT };
  } catch {
    return { kind: 'failed', code: 'network', message: thrownMessage(error), retryable: true };
  }
}
