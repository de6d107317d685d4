/**
 * Where the charts of a conversation stand, as a key: equal keys have equal futures. Rule: only what guards and assigns can
 * tell apart is in it, and what only counts (ids of messages and runs) is not.
 */
import { chartCases, type LogEntry } from '../../../../machines/internal.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';

const CHART_OF: Readonly<Record<string, keyof typeof chartCases>> = {
  CONVERSATION: 'conversation',
  RUN: 'run',
  LLM_CALL: 'modelCall',
  TOOL_ROUND: 'toolRound',
  TOOL_CALL: 'toolCall',
  RESUME_TOOL_CALL: 'resumeToolCall',
  COMPACTION: 'compaction',
};

/** What a place is read off; contexts and values never change, so it can be kept for later. */
export interface Sight extends Pick<ChartActor, 'id' | 'value' | 'context'> {
  readonly chart: string;
  readonly children: readonly Sight[];
}

export const sightOf = ({ id, value, context, plan, children }: ChartActor): Sight => ({
  ...{ id, value, context, chart: plan.id },
  children: [...children.values()].filter(({ status }) => status === 'active').map(sightOf),
});

/** Where a living chart and its children stand. */
export function placeOf(sight: Sight): unknown {
  const { id, value, context } = sight;
  const chart = CHART_OF[sight.chart];
  const children = sight.children.map(placeOf);
  const seen = chart && chartCases[chart].projection(context as never);
  const { counters } = context as { counters?: { turns?: number } };
  return [id, value, seen ?? null, chart === 'conversation' ? (counters?.turns ?? 0) : null, children];
}

/** The value as a key, without the ids of messages and runs. */
export const keyOf = (value: unknown): string => JSON.stringify(value).replace(/\b(run_)?id\d+/g, 'id');

/** What a log says of a conversation's course, an entry a line; what only tells of it is left out. */
export function courseOf(entries: readonly LogEntry[]): string[] {
  return entries.flatMap((entry) => {
    if (UNTOLD.has(entry.type)) return [];
    const facts: unknown[] = [entry.type];
    if ('callId' in entry && entry.callId) facts.push(entry.callId);
    if (entry.type === 'tool-result') facts.push(entry.outcome, entry.code);
    if (entry.type === 'run-stop') facts.push(entry.reason, entry.cause);
    if (entry.type === 'checkpoint') facts.push(entry.boundary);
    if (entry.type === 'agent-output') facts.push(entry.item.type);
    if (entry.type === 'decision') facts.push(entry.suspension);
    if (entry.type === 'model-reply') facts.push(entry.finish);
    return [facts.filter((fact) => fact !== undefined).join(' ')];
  });
}
const UNTOLD: ReadonlySet<LogEntry['type']> = new Set([
  'conversation',
  'diagnostic',
  'extension',
  'sub-agent',
  'notice',
]);
