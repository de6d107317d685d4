/** Generated paths and simulated lives on the compiled interpreter, compared with XState step by step. */
import { describe, expect, it } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import {
  type Cases,
  chartCases,
  compactionMachine,
  conversationMachine,
  modelCallMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { coverPaths } from '../../src/testing/chartPaths/coverPaths.ts';
import { driveSync } from '../../src/testing/chartPaths/drive.ts';
import { simulate } from '../simulation/checkedLife.ts';
import { sourceSeed } from '../support/sourceSeed.ts';
import { sampled, volume } from '../support/tier.ts';
import { shadowed } from './shadow.ts';

const charts = [
  [toolCallMachine, chartCases.toolCall],
  [modelCallMachine, chartCases.modelCall],
  [compactionMachine, chartCases.compaction],
  [toolRoundMachine, chartCases.toolRound],
  [resumeToolCallMachine, chartCases.resumeToolCall],
  [conversationMachine, chartCases.conversation],
  [runMachine, chartCases.run],
] as unknown as [AnyStateMachine, Cases][];
const starts = charts.flatMap(([machine, chart]) =>
  sampled([...chart.inputs.entries()], volume.shadowStartOf).map(
    ([index, input]) => [machine.id, index + 1, machine, chart, input] as const,
  ),
);

describe('compared with XState, the compiled plan logs, asks and ends the same', () => {
  it.each(starts)('on the generated paths of %s from start %i', (_, __, machine, { cases, projection }, input) => {
    const { interpreter, count } = shadowed();
    const all = coverPaths(machine, { input, cases, projection });
    const paths = sampled(all, Math.ceil(all.length / volume.pathsMost));
    for (const path of paths) driveSync(machine, path, { input, interpreter });
    expect(count.differences).toEqual([]);
    expect(count.steps).toBeGreaterThanOrEqual(2 * paths.length);
  });

  it(`in ${volume.shadowLives} simulated lives, half of them with seeds of the sources`, async () => {
    const { interpreter, count } = shadowed();
    for (let life = 0; life < volume.shadowLives / 2; life++) {
      await simulate({ seed: life + 1, interpreter });
      await simulate({ seed: sourceSeed() + life, interpreter });
    }
    expect(count.differences).toEqual([]);
    expect(count.steps).toBeGreaterThan(20 * volume.shadowLives);
  });
});
