/**
 * The texts that name things in the database: ids, owners, and hashes of bytes. Invariant: PostgreSQL keeps no NUL and no half of a
 * surrogate pair, and an index takes no long text. An id that cannot be stored unchanged is refused; an owner is stored as JSON.
 */
import { ConfigurationError } from '../../errors.ts';

const ID_MAX = 500;
const OWNER_MAX = 1000;

/** Throws ConfigurationError for an id that cannot be kept apart from others. */
export function checkKey(id: string): void {
  if (id.length > 0 && id.length <= ID_MAX && !/\0|\p{Surrogate}/u.test(id)) return;
  throw new ConfigurationError(
    `postgresStore takes ids of 1 to ${ID_MAX} characters of well-formed text without NUL, not ${JSON.stringify(id.slice(0, 40))}`,
  );
}

/** The id as UTF-16 in hexadecimal: in the order of its bytes, ids are as JavaScript compares them. */
export function placeText(id: string): string {
  let hex = '';
  for (let at = 0; at < id.length; at += 1) hex += id.charCodeAt(at).toString(16).padStart(4, '0');
  return hex;
}

/** The owner as JSON, which has neither NUL nor surrogates. Throws ConfigurationError for one that is too long. */
export function ownerText(owner: string): string {
  const text = JSON.stringify(owner);
  if (text.length <= OWNER_MAX) return text;
  throw new ConfigurationError(`postgresStore takes owners of at most ${OWNER_MAX} characters`);
}

/** Does not block the event loop, however many bytes there are. */
export async function sha256Of(bytes: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
