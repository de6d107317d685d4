/**
 * Tools for tests of agents and charts: a scripted model, generated paths, a driver for them, and suites for stores
 * and models.
 */
export type { EventCases, Surroundings } from '../../machines/internal.ts';
export { surroundings } from '../../machines/internal.ts';
export { drawChart } from '../diagrams/drawChart.ts';
export {
  type ChartState,
  type RecordedDelivery,
  type RecordingSink,
  type Replayed,
  type ReplayOptions,
  recordingJournal,
  replayingJournal,
  replayRecording,
  replayUntil,
} from '../journals/index.ts';
export type { Move, SaidCall } from '../scripts/moves.ts';
export { scriptOf, testOf } from '../scripts/scriptOf.ts';
export { type AgentPaths, agentPaths } from './agentPaths/agentPaths.ts';
export type { AgentPath, AgentPathsOptions, PathOutcome, Verdict } from './agentPaths/pathOptions.ts';
export type { AgentPathsReport } from './agentPaths/pathReport.ts';
export { runScript } from './agentPaths/runScript.ts';
export type { ChartTransition } from './agentPaths/search/takenTransitions.ts';
export type { VerdictRow } from './agentPaths/verdictRows.ts';
export { type CoverOptions, coverPaths } from './chartPaths/coverPaths.ts';
export { type Driven, type DriveOptions, drive, type Invariant } from './chartPaths/drive.ts';
export type { Children, Seen } from './chartPaths/drivenChart.ts';
export type { ScriptedJournal } from './chartPaths/scriptedJournal.ts';
export type { PathState, PathStep, TestPath } from './chartPaths/testPath.ts';
export { modelSuite } from './modelSuite/modelSuite.ts';
export { type RequestLoopEngine, requestLoopSuite } from './requestLoopSuite/requestLoopSuite.ts';
export {
  type Script,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  scriptedModel,
} from './scriptedModel.ts';
export { shrink } from './simulation/shrink.ts';
export {
  neverReached,
  type SimulationOptions,
  type SimulationReport,
  simulate,
} from './simulation/simulate.ts';
export type { Violation } from './simulation/world/simulatedWorld.ts';
export { logStoreSuite, type SuiteRunner } from './storeSuite/logStoreSuite.ts';
export { type Definition, type TransitionCoverage, transitionCoverage } from './transitionCoverage.ts';
export type { AgentWorld } from './world/agentWorld.ts';
