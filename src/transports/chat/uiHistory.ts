/**
 * A log as the messages that an AI SDK page keeps. Rule: a page that received every chunk of the log's runs has the same
 * messages. Superseded entries have no message.
 */
import { eachEarlierEntry, type LogEntry, standingEntries } from '../../../machines/internal.ts';
import { type UiPart, uiPartOf } from './chatParts.ts';
import type { Piece } from './pieces.ts';
import { StreamFold } from './streamFold.ts';
import { UiMessageChunks } from './uiMessages.ts';

/** A message of an AI SDK page. */
export interface UiMessage {
  /** The id of the message. */
  id: string;
  /** The author of the message. */
  role: 'user' | 'assistant';
  /** The parts of the message. */
  parts: UiPart[];
  /** The metadata of the message, if it has any. */
  metadata?: object;
}

type Chunk = { readonly type: string } & { readonly [field: string]: unknown };

const withoutUndefined = (part: UiPart): UiPart =>
  Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as UiPart;

/** The parts of one message of the assistant. */
class AssistantParts {
  readonly message: UiMessage;
  readonly #streaming = new Map<unknown, UiPart & { text: string }>();

  constructor(id: string) {
    this.message = { id, role: 'assistant', parts: [] };
  }

  take(chunk: Chunk): void {
    const { type, id } = chunk;
    if (type === 'message-metadata') this.message.metadata = chunk.messageMetadata as object;
    else if (type === 'start-step') this.#add({ type: 'step-start' });
    else if (type.startsWith('data-')) {
      if (chunk.transient !== true) this.#add({ type, data: chunk.data });
    } else if (type.startsWith('tool-')) this.#tool(chunk);
    else if (type.endsWith('-start'))
      this.#begin(type === 'text-start' ? { type: 'text' } : { type: 'reasoning', id }, id);
    else if (type.endsWith('-delta')) this.#grow(id, chunk.delta);
    else if (type.endsWith('-end')) this.#end(id);
  }

  #add(part: UiPart): void {
    this.message.parts.push(part);
  }

  #begin(part: UiPart, id: unknown): void {
    const streaming = { ...part, text: '', state: 'streaming' };
    this.#streaming.set(id, streaming);
    this.#add(streaming);
  }

  #grow(id: unknown, delta: unknown): void {
    const part = this.#streaming.get(id);
    if (part) part.text += delta;
  }

  #end(id: unknown): void {
    const part = this.#streaming.get(id);
    if (part) part.state = 'done';
  }

  /** A part of the last step, or one of an earlier step that a result belongs to. */
  #partOf(toolCallId: unknown, isLastStepOnly: boolean): UiPart | undefined {
    const { parts } = this.message;
    const step = isLastStepOnly ? parts.map(({ type }) => type).lastIndexOf('step-start') : -1;
    return parts.filter((part, index) => index > step && part.toolCallId === toolCallId).at(-1);
  }

  #tool({ type, toolCallId, toolName, input, ...rest }: Chunk): void {
    if (type === 'tool-input-available' || type === 'tool-input-error') {
      const isError = type === 'tool-input-error';
      const failed = { state: 'output-error', input, rawInput: input, errorText: rest.errorText };
      const fields = isError ? failed : { input };
      const made = { type: `tool-${toolName}`, toolCallId, state: 'input-available', ...fields };
      const existing = this.#partOf(toolCallId, true);
      if (existing) Object.assign(existing, made);
      else this.#add(withoutUndefined(made));
      return;
    }
    const part = this.#partOf(toolCallId, false);
    if (!part) return;
    if (type === 'tool-approval-request') {
      part.state = 'approval-requested';
      part.approval = { id: rest.approvalId };
    } else if (type.startsWith('tool-output-')) {
      part.state = type.slice('tool-'.length);
      const { output, errorText } = rest;
      Object.assign(part, output !== undefined && { output }, errorText !== undefined && { errorText });
      if (part.approval) Object.assign(part.approval, { approved: part.state !== 'output-denied' });
    }
  }
}

class History {
  readonly messages: UiMessage[] = [];
  readonly #chunks = new UiMessageChunks();
  /** The last message, if it is one of the assistant. */
  #open: AssistantParts | undefined;
  /** The id of the next message of the assistant. It is made with its first part. */
  #nextId = '';

  take(piece: Piece): void {
    if (piece.kind === 'user' && piece.message !== 'steer') {
      const { messageId: id, content } = piece;
      this.#open = undefined;
      this.messages.push({ id, role: 'user', parts: content.map(uiPartOf) });
      return;
    }
    for (const chunk of this.#chunks.take(piece) as Chunk[]) {
      if (chunk.type === 'start') this.#begin(chunk.messageId, 'runId' in piece ? piece.runId : '');
      else if (chunk.type !== 'finish' && chunk.type !== 'finish-step') this.#assistant.take(chunk);
    }
  }

  /** Without a message id, the run continues the last message. */
  #begin(messageId: unknown, runId: string): void {
    if (typeof messageId === 'string') this.#open = undefined;
    this.#nextId = typeof messageId === 'string' ? messageId : runId;
  }

  get #assistant(): AssistantParts {
    if (this.#open) return this.#open;
    this.#open = new AssistantParts(this.#nextId || `${this.messages.at(-1)?.id ?? ''}/reply`);
    this.messages.push(this.#open.message);
    return this.#open;
  }
}

/** Messages that the conversation was opened with are one entry. */
function* withEarlier(entries: readonly LogEntry[]): Generator<LogEntry> {
  for (const entry of entries) {
    if (entry.type !== 'history') {
      yield entry;
      continue;
    }
    const earlier: LogEntry[] = [];
    eachEarlierEntry(entry, (each) => earlier.push(each));
    yield* earlier;
  }
}

/** The UI messages of a log. Pure: a blob reference stays a `blob:` URL. */
export function uiMessagesOf(entries: readonly LogEntry[]): UiMessage[] {
  const fold = new StreamFold();
  const history = new History();
  for (const entry of withEarlier(standingEntries(entries))) for (const piece of fold.take(entry)) history.take(piece);
  for (const piece of fold.end()) history.take(piece);
  return history.messages;
}
