/**
 * The public names of runchart. This entry point is browser-safe: it imports neither a vendor's client nor Node's
 * modules.
 */
export type {
  AgentItem,
  Boundary,
  Decision,
  DecisionReceipt,
  Diagnostic,
  FinishReason,
  GroupName,
  Json,
  Limits,
  LogEntry,
  Message,
  MessageKind,
  ModelSettings,
  NewEntry,
  PendingCall,
  QueuedMessage,
  RequestInfo,
  RuntimeEntry,
  Settlement,
  StopReason,
  StoredPart,
  Termination,
  ToolCall,
  ToolOutcome,
  Usage,
  WireEvent,
} from '../machines/index.ts';
export { type Agent, createAgent } from './agent.ts';
export type { DeepPartial, Policies } from './agentPolicies.ts';
export { presets } from './agentPolicies.ts';
export type { Content, ContentPart, EarlierMessage } from './content/content.ts';
export type { ImageLimits } from './content/imageFormat.ts';
export type { ScaleImage } from './content/scaleImage.ts';
export type { Conversation } from './conversation/conversation.ts';
export { type CopyOptions, type CopyResult, copyConversations } from './conversation/copies/copyConversations.ts';
export { forkConversation } from './conversation/copies/fork.ts';
export type { Receipt } from './conversation/receipts.ts';
export { type Run, RunError, type RunResult } from './conversation/run.ts';
export type { SendOptions } from './conversation/sendOptions.ts';
export { type Past, pastOf } from './conversation/timeTravel.ts';
export * from './errors.ts';
export type { ConversationStatus, InFlight, Live } from './live.ts';
export { type CallCost, type ConversationCost, type Cost, costOf } from './log/cost.ts';
export type { Logger } from './log/factLog.ts';
export {
  type Model,
  ModelError,
  type ModelErrorCode,
  type ModelPart,
  type ModelRequest,
  type Prices,
  type ToolSpec,
} from './models/model.ts';
export type { AgentOptions, InspectObserver } from './options.ts';
export type { PhaseContext, Plugin } from './plugins/plugin.ts';
export type {
  ConversationView,
  InferenceRound,
  RequestCycle,
  ResolutionStep,
  ToolCallView,
} from './projector/view.ts';
export type { Ports } from './runtime/hostPorts.ts';
export type { ConversationInfo, ListOptions, LogHandle, LogStore } from './stores/logStore.ts';
export { memoryStore } from './stores/memory.ts';
export { deleteBefore } from './stores/rowTable.ts';
export type { SubAgentOptions } from './subAgents/spawnProfile.ts';
export { subAgents } from './subAgents/spawnTool.ts';
export { defineTool, type Tool, type ToolContext, type ToolResult, toolResult } from './tools/tool.ts';
