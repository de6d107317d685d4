/** The public names of runchart. Browser-safe: behind this door stand neither a vendor's client nor Node's modules. */
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
  NewEntry,
  PendingCall,
  QueuedMessage,
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
export { forkConversation } from './conversation/fork.ts';
export type { Receipt } from './conversation/receipts.ts';
export { type Run, RunError, type RunResult } from './conversation/run.ts';
export { type Past, pastOf } from './conversation/timeTravel.ts';
export * from './errors.ts';
export type { ConversationStatus, InFlight, Live } from './live.ts';
export { type CallCost, type ConversationCost, type Cost, costOf } from './log/cost.ts';
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
export type { ConversationInfo, LogHandle, LogStore } from './stores/logStore.ts';
export { memoryStore } from './stores/memory.ts';
export type { SubAgentOptions } from './subAgents/spawnProfile.ts';
export { subAgents } from './subAgents/spawnTool.ts';
export { defineTool, type Tool, type ToolContext, type ToolResult, toolResult } from './tools/tool.ts';
