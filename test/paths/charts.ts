/** The charts with their cases and their rules. */
import type { AnyStateMachine } from 'xstate';
import {
  type Cases,
  chartCases,
  compactionMachine,
  conversationMachine,
  modelCallMachine,
  responseStateMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { anyChart } from './anyChart.invariants.ts';
import { compactionInvariants } from './compaction.invariants.ts';
import { conversationInvariants } from './conversation.invariants.ts';
import type { ChartInvariant } from './edgeTrace.ts';
import { modelCallInvariants } from './modelCall.invariants.ts';
import { responseStateInvariants } from './responseState.invariants.ts';
import { resumeToolCallInvariants } from './resumeToolCall.invariants.ts';
import { runInvariants } from './run.invariants.ts';
import { toolCallInvariants } from './toolCall.invariants.ts';
import { toolRoundInvariants } from './toolRound.invariants.ts';

export interface Judged {
  machine: AnyStateMachine;
  cases: Cases;
  invariants: readonly ChartInvariant[];
}
const judged = (machine: AnyStateMachine, cases: Cases, own: readonly ChartInvariant[]): Judged => ({
  machine,
  cases,
  invariants: [...anyChart, ...own],
});

/** The smallest chart comes first. */
export const charts: readonly Judged[] = [
  judged(toolCallMachine, chartCases.toolCall, toolCallInvariants),
  judged(modelCallMachine, chartCases.modelCall, modelCallInvariants),
  judged(compactionMachine, chartCases.compaction, compactionInvariants),
  judged(resumeToolCallMachine, chartCases.resumeToolCall, resumeToolCallInvariants),
  judged(toolRoundMachine, chartCases.toolRound, toolRoundInvariants),
  judged(conversationMachine, chartCases.conversation, conversationInvariants),
  judged(runMachine, chartCases.run, runInvariants),
  // It requests and logs nothing, so the rules of acting charts do not apply.
  { machine: responseStateMachine, cases: chartCases.responseState, invariants: responseStateInvariants },
];
