/**
 * The data from which paths of each chart are generated: its inputs, its possible events, the facts that its guards read, and its
 * surroundings. Invariant: values and pure functions only. A running conversation reaches nothing here.
 */
import type { Cases } from './cases.ts';
import { compactionCases } from './compaction.cases.ts';
import { conversationCases } from './conversation.cases.ts';
import { modelCallCases } from './modelCall.cases.ts';
import { resumeToolCallCases } from './resumeToolCall.cases.ts';
import { runCases } from './run.cases.ts';
import { toolCallCases } from './toolCall.cases.ts';
import { toolRoundCases } from './toolRound.cases.ts';

/** Its events have no outcomes, and it depends on nothing. */
const responseStateCases: Cases = {
  inputs: [{}],
  cases: Object.fromEntries(
    ['model.begins', 'tools.begin', 'tools.end', 'request.completed'].map((type) => [type, [{ type }]]),
  ),
  projection: () => null,
};

/** The names of the charts. */
type Chart =
  | 'conversation'
  | 'run'
  | 'toolRound'
  | 'toolCall'
  | 'resumeToolCall'
  | 'modelCall'
  | 'compaction'
  | 'responseState';

/** The inputs and events of each chart, for `coverPaths` of `runchart/testing`. */
export const chartCases: Record<Chart, Cases> = {
  conversation: conversationCases,
  run: runCases,
  toolRound: toolRoundCases,
  toolCall: toolCallCases,
  resumeToolCall: resumeToolCallCases,
  modelCall: modelCallCases,
  responseState: responseStateCases,
  compaction: compactionCases,
};
