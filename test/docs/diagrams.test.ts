import { describe, expect, it } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import {
  conversationMachine,
  modelCallMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { drawChart } from '../../src/testing/drawChart.ts';
import { nodesOf } from '../../src/testing/transitionCoverage.ts';

const charts: readonly [string, AnyStateMachine][] = [
  ['conversation', conversationMachine],
  ['run', runMachine],
  ['toolRound', toolRoundMachine],
  ['toolCall', toolCallMachine],
  ['resumeToolCall', resumeToolCallMachine],
  ['modelCall', modelCallMachine],
];

describe('the diagrams are drawn from the charts', () => {
  it.each(charts)('docs/diagrams/%s.mmd shows the chart as it is built', async (name, machine) => {
    await expect(drawChart(machine)).toMatchFileSnapshot(`../../docs/diagrams/${name}.mmd`);
  });

  it.each(charts)('the drawing of %s names every state but the root and the end', (_, machine) => {
    const drawing = drawChart(machine);
    const states = [...nodesOf(machine.root)].filter(({ parent, key }) => parent && key !== 'Done');
    expect(states.map(({ key }) => key).filter((key) => !drawing.includes(key))).toEqual([]);
  });
});
