/**
 * `runchart charts`: the charts as they are built, drawn as mermaid. Rule: what is printed is read off the machines, so
 * that it cannot differ from what runs.
 */
import type { AnyStateMachine } from 'xstate';
import {
  compactionMachine,
  conversationMachine,
  modelCallMachine,
  responseStateMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/internal.ts';
import { ConfigurationError } from '../errors.ts';
import { drawChart } from '../testing/drawChart.ts';

const CHARTS: readonly AnyStateMachine[] = [
  conversationMachine,
  runMachine,
  modelCallMachine,
  compactionMachine,
  toolRoundMachine,
  toolCallMachine,
  resumeToolCallMachine,
  responseStateMachine,
];

/** A Markdown document of all charts, or one chart alone. Throws ConfigurationError for a name that none has. */
export function chartsCommand(name: string | undefined, write: (text: string) => void): void {
  if (name === undefined) {
    for (const chart of CHARTS) write(`## ${chart.id}\n\n\`\`\`mermaid\n${drawChart(chart).trimEnd()}\n\`\`\`\n\n`);
    return;
  }
  const wanted = name.toLowerCase();
  const chart = CHARTS.find(({ id }) => id.toLowerCase() === wanted);
  if (!chart) {
    const names = CHARTS.map(({ id }) => id).join(', ');
    throw new ConfigurationError(`there is no chart ${JSON.stringify(name)}; the charts are ${names}`);
  }
  write(`${drawChart(chart).trimEnd()}\n`);
}
