/**
 * Media types as people and pages write them, and which of them a model accepts. Invariant: a type is compared in small letters
 * and without parameters.
 */

/** Returns the type in small letters, without its parameters. Undefined for a text that is none. */
export const mediaTypeOf = (text: unknown): string | undefined =>
  typeof text === 'string' ? /^[\w.+-]{1,64}\/[\w.+-]{1,64}(?= *(;|$))/.exec(text)?.[0].toLowerCase() : undefined;

/** A type whose bytes are a text, which every model can read. */
export const isTextType = (mediaType: string): boolean =>
  /^text\/|^application\/(.*\+)?(x-)?(json|xml|yaml|ndjson|javascript|sql|toml)$/.test(mediaType);

/** Returns true if one of the patterns, such as `image/*`, covers the type. Without patterns every type is accepted. */
export const accepts = (patterns: readonly string[] | undefined, mediaType: string): boolean =>
  !patterns ||
  patterns.some((pattern) => {
    const type = mediaTypeOf(mediaType) ?? '';
    const [start = '', ...star] = pattern.toLowerCase().split('*');
    return star.length > 0 ? type.startsWith(start) : type === start;
  });

/** Whether a model with these patterns can receive a part, as it is or as text. */
export const isAcceptable = (part: { type: string; mediaType: string }, patterns?: readonly string[]): boolean =>
  accepts(patterns, part.mediaType) || (part.type === 'file' && isTextType(part.mediaType));
