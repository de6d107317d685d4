/**
 * The file name of a conversation's log. Invariant: ids and names correspond one to one. A name stays in its
 * directory, is not hidden, and is valid on every file system.
 */
import { ConfigurationError } from '../../errors.ts';
import { display } from '../entryJson.ts';

const SUFFIX = '.jsonl';
/** Leaves room for suffixes within a file system's 255 bytes. */
const MAX_NAME_BYTES = 200;

/** Returns `<name>.jsonl`. Characters except letters, digits, `-`, `_` and `.` are percent-encoded. Throws ConfigurationError. */
export function fileNameOf(id: string): string {
  if (typeof id !== 'string' || id === '' || id === '.' || id === '..') {
    throw new ConfigurationError(`expected a conversation id, got ${display(id)}: give letters, digits, - or _`);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  if (/[/\\\u0000-\u001f\u007f]/.test(id)) {
    throw new ConfigurationError(
      `expected a conversation id without path separators and control characters, got ${JSON.stringify(id)}`,
    );
  }
  const name = encode(id);
  if (name.length > MAX_NAME_BYTES) {
    throw new ConfigurationError(
      `expected a conversation id of at most ${MAX_NAME_BYTES} bytes once encoded, got ${name.length}: shorten it`,
    );
  }
  return name + SUFFIX;
}

/** False for an id that no log in a directory can have. */
export function hasFileName(id: string): boolean {
  try {
    return fileNameOf(id) !== '';
  } catch {
    return false;
  }
}

/** Returns the id of a log by its file name, or null for another file. */
export function idOf(fileName: string): string | null {
  if (!fileName.endsWith(SUFFIX)) return null;
  try {
    const id = decodeURIComponent(fileName.slice(0, -SUFFIX.length));
    return fileNameOf(id) === fileName ? id : null;
  } catch {
    return null;
  }
}

function encode(id: string): string {
  try {
    return encodeURIComponent(id)
      .replace(/[!'()*~]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
      .replace(/^\./, '%2E');
  } catch (cause) {
    throw new ConfigurationError(`expected a conversation id of well-formed text, got ${JSON.stringify(id)}`, {
      cause,
    });
  }
}
