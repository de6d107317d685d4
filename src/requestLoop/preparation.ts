/**
 * History made ready for the next request (agent-loop-contract 2.3, 6.2): old tool outputs pruned, what an abort left behind
 * cleaned up, a trailing request dropped. Rule: pure functions over messages; where nothing is to be done the very list
 * comes back. What is worth pruning is said by the same function as for a log.
 */
import { type Message, PRUNED_RESULT, prunableIn, sizeOfContent } from '../../machines/internal.ts';

type Of<R extends Message['role']> = Extract<Message, { role: R }>;

export interface Pruned {
  messages: readonly Message[];
  /** Tokens that are free now, as far as characters tell. */
  reclaimed: number;
}

/** Replaces old tool outputs by a placeholder, where it is worth it; never while the user has spoken only once. */
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

export interface CleanedUp {
  messages: readonly Message[];
  changed: boolean;
  /** Calls that went, since no result of theirs was there. */
  removedCalls: readonly string[];
}

/** The calls of each assistant message that has no result of theirs among the tool messages directly behind it. */
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

/** A tool message with its call in the assistant message that it stands behind. */
function answers(messages: readonly Message[], index: number): boolean {
  const result = messages[index] as Of<'tool'>;
  let before = index - 1;
  while (messages[before]?.role === 'tool') before -= 1;
  const caller = messages[before];
  return caller?.role === 'assistant' && caller.toolCalls.some(({ callId }) => callId === result.callId);
}

const isBlank = ({ content, toolCalls }: Of<'assistant'>): boolean =>
  toolCalls.length === 0 && content.every((part) => part.type === 'text' && part.text.trim() === '');

/** One pass; the same list where nothing is to be done. */
function cleaned(messages: readonly Message[], removed: string[]): readonly Message[] {
  const dangling = danglingIn(messages);
  for (const ids of dangling.values()) removed.push(...ids);
  const kept = messages.flatMap((message, index): Message[] => {
    if (message.role === 'user') return messages[index + 1]?.role === 'user' ? [] : [message];
    // What refers to no call, or to one that goes, goes with it.
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
 * Takes out calls without a result, results without a call, replies that say nothing, and of requests in a row all but the
 * last, until nothing is left to take out: what one of them leaves behind may be another.
 */
export function cleanHistory(messages: readonly Message[]): CleanedUp {
  const removedCalls: string[] = [];
  let before = messages;
  let after = cleaned(before, removedCalls);
  // Each pass that changes something leaves fewer messages or fewer calls, so it ends.
  while (after !== before) {
    before = after;
    after = cleaned(before, removedCalls);
  }
  return { messages: after, changed: after !== messages, removedCalls };
}

/** History as the next request takes it: pruned, cleaned up, and without a request that nobody answered. */
export function prepareHistory(messages: readonly Message[]): CleanedUp & { reclaimed: number } {
  const { messages: pruned, reclaimed } = pruneToolOutputs(messages);
  const clean = cleanHistory(pruned);
  const last = clean.messages.at(-1);
  const kept = last?.role === 'user' ? clean.messages.slice(0, -1) : clean.messages;
  return { messages: kept, changed: kept !== messages, removedCalls: clean.removedCalls, reclaimed };
}
