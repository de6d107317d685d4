/**
 * `runchart/projector`: a log to what people see of it. Rule: public names only; pure, so that it runs anywhere.
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
