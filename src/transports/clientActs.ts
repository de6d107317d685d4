/**
 * Applies a client's request to a conversation. Rule: input is parsed before it reaches a conversation. A request is
 * answered after its effect is durable. A client receives the message of an error only if it is about the client's own request. Every
 * other message may name files, addresses or processes of the server, so it goes to the logger.
 */
import { type Decision, runOf, type Settlement } from '../../machines/internal.ts';
import type { Content } from '../content/content.ts';
import { type Conversation, sendWithReceipt } from '../conversation/conversation.ts';
import type { Run, RunResult } from '../conversation/run.ts';
import type { SendOptions } from '../conversation/sendOptions.ts';
import { mustRefer } from '../conversation/served/messageCheck.ts';
import { resume } from '../conversation/served/remoteActs.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { callHarmlessly } from '../timeLimit.ts';
import { hasMethods, type Validator } from '../validation.ts';
import { openRun } from './followed/eitherConversation.ts';
import { followedOf } from './followed/followedConversation.ts';

/** The error for a request that does not follow the protocol. */
export const malformed = (expected: string): RunchartError =>
  new RunchartError('malformed', `expected ${expected}; nothing was changed`);

export type Fields = { readonly [name: string]: unknown };

/** Reads an object with these own keys and no others. Throws RunchartError, code malformed. */
export function fieldsOf(input: unknown, keys: readonly string[]): Fields {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw malformed('a JSON object');
  const stray = Object.keys(input).find((key) => !keys.includes(key));
  if (stray !== undefined)
    throw malformed(`no other fields than ${keys.join(', ')}, got ${JSON.stringify(stray.slice(0, 40))}`);
  return Object.fromEntries(Object.entries(input));
}

const ID_MAX = 200;

export function textOf(fields: Fields, key: string): string | undefined {
  const value = fields[key];
  if (value === undefined || (typeof value === 'string' && value !== '' && value.length <= ID_MAX)) return value;
  throw malformed(`${key} to be a text of 1 to ${ID_MAX} characters`);
}

/**
 * The id of a conversation, as a segment of a path. A URL drops the segments `.` and `..`, also escaped ones, and cannot
 * contain half a surrogate pair.
 */
export function pathIdOf(fields: Fields, key: string): string | undefined {
  const id = textOf(fields, key);
  if (id === '.' || id === '..' || /\p{Surrogate}/u.test(id ?? ''))
    throw malformed(`${key} to be well-formed text, and neither "." nor ".."`);
  return id;
}

export function kindOf(fields: Fields): 'steer' | 'followUp' | undefined {
  const { kind } = fields;
  if (kind === undefined || kind === 'steer' || kind === 'followUp') return kind;
  throw malformed('kind to be "steer" or "followUp"');
}

/** The result of an accepted message, which is in the log. `runId` is absent if the message joins a running run. */
export type Accepted = {
  messageId?: string;
  runId?: string;
};

/** The conversation validates the content; JSON cannot contain bytes. */
export const contentOf = (fields: Fields): Content => {
  if (fields.content === undefined) throw malformed('content, a text or a list of parts');
  return fields.content as Content;
};

/**
 * Resolves with true when the message is in the log, and with false if the conversation ends or `loss` settles first.
 */
async function isStored(
  conversation: Conversation,
  { messageId, from, loss }: { messageId: string; from: number; loss: Promise<unknown> },
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
    return await Promise.race([stored, loss.then(lost, lost)]);
  } finally {
    stop();
  }
}

const notStored = (): RunchartError =>
  new RunchartError('store', 'the message could not be stored, or was given back before it counted: send it again');

export function messageOptions(fields: Fields): Pick<SendOptions, 'kind' | 'messageId'> {
  const kind = kindOf(fields);
  const named = textOf(fields, 'messageId');
  return { ...(kind !== undefined && { kind }), ...(named !== undefined && { messageId: named }) };
}

/**
 * Sends a message of any kind, with its choices for its request. Resolves with its id when it is durable; `onRun` receives
 * the run at once. `request`: the key under which a repeated request acts once, where another process holds the conversation.
 */
export async function sendMessage(
  conversation: Conversation,
  fields: Fields,
  { request, ...chosen }: SendOptions & { request?: string | undefined } = {},
  onRun?: (run: Run) => void,
): Promise<Accepted> {
  const content = contentOf(fields);
  const options = { ...chosen, ...messageOptions(fields) };
  const { kind } = options;
  if (followedOf(conversation)) return sendElsewhere(conversation, content, { ...options, request }, onRun);
  // A repeated message may already be in the log.
  const from = options.messageId === undefined ? conversation.log().length : 0;
  mustRefer(conversation, content);
  const { run, receipt } = sendWithReceipt(conversation, content, options);
  onRun?.(run);
  const { messageId, delivered } = receipt;
  const accepted = kind === undefined || onRun ? { messageId, runId: run.id } : { messageId };
  // A steer may start a separate run after the current one, so only the end of that run counts.
  const ownRun = run.id === runOf(messageId) ? run.result : undefined;
  const loss = ownRun ? Promise.race([delivered, ownRun]) : delivered;
  if (await isStored(conversation, { messageId, from, loss })) return accepted;
  const { error } = (await ownRun) ?? {};
  if (error) throw new RunchartError(error.code, error.message);
  if ((await delivered.catch(() => 'returned')) === 'delivered') return accepted;
  throw notStored();
}

/** The holder answers when the message is durable. */
async function sendElsewhere(
  conversation: Conversation,
  content: Content,
  options: SendOptions & { request: string | undefined },
  onRun: ((run: Run) => void) | undefined,
): Promise<Accepted> {
  const run = conversation.send(content, options);
  onRun?.(run);
  const { messageId, runId } = (await followedOf(conversation)?.answerTo(run)) ?? {};
  const isRunNamed = (options.kind === undefined || onRun) && runId !== undefined;
  return { ...(typeof messageId === 'string' && { messageId }), ...(isRunNamed && { runId }) };
}

type Receipt = { receipt: string };

/** `by` is the name that the transport authenticated. A client cannot replace it. */
export const decisionBy = (input: unknown, by: string | undefined): unknown =>
  by === undefined || typeof input !== 'object' || input === null ? input : { ...input, by };

/** `request`: the key under which a repeated request acts once, where another process holds the conversation. */
export async function decideCall(
  conversation: Conversation,
  input: unknown,
  by?: string,
  request?: string,
): Promise<Receipt> {
  const decision = decisionBy(input, by) as Decision;
  const answer = await followedOf(conversation)?.request('decisions', decision, request);
  return { receipt: answer ? String(answer.receipt) : await conversation.decide(decision) };
}

export async function settleCall(conversation: Conversation, fields: Fields, request?: string): Promise<Receipt> {
  const answer = await followedOf(conversation)?.request('settlements', fields, request);
  if (answer) return { receipt: String(answer.receipt) };
  return { receipt: await conversation.settle(fields.callId as string, fields.how as Settlement) };
}

/**
 * Ends the run that the client names, or else the current run or the waiting cycle. A run that is over is left alone, so that a repeated
 * request ends no later run.
 */
export async function cancelRun(conversation: Conversation, fields: Fields, request?: string): Promise<string> {
  const runId = textOf(fields, 'runId');
  const answer = await followedOf(conversation)?.request('cancel', { runId }, request);
  if (!answer) await (runId === undefined ? conversation : openRun(conversation, runId)).cancel();
  return String(answer?.status ?? conversation.status);
}

/**
 * Continues the last cycle. A resumption under an id that was used before is the same one, and nothing runs twice. The answer
 * contains `termination` and `cause` if the run is over and the log has no end of it.
 */
export async function resumeRun(
  conversation: Conversation,
  fields: Fields,
  request?: string,
): Promise<{ runId: string; termination?: string; cause?: string }> {
  const resumptionId = textOf(fields, 'resumptionId');
  const answer = await followedOf(conversation)?.request('resume', { resumptionId }, request);
  if (!answer) return resume(conversation, resumptionId);
  const { runId, termination, cause } = answer;
  return {
    runId: String(runId),
    ...(typeof termination === 'string' && { termination }),
    ...(typeof cause === 'string' && { cause }),
  };
}

/** Receives one fact for each failure of the server that a client sees without its details. */
export type FailureLogger = { error?(fact: object): void };

export const loggerValidator: Validator = {
  expected: 'a logger',
  test: (value) => typeof value === 'object' && value !== null,
};

/** The codes of errors whose messages describe a fault of the request. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set([
  ...['malformed', 'configuration', 'invalid_decision', 'unauthorized', 'decision_refused', 'not_allowed', 'not_found'],
  ...['method', 'agent_busy', 'cancellation_in_progress', 'too_large', 'content_type', 'media_type', 'limit'],
]);

const DAMAGED = 'the stored conversation is damaged and was left as it is; an operator of the server must repair it';

/** The message that a client receives in place of the server's. */
const GENERAL: { readonly [code: string]: string } = {
  store: 'the store of the server could not do this; try it again later',
  store_conflict: 'another process of the server writes this conversation; try it again',
  session_busy: 'the conversation is open in another place of the server; try it again when it is closed there',
  unavailable: 'another process of the server holds the conversation and has not answered in time; try it again',
  closed: 'the server has closed the conversation or stops; try it again',
  ...{ corrupt: DAMAGED, gap: DAMAGED, fork: DAMAGED, encoding: DAMAGED, line_too_long: DAMAGED },
  ...{ no_header: DAMAGED, not_a_file: DAMAGED },
  version: 'the stored conversation has a version that this server cannot read',
};

const INTERNAL = 'the request failed inside the server';

const generalMessage = (code: string): string => (Object.hasOwn(GENERAL, code) ? (GENERAL[code] as string) : INTERNAL);

/** The code of an error. One from outside the library may have any, so its own does not count. */
export const codeOf = (error: unknown): string => (RunchartError.isRunchartError(error) ? error.code : 'internal');

/** The failure as a client sees it. The logger receives the details that the client does not. */
export function failureOf(error: unknown, logger?: FailureLogger): { type: 'error'; code: string; message: string } {
  const code = codeOf(error);
  const message = thrownMessage(error);
  if (OF_THE_REQUEST.has(code)) return { type: 'error', code, message };
  report({ code, message, error }, logger);
  return { type: 'error', code, message: generalMessage(code) };
}

/** The result of a run as a client sees it. The errors of stores and of the runtime are the server's own. */
export function shownResult(result: RunResult, logger?: FailureLogger): RunResult {
  const { error, cause, runId } = result;
  if (!error || (cause !== 'store' && cause !== 'internal')) return result;
  report({ run: runId, ...error }, logger);
  return { ...result, error: { ...error, message: generalMessage(cause) } };
}

function report(fact: object, logger: FailureLogger = console): void {
  if (hasMethods(logger, 'error')) callHarmlessly(() => logger.error?.({ event: 'request-failed', ...fact }));
}
