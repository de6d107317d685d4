/**
 * Headers that depend on the fields of a request. Invariant: a header of the caller stays, and a value is added to its list of
 * beta features.
 */

const VERSION = 'anthropic-version';
/** Later versions of the API refuse these fields for every model. This version accepts them for older models. */
const SAMPLING = ['temperature', 'top_p', 'top_k'];
const SAMPLING_VERSION = '2023-06-01';

const BETA = 'anthropic-beta';
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

interface Fields {
  readonly [field: string]: unknown;
  readonly thinking?: object | undefined;
}

/** Returns a function that completes the prepared headers, or undefined if they are complete. `own`: the headers of the caller. */
export function completedHeaders(body: Fields, own: Readonly<Record<string, string>> = {}) {
  const hasVersion = Object.keys(own).some((name) => name.toLowerCase() === VERSION);
  const isSampled = !hasVersion && SAMPLING.some((field) => field in body);
  const isBound = body.thinking !== undefined && 'block_binding' in body.thinking;
  if (!isSampled && !isBound) return undefined;
  return (prepared: Headers): Headers => {
    const headers = new Headers(prepared);
    if (isSampled) headers.set(VERSION, SAMPLING_VERSION);
    if (isBound && !headers.get(BETA)?.includes(BINDING_BETA)) headers.append(BETA, BINDING_BETA);
    return headers;
  };
}
