/**
 * The parts of a reply that go back to a provider: calls in a valid form, and the provider's attachments with its
 * name. Invariant: attachments go only to the provider that sent them. Another one would refuse or misread them.
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

/** Returns the attachment of this provider, or undefined for another's. */
export const extraFrom = (provider: string, extra: Json | undefined): ProviderExtra | undefined =>
  isOfProvider(extra) && extra.provider === provider ? extra : undefined;

/** Characters of a function's name. */
const NAME_CHARS = 64;

/** An invented name may have characters for which servers refuse the whole history. The log keeps it unchanged. */
export const wireName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, NAME_CHARS) || 'unnamed';

/** Always an object: servers that parse the history would fail on anything else in every later request. */
export function wireArguments({ args, argsText }: ToolCall): { readonly [name: string]: unknown } {
  if (argsText !== undefined) return { invalid_arguments: argsText };
  return isRecord(args) ? args : { invalid_arguments: args };
}
