/** The public names of `runchart/machines`: the charts, their inputs and events, and the two pure functions over states and logs. */

export type * from './calls.ts';
export { type Cases, type EventCases, type Surroundings, surroundings } from './cases/cases.ts';
export { chartCases } from './cases/index.ts';
export { compactionMachine } from './compaction/compaction.machine.ts';
export type { ConversationEvent, ConversationInput } from './conversation/context.ts';
export { conversationMachine } from './conversation/conversation.machine.ts';
export type { Counters, Round, SubAgentChange } from './counters.ts';
export { modelCallMachine } from './modelCall.machine.ts';
export { type ChartEffect, type NextState, nextState } from './nextState.ts';
export * from './policies.ts';
export type * from './ports.ts';
export { type ResponseStateEvent, responseEventOf, responseStateMachine } from './responseState.machine.ts';
export { runMachine } from './run/run.machine.ts';
export type * from './run/runContext.ts';
export { resumeToolCallMachine } from './tools/resumeToolCall.machine.ts';
export { toolCallMachine } from './tools/toolCall.machine.ts';
export { toolRoundMachine } from './tools/toolRound.machine.ts';
export { createTranscript, modelMessages, type Transcript } from './transcript/transcript.ts';
export type * from './vocabulary.ts';
