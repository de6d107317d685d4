/**
 * `runchart charts`: the charts as they are built, drawn as mermaid or as SVG. Rule: what is printed is read off the machines, so
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
import { chartSvg } from '../inspect/drawing/svg.ts';
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

function named(name: string): AnyStateMachine {
  const wanted = name.toLowerCase();
  const chart = CHARTS.find(({ id }) => id.toLowerCase() === wanted);
  if (chart) return chart;
  const names = CHARTS.map(({ id }) => id).join(', ');
  throw new ConfigurationError(`there is no chart ${JSON.stringify(name)}; the charts are ${names}`);
}

/** One chart as SVG, laid out as the inspector's page shows it. Rejects with ConfigurationError for a name that none has. */
export async function chartPicture(name: string, write: (text: string) => void): Promise<void> {
  const { id } = named(name);
  const { laidOutCharts } = await import('../inspect/drawing/layouts.ts');
  const found = laidOutCharts().find(({ chart }) => chart.name === id);
  if (!found) throw new ConfigurationError(`the chart ${id} has no layout: run \`npm run layouts\``);
  write(chartSvg(found.chart, found.layout));
}

/** A Markdown document of all charts, or one chart alone. Throws ConfigurationError for a name that none has. */
export function chartsCommand(name: string | undefined, write: (text: string) => void): void {
  if (name === undefined) {
    for (const chart of CHARTS) write(`## ${chart.id}\n\n\`\`\`mermaid\n${drawChart(chart).trimEnd()}\n\`\`\`\n\n`);
    return;
  }
  write(`${drawChart(named(name)).trimEnd()}\n`);
}
