/**
 * What of a reply goes back to a provider: calls in a form that it takes, and what it attached, with its name. Rule: what
 * was attached goes to that provider and to no other, which would refuse what it does not know, or take it for its own.
 */
import type { Json, ToolCall } from '../../machines/vocabulary.ts';
import { isRecord } from './wireJson.ts';

interface ProviderExtra {
  [field: string]: Json;
  provider: string;
}

export const extraOf = (provider: string, kept: { [field: string]: Json }): ProviderExtra => ({ provider, ...kept });

export const isOfProvider = (extra: Json | undefined): extra is ProviderExtra =>
  typeof extra === 'object' && extra !== null && !Array.isArray(extra) && typeof extra.provider === 'string';

/** What this provider attached; undefined for what another did. */
export const extraFrom = (provider: string, extra: Json | undefined): ProviderExtra | undefined =>
  isOfProvider(extra) && extra.provider === provider ? extra : undefined;

/** Characters of a function's name. */
const NAME_CHARS = 64;

/** A name the model made up may hold characters for which servers refuse the whole history; the log keeps it whole. */
export const wireName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, NAME_CHARS) || 'unnamed';

/** Always an object: servers that parse the history fail on anything else, for ever after. */
export function wireArguments({ args, argsText }: ToolCall): { readonly [name: string]: unknown } {
  if (argsText !== undefined) return { invalid_arguments: argsText };
  return isRecord(args) ? args : { invalid_arguments: args };
}
