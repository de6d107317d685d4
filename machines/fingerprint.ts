/**
 * Short texts that represent values, equal for equal values. Rounds are compared by them. They hide no secret and prove no
 * identity.
 */
import type { Json, StoredPart, ToolOutcome } from './vocabulary.ts';

/** JSON with sorted keys. The order of fields makes no difference. */
export function canonical(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? null)}`).join(',')}}`;
}

/** `toString(36)` is eight times slower in V8 for large numbers. */
const inBase36 = (value: number): string =>
  value < 36 ? value.toString(36) : inBase36(Math.floor(value / 36)) + (value % 36).toString(36);

/** A 53-bit hash of a text. */
export function hash(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return inBase36(4294967296 * (2097151 & b) + (a >>> 0));
}

/** Represents a call together with its logged result. */
export const resultFingerprint = (
  fingerprint: string,
  { outcome, code = '', content }: { outcome: ToolOutcome; code?: string; content: readonly StoredPart[] },
): string => {
  const parts = content.map((part) => (part.type === 'text' ? part.text : part.data));
  return `${fingerprint}:${hash([outcome, code, ...parts].join('\n'))}`;
};

export const fingerprintOf = (name: string, args: Json): string => hash(`${name} ${canonical(args)}`);
