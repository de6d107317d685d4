/**
 * What an agent is made of. Rule: an unknown or impossible option is refused at start, with a message that names it.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Decision, PendingCall } from '../machines/internal.ts';
import type { DeepPartial, Policies } from './agentPolicies.ts';
import type { EarlierMessage } from './content/content.ts';
import { ConfigurationError } from './errors.ts';
import type { Model } from './models/model.ts';
import { checkPlugin, type Plugin } from './plugins/plugin.ts';
import { type Ports, storeValidator } from './runtime/hostPorts.ts';
import type { LogStore } from './stores/logStore.ts';
import { definitionOf, type Tool } from './tools/tool.ts';
import {
  anything,
  callback,
  check,
  checkOptionsOf,
  choice,
  flag,
  hasMethods,
  invalidOption,
  list,
  nonEmptyText,
  object,
  standardSchema,
  strings,
  text,
} from './validation.ts';

/**
 * Called synchronously, never throws into a run. An observer of XState's inspection, or an inspector that has one, may be
 * given too.
 */
export type InspectObserver =
  | ((event: unknown) => void)
  | { next?(event: unknown): void }
  | { inspect: { next?(event: unknown): void } };

export interface AgentOptions<S extends StandardSchemaV1 = StandardSchemaV1> {
  model: Model;
  instructions?: string;
  tools?: readonly Tool[];
  plugins?: readonly Plugin[];
  /** Nested objects are merged key by key over the defaults. */
  policies?: DeepPartial<Policies>;
  store?: LogStore;
  cwd?: string;
  inspect?: InspectObserver;
  /** What runs the charts: plans compiled from them (default), or XState itself. Both behave alike. */
  interpreter?: 'compiled' | 'xstate';
  /** Values that must never be logged; a model's own are added. */
  secrets?: readonly string[];
  /** What the final answer of each request must fit; `send` may name another one. */
  output?: S;
  authorize?(decision: Decision, call: PendingCall): boolean | Promise<boolean>;
  ports?: Partial<Ports>;
}

const MODEL = "a model, for example openai('gpt-5.2')";

/** What each option takes; policies and ports are checked by their own validators. */
export const agentValidator = object({
  model: { expected: MODEL, test: (value) => hasMethods(value, 'stream'), secret: true },
  instructions: text,
  tools: list('tools'),
  plugins: list('plugins'),
  store: storeValidator,
  cwd: nonEmptyText,
  inspect: {
    expected: 'a function or observer',
    test: (value) => {
      const given = value as { inspect?: { next?: unknown }; next?: unknown } | null | undefined;
      return callback.test(given?.inspect?.next ?? given?.next ?? value);
    },
  },
  interpreter: choice('compiled', 'xstate'),
  output: standardSchema,
  secrets: strings,
  authorize: callback,
  policies: anything,
  ports: anything,
});

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
  check('the options of createAgent', options, agentValidator, 'the option ');
  if (options.model === undefined) throw new ConfigurationError(`createAgent needs ${MODEL}`);
  checkTools(options.tools ?? []);
  for (const plugin of options.plugins ?? []) checkPlugin(plugin);
}

/** What a conversation may be opened with. */
export interface OpenOptions {
  /** Earlier messages of a new conversation. */
  history?: readonly EarlierMessage[];
  /** Of a new conversation; an existing one keeps its own. */
  cwd?: string;
  /** One that is there already, or RunchartError `not_found`; none is made. */
  existing?: boolean;
}
const openValidator = object({ history: list('messages'), cwd: nonEmptyText, existing: flag });

/** Throws ConfigurationError for what no conversation is opened by. */
export function checkId(id: unknown): void {
  if (!nonEmptyText.test(id)) throw invalidOption('the id of a conversation', nonEmptyText, id);
}

/** Throws ConfigurationError for an id or an option that is unknown or cannot work. */
export function checkOpening(id: string, options: OpenOptions): void {
  checkId(id);
  checkOptionsOf('open', options, openValidator);
}
