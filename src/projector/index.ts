/**
 * `runchart/projector`: projects a log to a view for people. Invariant: public names only; pure, so it runs
 * everywhere.
 */
export { type LiveView, resolutionSteps, withLiveText } from './operators.ts';
export { createProjector, type Projector, type ProjectorOptions, project } from './projector.ts';
export type {
  AiBlock,
  BlockText,
  ConversationView,
  InferenceRound,
  RequestCycle,
  ResolutionStep,
  RoundMessage,
  ToolCallView,
  ToolGroup,
  ToolResultView,
  UserStep,
} from './view.ts';
