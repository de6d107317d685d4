/**
 * Writes the layouts of runchart's own charts: `npm run layouts`. Rule: what it writes is read off the machines, so it is run
 * whenever one of them changes; a test compares.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}src/inspect/drawing/layouts.ts`;
const HEADER = `/**
 * Where the states of runchart's own charts stand, made by \`npm run layouts\`. Rule: data alone; text, since it is parsed
 * faster than code.
 */
import type { Chart } from '../chart.ts';
import type { ChartLayout } from './drawn.ts';

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

/** RUN first; parsed anew at each call. */
export const laidOutCharts = (): LaidOutChart[] => TEXTS.map((text) => JSON.parse(text) as LaidOutChart);
`;
writeFileSync(target, `${HEADER}${lines.join('')}${reader}`);
process.stdout.write(`layouts: ${machines.length} charts\n`);
