/**
 * The forms that a field of an entry can have, as data without functions. Schemas, the check of a log that was read, and
 * redaction are derived from them. Invariant: the compiler refuses a form whose type is not exactly the type of its field.
 */
import type { Json } from '../vocabulary.ts';

/** The form of values of type `T`. `Exact` is never present; it makes `T` invariant. */
export interface Form<T> {
  readonly shape: Shape;
  readonly Exact?: (value: T) => T;
}

/**
 * `text` is written by the library, such as an id or a code. `words` are written by people, models and tools, so secrets are
 * removed from them. `bytes` is base64, a URL or the reference of a blob. `amount` is a number from 0, `ordinal` a whole number from 0, `position` a whole number from 1.
 */
export type Shape =
  | { readonly kind: 'text' | 'words' | 'bytes' | 'json' | 'record' | 'flag' | 'yes' }
  | { readonly kind: 'number' | 'amount' | 'ordinal' | 'position' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'list'; readonly each: Shape }
  | { readonly kind: 'nullable'; readonly value: Shape }
  | { readonly kind: 'fields'; readonly fields: Fields }
  /** One of several sets of fields. An unknown field is refused. */
  | { readonly kind: 'oneOf'; readonly variants: readonly Fields[] }
  /**
   * Sets of fields that the text under `tag` selects. `other`: the fields that a reader requires of an unknown tag; none is accepted
   * without it.
   */
  | {
      readonly kind: 'tagged';
      readonly tag: string;
      readonly variants: { readonly [tag: string]: Fields };
      readonly other?: Fields;
    };

export interface Field {
  readonly shape: Shape;
  readonly isOptional?: true;
  /** Reading a log depends on it, so a log without it is refused. */
  readonly isRequired?: true;
}
export interface Fields {
  readonly [name: string]: Field;
}

interface Present<T> extends Form<T> {
  readonly isRequired?: true;
}
interface Optional<T> extends Form<T> {
  readonly isOptional: true;
  readonly isRequired?: true;
}
/** The fields of `T`, each with its form. */
export type FieldsOf<T> = {
  readonly [Name in keyof T]-?: object extends Pick<T, Name>
    ? Optional<Exclude<T[Name], undefined>>
    : Present<T[Name]> & { readonly isOptional?: never };
};

export const required = <F extends Field>(form: F): F & { readonly isRequired: true } => ({
  ...form,
  isRequired: true,
});
export const optional = <F extends Field>(form: F): F & { readonly isOptional: true } => ({
  ...form,
  isOptional: true,
});

export const text: Form<string> = { shape: { kind: 'text' } };
export const words: Form<string> = { shape: { kind: 'words' } };
export const bytes: Form<string> = { shape: { kind: 'bytes' } };
export const json: Form<Json> = { shape: { kind: 'json' } };
export const record: Form<{ [key: string]: Json }> = { shape: { kind: 'record' } };
export const flag: Form<boolean> = { shape: { kind: 'flag' } };
export const yes: Form<true> = { shape: { kind: 'yes' } };
export const number: Form<number> = { shape: { kind: 'number' } };
export const amount: Form<number> = { shape: { kind: 'amount' } };
export const ordinal: Form<number> = { shape: { kind: 'ordinal' } };
export const position: Form<number> = { shape: { kind: 'position' } };

export const choice = <const T extends string>(...choices: readonly T[]): Form<T> => ({
  shape: { kind: 'choice', choices },
});
export const list = <T>({ shape: each }: Form<T>): Form<T[]> => ({ shape: { kind: 'list', each } });
export const nullable = <T>({ shape: value }: Form<T>): Form<T | null> => ({ shape: { kind: 'nullable', value } });
export const object = <T>(fields: FieldsOf<T>): Form<T> => ({ shape: { kind: 'fields', fields: fields as Fields } });

type Members<T> = T extends unknown ? FieldsOf<T> : never;
export const oneOf = <T>(...variants: readonly Members<T>[]): Form<T> => ({
  shape: { kind: 'oneOf', variants: variants as readonly Fields[] },
});

/** The member of a union whose tag may have this value, without the tag. */
type Tagged<T, Tag extends keyof T, Value> = T extends unknown ? (Value extends T[Tag] ? Omit<T, Tag> : never) : never;
export const tagged = <T, Tag extends keyof T & string>(
  tag: Tag,
  variants: { readonly [Value in T[Tag] & string]: FieldsOf<Tagged<T, Tag, Value>> },
  other?: Fields,
): Form<T> => ({
  shape: {
    kind: 'tagged',
    tag,
    variants: variants as { readonly [tag: string]: Fields },
    ...(other && { other }),
  },
});
