import {
  chartCases,
  conversationMachine,
  modelCallMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { modelCallInvariants } from './modelCall.invariants.ts';
import { stateSuite } from './stateSuite.ts';
import { toolCallInvariants } from './toolCall.invariants.ts';
import { toolRoundInvariants } from './toolRound.invariants.ts';

stateSuite(toolCallMachine, chartCases.toolCall, toolCallInvariants);
stateSuite(modelCallMachine, chartCases.modelCall, modelCallInvariants);
stateSuite(toolRoundMachine, chartCases.toolRound, toolRoundInvariants);
stateSuite(resumeToolCallMachine, chartCases.resumeToolCall, []);
stateSuite(conversationMachine, chartCases.conversation, []);
stateSuite(runMachine, chartCases.run, []);
