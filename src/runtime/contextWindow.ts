/**
 * The usage of the context window with the next request, and the place where a summary of earlier messages could end.
 * Invariant: a call is never separated from its result, nor the model's last words from the messages after them.
 */
import {
  CHARACTERS_A_TOKEN,
  type ContextValue,
  type LogEntry,
  type Message,
  PRUNED_RESULT,
  prunableOf,
  shareOf,
  sizeOf,
  sizeOfTranscript,
  type Transcript,
} from '../../machines/internal.ts';
import type { ToolSpec } from '../models/model.ts';
import type { ContextUse } from './modelTurn.ts';

/** Fractions of the window: the part that the newest messages keep, and the least part that is worth a summary. */
const KEPT = 0.4;
const LEAST = 0.05;
/** The size of a message besides its text, in tokens. */
const FRAME = 4;

type Readable = Pick<Transcript, 'messages' | 'seqs'>;

function tokensOf(message: Message, pruned: ReadonlySet<string>): number {
  const isPruned = message.role === 'tool' && pruned.has(message.callId);
  return (isPruned ? PRUNED_RESULT.length : sizeOf(message)) / CHARACTERS_A_TOKEN + FRAME;
}

/** The index of the oldest message that fits together with those after it. */
function firstThatFits(tokens: readonly number[], room: number): number {
  let left = room;
  let first = tokens.length;
  while (first > 0 && left >= (tokens[first - 1] ?? 0)) {
    first -= 1;
    left -= tokens[first] ?? 0;
  }
  return first;
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);

/**
 * Where a summary can end, so that the newest messages that fit are kept, at least the model's last words and everything
 * after them. A reply and its results share a place in the log, so both go or both stay. `summed`: the end of the newest
 * summary, which comes first and is not summarized again alone.
 */
export function summaryCut(
  transcript: Readable,
  window: number,
  pruned: readonly string[] = [],
  { kept, least } = { kept: KEPT, least: LEAST },
  summed = -1,
): { upToSeq: number } | undefined {
  const { seqs } = transcript;
  const from = seqs[0] === summed ? 1 : 0;
  const messages = transcript.messages().slice(0, seqs.length);
  const gone = new Set(pruned);
  const tokens = messages.map((message) => tokensOf(message, gone));
  const fits = firstThatFits(tokens, window * kept);
  if (fits === 0) return undefined;
  const spoken = messages.map(({ role }) => role).lastIndexOf('assistant');
  const most = spoken < 0 ? messages.length - 1 : spoken;
  let cut = Math.min(fits, most);
  while (cut > 0 && seqs[cut - 1] === seqs[cut]) cut -= 1;
  // Messages that a conversation was opened with are one entry and go together. So does a reply after a summary, unless it is
  // the last.
  if (cut <= from) cut = seqs.lastIndexOf(seqs[from] ?? -1) + 1;
  if (from > 0 && cut > most) return undefined;
  const upToSeq = seqs[cut - 1];
  const isWorthIt = sumOf(tokens.slice(0, cut)) >= window * least;
  return cut < messages.length && isWorthIt && upToSeq !== undefined ? { upToSeq } : undefined;
}

/** The end of the newest summary that counts. */
function summedUpTo(entries: readonly LogEntry[]): number | undefined {
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index];
    if (entry?.type === 'compaction') return entry.upToSeq;
    // The entries in between are superseded.
    if (entry?.type === 'rewound') index = entry.toSeq + 1;
  }
  return undefined;
}

/** Tokens reserved for the reply, unless the model declares less. */
const RESERVE = 16_384;

/** Characters of tool lists. An agent's own list is always the same object. */
const measured = new WeakMap<readonly ToolSpec[], number>();
function sizeOfTools(tools: readonly ToolSpec[]): number {
  if (tools.length === 0) return 0;
  const size = measured.get(tools) ?? JSON.stringify(tools).length;
  measured.set(tools, size);
  return size;
}

/** A summary was requested: of everything except the model's last words and the messages after them. */
const WANTED = { kept: 0, least: 0 };

export const contextUse: ContextUse = (request, scope) => {
  const { next, transcript, logState, compact: wanted } = scope;
  delete scope.compact;
  // The model of this request does not state its window, though another model of the agent does.
  if (next.window === undefined) return { kind: 'context', used: 0, limit: 1, warned: false };
  const { pruneAbove = Number.POSITIVE_INFINITY, compactAbove = Number.POSITIVE_INFINITY } = request;
  const limit = next.window;
  const { system, tools, maxOutputTokens = RESERVE } = next.frame();
  const { characters, reported } = sizeOfTranscript(transcript);
  const estimate = (characters + system.length + sizeOfTools(tools)) / CHARACTERS_A_TOKEN;
  const held = Math.max(reported, estimate) + Math.min(RESERVE, maxOutputTokens);
  const value: ContextValue = { kind: 'context', used: Math.ceil(held), limit, warned: logState.warned };
  const prunable = shareOf(value) > pruneAbove ? prunableOf(transcript) : undefined;
  const { callIds = [], tokens = 0 } = prunable ?? {};
  const left = Math.ceil(held - tokens);
  const isDue = shareOf({ used: left, limit }) > compactAbove;
  const mayBeWanted = wanted !== undefined && Number.isFinite(compactAbove);
  scope.summaryFor = mayBeWanted ? 'manual' : 'auto';
  const shares = mayBeWanted ? WANTED : undefined;
  const cut =
    isDue || mayBeWanted ? summaryCut(transcript, limit, callIds, shares, summedUpTo(scope.entries)) : undefined;
  const instructions = typeof wanted === 'string' && wanted !== '' ? { instructions: wanted } : {};
  return {
    ...value,
    ...(prunable && { prunable: { callIds, used: left } }),
    ...(cut && { compactable: { ...cut, ...instructions } }),
  };
};
