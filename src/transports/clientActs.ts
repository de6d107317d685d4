/**
 * What a client may ask of a conversation. Rule: nothing from outside reaches a conversation unparsed; an answer is given once what it
 * tells is durable, and a failure is told by its stable code, without the inside of the process.
 */
import { type Decision, type Json, runOf, type Settlement } from '../../machines/internal.ts';
import type { Content } from '../content/content.ts';
import { type Conversation, sendWithReceipt } from '../conversation/conversation.ts';
import type { Run } from '../conversation/run.ts';
import { RunchartError, thrownMessage } from '../errors.ts';

/** What is no request in the form of this protocol. */
export const malformed = (expected: string): RunchartError =>
  new RunchartError('malformed', `expected ${expected}; nothing was changed`);

export type Fields = { readonly [name: string]: unknown };

/** An object with these keys and no others; own keys only. Throws RunchartError, code malformed. */
export function fieldsOf(given: unknown, keys: readonly string[]): Fields {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw malformed('a JSON object');
  const stray = Object.keys(given).find((key) => !keys.includes(key));
  if (stray !== undefined)
    throw malformed(`no other fields than ${keys.join(', ')}, got ${JSON.stringify(stray.slice(0, 40))}`);
  return Object.fromEntries(Object.entries(given));
}

const ID_MAX = 200;

export function textOf(fields: Fields, key: string): string | undefined {
  const value = fields[key];
  if (value === undefined || (typeof value === 'string' && value !== '' && value.length <= ID_MAX)) return value;
  throw malformed(`${key} to be a text of 1 to ${ID_MAX} characters`);
}

export function kindOf(fields: Fields): 'steer' | 'followUp' | undefined {
  const { kind } = fields;
  if (kind === undefined || kind === 'steer' || kind === 'followUp') return kind;
  throw malformed('kind to be "steer" or "followUp"');
}

/** Where it is accepted: in the log. The run is nothing where the message is for one under way. */
export type Accepted = {
  messageId?: string;
  runId?: string;
};

/** Content is judged by the conversation; bytes cannot come as JSON. */
const contentOf = (fields: Fields): Content => {
  if (fields.content === undefined) throw malformed('content, a text or a list of parts');
  return fields.content as Content;
};

/** Resolves with true once the message is in the log; with false where the conversation ends, or `over` settles, before. */
async function isStored(
  conversation: Conversation,
  { messageId, from, over }: { messageId: string; from: number; over: Promise<unknown> },
): Promise<boolean> {
  let stop = (): void => {};
  const stored = new Promise<boolean>((resolve) => {
    const following = conversation.log$(from).subscribe({
      next: (entry) => {
        if ((entry.type === 'user-message' || entry.type === 'message-queued') && entry.messageId === messageId)
          resolve(true);
      },
      complete: () => resolve(false),
    });
    stop = () => following.unsubscribe();
  });
  const lost = (): boolean => false;
  try {
    return await Promise.race([stored, over.then(lost, lost)]);
  } finally {
    stop();
  }
}

const notStored = (): RunchartError =>
  new RunchartError('store', 'the message could not be stored, or was given back before it counted: send it again');

/** A message of any kind. Answers with its own id once it is durable; `onRun` receives the run at once. */
export async function sendMessage(
  conversation: Conversation,
  fields: Fields,
  onRun?: (run: Run) => void,
): Promise<Accepted> {
  const kind = kindOf(fields);
  const content = contentOf(fields);
  const named = textOf(fields, 'messageId');
  // What was sent before is in the log already.
  const from = named === undefined ? conversation.log().length : 0;
  const options = { ...(kind !== undefined && { kind }), ...(named !== undefined && { messageId: named }) };
  const { run, receipt } = sendWithReceipt(conversation, content, options);
  onRun?.(run);
  const { messageId, delivered } = receipt;
  const accepted = kind === undefined || onRun ? { messageId, runId: run.id } : { messageId };
  // The end of another run does not decide what becomes of a steer: it may begin a run of its own.
  const ownRun = run.id === runOf(messageId) ? run.result : undefined;
  const over = ownRun ? Promise.race([delivered, ownRun]) : delivered;
  if (await isStored(conversation, { messageId, from, over })) return accepted;
  const { error } = (await ownRun) ?? {};
  if (error) throw new RunchartError(error.code, error.message);
  if ((await delivered.catch(() => 'returned')) === 'delivered') return accepted;
  throw notStored();
}

/** `by` is who the transport knows it to be: a client cannot give itself another name. */
export async function decideCall(conversation: Conversation, given: unknown, by?: string): Promise<Json> {
  const named = by === undefined || typeof given !== 'object' || given === null ? given : { ...given, by };
  return { receipt: await conversation.decide(named as Decision) };
}

export async function settleCall(conversation: Conversation, fields: Fields): Promise<Json> {
  return { receipt: await conversation.settle(fields.callId as string, fields.how as Settlement) };
}

/** What a client is told of a failure: what is no error of the library may hold anything, so only its kind is told. */
export function failureOf(error: unknown): { type: 'error'; code: string; message: string } {
  if (!RunchartError.isRunchartError(error))
    return { type: 'error', code: 'internal', message: 'the request failed inside the server' };
  return { type: 'error', code: error.code, message: thrownMessage(error) };
}
