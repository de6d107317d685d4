/**
 * Writes the layouts of runchart's own charts: `npm run layouts`. Invariant: the machines are the only source. Run it
 * after each change of a machine; a test compares the result.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}src/inspect/drawing/layouts.ts`;
const HEADER = `/**
 * The layouts of runchart's own charts, made by \`npm run layouts\`. Invariant: constants only. They are text, because
 * parsing text is faster than parsing code.
 */
import type { Chart } from '../chart.ts';
import type { ChartLayout } from './chartDrawing.ts';

export interface LaidOutChart {
  readonly chart: Chart;
  readonly layout: ChartLayout;
}

const TEXTS: readonly string[] = [
`;

const stdin = {
  contents: `export * from './machines/index.ts'; export { chartOf } from './src/inspect/chart.ts'; export { layoutChart } from './src/inspect/drawing/layout.ts';`,
  resolveDir: root,
  loader: 'ts',
};
const { outputFiles } = await build({ stdin, bundle: true, format: 'esm', platform: 'node', write: false });
const made = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString('base64')}`);
const ELK = createRequire(import.meta.url)('elkjs/lib/elk.bundled.js');
const elk = new ELK();
const machines = [
  'runMachine',
  'conversationMachine',
  'modelCallMachine',
  'compactionMachine',
  'toolRoundMachine',
  'toolCallMachine',
  'resumeToolCallMachine',
  'responseStateMachine',
];
const lines = [];
for (const name of machines) {
  const chart = made.chartOf(made[name]);
  const text = JSON.stringify({ chart, layout: await made.layoutChart(chart, elk) });
  lines.push(`  '${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}',\n`);
}
const reader = `];

/** RUN comes first. Each call parses the texts again. */
export const laidOutCharts = (): LaidOutChart[] => TEXTS.map((text) => JSON.parse(text) as LaidOutChart);
`;
writeFileSync(target, `${HEADER}${lines.join('')}${reader}`);
process.stdout.write(`layouts: ${machines.length} charts\n`);
