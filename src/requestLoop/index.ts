/** `runchart/request-loop`: requests as the contract defines them, on the charts and the log of the core. */
export type { LoopOptions } from './agentCache.ts';
export type { AgentRun } from './agentRun.ts';
export type { Node, Part } from './nodes.ts';
export type { RequestCallbacks } from './observation.ts';
export { type CleanedUp, cleanHistory, prepareHistory, pruneToolOutputs } from './preparation.ts';
export { normalizeArgs, processNode } from './processNode.ts';
export { processRequest } from './processRequest.ts';
export {
  FileOperationError,
  GlobalRequestTimeoutError,
  ModelRetry,
  ToolExecutionError,
  UnregisteredCallError,
  UserAbortError,
  ValidationError,
} from './requestErrors.ts';
export { openSession as createStateManager, type RequestState as StateManager, type Session } from './session.ts';
export type { LoopSettings } from './settings.ts';
export type { RegisteredCall, ToolRegistry } from './toolRegistry.ts';
