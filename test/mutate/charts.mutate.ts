import { describe, expect, it } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import {
  type Cases,
  chartCases,
  conversationMachine,
  modelCallMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { ofConversation } from '../paths/conversationInvariants.ts';
import { everywhere, ofRun } from '../paths/invariants.ts';
import { ofGate, ofRound } from '../paths/toldInvariants.ts';
import { equivalents } from './equivalents.ts';
import { hunt, type InvariantsOf } from './hunt.ts';

const charts: readonly [AnyStateMachine, Cases, InvariantsOf][] = [
  [toolCallMachine, chartCases.toolCall, () => everywhere],
  [modelCallMachine, chartCases.modelCall, () => everywhere],
  [toolRoundMachine, chartCases.toolRound, () => ofRound],
  [resumeToolCallMachine, chartCases.resumeToolCall, () => ofGate],
  [conversationMachine, chartCases.conversation, ofConversation],
  [runMachine, chartCases.run, ofRun],
];

describe('a chart with one guard gone or one arrow redirected is found out by a generated path', () => {
  it.each(charts.map(([machine, ...rest]) => [machine.id, machine, ...rest] as const))('%s', (_, ...chart) => {
    const { survivors, ...report } = hunt(...chart);
    console.info(JSON.stringify(report));
    for (const survivor of survivors) console.info(`survives: ${survivor}`);
    expect(report.control).toBeUndefined();
    expect(survivors).toEqual(Object.keys(equivalents[report.chart] ?? {}));
  });
});
