/**
 * What an agent is made of. Rule: an unknown or impossible option is refused at start, with a message that names it.
 */
import type { Decision, PendingCall } from '../machines/index.ts';
import { ConfigurationError } from './errors.ts';
import type { Model } from './models/model.ts';
import type { DeepPartial, Policies } from './options.ts';
import type { Plugin } from './plugins/plugin.ts';
import type { Ports } from './ports.ts';
import type { LogStore } from './stores/store.ts';
import { definitionOf, type Tool } from './tools/define.ts';

/** Called synchronously, never throws into a run. */
export type InspectObserver = (event: unknown) => void;

export interface AgentOptions {
  model: Model;
  instructions?: string;
  tools?: readonly Tool[];
  plugins?: readonly Plugin[];
  /** Nested objects are merged key by key over the defaults. */
  policies?: DeepPartial<Policies>;
  store?: LogStore;
  cwd?: string;
  inspect?: InspectObserver;
  /** Values that must never be logged; a model's own are added. */
  secrets?: readonly string[];
  authorize?(decision: Decision, call: PendingCall): boolean | Promise<boolean>;
  ports?: Partial<Ports>;
}

const KEYS = [
  'model',
  'instructions',
  'tools',
  'plugins',
  'policies',
  'store',
  'cwd',
  'inspect',
  'secrets',
  'authorize',
  'ports',
];

function checkTools(tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const tool of tools) {
    if (!definitionOf(tool)) throw new ConfigurationError('tools must be made by defineTool');
    if (names.has(tool.name)) throw new ConfigurationError(`two tools are named ${JSON.stringify(tool.name)}`);
    names.add(tool.name);
  }
}

/** Throws ConfigurationError for an option that is unknown or cannot work. */
export function checkOptions(options: AgentOptions): void {
  for (const key of Object.keys(options)) {
    if (!KEYS.includes(key)) throw new ConfigurationError(`the option ${key} is unknown; known are ${KEYS.join(', ')}`);
  }
  if (typeof options.model?.stream !== 'function') {
    throw new ConfigurationError("createAgent needs a model, for example openai('gpt-5.2')");
  }
  checkTools(options.tools ?? []);
  for (const plugin of options.plugins ?? []) {
    if (typeof plugin?.name !== 'string' || plugin.name === '') throw new ConfigurationError('a plugin needs a name');
  }
}
