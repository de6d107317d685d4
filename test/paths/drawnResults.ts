/**
 * The results of pure functions for many drawn inputs: a hash of each, a digest of all, and clauses for each.
 * Invariant: the inputs are drawn from seeds alone and do not depend on the code under test.
 */
import { applyEntry, countersOf, emptyLogState, type LogEntry, type LogState } from '../../machines/internal.ts';
import type { Chart } from '../../machines/verbs.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { hashOf } from './chartDigest.ts';

/** An undefined key differs from a missing one, because it removes a field of the context. */
export const json = (value: unknown): string =>
  JSON.stringify(value, (_, inner) =>
    inner === undefined
      ? '(undefined)'
      : inner instanceof Map || inner instanceof Set
        ? ['collection', ...inner]
        : inner,
  );

/** Returns the state of a log, with all counts. */
export function knowledgeOf(log: readonly LogEntry[]): LogState {
  const logState = emptyLogState();
  for (const entry of log) applyEntry(logState, entry);
  countersOf(logState);
  return logState;
}

export interface Moment {
  context: object;
  event: { type: string };
}
/** Returns all functions of a chart, each once: its guards, and those in its states. */
export function functionsOf({ config, implementations }: Chart): ((args: unknown) => unknown)[] {
  const functions = new Set<unknown>();
  const look = (part: unknown): void => {
    if (typeof part === 'function') functions.add(part);
    else if (typeof part === 'object' && part !== null) for (const inner of Object.values(part)) look(inner);
  };
  look(implementations.guards);
  look(config);
  return [...functions] as ((args: unknown) => unknown)[];
}

/** The answer of a function that throws. */
export const BREAKS = 'breaks';
export function answered(one: (args: unknown) => unknown, { context, event }: Moment): unknown {
  try {
    return one({ context, event, input: context });
  } catch {
    return BREAKS;
  }
}

const BOUNDARY = 'UserMessage';
/**
 * Returns the results of all functions of a module for a moment, by name. Every function receives everything, because
 * some take the context, some the event, and some return the function for a boundary.
 */
export function answersOf(
  module: object,
  { context, event }: { context: object & { end?: object }; event: object },
): [name: string, answer: unknown][] {
  const args = { ...event, ...context.end, ...context, context, event };
  return Object.entries(module).flatMap(([name, one]): [string, unknown][] => {
    const value: unknown = typeof one === 'object' && one !== null && 'params' in one ? one.params : one;
    if (typeof value !== 'function') return [];
    try {
      const answer: unknown = value(args, event);
      return [[name, typeof answer === 'function' ? value(BOUNDARY)(args) : answer]];
    } catch {
      return [[name, 'throws']];
    }
  });
}

/** Returns the results without the names of the functions. */
export const unnamed = (answers: readonly [name: string, answer: unknown][]): string[] =>
  answers.map(([, answer]) => json(answer)).sort();

export type Fold<S> = (subject: S, draw: Chance) => unknown;
export interface Clause<S> {
  readonly says: string;
  readonly holds: (subject: S) => void;
}
/** The hash of each fold of each input in a batch. */
export interface Answer {
  fold: string;
  subject: unknown;
  hash: string;
}
export interface Drawn {
  readonly name: string;
  readonly batches: readonly number[];
  readonly clauses: readonly Clause<never>[];
  readonly folds: readonly string[];
  seedsOf(batch: number): number[];
  subjectOf(seed: number): unknown;
  /** Returns the hash of one fold of this seed's input. */
  ask(fold: string, subject: unknown, seed: number): string;
  subjects(batches: readonly number[]): unknown[];
  answers(batch: number): Generator<Answer>;
  /** Returns a line for each fold, then one for each batch. */
  digest(): string;
  /** Returns the line of one batch in the digest. */
  batchLine(batch: number): string;
}

const BATCHES = 12;
const OF_A_BATCH = 40;

export function drawn<S>(
  name: string,
  of: (seed: number) => S,
  folds: { readonly [name: string]: Fold<S> },
  clauses: readonly Clause<S>[],
): Drawn {
  const batches = Array.from({ length: BATCHES }, (_, batch) => batch);
  const seedsOf = (batch: number): number[] =>
    Array.from({ length: OF_A_BATCH }, (_, index) => batch * OF_A_BATCH + index + 1);
  const subjects = (asked: readonly number[]): S[] => asked.flatMap(seedsOf).map(of);
  const ask = (fold: string, subject: unknown, seed: number): string =>
    hashOf([json(folds[fold]?.(subject as S, chance(seed)))]);
  function* answers(batch: number): Generator<Answer> {
    for (const seed of seedsOf(batch)) {
      const subject = of(seed);
      for (const fold of Object.keys(folds)) yield { fold, subject, hash: ask(fold, subject, seed) };
    }
  }
  const lineOf = (batch: number, all: readonly Answer[]): string => {
    const hashes = all.map(({ fold, hash }, index) => `${index} ${fold} ${hash}`);
    return `batch ${String(batch + 1).padEnd(6)} ${hashOf(hashes)}`;
  };
  const batchLine = (batch: number): string => lineOf(batch, [...answers(batch)]);
  const digest = (): string => {
    const byBatch = batches.map((batch) => [...answers(batch)]);
    const all = byBatch.flat();
    const lines = Object.keys(folds).map((fold) => {
      const hashes = all.filter((answer) => answer.fold === fold).map(({ hash }, index) => `${index} ${hash}`);
      return `${fold.padEnd(12)} ${hashOf(hashes)}`;
    });
    const head = `What functions say of ${BATCHES * OF_A_BATCH} drawn ${name.toLowerCase()}.`;
    const again = '`PROVE=1 npx vitest run drawn -u` writes it anew.';
    return [`${head} ${again}`, '', ...lines, '', ...byBatch.map((own, batch) => lineOf(batch, own)), ''].join('\n');
  };
  const asking = { seedsOf, subjectOf: of, ask, subjects, answers };
  return { name, batches, clauses, folds: Object.keys(folds), ...asking, digest, batchLine };
}
