/**
 * What was thrown, as a text. Rule: total and bounded. Anything can be thrown, and reading it may throw again; a text
 * comes out in every case.
 */
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
