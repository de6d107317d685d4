/**
 * The rules by which Mistral's models and servers refuse a request that others accept: the form of ids, and the order of
 * messages. Invariant: an id that has the form stays unchanged.
 */
import { isHostOf } from '../wire/vendorConnection.ts';
import type { ChatModel } from './reasoningFields.ts';

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
