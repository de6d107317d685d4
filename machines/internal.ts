/** The door of `machines/` for the library: what it publishes, and the folds and functions that only the library needs. */

export { noOpenCalls } from './calls.ts';
export { type Continued, runOf } from './conversation/context.ts';
export { freshCounters, nothingSpent, type Spent, together } from './counters.ts';
export { canonical, hash, printOf } from './fingerprint.ts';
export * from './index.ts';
export type { CallRecord } from './log/callRecord.ts';
export { judge } from './log/decisions.ts';
export { countersOf, type Knowledge, learn, nothingKnown } from './log/logState.ts';
export { sequel } from './log/reconcile.ts';
export { goesOn, isCutOff, isUnfinished, openCalls, repairs, rerunOf, restored } from './log/recovery.ts';
export { countedIn, spentIn, subAgentEntries } from './log/usage.ts';
export { stopReason } from './run/entries.ts';
export { gateWork } from './tools/openCalls.ts';
export { CHARACTERS_A_TOKEN, shareOf } from './transcript/size.ts';
export { isVisible } from './transcript/texts.ts';
