/**
 * The log as model messages, their size, and the texts that replace missing parts. Invariant: the same entries give the same
 * messages. Each call has exactly one result. Sizes are estimated from characters, each message once.
 */

import { eachEarlierEntry } from '../log/earlierMessages.ts';
import { standingAt } from '../log/rewinding.ts';
import type { Json, LogEntry, Message, Settlement, StoredPart, ToolCall, ToolOutcome } from '../vocabulary.ts';
import { prunedBy } from './contextEntries.ts';
import { DID_NOT_RUN, lateText, NO_RESULT, PRUNED_RESULT, suspendedText } from './texts.ts';

export const textPart = (words: string): StoredPart[] => [{ type: 'text', text: words }];

/** Contains something besides white space and format characters such as a zero width space. */
export const isVisible = (text: string): boolean => /[^\s\p{Cf}]/u.test(text);

export const textOfContent = (content: readonly StoredPart[]): string =>
  content.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join('\n');

/** Freezes a value that several readers share. A frozen value counts as frozen at every depth. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  if (Array.isArray(value)) for (let index = 0; index < value.length; index++) deepFreeze(value[index]);
  else for (const key in value) deepFreeze((value as { [key: string]: unknown })[key]);
  return value;
}

/** A result that arrives after the model has spoken again. */
export function lateMessage(callId: string, name: string, outcome: ToolOutcome, content: StoredPart[]): Message {
  const text = lateText(callId, name, outcome, textOfContent(content));
  return { role: 'user', content: [...textPart(text), ...content.filter((part) => part.type !== 'text')] };
}

/** Estimated characters in one token. */
export const CHARACTERS_A_TOKEN = 4;

/** An estimate for images, about 1,600 tokens, the documented maximum of most providers. The size of its data does not help. */
const IMAGE = 1_600 * CHARACTERS_A_TOKEN;
/** An estimate for files, about two pages of a PDF. After the first reply, the tokens that the provider reports count if they are more. */
const FILE = 4_000 * CHARACTERS_A_TOKEN;

const sizeOfPart = (part: StoredPart): number =>
  part.type === 'text' ? part.text.length : part.type === 'image' ? IMAGE : FILE;

const sizeOfCall = ({ callId, name, args, argsText }: ToolCall): number =>
  callId.length + name.length + (argsText ?? JSON.stringify(args)).length;

export const sizeOfContent = (content: readonly StoredPart[]): number =>
  content.reduce((sum, part) => sum + sizeOfPart(part), 0);

export function sizeOf(message: Message): number {
  const size = sizeOfContent(message.content);
  if (message.role === 'user') return size;
  if (message.role === 'tool') return size + message.callId.length;
  return message.toolCalls.reduce((sum, call) => sum + sizeOfCall(call), size);
}

const sizes = new WeakMap<Message, number>();

/** Messages are never changed, so each is measured once. */
function measured(message: Message): number {
  const size = sizes.get(message) ?? sizeOf(message);
  sizes.set(message, size);
  return size;
}

/** Characters of the messages, and the tokens that the last model call reported. */
export const sizeOfTranscript = (transcript: Transcript): { characters: number; reported: number } => ({
  characters: transcript.messages().reduce((sum, message) => sum + measured(message), 0),
  reported: transcript.reported,
});

/** The newest results up to this size are kept, and at least this much must be saved; in characters. */
const KEPT = 40_000 * CHARACTERS_A_TOKEN;

const SAVED_LEAST = 20_000 * CHARACTERS_A_TOKEN;

export interface Prunable {
  /** In the order of the messages. */
  callIds: string[];
  tokens: number;
}

/** `mayGo`: whether the result of a call has been seen. */
export function prunableIn(messages: readonly Message[], mayGo: (callId: string) => boolean): Prunable | undefined {
  const callIds: string[] = [];
  let held = 0;
  let saved = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role !== 'tool') continue;
    const size = sizeOfContent(message.content);
    held += size;
    if (held <= KEPT || size <= PRUNED_RESULT.length || !mayGo(message.callId)) continue;
    callIds.push(message.callId);
    saved += size - PRUNED_RESULT.length;
  }
  return saved < SAVED_LEAST ? undefined : { callIds: callIds.reverse(), tokens: saved / CHARACTERS_A_TOKEN };
}

const BEHIND: ReadonlySet<LogEntry['type']> = new Set<LogEntry['type']>([
  'model-reply',
  'user-message',
  'tool-result',
  'tool-started',
  'tool-suspended',
  'run-started',
  'run-resumed',
  'run-stop',
  'run-suspended',
  'continuation',
  'compaction',
]);

/** Whether this entry follows a complete reply. */
const endsReply = ({ type }: LogEntry): boolean => BEHIND.has(type);

type Output = Extract<LogEntry, { type: 'agent-output' }>;

/**
 * The reply that is being logged. It is complete when an entry follows that belongs to no reply. A reader before that
 * receives the part so far, and reading does not end the reply.
 */
class OpenReply {
  readonly #content: StoredPart[] = [];
  readonly #calls: ToolCall[] = [];
  #extra: Json | undefined;
  /** Made on first use. */
  #shown: readonly Message[] | undefined;

  /** Adds an item that the model receives again, never blank text. `isKnown`: an earlier reply made the call. */
  add({ item, extra }: Output, isKnown: (callId: string) => boolean): void {
    this.#shown = undefined;
    // The extra belongs to one reply. If another reply follows in the same message, it does not describe the whole.
    this.#extra = extra;
    if (item.type === 'assistant' && item.text.trim() !== '') this.#content.push({ type: 'text', text: item.text });
    if (item.type !== 'tool-call') return;
    const { type: _, ...call } = item;
    if (!isKnown(call.callId) && !this.#calls.some(({ callId }) => callId === call.callId)) this.#calls.push(call);
  }

  /** The reply so far, as if it were complete: its message, then a result for each call. Empty where there is none. */
  get messages(): readonly Message[] {
    this.#shown ??= deepFreeze(this.#show());
    return this.#shown;
  }

  get calls(): readonly ToolCall[] {
    return this.#calls;
  }

  #show(): Message[] {
    if (this.#content.length + this.#calls.length === 0) return [];
    const results = this.#calls.map(
      ({ callId }): Message => ({ role: 'tool', callId, content: textPart(NO_RESULT), isError: true }),
    );
    const extra = this.#extra === undefined ? {} : { extra: this.#extra };
    return [
      { role: 'assistant', content: this.#content.slice(), toolCalls: this.#calls.slice(), ...extra },
      ...results,
    ];
  }
}

/** The place of a call's result among the messages. */
interface Slot {
  index: number;
  name: string;
  /** The number of the reply that it follows. */
  reply: number;
  /** It was added after a later reply. */
  late?: boolean;
  /** A settlement replaces an unknown result, and the next result replaces a retried one. */
  holds: 'nothing' | 'placeholder' | 'unknown' | 'retried' | 'result';
}

const hasResult = ({ holds }: Slot): boolean => holds !== 'nothing' && holds !== 'placeholder';

/** An incremental fold from log entries to the messages of a model. */
export interface Transcript {
  /** Adds the next entry of the log. */
  push(entry: LogEntry): void;
  /** The messages so far; message objects are reused from call to call. */
  messages(): Message[];
  /** The places of complete messages in the log, in order. Messages from one reply or one entry share a place. */
  readonly seqs: readonly number[];
  /** Whether the model's own words come last. */
  endsWithAssistant(): boolean;
  /** The tokens that the last model call reported, without results pruned since. */
  readonly reported: number;
  /** The number of messages that the user has sent. */
  readonly userTurns: number;
  /** The model has received the call's result and replied since. */
  isOld(callId: string): boolean;
}

class MessageList implements Transcript {
  #messages: Message[] = [];
  #seqs: number[] = [];
  #slots = new Map<string, Slot>();
  #reply = 0;
  #open = new OpenReply();
  #seq = 0;
  #userTurns = 0;
  #reported = 0;
  /** The entries that count. */
  #entries: LogEntry[] = [];

  push(entry: LogEntry): void {
    if (entry.type === 'rewound') return this.#rewind(entry.toSeq);
    this.#entries.push(entry);
    this.#apply(entry);
  }

  #apply(entry: LogEntry): void {
    this.#seq = entry.seq;
    if (endsReply(entry)) this.#close();
    switch (entry.type) {
      case 'agent-output':
        return this.#open.add(entry, (callId) => this.#slots.has(callId));
      case 'history':
        eachEarlierEntry(
          entry,
          (earlier) => this.#apply(earlier),
          ({ content }) => this.#spoken(content),
          () => this.#close(),
        );
        return;
      case 'user-message':
        this.#userTurns += 1;
        return this.#add({ role: 'user', content: entry.content });
      case 'continuation':
        return this.#add({ role: 'user', content: textPart(entry.text) });
      case 'tool-suspended':
        return this.#suspend(entry.callId, entry.reason);
      case 'tool-result':
        return this.#result(entry.callId, entry.outcome, entry.content);
      case 'call-settled':
        return this.#settle(entry.callId, entry.how);
      case 'compaction':
        return this.#compact(entry.upToSeq, entry.summary);
      case 'model-reply':
        this.#reported = entry.usage.inputTokens + entry.usage.outputTokens;
        return;
      case 'extension':
        return this.#prune(prunedBy(entry));
    }
  }

  messages(): Message[] {
    return [...this.#messages, ...this.#open.messages];
  }

  get seqs(): readonly number[] {
    return this.#seqs;
  }

  endsWithAssistant(): boolean {
    return (this.#open.messages.at(-1) ?? this.#messages.at(-1))?.role === 'assistant';
  }

  get reported(): number {
    return this.#reported;
  }

  get userTurns(): number {
    return this.#userTurns;
  }

  isOld(callId: string): boolean {
    const slot = this.#slots.get(callId);
    return slot !== undefined && hasResult(slot) && (slot.reply !== this.#reply || this.#open.messages.length > 0);
  }

  /** Begins again with the entries that still count. */
  #rewind(toSeq: number): void {
    const entries = standingAt(this.#entries, toSeq);
    this.#messages = [];
    this.#seqs = [];
    this.#slots = new Map();
    this.#reply = 0;
    this.#open = new OpenReply();
    this.#userTurns = 0;
    this.#reported = 0;
    this.#entries = [];
    for (const entry of entries) this.push(entry);
  }

  #add(message: Message): void {
    this.#messages.push(deepFreeze(message));
    this.#seqs.push(this.#seq);
  }

  /** A reply without calls. */
  #spoken(content: StoredPart[]): void {
    this.#reply += 1;
    this.#add({ role: 'assistant', content, toolCalls: [] });
  }

  /** Ends the reply under construction: its message, then one slot for each call. */
  #close(): void {
    const { messages, calls } = this.#open;
    if (messages.length === 0) return;
    this.#reply += 1;
    const first = this.#messages.length + 1;
    for (const [index, { callId, name }] of calls.entries()) {
      this.#slots.set(callId, { index: first + index, name, reply: this.#reply, holds: 'nothing' });
    }
    for (const message of messages) this.#add(message);
    this.#open = new OpenReply();
  }

  #replace(index: number, message: Message): void {
    this.#messages[index] = deepFreeze(message);
  }

  #prune(callIds: readonly string[]): void {
    for (const callId of callIds) {
      const index = this.#slots.get(callId)?.index ?? -1;
      const message = this.#messages[index];
      if (message?.role !== 'tool' || message.callId !== callId || !this.isOld(callId)) continue;
      const content = textPart(PRUNED_RESULT);
      const saved = sizeOfContent(message.content) - sizeOfContent(content);
      this.#reported = Math.max(0, this.#reported - saved / CHARACTERS_A_TOKEN);
      this.#replace(index, { ...message, content });
    }
  }

  #suspend(callId: string, reason: string): void {
    const slot = this.#slots.get(callId);
    if (!slot || hasResult(slot) || slot.reply !== this.#reply) return;
    slot.holds = 'placeholder';
    this.#replace(slot.index, { role: 'tool', callId, content: textPart(suspendedText(reason)), isError: false });
  }

  #result(callId: string, outcome: ToolOutcome, content: StoredPart[]): void {
    const slot = this.#slots.get(callId);
    if (!slot || slot.holds === 'unknown' || slot.holds === 'result') return;
    this.#place(slot, { callId, outcome, content });
  }

  /** The first settlement counts. */
  #settle(callId: string, how: Settlement): void {
    const slot = this.#slots.get(callId);
    if (!slot || slot.holds === 'result') return;
    if ('ran' in how) this.#place(slot, { callId, outcome: 'succeeded', content: textPart(JSON.stringify(how.ran)) });
    else if ('didNotRun' in how) this.#place(slot, { callId, outcome: 'cancelled', content: textPart(DID_NOT_RUN) });
    else if (hasResult(slot)) slot.holds = 'retried';
  }

  #place(
    slot: Slot,
    { callId, outcome, content }: { callId: string; outcome: ToolOutcome; content: StoredPart[] },
  ): void {
    slot.holds = outcome === 'unknown' ? 'unknown' : 'result';
    const spoken = slot.reply !== this.#reply;
    if (!spoken) {
      const message: Message = slot.late
        ? lateMessage(callId, slot.name, outcome, content)
        : { role: 'tool', callId, content, isError: outcome !== 'succeeded' };
      return this.#replace(slot.index, message);
    }
    slot.late = true;
    slot.index = this.#messages.length;
    slot.reply = this.#reply;
    this.#add(lateMessage(callId, slot.name, outcome, content));
  }

  /** Replaces messages up to `upToSeq` by their summary. A call and its results share a place, so they are never separated. */
  #compact(upToSeq: number, summary: string): void {
    let cut = this.#seqs.findIndex((seq) => seq > upToSeq);
    if (cut < 0) cut = this.#messages.length;
    this.#messages.splice(0, cut, deepFreeze<Message>({ role: 'user', content: textPart(summary) }));
    this.#seqs.splice(0, cut, upToSeq);
    this.#reported = 0;
    for (const slot of this.#slots.values()) {
      if (slot.index >= cut) slot.index -= cut - 1;
      // Summarized messages have no place any more. A later result of their calls is appended after them.
      else slot.reply = 0;
    }
  }
}

/** Old results that can be pruned, if it saves enough; none while the user has sent only one message. */
export const prunableOf = (transcript: Transcript): Prunable | undefined =>
  transcript.userTurns < 2 ? undefined : prunableIn(transcript.messages(), (callId) => transcript.isOld(callId));

/** An incremental fold with constant cost per entry. */
export const createTranscript = (): Transcript => new MessageList();

/**
 * Computes the messages for a model from a log, without effects. `_policies` (as `createAgent` takes them) has no effect, because the log
 * contains the effects of policies on messages, such as a kept partial text, a pruned result or a summary.
 */
export function modelMessages(entries: readonly LogEntry[], _policies?: object): Message[] {
  const transcript = createTranscript();
  for (const entry of entries) transcript.push(entry);
  return transcript.messages();
}
