/**
 * `runchart/node`: the modules that need Node. Rule: the core never imports this file.
 */
export { type HookOptions, hooks } from './hooks/hooks.ts';
export type { Hook, HookEvent, HookInput, HookOutput } from './hooks/runHook.ts';
export {
  type PermissionLayer,
  type PermissionOptions,
  type Permissions,
  permissions,
} from './permissions/permissions.ts';
export type { PermissionMode, PermissionVerdict } from './permissions/verdict.ts';
export {
  allowAlways,
  type Configuration,
  type ConfigurationFile,
  type ConfigurationOptions,
  configuredPlugins,
  loadConfiguration,
  trustProject,
} from './session/configuration.ts';
export { type SystemPromptOptions, systemPrompt } from './session/systemPrompt.ts';
export { jsonlStore } from './stores/jsonl/jsonlStore.ts';
export { type CodingToolOptions, codingTools } from './tools/coding/index.ts';
export { type SandboxOptions, type SandboxStatus, sandboxStatus } from './tools/coding/sandbox.ts';
