/** What `runchart/machines` publishes: the charts, what to feed them with, and the two pure functions over states and logs. */

export type * from './calls.ts';
export { type Cases, type EventCases, type Surroundings, surroundings } from './cases.ts';
export { chartCases } from './chartCases.ts';
export { conversationMachine } from './conversation.machine.ts';
export type { ConversationEvent, ConversationInput } from './conversationContext.ts';
export type { Counters, Round } from './counters.ts';
export { createTranscript, modelMessages, type Transcript } from './history.ts';
export { modelCallMachine } from './modelCall.machine.ts';
export { type ChartEffect, type NextState, nextState } from './nextState.ts';
export * from './policies.ts';
export type * from './ports.ts';
export { resumeToolCallMachine } from './resumeToolCall.machine.ts';
export type * from './run/context.ts';
export { runMachine } from './run/run.machine.ts';
export type { SubAgentChange } from './spending.ts';
export { toolCallMachine } from './toolCall.machine.ts';
export { toolRoundMachine } from './toolRound.machine.ts';
export type * from './vocabulary.ts';
