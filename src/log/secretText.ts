/**
 * Finds the written forms of secrets in texts, and removes them from whole texts and from pieces. Rule: the joined pieces equal the whole
 * text without secrets.
 */

const MARK = '[redacted]';

type Secrets = readonly string[];

/** JSON text of writers that use only ASCII, with `\u00fc` for `ü`. */
const inAscii = (json: string): string =>
  json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
/** Percent escapes of the characters that `encodeURIComponent` leaves. */
const strictly = (url: string): string =>
  url.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
const inLowerCase = (url: string): string => url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());

/** The forms a value takes in a text, inside JSON text and inside a URL, by the usual writers of both. */
export function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const forms = [secret, json, inAscii(json), json.replaceAll('/', '\\/'), inAscii(json).replaceAll('/', '\\/')];
  try {
    const url = encodeURIComponent(secret);
    const urls = [url, strictly(url), url.replaceAll('%20', '+'), strictly(url).replaceAll('%20', '+')];
    urls.push(...urls.map((form) => form.replaceAll('%2F', '/')));
    forms.push(...urls, ...urls.map(inLowerCase));
  } catch {
    // Half a surrogate pair has no form in a URL.
  }
  return [...new Set(forms)];
}

interface Cleaned {
  text: string;
  /** Everything before this index was emitted or replaced by a mark. */
  kept: number;
}

/**
 * Replaces each secret that begins before `until` by a mark. Secrets that overlap share one mark. `covered`: the number of
 * code units at the start of the text that an earlier mark replaced.
 */
function cleanedText(text: string, secrets: Secrets, until: number, covered: number): Cleaned {
  const places: { from: number; to: number }[] = [];
  for (const secret of secrets) {
    for (let from = text.indexOf(secret); from >= 0 && from < until; from = text.indexOf(secret, from + 1)) {
      places.push({ from, to: from + secret.length });
    }
  }
  let result = '';
  let kept = covered;
  for (const { from, to } of places.sort((a, b) => a.from - b.from)) {
    if (from >= kept) result += `${text.slice(kept, from)}${MARK}`;
    kept = Math.max(kept, to);
  }
  return { text: result + text.slice(kept, Math.max(kept, until)), kept: Math.max(kept, until) };
}

/** Replaces every secret in the text by a mark. */
export const withoutSecrets = (text: string, secrets: Secrets): string =>
  cleanedText(text, secrets, text.length, 0).text;

/** The index from which the end of the text may begin a secret; the length of the text if there is none. */
function openFrom(text: string, secrets: Secrets): number {
  const longest = secrets.reduce((most, { length }) => Math.max(most, length), 0);
  for (let from = Math.max(0, text.length - longest + 1); from < text.length; from++) {
    const end = text.slice(from);
    if (secrets.some((secret) => secret.length > end.length && secret.startsWith(end))) return from;
  }
  return text.length;
}

/** A text that arrives in pieces: a possible beginning of a secret waits for the next piece, or for the end. */
export class SecretFreeText {
  #held = '';
  #covered = 0;

  /** Returns the text that can be emitted now. */
  push(piece: string, secrets: Secrets): string {
    return this.#upTo(openFrom(this.#held + piece, secrets), piece, secrets);
  }

  /** Returns the remaining text. */
  end(secrets: Secrets): string {
    return this.#upTo(this.#held.length, '', secrets);
  }

  #upTo(until: number, piece: string, secrets: Secrets): string {
    const whole = this.#held + piece;
    const { text, kept } = cleanedText(whole, secrets, until, this.#covered);
    this.#held = whole.slice(until);
    this.#covered = kept - until;
    return text;
  }
}
