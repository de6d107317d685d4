/**
 * What a tool is and what it may return. Rule: a tool sees validated, copied, frozen arguments and a context; it
 * answers with a value, a `toolResult`, or a throw, and each of them becomes exactly one outcome.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { groupNames } from '../../machines/internal.ts';
import type { Decision, GroupName, Json, LogEntry, StoredPart } from '../../machines/vocabulary.ts';
import { type ContentPart, storedContent } from '../content/content.ts';
import { ConfigurationError } from '../errors.ts';
import {
  anything,
  callback,
  check,
  choice,
  display,
  flag,
  isLiteral,
  numberOrInfinity,
  object,
  text,
  type Validator,
} from '../validation.ts';

export interface ToolContext {
  callId: string;
  conversationId: string;
  runId: string;
  cwd: string;
  signal: AbortSignal;
  /** The same over retries and crashes, a new one after a new suspension. */
  idempotencyKey: string;
  /** Set when this is the replay of a suspended call. */
  decision?: Decision;
  /** The one place outside the working directory, links resolved, that permissions let this call go to. */
  outside?: string | undefined;
  /** What permissions found when they judged the call. Coding tools keep to it. */
  grant?: CallGrant | undefined;
  state: { readonly [key: string]: Json };
  progress(update: Json): void;
  /** The agent's clock: what moves it in a test moves it here. */
  now(): number;
  /** Rejects when the signal fires, and where the call ends first. */
  sleep(ms: number): Promise<void>;
}

/** How a command of the shell is confined. */
export interface Confinement {
  /** It may change the working directory; else it only reads. */
  writes: boolean;
  /** Absolute paths that it finds empty. */
  hide: readonly string[];
  /** Absolute paths of directories that it cannot move. */
  hold?: readonly string[];
  network: boolean;
  /** Somebody allowed it to change protected places. */
  opensProtected: boolean;
  /** It makes a repository of git, and nobody denied that. */
  makesRepository?: boolean;
}

/** What was judged of a call that may run. */
export interface CallGrant {
  /** Where the path of a file tool led, links resolved. A tool that finds another place fails with `moved`. */
  place?: string;
  /** That place, where it lies outside the working directory. */
  outside?: string;
  /** How a command runs; `none`: outside the sandbox. Absent where nobody judged it. */
  confinement?: Confinement | 'none';
}

/** What `defineTool` was given; the executor reads it. */
export interface ToolDefinition<S extends StandardSchemaV1 = StandardSchemaV1> {
  name: string;
  description: string;
  /** zod or any Standard Schema that can give JSON Schema. */
  parameters: S;
  readOnly?: boolean;
  idempotent?: boolean;
  timeoutMs?: number;
  group?: GroupName;
  /** Part of the permission step. */
  needsApproval?: boolean | ((args: StandardSchemaV1.InferOutput<S>) => boolean | Promise<boolean>);
  /** A generator's values are progress; its return value is the result, its last value where it returns none. */
  execute(args: StandardSchemaV1.InferOutput<S>, context: ToolContext): unknown;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
}

const definitions = new WeakMap<Tool, ToolDefinition>();

/** What zod offers beside the standard. */
interface Zod {
  _zod?: { run(payload: ZodRun, how: { async: true }): ZodRun | Promise<ZodRun> };
  safeParseAsync(value: unknown): Promise<{ error: StandardSchemaV1.FailureResult }>;
}
interface ZodRun {
  value: unknown;
  issues: unknown[];
}
type Validate = StandardSchemaV1.Props['validate'];

/**
 * The schema's word on a value. By the standard zod begins an asynchronous check twice and hears nothing of the first, whose
 * rejection would end the process: so it is run as one that may take its time, and asked again for the words of a refusal only.
 */
export const validatorOf =
  (schema: StandardSchemaV1): Validate =>
  (value) => {
    const zod = schema as StandardSchemaV1 & Zod;
    const run = zod._zod?.run({ value, issues: [] }, { async: true });
    if (run && 'then' in run) {
      return run.then(async (end) =>
        end.issues.length > 0 ? (await zod.safeParseAsync(value)).error : { value: end.value },
      );
    }
    return run?.issues.length === 0 ? { value: run.value } : schema['~standard'].validate(value);
  };

const validators = new WeakMap<ToolDefinition, Validate>();

/** What a tool's schema makes of arguments; each definition has a validator. */
export const validatedArgs = (definition: ToolDefinition, args: Json): ReturnType<Validate> =>
  validators.get(definition)?.(args) as ReturnType<Validate>;

/** Makes a tool. Throws ConfigurationError for what is missing, unknown or cannot work. */
export function defineTool<S extends StandardSchemaV1>(tool: ToolDefinition<S>): Tool {
  checkTool(tool as unknown as ToolDefinition);
  const made: Tool = Object.freeze({ name: tool.name, description: tool.description ?? '' });
  const definition = tool as unknown as ToolDefinition;
  definitions.set(made, definition);
  validators.set(definition, validatorOf(tool.parameters));
  return made;
}

/** The definition behind a tool made by `defineTool`; undefined for anything else. */
export const definitionOf = (tool: Tool): ToolDefinition | undefined => definitions.get(tool);

/** Why a call of this log may not run, in place of what plugins say. */
type OwnGate = (callId: string, log: readonly LogEntry[]) => string | undefined;
const gates = new WeakMap<Tool, OwnGate>();

/** For tools of the library's own that only write down: plugins are not asked about them. */
export function gatedBy(tool: Tool, gate: OwnGate): Tool {
  gates.set(tool, gate);
  return tool;
}
export const ownGateOf = (tool: Tool): OwnGate | undefined => gates.get(tool);

/** Whether commands reach the network: always, where somebody allows it, or never. */
export type NetworkChoice = 'allow' | 'ask' | 'deny';
const sandboxed = new WeakMap<Tool, NetworkChoice>();

/** A tool whose commands run in a sandbox, unless permissions say otherwise. */
export function withSandbox(tool: Tool, network: NetworkChoice): Tool {
  sandboxed.set(tool, network);
  return tool;
}

const unprotected = new WeakMap<Tool, string>();

/** A tool whose commands would run in a sandbox if there were one here, and why there is none. */
export function lackingSandbox(tool: Tool, why: string): Tool {
  unprotected.set(tool, why);
  return tool;
}
export const lackOfSandbox = (tool: Tool): string | undefined => unprotected.get(tool);
export const sandboxNetworkOf = (tool: Tool): NetworkChoice | undefined => sandboxed.get(tool);

export interface ToolResult {
  readonly status: 'success' | 'warning' | 'error' | 'pending';
}
type ResultContent = string | ContentPart[] | Json;
type StateOption = { state?: { [key: string]: Json } };

/** A result made by `toolResult`, as the executor reads it. */
export type ToolAnswer =
  | { status: 'success' | 'warning'; content: unknown; state?: { [key: string]: Json } }
  | { status: 'error'; content: unknown; code?: string }
  | { status: 'pending'; suspend: { reason: string; payload?: Json }; within?: true };

const closers = new WeakMap<ToolContext, () => void>();

/** What to do when a call that this execution leaves waiting gets its result without another execution: denied or cancelled. */
export const onWaitOver = (context: ToolContext, close: () => void): void => void closers.set(context, close);
export const waitCloserOf = (context: ToolContext): (() => void) | undefined => closers.get(context);

const answers = new WeakMap<object, ToolAnswer>();

function made(answer: ToolAnswer): ToolResult {
  const result: ToolResult = Object.freeze({ status: answer.status });
  answers.set(result, answer);
  return result;
}

export const answerOf = (value: unknown): ToolAnswer | undefined =>
  typeof value === 'object' && value !== null ? answers.get(value) : undefined;

const stateOf = (options: StateOption | undefined): StateOption =>
  options?.state === undefined ? {} : { state: options.state };

/** The call waits because calls within it do. */
export const waitingWithin = (suspend: { reason: string; payload?: Json }): ToolResult =>
  made({ status: 'pending', suspend, within: true });

/** The explicit results of a tool. `state` writes keys of the conversation's state. */
export const toolResult = {
  success: (content: ResultContent, options?: StateOption): ToolResult =>
    made({ status: 'success', content, ...stateOf(options) }),
  warning: (content: ResultContent, options?: StateOption): ToolResult =>
    made({ status: 'warning', content, ...stateOf(options) }),
  error: (content: ResultContent, code?: string): ToolResult =>
    made(code === undefined ? { status: 'error', content } : { status: 'error', content, code }),
  pending: (suspend: { reason: string; payload?: Json }): ToolResult => made({ status: 'pending', suspend }),
};

const isPart = (part: unknown): part is ContentPart =>
  typeof part === 'object' &&
  part !== null &&
  ((part as ContentPart).type === 'text' || (part as ContentPart).type === 'image');

/** Stored parts of a content list, or undefined where the value is no such list. */
export function partsOf(value: unknown): StoredPart[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  // Not `every`, which passes over the holes of a list.
  for (const part of value) if (!isPart(part)) return undefined;
  return storedContent(value);
}

const approval: Validator = {
  expected: 'true, false or a function',
  test: (value) => flag.test(value) || callback.test(value),
};

/** Name, parameters and execute have words of their own. */
export const toolValidator = object(
  {
    ...{ name: anything, parameters: anything, execute: anything },
    description: text,
    readOnly: flag,
    idempotent: flag,
    timeoutMs: numberOrInfinity(0),
    group: choice(...groupNames),
    needsApproval: approval,
  },
  { refuses: (_, tool) => isLiteral(tool) },
);
const NAME = /^[\w-]{1,64}$/;

/** Throws ConfigurationError for what is missing, unknown or cannot work. */
export function checkTool(tool: ToolDefinition): void {
  if (typeof tool?.name !== 'string' || tool.name === '') throw new ConfigurationError('a tool needs a name');
  if (!NAME.test(tool.name)) {
    const wanted = 'must be 1 to 64 of the characters a-z, A-Z, 0-9, _ and -: providers take no other';
    throw new ConfigurationError(`the name of the tool ${display(tool.name)} ${wanted}`);
  }
  if (typeof tool.execute !== 'function') throw new ConfigurationError(`tool "${tool.name}" needs an execute function`);
  if (typeof tool.parameters?.['~standard']?.validate !== 'function') {
    throw new ConfigurationError(`tool "${tool.name}": parameters must be a Standard Schema (zod 4 is one)`);
  }
  const name = `tool "${tool.name}": `;
  check(name, tool, toolValidator, name);
}
