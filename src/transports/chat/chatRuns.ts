/**
 * Carries out a chat request: decisions, a new message, an edit, or a repetition of a request. Rule: a repeated
 * message starts nothing. An invalid request changes nothing. A late answer starts nothing.
 */
import {
  canonical,
  type Decision,
  entryOfMessage,
  type Json,
  type LogEntry,
  type StoredPart,
  standingEntries,
} from '../../../machines/internal.ts';
import type { Policies } from '../../agentPolicies.ts';
import { type Content, readMessage, storedContent } from '../../content/content.ts';
import { toBase64 } from '../../content/imageFormat.ts';
import { type Conversation, loadDecisions } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { checkSending, type SendOptions } from '../../conversation/sendOptions.ts';
import { beginning } from '../../printable.ts';
import { wrongAnswer } from '../../runtime/commands.ts';
import { decideCall } from '../clientActs.ts';
import {
  bytesOf,
  checkMessageTo,
  resumeConversation,
  sendMessageTo,
  writeState,
} from '../followed/eitherConversation.ts';
import { interruptId, PAGE_TOOL } from './agUi.ts';
import type { ChatMessage, ChatRequest } from './chatRequests.ts';
import { ChatStream } from './chatStream.ts';
import { checkPageTools, offerPageTools } from './pageTools.ts';
import type { Piece } from './pieces.ts';

export interface ChatRunOptions {
  /** The name of the caller. */
  by: string | undefined;
  /** The choices that the page's message makes for its request. */
  chosen: SendOptions;
  whileSuspended: Policies['whileSuspended'];
  /** The action of an answer. Throws RunchartError if the answer is invalid. */
  decision(answer: unknown): Record<string, unknown>;
}

/** The decisions about waiting suspensions that were answered; other answers are ignored. Throws for an invalid answer. */
async function decisionsIn(
  conversation: Conversation,
  { answers, results }: ChatRequest,
  { decision: read }: ChatRunOptions,
): Promise<Decision[]> {
  const { readDecision } = await loadDecisions();
  return conversation.pending.flatMap((call): Decision[] => {
    const { callId, suspension, reason } = call;
    const result = reason === PAGE_TOOL ? results?.get(callId) : undefined;
    if (result) return [{ callId, suspension, action: 'answer', payload: result }];
    const answer = answers.get(interruptId(call));
    if (answer === undefined) return [];
    // The page names the suspension that it answers. The transport sets who answers.
    const decision = readDecision({ ...read(answer), callId, suspension, by: undefined });
    const refused = wrongAnswer(call, decision);
    if (refused) throw refused;
    return [decision];
  });
}

type Stop = Extract<LogEntry, { type: 'run-stop' }>;

/**
 * The end of the last cycle, if no answer matches a waiting call and nothing else can continue. A crash counts as no
 * end.
 */
function endBefore(conversation: Conversation, { answers }: ChatRequest): Stop | undefined {
  const { status, pending } = conversation;
  if (answers.size === 0 || (status !== 'idle' && status !== 'error')) return undefined;
  if (pending.some((call) => answers.has(interruptId(call)))) return undefined;
  const stops = conversation.log().filter((entry): entry is Stop => entry.type === 'run-stop');
  const stop = stops.at(-1);
  return stop?.cause === 'crash' ? undefined : stop;
}

/** The call id in the id of an interrupt. */
const callOf = (interrupt: string): string => interrupt.slice(interrupt.indexOf('/') + 1);

/**
 * A page names an edited message by its first id, and a message id occurs once in a log. Ids have at most 200 characters.
 */
const editPrefix = (id: string): string => `${beginning(id, 190)}~`;

/** The id for the message: its own, or a new one made of it if the log has it already. */
function unusedId(entries: readonly LogEntry[], id: string): string {
  let unused = id;
  for (let edit = 2; entryOfMessage(entries, unused); edit += 1) unused = `${editPrefix(id)}${edit}`;
  return unused;
}

/** The id of the page's message that this is, or the id itself. */
export const pageIdOf = (messageId: string): string => messageId.replace(/~\d+$/, '');

/** Throws the error of `send` for a message that every conversation would refuse, so that it creates none. */
export function checkChatMessage({ id, content }: ChatMessage, chosen: SendOptions): void {
  readMessage(content);
  checkSending({ ...chosen, ...(id !== undefined && { messageId: id }) });
}

/** The entry about the page's message that counts: the message itself, or its last edit. */
function standingMessage(entries: readonly LogEntry[], id: string) {
  const prefix = editPrefix(id);
  const isEdit = (other: string): boolean => other.startsWith(prefix) && /^\d+$/.test(other.slice(prefix.length));
  const named = standingEntries(entries).flatMap((entry) =>
    'messageId' in entry && (entry.messageId === id || isEdit(entry.messageId)) ? [entry.messageId] : [],
  );
  const last = named.at(-1);
  return last === undefined ? undefined : entryOfMessage(entries, last);
}

/** Images and files are compared by their bytes. */
async function isSame(conversation: Conversation, stored: readonly StoredPart[], content: Content): Promise<boolean> {
  const parts = storedContent(content);
  if (parts.length !== stored.length) return false;
  for (const [index, part] of parts.entries()) {
    const other = stored[index];
    if (part.type === 'text') {
      if (other?.type !== 'text' || part.text !== other.text) return false;
      continue;
    }
    if (other?.type !== part.type || other.mediaType !== part.mediaType) return false;
    if (part.data === other.data) continue;
    const bytes = other.data.startsWith('blob:') ? await bytesOf(conversation, other.data) : undefined;
    if (!bytes || part.data !== toBase64(bytes)) return false;
  }
  return true;
}

/**
 * Prepares a message; the result sends it. The conversation is rewound for an edit and for a regeneration. A page that
 * regenerates a message that was never accepted sends it.
 */
async function prepareMessage(
  conversation: Conversation,
  { id, content }: ChatMessage,
  options: Pick<ChatRunOptions, 'whileSuspended' | 'by' | 'chosen'>,
  { isRegenerated = false, changesMore }: { isRegenerated: boolean | undefined; changesMore: boolean },
): Promise<() => Run | Promise<Run>> {
  const { whileSuspended, by, chosen } = options;
  const shared: SendOptions = { ...chosen, whileSuspended, ...(by !== undefined && { by }) };
  const checkNew = async (messageId?: string): Promise<void> => {
    const sent = { ...shared, ...(messageId !== undefined && { messageId }) };
    if (changesMore) await checkMessageTo(conversation, content, sent, 'now');
  };
  const send = (sent: Content, messageId?: string) => (): Run | Promise<Run> =>
    sendMessageTo(conversation, sent, { ...shared, ...(messageId !== undefined && { messageId }) });
  if (id === undefined) {
    await checkNew();
    return send(content);
  }
  const entries = conversation.log();
  const earlier = standingMessage(entries, id);
  const next = unusedId(entries, id);
  if (!earlier || !('content' in earlier)) {
    if (earlier && !isRegenerated) return send(content, earlier.messageId);
    await checkNew(next);
    return send(content, next);
  }
  const same = await isSame(conversation, earlier.content, content);
  if (same && !isRegenerated) return send(content, earlier.messageId);
  const sent = same ? earlier.content : content;
  await checkMessageTo(conversation, sent, { ...shared, messageId: next });
  // A queued message has not begun a request.
  if (earlier.type === 'user-message') await conversation.rewind(earlier.messageId);
  return send(sent, next);
}

/** The keys of the page's state that differ from the conversation's. */
function changedState({ state: own }: Conversation, state: { [key: string]: Json } = {}): { [key: string]: Json } {
  const isOwn = (key: string, value: Json): boolean =>
    Object.hasOwn(own, key) && canonical(value) === canonical(own[key] ?? null);
  return Object.fromEntries(Object.entries(state).filter(([key, value]) => !isOwn(key, value)));
}

/** Starts the requested run. Rejects if the conversation refuses it. */
export async function beginChat(
  conversation: Conversation,
  request: ChatRequest,
  options: ChatRunOptions,
): Promise<{ chat: ChatStream; from: number; run?: Run; pieces: AsyncGenerator<Piece> }> {
  const { message, isRegenerated, answers, tools } = request;
  checkPageTools(tools);
  const decisions = await decisionsIn(conversation, request, options);
  const writes = changedState(conversation, request.state);
  const writesState = Object.keys(writes).length > 0;
  const change = { isRegenerated, changesMore: writesState || tools !== undefined };
  const send = message && (await prepareMessage(conversation, message, options, change));
  if (writesState) await writeState(conversation, writes);
  await offerPageTools(conversation, tools);
  const stop = endBefore(conversation, request);
  const waiting = conversation.pending.map(({ callId }) => callId);
  const from = conversation.log().length;
  const chat = new ChatStream(conversation, {
    from,
    callIds: new Set([...waiting, ...[...answers.keys()].map(callOf)]),
    queued: new Set(conversation.queue.map(({ messageId }) => messageId)),
  });
  for (const decision of decisions) await decideCall(conversation, decision, options.by);
  if (stop) return { chat, from, pieces: chat.endOf(stop) };
  const sent = send ? send() : resumeConversation(conversation);
  const run = sent instanceof Promise ? await sent : sent;
  return { chat, from, run, pieces: chat.piecesOf(run) };
}
