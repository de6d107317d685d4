/**
 * `runchart charts`: draws the charts as mermaid or as SVG. Invariant: the machines themselves are the source, so the drawing always
 * equals the running chart.
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
import { drawChart } from '../diagrams/drawChart.ts';
import { ConfigurationError } from '../errors.ts';
import { chartSvg } from '../inspect/drawing/svg.ts';

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

function chartNamed(name: string): AnyStateMachine {
  const lowerName = name.toLowerCase();
  const chart = CHARTS.find(({ id }) => id.toLowerCase() === lowerName);
  if (chart) return chart;
  const names = CHARTS.map(({ id }) => id).join(', ');
  throw new ConfigurationError(`there is no chart ${JSON.stringify(name)}; the charts are ${names}`);
}

/**
 * Writes one chart as SVG with the layout of the inspector's page. Rejects with ConfigurationError for an unknown
 * name.
 */
export async function chartPicture(name: string, write: (text: string) => void): Promise<void> {
  const { id } = chartNamed(name);
  const { laidOutCharts } = await import('../inspect/drawing/layouts.ts');
  const laidOut = laidOutCharts().find(({ chart }) => chart.name === id);
  if (!laidOut) throw new ConfigurationError(`the chart ${id} has no layout: run \`npm run layouts\``);
  write(chartSvg(laidOut.chart, laidOut.layout));
}

/** Writes a Markdown document of all charts, or one chart. Throws ConfigurationError for an unknown name. */
export function chartsCommand(name: string | undefined, write: (text: string) => void): void {
  if (name === undefined) {
    for (const chart of CHARTS) write(`## ${chart.id}\n\n\`\`\`mermaid\n${drawChart(chart).trimEnd()}\n\`\`\`\n\n`);
    return;
  }
  write(`${drawChart(chartNamed(name)).trimEnd()}\n`);
}
