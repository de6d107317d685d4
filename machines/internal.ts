/** The door of `machines/` for the library: what it publishes, and the folds and functions that only the library needs. */

export { noOpenCalls } from './calls.ts';
export { type Continued, runOf } from './conversation/context.ts';
export { addUsage, freshCounters, type UsageCost, zeroUsage } from './counters.ts';
export { canonical, fingerprintOf, hash } from './fingerprint.ts';
export * from './index.ts';
export type { CallRecord } from './log/callRecord.ts';
export { judgeDecision } from './log/decisions.ts';
export { applyEntry, countersOf, emptyLogState, type LogState } from './log/logState.ts';
export { reconcile } from './log/reconcile.ts';
export { goesOn, isCutOff, isUnfinished, openCalls, repairs, rerunOf, restored } from './log/recovery.ts';
export { subAgentEntries, subAgentUsageOf, usageOf } from './log/usage.ts';
export { stopReason } from './run/entries.ts';
export { dueReplays } from './tools/openCalls.ts';
export { CHARACTERS_A_TOKEN, shareOf } from './transcript/size.ts';
export { isVisible } from './transcript/texts.ts';
