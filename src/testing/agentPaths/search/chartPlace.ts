/** Where the charts of a conversation stand, and what their log says of its course. */
import type { LogEntry } from '../../../../machines/internal.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';

/** What a place is read off; contexts and values never change, so it can be kept for later. */
export interface Sight extends Pick<ChartActor, 'id' | 'value' | 'context'> {
  readonly chart: string;
  readonly children: readonly Sight[];
}

export const sightOf = ({ id, value, context, plan, children }: ChartActor): Sight => ({
  ...{ id, value, context, chart: plan.id },
  children: [...children.values()].filter(({ status }) => status === 'active').map(sightOf),
});

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
