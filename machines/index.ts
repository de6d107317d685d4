/** The door of the pure half: charts, vocabulary and pure functions. */

export type { CallRecord } from './callRecord.ts';
export { type Cases, type EventCases, type Surroundings, surroundings } from './cases.ts';
export { chartCases } from './chartCases.ts';
export { closed } from './closing.ts';
export { shareOf } from './contextUse.ts';
export { conversationMachine } from './conversation.machine.ts';
export type { ConversationEvent, ConversationInput } from './conversationContext.ts';
export { runOf } from './conversationSteps.ts';
export { type Judgement, judge } from './decisions.ts';
export { gatedAgain, gateWork } from './gateWork.ts';
export { createTranscript, modelMessages, type Transcript } from './history.ts';
export { countersOf, type Knowledge, learn, nothingKnown } from './knowledge.ts';
export { CHARACTERS_A_TOKEN } from './messageSize.ts';
export { modelCallMachine } from './modelCall.machine.ts';
export { type ChartEffect, type NextState, nextState } from './nextState.ts';
export * from './policies.ts';
export * from './ports.ts';
export { canonical, hash, printOf } from './print.ts';
export { goesOn, isCutOff, isUnfinished, openCalls, repairs, replayable, rerunOf, restored } from './recovery.ts';
export { resumeToolCallMachine } from './resumeToolCall.machine.ts';
export { runMachine } from './run.machine.ts';
export * from './runContext.ts';
export { stopReason } from './runEnd.ts';
export { sequel } from './sequel.ts';
export { isVisible } from './shownText.ts';
export {
  countedIn,
  nothingSpent,
  type Spent,
  type SubAgentChange,
  spentIn,
  subAgentEntries,
  together,
} from './spending.ts';
export { toolCallMachine } from './toolCall.machine.ts';
export { toolRoundMachine } from './toolRound.machine.ts';
export type * from './vocabulary.ts';
