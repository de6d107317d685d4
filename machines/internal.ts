/** The door of `machines/` for the library: what it publishes, and the folds and functions that only the library needs. */
export type { CallRecord } from './callRecord.ts';
export { noOpenCalls } from './calls.ts';
export { shareOf } from './contextUse.ts';
export { runOf } from './conversationSteps.ts';
export { freshCounters, nothingSpent, type Spent, together } from './counters.ts';
export { judge } from './decisions.ts';
export { gateWork } from './gateWork.ts';
export * from './index.ts';
export { countersOf, type Knowledge, learn, nothingKnown } from './knowledge.ts';
export { CHARACTERS_A_TOKEN } from './messageSize.ts';
export { canonical, hash, printOf } from './print.ts';
export { goesOn, isCutOff, isUnfinished, openCalls, repairs, rerunOf, restored } from './recovery.ts';
export { stopReason } from './run/entries.ts';
export { sequel } from './sequel.ts';
export { isVisible } from './shownText.ts';
export { countedIn, spentIn, subAgentEntries } from './spending.ts';
