/** The state of a conversation's charts, and the progress that its log contains. */
import type { LogEntry } from '../../../../machines/internal.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';

/** The source of a place. Contexts and values are immutable, so it can be kept. */
export interface Sight extends Pick<ChartActor, 'id' | 'value' | 'context'> {
  readonly chart: string;
  readonly children: readonly Sight[];
}

export const sightOf = ({ id, value, context, plan, children }: ChartActor): Sight => ({
  ...{ id, value, context, chart: plan.id },
  children: [...children.values()].filter(({ status }) => status === 'active').map(sightOf),
});

/** Returns the progress of a conversation, one line for each entry. Purely informative entries are omitted. */
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
