/**
 * Tools, approvals and denials that no simulation reached. Rule: what was never reached is not tested; it is returned as
 * sentences, so that a test can expect none.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { SimulationReport } from './simulate.ts';

type ReportPart = Pick<SimulationReport, 'tools' | 'log'>;

/** Names of the tools whose calls were started. */
function startedIn(log: readonly LogEntry[]): Set<string> {
  const names = new Map<string, string>();
  const started = new Set<string>();
  for (const entry of log) {
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') names.set(entry.item.callId, entry.item.name);
    if (entry.type === 'tool-started') started.add(names.get(entry.callId) ?? '');
  }
  return started;
}

/** Actions of all decisions. */
function decidedIn(log: readonly LogEntry[]): Set<string> {
  return new Set(log.flatMap((entry) => (entry.type === 'decision' ? [entry.decision.action] : [])));
}

/**
 * A sentence for each tool that was offered and never ran, and for approvals and denials that nobody gave. That no call
 * waited is no news of an agent that asks nobody.
 */
export function neverReached(reports: readonly ReportPart[]): string[] {
  const lives = reports.length === 1 ? 'in this life' : `in ${reports.length} lives`;
  const offered = new Set(reports.flatMap(({ tools }) => tools));
  const started = new Set(reports.flatMap(({ log }) => [...startedIn(log)]));
  const said = [...offered].filter((name) => !started.has(name)).map((name) => `the tool ${name} never ran ${lives}`);
  if (!reports.some(({ log }) => log.some(({ type }) => type === 'tool-suspended')))
    return [...said, `no call waited for a decision ${lives}`];
  const decided = new Set(reports.flatMap(({ log }) => [...decidedIn(log)]));
  const isAllowed = ['approve', 'edit', 'answer'].some((action) => decided.has(action));
  if (!isAllowed) said.push(`no call that waited was approved ${lives}`);
  if (!decided.has('deny')) said.push(`no call that waited was denied ${lives}`);
  return said;
}
