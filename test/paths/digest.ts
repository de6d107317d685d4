/**
 * What a chart does, as a short text that is committed: a line for each start and one for each state, with a hash over
 * all that is done there. Rule: a step counts by what it brings about (state, way, log, asks, children, what is told);
 * what the chart keeps in its context does not.
 */
import { createHash } from 'node:crypto';
import type { Trace } from './trace.ts';

const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';
export const hashOf = (records: readonly string[]): string =>
  createHash('sha1')
    .update([...records].sort().join('\n'))
    .digest('hex')
    .slice(0, 12);

/** What a step brings about. */
export function recordOf({ before, event, situation, spawned }: Trace): string {
  const { state, through } = situation;
  const effects = [...situation.effects.filter(({ type }) => type !== 'spawn'), ...spawned];
  const { value, status, output } = state;
  return [
    before ? json(before.state.value) : '',
    json(event),
    json(through),
    json(value),
    status,
    json(output),
    json(effects),
  ].join('\t');
}

/** `{active:{LlmCall:'attempting'}}` as `active.LlmCall.attempting`. */
function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Object.entries(value as object)
    .map(([key, inner]) => `${key}.${nameOf(inner)}`)
    .join(' + ');
}

const lineOf = (records: readonly string[]): string =>
  `${String(records.length).padStart(5)} steps  ${hashOf(records)}`;

/** By start, the steps from it. */
export function digestOf(chart: string, starts: readonly (readonly Trace[])[]): string {
  const byState = new Map<string, string[]>();
  for (const [index, traces] of starts.entries()) {
    for (const trace of traces) {
      const name = trace.before ? nameOf(trace.before.state.value) : '(start)';
      const records = byState.get(name) ?? [];
      byState.set(name, records);
      records.push(`${index}\t${recordOf(trace)}`);
    }
  }
  const width = Math.max(...[...byState.keys()].map(({ length }) => length));
  const states = [...byState].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${chart}: what it does from each start, and in each state. \`npx vitest run test/paths -u\` writes it anew.`,
    '',
    ...starts.map((traces, index) => `start ${String(index + 1).padEnd(width - 5)} ${lineOf(traces.map(recordOf))}`),
    '',
    ...states.map(
      ([name, records]) => `${name.padEnd(width)}  ${String(records.length).padStart(5)} steps  ${hashOf(records)}`,
    ),
    '',
  ].join('\n');
}
