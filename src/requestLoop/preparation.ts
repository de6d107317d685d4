/**
 * Prepares the history for the next request (docs/internals/contracts.md, 2.3 and 6.2): prunes old tool outputs,
 * removes the remains of an abort, drops a trailing request. Invariant: pure functions over messages. If nothing
 * changes, the same list is returned. Logs use the same function to select what to prune.
 */
import { type Message, PRUNED_RESULT, prunableIn, sizeOfContent } from '../../machines/internal.ts';

type Of<R extends Message['role']> = Extract<Message, { role: R }>;

/** The result of `pruneToolOutputs`. */
export interface Pruned {
  /** The messages with shorter results. */
  messages: readonly Message[];
  /** Freed tokens, estimated from characters. */
  reclaimed: number;
}

/** Replaces old tool outputs with a placeholder if that frees enough. Never before the user's second message. */
export function pruneToolOutputs(messages: readonly Message[]): Pruned {
  const userTurns = messages.filter(({ role }) => role === 'user').length;
  const prunable = userTurns < 2 ? undefined : prunableIn(messages, () => true);
  if (!prunable) return { messages, reclaimed: 0 };
  const old = new Set(prunable.callIds);
  const content = [{ type: 'text' as const, text: PRUNED_RESULT }];
  const prunes = (message: Message): boolean =>
    message.role === 'tool' && old.has(message.callId) && sizeOfContent(message.content) > PRUNED_RESULT.length;
  return {
    messages: messages.map((message) => (prunes(message) ? { ...message, content } : message) as Message),
    reclaimed: prunable.tokens,
  };
}

/** The result of `cleanHistory`. */
export interface CleanedUp {
  /** The messages, each call with exactly one result. */
  messages: readonly Message[];
  /** Whether anything was removed. */
  changed: boolean;
  /** Calls that were removed because they had no result. */
  removedCalls: readonly string[];
}

/** Returns the calls of each assistant message without a result among the tool messages directly after it. */
function danglingIn(messages: readonly Message[]): Map<Of<'assistant'>, Set<string>> {
  const dangling = new Map<Of<'assistant'>, Set<string>>();
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'assistant' || message.toolCalls.length === 0) continue;
    const open = new Set(message.toolCalls.map(({ callId }) => callId));
    for (let at = index + 1; messages[at]?.role === 'tool'; at++) open.delete((messages[at] as Of<'tool'>).callId);
    if (open.size > 0) dangling.set(message, open);
  }
  return dangling;
}

/** Returns true if a tool message belongs to a call of the assistant message before it. */
function answers(messages: readonly Message[], index: number): boolean {
  const result = messages[index] as Of<'tool'>;
  let before = index - 1;
  while (messages[before]?.role === 'tool') before -= 1;
  const caller = messages[before];
  return caller?.role === 'assistant' && caller.toolCalls.some(({ callId }) => callId === result.callId);
}

const isBlank = ({ content, toolCalls }: Of<'assistant'>): boolean =>
  toolCalls.length === 0 && content.every((part) => part.type === 'text' && part.text.trim() === '');

/** Runs one pass. Returns the same list if nothing changes. */
function cleanOnce(messages: readonly Message[], removed: string[]): readonly Message[] {
  const dangling = danglingIn(messages);
  for (const ids of dangling.values()) removed.push(...ids);
  const kept = messages.flatMap((message, index): Message[] => {
    if (message.role === 'user') return messages[index + 1]?.role === 'user' ? [] : [message];
    // A result without a call, or with a removed call, is removed too.
    if (message.role === 'tool') return answers(messages, index) ? [message] : [];
    const open = dangling.get(message);
    const rest = open
      ? { ...message, toolCalls: message.toolCalls.filter(({ callId }) => !open.has(callId)) }
      : message;
    return isBlank(rest) ? [] : [rest];
  });
  const same = kept.length === messages.length && kept.every((message, index) => message === messages[index]);
  return same ? messages : kept;
}

/**
 * Removes calls without a result, results without a call, empty replies, and all but the last of consecutive
 * requests. Repeats this until nothing changes, because each removal may cause another.
 */
export function cleanHistory(messages: readonly Message[]): CleanedUp {
  const removedCalls: string[] = [];
  let before = messages;
  let after = cleanOnce(before, removedCalls);
  // Each changing pass leaves fewer messages or calls, so the loop ends.
  while (after !== before) {
    before = after;
    after = cleanOnce(before, removedCalls);
  }
  return { messages: after, changed: after !== messages, removedCalls };
}

/** Returns the history for the next request: pruned, cleaned, and without an unanswered request. */
export function prepareHistory(messages: readonly Message[]): CleanedUp & { reclaimed: number } {
  const { messages: pruned, reclaimed } = pruneToolOutputs(messages);
  const clean = cleanHistory(pruned);
  const last = clean.messages.at(-1);
  const kept = last?.role === 'user' ? clean.messages.slice(0, -1) : clean.messages;
  return { messages: kept, changed: kept !== messages, removedCalls: clean.removedCalls, reclaimed };
}
