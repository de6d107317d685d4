/**
 * The `extra` of a message or a call: a provider's attachments with its name, for example signed reasoning. Invariant:
 * attachments go only to the provider that sent them. Another one would refuse or misread them.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import { isRecord } from './wireJson.ts';

interface ProviderExtra {
  [field: string]: Json;
  provider: string;
}

export const extraOf = (provider: string, fields: { [field: string]: Json }): ProviderExtra => ({
  provider,
  ...fields,
});

export const isOfProvider = (extra: Json | undefined): extra is ProviderExtra =>
  isRecord(extra) && typeof extra.provider === 'string';

/** Returns the attachment of this provider, or undefined for another's. */
export const extraFrom = (provider: string, extra: Json | undefined): ProviderExtra | undefined =>
  isOfProvider(extra) && extra.provider === provider ? extra : undefined;
