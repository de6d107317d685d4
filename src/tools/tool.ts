/**
 * The definition of a tool, its context and its results. Rule: a tool receives validated, copied, frozen arguments and
 * a context. It returns a value or a `toolResult`, or throws. Each of these becomes exactly one outcome.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { groupNames } from '../../machines/internal.ts';
import type { Decision, GroupName, Json, LogEntry, RequestInfo, StoredPart } from '../../machines/vocabulary.ts';
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

/** The second argument of a tool's `execute`. */
export interface ToolContext {
  /** The id of the call. */
  callId: string;
  /** The id of the conversation. */
  conversationId: string;
  /** The id of the run. */
  runId: string;
  /** The directory in which the tool starts. */
  cwd: string;
  /** Aborted when the call is cancelled or takes too long. A tool that ignores it is abandoned. */
  signal: AbortSignal;
  /** Stays the same over retries and crashes; changes after a new suspension. */
  idempotencyKey: string;
  /** Set if this execution replays a suspended call. */
  decision?: Decision;
  /** The one place outside the working directory, links resolved, that permissions opened for this call. */
  outside?: string | undefined;
  /** The permissions of this call. Coding tools obey them. */
  grant?: CallGrant | undefined;
  /** The message that the request began with. A sub-agent gets that of its root conversation. `context` is as logged, without secrets. */
  origin: RequestInfo;
  /** The values that tools and plugins wrote, as they were when the call started; frozen. */
  state: { readonly [key: string]: Json };
  /** Shows progress to observers of the call. It is not stored, and the model does not receive it. */
  progress(update: Json): void;
  /** The agent's clock; a test clock moves it. */
  now(): number;
  /** Rejects when the signal fires, or when the call ends first. */
  sleep(ms: number): Promise<void>;
}

/** The limits of a shell command. */
export interface Confinement {
  /** The command may change the working directory; otherwise it only reads. */
  writes: boolean;
  /** Absolute paths: the command cannot open such a file, and finds such a directory empty. */
  hide: readonly string[];
  /** Absolute paths of directories that the command cannot move. */
  hold?: readonly string[];
  /** The command may reach the network. */
  network: boolean;
  /** The command has permission to change protected places. */
  opensProtected: boolean;
  /** The command creates a git repository, and no rule denied it. */
  makesRepository?: boolean;
}

/** The decision of the permissions about a call that may run. */
export interface CallGrant {
  /** The target of a file tool's path, links resolved. A tool that finds another place fails with `moved`. */
  place?: string;
  /** The same place, if it lies outside the working directory. */
  outside?: string;
  /** The confinement of a command; `none` means outside the sandbox. Absent without a permissions plugin. */
  confinement?: Confinement | 'none';
}

/** The argument of `defineTool`, as the executor reads it. */
export interface ToolDefinition<S extends StandardSchemaV1 = StandardSchemaV1> {
  /** The name that the model calls: 1 to 64 letters, digits, `_` or `-`. */
  name: string;
  /** The description of the tool for the model. */
  description: string;
  /** A zod schema, or any Standard Schema that provides JSON Schema. */
  parameters: S;
  /** The tool changes nothing. Policies may run such tools in parallel. Default: false. */
  readOnly?: boolean;
  /**
   * A second execution with the same `idempotencyKey` changes nothing more. After a crash the call then runs again on
   * `resume()`. Default: false.
   */
  idempotent?: boolean;
  /** The most milliseconds for one execution. Default: the policy `limits.toolMs`. */
  timeoutMs?: number;
  /** The group in views. Default: by the tool's name, else `other-group`. */
  group?: GroupName;
  /** Part of the permission step. */
  needsApproval?: boolean | ((args: StandardSchemaV1.InferOutput<S>) => boolean | Promise<boolean>);
  /** The values of a generator are progress. Its return value is the result, or its last value if it returns none. */
  execute(args: StandardSchemaV1.InferOutput<S>, context: ToolContext): unknown;
}

/** A tool that `defineTool` made. */
export interface Tool {
  /** The name that the model calls. */
  readonly name: string;
  /** The description for the model. */
  readonly description: string;
}

const definitions = new WeakMap<Tool, ToolDefinition>();

/** The parts of zod that the standard does not include. */
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
 * Validates a value with the schema. The Standard Schema interface makes zod run an asynchronous check twice, and an
 * unhandled rejection of the first run would end the process. Therefore zod's own asynchronous parser is called, and
 * the standard one only for the issues of a refusal.
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

/** Validates and converts the arguments with the tool's schema. Each definition has one validator. */
export const validatedArgs = (definition: ToolDefinition, args: Json): ReturnType<Validate> =>
  validators.get(definition)?.(args) as ReturnType<Validate>;

/** Makes a tool. Throws ConfigurationError for a missing, unknown or invalid option. */
export function defineTool<S extends StandardSchemaV1>(tool: ToolDefinition<S>): Tool {
  checkTool(tool as unknown as ToolDefinition);
  const made: Tool = Object.freeze({ name: tool.name, description: tool.description ?? '' });
  const definition = tool as unknown as ToolDefinition;
  definitions.set(made, definition);
  validators.set(definition, validatorOf(tool.parameters));
  return made;
}

/** The definition of a tool made by `defineTool`; undefined for anything else. */
export const definitionOf = (tool: Tool): ToolDefinition | undefined => definitions.get(tool);

/** Returns why a call of this log may not run. Replaces the plugins' gate. */
type OwnGate = (callId: string, log: readonly LogEntry[]) => string | undefined;
const gates = new WeakMap<Tool, OwnGate>();

/** For internal tools that only record something: plugins do not check them. */
export function gatedBy(tool: Tool, gate: OwnGate): Tool {
  gates.set(tool, gate);
  return tool;
}
export const ownGateOf = (tool: Tool): OwnGate | undefined => gates.get(tool);

/** Given a function that reads a list of tools, returns one that reads the current list. */
export type ToolChanges = (read: () => readonly Tool[]) => () => readonly Tool[];
const changes = new WeakMap<Tool, ToolChanges>();

/** Marks a tool of a set that may change while agents have it, such as the tools of an MCP server. */
export function changingBy(tool: Tool, follow: ToolChanges): Tool {
  changes.set(tool, follow);
  return tool;
}
export const changesOf = (tool: Tool): ToolChanges | undefined => changes.get(tool);

/** Network access of commands: always, with permission, or never. */
export type NetworkChoice = 'allow' | 'ask' | 'deny';
const sandboxed = new WeakMap<Tool, NetworkChoice>();

/** Marks a tool whose commands run in a sandbox unless permissions decide otherwise. */
export function withSandbox(tool: Tool, network: NetworkChoice): Tool {
  sandboxed.set(tool, network);
  return tool;
}

const unprotected = new WeakMap<Tool, string>();

/** Marks a tool whose commands would run in a sandbox if the machine had one, with the reason why it has none. */
export function lackingSandbox(tool: Tool, why: string): Tool {
  unprotected.set(tool, why);
  return tool;
}

const NO_SANDBOX = 'sandbox_missing';
const warned = new WeakSet<object>();
interface Diagnosed {
  entries: readonly LogEntry[];
  diagnose(code: string, detail?: Json): void;
}

/** Logs the missing sandbox once in a conversation, before its first command runs without one. */
export function tellLackOfSandbox(tool: Tool, around: Diagnosed): void {
  const why = unprotected.get(tool);
  if (why === undefined || warned.has(around)) return;
  warned.add(around);
  const isKnown = around.entries.some((entry) => entry.type === 'diagnostic' && entry.code === NO_SANDBOX);
  if (!isKnown) around.diagnose(NO_SANDBOX, { why });
}

/** Only the definition of a tool that starts sub-agents has this. */
export const SPAWN = Symbol('spawn');
export const spawns = (definition: ToolDefinition): boolean => SPAWN in definition;

export const sandboxNetworkOf = (tool: Tool): NetworkChoice | undefined => sandboxed.get(tool);

/** A result that `toolResult` made. */
export interface ToolResult {
  /** Whether the call succeeded, succeeded with a warning, failed, or waits. */
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

/** Registers a function that runs if this waiting call ends without another execution: denied or cancelled. */
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

/** The call waits because calls of its sub-agents wait. */
export const waitingWithin = (suspend: { reason: string; payload?: Json }): ToolResult =>
  made({ status: 'pending', suspend, within: true });

/** The explicit results of a tool. `state` sets keys of the conversation's state. */
export const toolResult = {
  success: (content: ResultContent, options?: StateOption): ToolResult =>
    made({ status: 'success', content, ...stateOf(options) }),
  warning: (content: ResultContent, options?: StateOption): ToolResult =>
    made({ status: 'warning', content, ...stateOf(options) }),
  error: (content: ResultContent, code?: string): ToolResult =>
    made(code === undefined ? { status: 'error', content } : { status: 'error', content, code }),
  pending: (suspend: { reason: string; payload?: Json }): ToolResult => made({ status: 'pending', suspend }),
};

const PARTS: readonly unknown[] = ['text', 'image', 'file'] satisfies ContentPart['type'][];
const isPart = (part: unknown): part is ContentPart =>
  typeof part === 'object' && part !== null && PARTS.includes((part as ContentPart).type);

/** The stored parts of a content list; undefined if the value is no such list. */
export function partsOf(value: unknown): StoredPart[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  // `every` would skip the holes of a sparse list.
  for (const part of value) if (!isPart(part)) return undefined;
  return storedContent(value);
}

const approval: Validator = {
  expected: 'true, false or a function',
  test: (value) => flag.test(value) || callback.test(value),
};

/** `checkTool` checks name, parameters and execute with specific messages. */
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

/** Throws ConfigurationError for a missing, unknown or invalid option. */
export function checkTool(tool: ToolDefinition): void {
  if (typeof tool?.name !== 'string' || tool.name === '') throw new ConfigurationError('a tool needs a name');
  if (!NAME.test(tool.name)) {
    const nameRule = 'must be 1 to 64 of the characters a-z, A-Z, 0-9, _ and -: providers take no other';
    throw new ConfigurationError(`the name of the tool ${display(tool.name)} ${nameRule}`);
  }
  if (typeof tool.execute !== 'function') throw new ConfigurationError(`tool "${tool.name}" needs an execute function`);
  if (typeof tool.parameters?.['~standard']?.validate !== 'function') {
    throw new ConfigurationError(`tool "${tool.name}": parameters must be a Standard Schema (zod 4 is one)`);
  }
  const name = `tool "${tool.name}": `;
  check(name, tool, toolValidator, name);
}

/** The conversation of a call, for tools of this library. */
interface CallPlace {
  /** This list identifies the conversation, and disappears with it. */
  readonly entries: readonly LogEntry[];
  /** By call: the output of a call so far. It is part of the result only if the call is cancelled. */
  readonly partials: Map<string, () => string>;
}
type Bound = (text: string) => string;
/** A property, because a WeakMap keeps a conversation until the next full garbage collection. */
const PLACE = Symbol('place');
type Placed = ToolContext & { [PLACE]?: readonly [CallPlace, Bound | undefined] };

/** Must be called before the tool receives the context. Without `bound`, partial results are dropped. */
export const placeCall = (context: ToolContext, place: CallPlace, bound: Bound | undefined): void =>
  void Object.defineProperty(context, PLACE, { value: [place, bound] });

/** `text` is called when the result of the cancelled call is stored. An empty text adds nothing. */
export function partialResult(context: ToolContext, text: () => string): void {
  const [place, bound] = (context as Placed)[PLACE] ?? [];
  if (bound) place?.partials.set(context.callId, () => bound(text()));
}

type Release = () => Promise<void>;
const releases = new WeakMap<readonly LogEntry[], Set<Release>>();

/** Calls `release` once when the conversation of this call closes, for a process in the background. It must not reject. */
export function onConversationEnd(context: ToolContext, release: Release): void {
  const [place] = (context as Placed)[PLACE] ?? [];
  if (place) releases.set(place.entries, (releases.get(place.entries) ?? new Set()).add(release));
}

/** Resolves when everything is released that tools hold for this conversation. */
export async function conversationEnded(entries: readonly LogEntry[]): Promise<void> {
  for (const release of releases.get(entries) ?? []) await release();
}
