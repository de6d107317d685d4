/**
 * Reads the requests of AG-UI and AI SDK pages. Rule: only the last of a page's messages counts. An invalid message or
 * answer is refused before anything starts, and a missing answer never approves a call.
 */
import type { Json } from '../../../machines/internal.ts';
import type { ContentPart } from '../../content/content.ts';
import { exactJson } from '../../json.ts';
import { type Fields, malformed, pathIdOf, textOf } from '../clientActs.ts';
import { readAgUiPart, readUiPart } from './chatParts.ts';
import { approvalOf } from './uiMessages.ts';

export interface ChatMessage {
  id: string | undefined;
  content: ContentPart[];
}

/** A new message, or answers to waiting calls. */
export interface ChatRequest {
  conversation: string;
  message?: ChatMessage;
  /** The request before a message of the assistant is asked again. */
  isRegenerated?: boolean;
  /** Tools that the page carries out, and results of their calls. */
  tools?: unknown;
  results?: ReadonlyMap<string, { content: string; error?: string }>;
  /** The keys that the page writes to the state of the conversation. */
  state?: { [key: string]: Json };
  /** By the id of the interrupt. */
  answers: ReadonlyMap<string, unknown>;
  /** The parts of the message that the answer continues; undefined if the page sends none. */
  parts?: readonly Fields[];
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : []);
const isText = (value: unknown): value is string => typeof value === 'string';

const NAMED = { threadId: 'a conversation', id: 'a conversation', interruptId: 'an interrupt' } as const;

function requiredText(fields: Fields, key: keyof typeof NAMED): string {
  const text = key === 'interruptId' ? textOf(fields, key) : pathIdOf(fields, key);
  if (text === undefined) throw malformed(`${key}, the id of ${NAMED[key]}`);
  return text;
}

/** Throws if one of the parts is no object. */
function partsOf(parts: unknown): Fields[] {
  if (!Array.isArray(parts) || !parts.every(isFields)) throw malformed('a list of parts');
  return parts;
}

/** The last message; earlier ones are ignored. */
function lastOf(messages: unknown): Fields {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  if (!isFields(last)) throw malformed('a last message that is an object');
  return last;
}

/** Each entry names the interrupt that it answers. */
function answersOf(resume: unknown): ReadonlyMap<string, Fields> {
  if (resume === undefined || resume === null) return new Map();
  if (!Array.isArray(resume) || !resume.every(isFields)) throw malformed('resume to be a list of objects');
  return new Map(resume.map((entry) => [requiredText(entry, 'interruptId'), entry]));
}

function messageOf(id: unknown, content: ContentPart[]): ChatMessage {
  if (content.every((part) => part.type === 'text' && part.text === ''))
    throw malformed('some text or an image or a file');
  return { id: textOf({ id }, 'id'), content };
}

/** An approval or denial. Other fields are kept, so that the conversation refuses invalid ones. */
function decided({ approved, reason, ...others }: Fields): Record<string, unknown> {
  if (approved === true) return { ...others, action: 'approve' };
  if (approved === false) return { ...others, action: 'deny', ...(isText(reason) && { reason }) };
  throw malformed('approved to be true or false');
}

/** Reads AG-UI's input: the thread, its last message, or answers to interrupts. */
export function readAgUi(body: Fields): ChatRequest {
  const conversation = requiredText(body, 'threadId');
  const answers = answersOf(body.resume);
  const state = stateOf(body.state);
  const results = resultsIn(body.messages);
  const shared = { conversation, answers, state, results, tools: body.tools };
  if (answers.size > 0) return shared;
  const { role, id, content } = lastOf(body.messages);
  if (role === 'tool') return shared;
  if (role !== 'user') throw malformed('resume, or a last message of the user');
  const parts: ContentPart[] = isText(content) ? [{ type: 'text', text: content }] : partsOf(content).map(readAgUiPart);
  return { ...shared, message: messageOf(id, parts) };
}

/** The results of the page's own tools, by call. */
function resultsIn(messages: unknown): NonNullable<ChatRequest['results']> {
  return new Map(
    listOf(messages).flatMap(({ role, toolCallId, content, error }) => {
      if (role !== 'tool' || !isText(toolCallId)) return [];
      const words = isText(content) ? content : JSON.stringify(content ?? '');
      return [[toolCallId, { content: words, ...(isText(error) && { error }) }] as const];
    }),
  );
}

const STATE_BYTES_MAX = 1_048_576;

/** A state that is no object is the page's own affair. */
function stateOf(state: unknown): { [key: string]: Json } {
  if (!isFields(state)) return {};
  const json = exactJson(state, STATE_BYTES_MAX);
  if (json.kind === 'refused') throw malformed(`a state of at most ${STATE_BYTES_MAX} bytes (${json.why})`);
  return json.value as { [key: string]: Json };
}

/** `payload` is a boolean, `{ approved }`, or a decision with its `action`; anything else counts as an answer. */
export function agUiDecision(answer: unknown): Record<string, unknown> {
  const { status, payload } = answer as Fields;
  if (status === 'cancelled') return { action: 'deny' };
  if (status !== 'resolved' || payload === undefined)
    throw malformed('a resolved entry with a payload, or a cancelled one');
  if (typeof payload === 'boolean') return decided({ approved: payload });
  if (!isFields(payload)) return { action: 'answer', payload };
  if ('approved' in payload) return decided(payload);
  return isText(payload.action) ? payload : { action: 'answer', payload };
}

/** The last message of the user. A page drops the messages after it. */
function regenerated(messages: readonly Fields[]): Omit<ChatRequest, 'conversation'> {
  const { id, parts } = messages.filter(({ role }) => role === 'user').at(-1) ?? {};
  const message = messageOf(id, partsOf(parts).flatMap(readUiPart));
  return { message, isRegenerated: true, answers: new Map(), parts: [] };
}

/**
 * Reads the request of an AI SDK chat: its id and its last message, or the approvals in its messages. If an earlier
 * message asked for approval, the page names that message.
 */
export function readUiMessages(body: Fields): ChatRequest {
  const conversation = requiredText(body, 'id');
  const messages = listOf(body.messages);
  const { trigger = 'submit-message' } = body;
  if (trigger !== 'submit-message' && trigger !== 'regenerate-message')
    throw malformed('the trigger submit-message or regenerate-message');
  if (trigger === 'regenerate-message') return { conversation, ...regenerated(messages) };
  const named = messages.find(({ id, role }) => id !== undefined && id === body.messageId && role === 'assistant');
  const { role, id, ...message } = named ?? lastOf(body.messages);
  if (role !== 'user' && role !== 'assistant') throw malformed('a last message of the user or the assistant');
  const parts = partsOf(message.parts);
  if (role === 'user')
    return { conversation, message: messageOf(id, parts.flatMap(readUiPart)), answers: new Map(), parts: [] };
  const approvals = messages.flatMap((message) =>
    listOf(message.parts).flatMap(({ state, approval }) =>
      state === 'approval-responded' && isFields(approval)
        ? [[approvalOf(String(approval.id)), approval] as const]
        : [],
    ),
  );
  return { conversation, answers: new Map(approvals), parts };
}

export function uiDecision(answer: unknown): Record<string, unknown> {
  // Ignores other fields of an approval.
  const { approved, reason, args, payload } = answer as Fields;
  return decided({ approved, reason, args, payload });
}
