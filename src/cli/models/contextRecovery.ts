/**
 * Continues a person's request that was too long for the model, after a summary of earlier messages. Invariant: a continued request is
 * not continued again, and the window never grows.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import type { Model, RunResult } from '../../index.ts';
import { count } from '../costTally.ts';

/** The message that continues the request. */
export const CONTINUED =
  'The request did not fit into the context window, so earlier messages were summed up. Go on with what was asked last.';

export const summaryNote = (window: number): string =>
  `it takes ${count(window, 'token')}: earlier messages are summed up, and the request goes on`;

const TOO_LONG =
  /context.?(?:length|window|size|limit)|maximum (?:context|prompt|input|number of tokens)|too many (?:input )?tokens|(?:prompt|input|request) (?:is|was) too (?:long|large)|reduce the length|exceeds? (?:the )?(?:context|maximum|available)/i;
/** Numbers in an error that may be the size of the context window. */
const FIGURE = /\d[\d,_]{2,}/g;
/** A number that the error names as the window. Other numbers may be parts of the request. */
const NAMED_FIGURE =
  /(?:(?:maximum|context)[^\d.;]{0,40}(?:length|size|window|limit|tokens)[^\d.;]{0,40}|> ?)(\d[\d,_]{2,})(?![\d,_]|\s*\+)/gi;
const WINDOW_MIN = 1_000;
const WINDOW_MAX = 20_000_000;
/** This part of the used tokens is taken as the window if no error names a number. */
const LESS = 0.8;
const CHARACTERS_A_TOKEN = 3;

/** The window to continue with; undefined for another error. */
export function windowAfter(
  error: RunResult['error'],
  { contextWindow }: Pick<Model, 'contextWindow'>,
  entries: readonly LogEntry[],
): number | undefined {
  if (error?.code !== 'bad-request' || !TOO_LONG.test(error.message)) return undefined;
  const message = entries.filter((entry) => entry.type === 'user-message').at(-1);
  if (message && textOf(message.content) === CONTINUED) return undefined;
  const named = figuresIn([...error.message.matchAll(NAMED_FIGURE)].map(([, figure = '']) => figure));
  // If no number is named as the window, the smallest number is taken: the others describe the larger request.
  const possible = named.length > 0 ? named : figuresIn(error.message.match(FIGURE) ?? []);
  if (possible.length > 0) return Math.min(...possible, contextWindow ?? Number.POSITIVE_INFINITY);
  const last = entries.filter((entry) => entry.type === 'model-reply').at(-1);
  const reported = last ? last.usage.inputTokens + last.usage.outputTokens : 0;
  const used = reported > 0 ? reported : JSON.stringify(entries).length / CHARACTERS_A_TOKEN;
  return Math.max(WINDOW_MIN, Math.floor(LESS * Math.min(contextWindow ?? Number.POSITIVE_INFINITY, used)));
}

const figuresIn = (texts: readonly string[]): number[] =>
  texts
    .map((text) => Number(text.replaceAll(/[,_]/g, '')))
    .filter((figure) => figure >= WINDOW_MIN && figure <= WINDOW_MAX);
