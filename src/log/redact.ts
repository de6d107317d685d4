/**
 * Secrets never enter the log. Rule: secrets are replaced by value in every string that people, models and tools write, before an entry
 * is stamped. Strings of the library itself (types, ids, outcomes) are unchanged.
 */
import { entryKinds, type Fields, type NewEntry, type Shape } from '../../machines/internal.ts';
import { RedactedReply, type RedactedReplyOptions } from './redactedReply.ts';
import { formsOf, withoutSecrets } from './secretText.ts';

/** Keys of local servers are often plain words, so a shorter key of a model is not redacted: that would blank out ordinary text. */
const MODEL_SHORTEST = 8;

export interface Redact {
  <T>(value: T): T;
  /** An entry as it may be stored. */
  entry(entry: NewEntry): NewEntry;
  /** A reply while it is streamed; absent where there is no secret to look for. */
  reply?(options: Pick<RedactedReplyOptions, 'isTool' | 'live'>): RedactedReply;
}
type RedactValue = <T>(value: T) => T;
type Secrets = readonly string[];

function valuesOf(hostSecrets: Secrets, ofModels: readonly Secrets[]): string[] {
  const texts = (list: Secrets): string[] => list.filter((secret) => typeof secret === 'string' && secret !== '');
  const long = texts(ofModels.flat()).filter((secret) => secret.length >= MODEL_SHORTEST);
  const all = [...texts(hostSecrets), ...long];
  return [...new Set(all.flatMap(formsOf))];
}

function cleaned(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === 'string') return clean(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => cleaned(item, clean));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  let changed = false;
  const taken = new Set<string>();
  const fields = Object.entries(value).map(([key, child]) => {
    const field = [freeKey(clean(key), key, value, taken), cleaned(child, clean)] as const;
    taken.add(field[0]);
    changed ||= field[0] !== key || field[1] !== child;
    return field;
  });
  return changed ? Object.fromEntries(fields) : value;
}

/** Redaction can make keys equal. The later ones get a number, so that no value is lost. */
function freeKey(wanted: string, key: string, among: object, taken: ReadonlySet<string>): string {
  if (wanted === key) return key;
  const isFree = (name: string): boolean => !taken.has(name) && !Object.hasOwn(among, name);
  let name = wanted;
  for (let number = 2; !isFree(name); number++) name = `${wanted} ${number}`;
  return name;
}

/**
 * Takes secrets out of every string of a JSON value, keys too; a value without one is returned as it is. A model's
 * list may grow while the agent lives.
 */
export function redactor(hostSecrets: Secrets, ofModels: readonly Secrets[] = []): Redact {
  let values = valuesOf(hostSecrets, ofModels);
  let counted = ofModels.flat().length;
  const clean = (text: string): string => withoutSecrets(text, values);
  const refresh = (): void => {
    let count = 0;
    for (const { length } of ofModels) count += length;
    if (count === counted) return;
    counted = count;
    values = valuesOf(hostSecrets, ofModels);
  };
  // Most values contain no secret, and then no copy is made.
  const finds = (value: unknown): boolean => {
    refresh();
    return values.length > 0 && holds(value, values);
  };
  const redact = <T>(value: T): T => (finds(value) ? (cleaned(value, clean) as T) : value);
  const entry = (made: NewEntry): NewEntry => (finds(made) ? redactedEntry(made, redact) : made);
  const secrets = (): Secrets => {
    refresh();
    return values;
  };
  const reply: Redact['reply'] = (options) => new RedactedReply({ ...options, secrets, redact });
  return Object.assign(redact, { entry, reply });
}

/** Keys count as strings. The search makes no copy. */
function holds(value: unknown, secrets: readonly string[]): boolean {
  if (typeof value === 'string') return secrets.some((secret) => value.includes(secret));
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some((item) => holds(item, secrets));
  for (const key in value) {
    if (holds(key, secrets) || holds((value as { [key: string]: unknown })[key], secrets)) return true;
  }
  return false;
}

function redactedFields(fields: Fields, value: unknown, redact: RedactValue): unknown {
  if (typeof value !== 'object' || value === null) return redact(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, child]) => {
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
      return [name, field ? redactedValue(field.shape, child, redact) : redact(child)];
    }),
  );
}

/** Returns a value without secrets in the texts of people, models and tools; ids, codes and tags are unchanged. */
function redactedValue(shape: Shape, value: unknown, redact: RedactValue): unknown {
  switch (shape.kind) {
    case 'words':
    case 'json':
    case 'record':
    case 'oneOf':
      return redact(value);
    case 'bytes':
      // Encoded bytes hold no readable secret, and a short one would damage them.
      return typeof value === 'string' && value.includes('://') ? redact(value) : value;
    case 'list':
      return Array.isArray(value) ? value.map((each) => redactedValue(shape.each, each, redact)) : redact(value);
    case 'fields':
      return redactedFields(shape.fields, value, redact);
    case 'tagged': {
      const { tag, variants } = shape;
      const found = (value as { [name: string]: unknown })[tag] as string;
      const fields = Object.hasOwn(variants, found) ? variants[found] : undefined;
      return redactedFields({ ...fields, [tag]: TAG }, value, redact);
    }
    default:
      return value;
  }
}
const TAG = { shape: { kind: 'text' } } as const;

function redactedEntry(entry: NewEntry, redact: RedactValue): NewEntry {
  const changes: { [name: string]: unknown } = {};
  const fields: Fields = Object.hasOwn(entryKinds, entry.type) ? (entryKinds[entry.type].fields as Fields) : {};
  for (const [name, value] of Object.entries(entry)) {
    if (name === 'type' || name === 'runId' || (name === 'reason' && value === 'permission')) continue;
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    changes[name] = field ? redactedValue(field.shape, value, redact) : redact(value);
  }
  return { ...entry, ...changes } as NewEntry;
}
