/**
 * Servers and models that refuse requests which others accept, and the changes that they need. Invariant: an id of the right
 * form and an existing signature stay unchanged.
 */
import { isHostOf } from '../wire/vendorConnection.ts';

/** The model that writes or receives a message, and the origin of its server. */
export interface ChatModel {
  model: string;
  server: string;
}

/** This server refuses `stream_options`. It counts the tokens of every stream. */
export const isMistralHost = (server: string): boolean => isHostOf(server, 'mistral.ai');

/** Other servers run these models with the same rules. */
export const isMistral = ({ model, server }: ChatModel): boolean =>
  isMistralHost(server) || /(mis|minis|magis|codes|devs|pix|vox)tral/i.test(model);

/** The id of a call: nine letters and digits. */
export const mistralId = (callId: string): string =>
  /^[a-z\d]{9}$/i.test(callId)
    ? callId
    : callId
        .replace(/[^a-z\d]/gi, '')
        .slice(-9)
        .padStart(9, '0');

/** Stands between the results of a reply and a message of the user. */
export const BETWEEN = { role: 'assistant', content: 'I have received the results.' } as const;

/** Google's name for the signature of a call that another model made. */
const UNSIGNED = { google: { thought_signature: 'skip_thought_signature_validator' } } as const;

/** From version 3, Gemini refuses a reply with calls if the first one has no signature. */
export const needsSignature = ({ model, server }: ChatModel): boolean =>
  isHostOf(server, 'googleapis.com') && /gemini-([3-9]|\d\d)/.test(model);

/** The calls of one reply, the first of them signed. */
export function signedCalls<C extends object>(calls: readonly C[]): readonly C[] {
  const [first, ...others] = calls;
  return !first || 'extra_content' in first ? calls : [{ ...first, extra_content: UNSIGNED }, ...others];
}

/** DeepSeek refuses a reply without `reasoning_content`, which may be empty. */
export const needsReasoning = ({ server }: ChatModel): boolean => isHostOf(server, 'deepseek.com');
