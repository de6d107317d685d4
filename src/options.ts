/** The options of an agent. Rule: an unknown or impossible option is refused at start, with a message that names it. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Decision, PendingCall } from '../machines/internal.ts';
import type { DeepPartial, Policies } from './agentPolicies.ts';
import type { EarlierMessage } from './content/content.ts';
import { ConfigurationError } from './errors.ts';
import type { Logger } from './log/factLog.ts';
import type { Model } from './models/model.ts';
import { checkPlugin, type Plugin } from './plugins/plugin.ts';
import { type Ports, storeValidator } from './runtime/hostPorts.ts';
import type { ListOptions, LogStore } from './stores/logStore.ts';
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
  isObject,
  list,
  nonEmptyText,
  object,
  standardSchema,
  strings,
  text,
  type Validator,
  whole,
} from './validation.ts';

/**
 * Receives events of running charts. Called synchronously, never throws into a run. An observer of XState's inspection, or
 * an inspector that has one, may be given too.
 */
export type InspectObserver =
  | ((event: unknown) => void)
  | { next?(event: unknown): void }
  | { inspect: { next?(event: unknown): void } };

/** The options of `createAgent`. Only `model` is required. */
export interface AgentOptions<S extends StandardSchemaV1 = StandardSchemaV1> {
  /** The model of all requests that choose no other one. */
  model: Model;
  /** Models that `send({ model })` may choose by name. The name is logged. */
  models?: { readonly [name: string]: Model };
  /** The system text of every request. Default: none. */
  instructions?: string;
  /** The tools that the model may call, made by `defineTool`. Default: none. */
  tools?: readonly Tool[];
  /** Code that runs in the phases of a run, in this order. Default: none. */
  plugins?: readonly Plugin[];
  /** Nested objects are merged key by key over the defaults. */
  policies?: DeepPartial<Policies>;
  /** Where conversations are stored. Default: memory, which ends with the process. */
  store?: LogStore;
  /** The directory in which tools start. Default: the directory of the process, or `/` in a browser. */
  cwd?: string;
  /** Receives the events of the running charts, for example `startInspector().observe`. */
  inspect?: InspectObserver;
  /** The interpreter of the charts: compiled plans (default), or XState itself. Both behave alike. */
  interpreter?: 'compiled' | 'xstate';
  /** Receives one fact for each entry of each conversation, redacted and without contents. */
  logger?: Logger;
  /** Values that must never be logged; a model's own are added. */
  secrets?: readonly string[];
  /** The schema for the final answer of each request. `send` may pass another one. */
  output?: S;
  /** Schemas that `send({ output })` may choose by name. The name is logged, so it holds after a restart too. */
  outputs?: { readonly [name: string]: StandardSchemaV1 };
  /** Decides whether a decision counts. Anything but true is DecisionRefusedError. Default: every decision counts. */
  authorize?(decision: Decision, call: PendingCall): boolean | Promise<boolean>;
  /** The clock, ids, randomness and timers, for tests and unusual platforms. Default: those of the platform. */
  ports?: Partial<Ports>;
}

const MODEL = "a model, for example openai('gpt-5.2')";

/** An object whose values are of one kind. */
const byName = (of: string, test: (each: unknown) => boolean): Validator => ({
  expected: `an object of ${of} by name`,
  test: (value) => isObject(value) && Object.entries(value).every(([name, each]) => name !== '' && test(each)),
  secret: true,
});

/** The validators of all options. Policies and ports have their own validators. */
export const agentValidator = object({
  model: { expected: MODEL, test: (value) => hasMethods(value, 'stream'), secret: true },
  models: byName('models', (each) => hasMethods(each, 'stream')),
  outputs: byName('Standard Schemas that can be written as JSON Schema', (each) => standardSchema.test(each)),
  instructions: text,
  tools: list('tools'),
  plugins: list('plugins'),
  store: storeValidator,
  cwd: nonEmptyText,
  inspect: {
    expected: 'a function or observer',
    test: (value) => {
      const observer = value as { inspect?: { next?: unknown }; next?: unknown } | null | undefined;
      return callback.test(observer?.inspect?.next ?? observer?.next ?? value);
    },
  },
  interpreter: choice('compiled', 'xstate'),
  logger: object({ debug: callback, info: callback, warn: callback, error: callback }, { refuses: () => false }),
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

/** The options for opening a conversation. */
export interface OpenOptions {
  /** Earlier messages of a new conversation. */
  history?: readonly EarlierMessage[];
  /** The directory of a new conversation. An existing one keeps its own. */
  cwd?: string;
  /** Requires an existing conversation, or throws RunchartError `not_found`. No conversation is created. */
  existing?: boolean;
  /** Of a new conversation. One of another owner, or of none, is RunchartError `not_found`. */
  owner?: string;
}
const openValidator = object({ history: list('messages'), cwd: nonEmptyText, existing: flag, owner: nonEmptyText });

const listValidator = object({
  owner: nonEmptyText,
  status: choice('idle', 'waiting', 'active'),
  limit: whole(1),
  cursor: nonEmptyText,
});
/** Throws ConfigurationError for an option that is unknown or cannot work. */
export const checkListing = (options: ListOptions): unknown => checkOptionsOf('list', options, listValidator);

/** Throws ConfigurationError for an invalid conversation id. */
export function checkId(id: unknown): void {
  if (!nonEmptyText.test(id)) throw invalidOption('the id of a conversation', nonEmptyText, id);
}

/** Throws ConfigurationError for an id or an option that is unknown or cannot work. */
export function checkOpening(id: string, options: OpenOptions): void {
  checkId(id);
  checkOptionsOf('open', options, openValidator);
}
