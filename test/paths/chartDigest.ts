/**
 * The behaviour of a chart as a short committed text: one line for each start and each state, with a hash of all steps
 * there. Invariant: the visible results of a step count: state, path, log, requests, children, messages, and the
 * expected answers. Its context does not.
 */
import { createHash } from 'node:crypto';
import { awaited } from '../../machines/nextState.ts';
import type { Trace } from './edgeTrace.ts';

const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';
export const hashOf = (records: readonly string[]): string =>
  createHash('sha1')
    .update([...records].sort().join('\n'))
    .digest('hex')
    .slice(0, 12);

/** Returns the visible results of a step. */
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
    json(awaited(state)),
  ].join('\t');
}

/** The number of steps after which two futures are no longer distinguished. */
const AHEAD = 3;

/**
 * Returns the steps from one start, each with the steps that can follow. If a mistake loses part of the context, the
 * steps that follow differ.
 */
export function stepsOf(traces: readonly Trace[], records: readonly string[] = traces.map(recordOf)): string[] {
  const own = records.map((record) => hashOf([record]));
  let futures = new Map<string, string>();
  let steps: string[] = own;
  for (let ahead = 0; ahead < AHEAD; ahead++) {
    const leaving = new Map<string, string[]>();
    for (const [index, { before }] of traces.entries()) {
      const from = before?.vertex ?? '';
      const fromHere = leaving.get(from) ?? [];
      leaving.set(from, fromHere);
      fromHere.push(steps[index] ?? '');
    }
    futures = new Map([...leaving].map(([vertex, all]) => [vertex, hashOf(all)]));
    steps = traces.map(({ vertex }, index) => `${own[index]} ${futures.get(vertex) ?? ''}`);
  }
  return steps;
}

/** Returns `active.LlmCall.attempting` for `{active:{LlmCall:'attempting'}}`. */
function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Object.entries(value as object)
    .map(([key, inner]) => `${key}.${nameOf(inner)}`)
    .join(' + ');
}

const lineOf = (records: readonly string[]): string =>
  `${String(records.length).padStart(5)} steps  ${hashOf(records)}`;

export const startLine = (index: number, steps: readonly string[], width = 0): string =>
  `start ${String(index + 1).padEnd(width - 5)} ${lineOf(steps)}`;

/** The steps of each start. */
export function digestOf(chart: string, starts: readonly (readonly Trace[])[]): string {
  const byState = new Map<string, string[]>();
  const steps = starts.map((traces) => stepsOf(traces));
  for (const [index, traces] of starts.entries()) {
    for (const [at, trace] of traces.entries()) {
      const name = trace.before ? nameOf(trace.before.state.value) : '(start)';
      const records = byState.get(name) ?? [];
      byState.set(name, records);
      records.push(`${index} ${steps[index]?.[at]}`);
    }
  }
  const width = Math.max(...[...byState.keys()].map(({ length }) => length));
  const states = [...byState].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${chart}: what it does from each start, and in each state. \`PROVE=1 npx vitest run states -u\` writes it anew.`,
    '',
    ...steps.map((all, index) => startLine(index, all, width)),
    '',
    ...states.map(
      ([name, records]) => `${name.padEnd(width)}  ${String(records.length).padStart(5)} steps  ${hashOf(records)}`,
    ),
    '',
  ].join('\n');
}
