/**
 * Rules for a run that was interrupted and continued. Invariant: no acknowledged entry is lost, and nothing runs twice
 * unless its tool allows it. Every call ends as in the uninterrupted run, or as unknown.
 */
import { expect } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import { project } from '../../src/projector/index.ts';

const textsOf = (log: readonly LogEntry[]): unknown[] =>
  log.flatMap((entry) => (entry.type === 'user-message' ? [entry.content] : []));
const outcomesOf = (log: readonly LogEntry[]): Map<string, string> =>
  new Map(log.flatMap((entry) => (entry.type === 'tool-result' ? [[entry.callId, entry.outcome]] : [])));
const lastWords = (log: readonly LogEntry[]): string | undefined => {
  const last = log.filter((entry) => entry.type === 'agent-output' && entry.item.type === 'assistant').at(-1);
  return last?.type === 'agent-output' && last.item.type === 'assistant' ? last.item.text : undefined;
};

/** `ran`: every execution's key, before and after the interruption. */
export function expectSameEnd(whole: readonly LogEntry[], cut: readonly LogEntry[], ran: readonly string[]): void {
  expect(cut.map(({ seq }) => seq)).toEqual(cut.map((_, index) => index));
  expect(textsOf(cut)).toEqual(textsOf(whole));
  expect(lastWords(cut)).toBe(lastWords(whole));
  const expected = outcomesOf(whole);
  const calls = cut.filter((entry) => entry.type === 'agent-output' && entry.item.type === 'tool-call');
  const results = cut.filter(({ type }) => type === 'tool-result');
  expect(results).toHaveLength(calls.length);
  for (const [callId, outcome] of outcomesOf(cut)) {
    expect([expected.get(callId), 'unknown', 'cancelled']).toContain(outcome);
  }
  const idempotent = new Set(
    cut.flatMap((entry) =>
      entry.type === 'agent-output' && entry.item.type === 'tool-call' && entry.item.name === 'fetch'
        ? [entry.item.callId]
        : [],
    ),
  );
  const twice = ran.filter((key, index) => ran.indexOf(key) !== index && !idempotent.has(key.split('/')[1] ?? ''));
  expect(twice).toEqual([]);
  const { cycles, state } = project(cut);
  expect(state).toBe('idle');
  for (const { stop } of cycles) expect(stop).not.toBeNull();
}
