/** The names that the library may import from `machines/`: its public exports, and the folds and functions that only the library needs. */

export { noOpenCalls } from './calls.ts';
export { compactionChart } from './compaction/compaction.machine.ts';
export {
  ACT_LIFE,
  type ActEvent,
  type ActTask,
  fatesOf,
  type GivenUpBy,
  hasCancel,
  isCancelling,
  nextActs,
  nextRunOf,
  overtakes,
  type PendingAct,
  placeOfRun,
  type RunPlace,
  standingAfterActs,
} from './conversation/actLife.ts';
export { type Continued, type HostAct, runOf } from './conversation/context.ts';
export { conversationChart } from './conversation/conversation.machine.ts';
export {
  type Act,
  acceptMessage,
  judgeAct,
  type Refusal,
  type Standing,
  standingAfter,
  standingOf,
} from './conversation/judgeAct.ts';
export {
  addUsage,
  fieldsOf,
  freshCounters,
  isCount,
  readUsage,
  subAgentEntries,
  subAgentUsageOf,
  type UsageCost,
  usageOf,
  zeroUsage,
} from './counters.ts';
export { canonical, fingerprintOf, hash } from './fingerprint.ts';
export * from './index.ts';
export {
  type CallRecord,
  type CycleRequest,
  choicesOf,
  isOver,
  isRetried,
  judgeDecision,
  originOf,
  rerunOf,
  withOrigin,
} from './log/callRecord.ts';
export { eachEarlierEntry } from './log/earlierMessages.ts';
export { entryKinds, type Fields, type Shape, sampleEntries, unusableField } from './log/entryKinds.ts';
export {
  applyEntry,
  countersOf,
  emptyLogState,
  goesOn,
  isUnfinished,
  type LogState,
  openCalls,
} from './log/logState.ts';
export { reconcile } from './log/reconcile.ts';
export { isCutOff, repairs, restored } from './log/recovery.ts';
export { entryOfMessage, outputInLog } from './log/repeatedMessages.ts';
export { placeBefore, standingEntries } from './log/rewinding.ts';
export {
  type Check,
  chartRows,
  choice as choiceRow,
  defaultsOf,
  type Group,
  modelRows,
  number as numberRow,
  off as offRow,
  type Row,
  toolRetryRows,
  type ValuesOf,
} from './policyRows.ts';
export { REPORT_KINDS } from './ports.ts';
export { runChart } from './run/run.machine.ts';
export { stopReason } from './run/runEntries.ts';
export { dueReplays } from './tools/openCalls.ts';
export { groupNames } from './tools/toolGroups.ts';
export { shareOf } from './transcript/contextEntries.ts';
export { GO_ON_STOPPED, PRUNED_RESULT } from './transcript/texts.ts';
export {
  CHARACTERS_A_TOKEN,
  deepFreeze,
  isVisible,
  prunableIn,
  prunableOf,
  sizeOf,
  sizeOfContent,
  sizeOfTranscript,
  textOfContent,
  textPart,
} from './transcript/transcript.ts';
export { type Chart, withActors } from './verbs.ts';
export { verbs } from './xstateVerbs.ts';
