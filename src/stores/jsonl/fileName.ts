/**
 * The file name of a conversation's log. Rule: one id has one name, and back; a name never leaves its directory, never
 * hides, and fits every file system.
 */
import { ConfigurationError } from '../../errors.ts';
import { display } from './format.ts';

const SUFFIX = '.jsonl';
/** Leaves room for the suffixes below a file system's 255 bytes. */
const MAX_NAME_BYTES = 200;

/** `<name>.jsonl`; what is neither letter, digit, `-`, `_` nor `.` is percent-encoded. Throws ConfigurationError. */
export function fileNameOf(id: string): string {
  if (typeof id !== 'string' || id === '' || id === '.' || id === '..') {
    throw new ConfigurationError(`expected a conversation id, got ${display(id)}: give letters, digits, - or _`);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
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

/** The id behind a file name, or null where the file is no log of ours. */
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
