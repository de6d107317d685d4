/**
 * The tools of a request (docs/internals/contracts.md, 5.3): a `toolCallback`, where one exists, executes the call and
 * may run the tool itself. Invariant: a tool that succeeded does not run again for its call, however often the callback
 * requests it. An exception of a tool is kept unchanged for the caller of the request.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Json } from '../../machines/internal.ts';
import { spawning, spawnOf } from '../runtime/subAgentPort.ts';
import {
  defineTool,
  definitionOf,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  validatorOf,
} from '../tools/tool.ts';
import { isUserAbort } from './requestErrors.ts';

/**
 * Called once for each call of a batch. If it is given, it executes the call and returns the result. Undefined means
 * the result of `run`.
 */
export type ToolCallback = (
  part: { callId: string; name: string; args: unknown },
  node: { run(): Promise<unknown> },
) => Promise<unknown>;

/** Executes the calls of one request. */
export class CallExecutor {
  /** Resolves when all deltas so far were processed. */
  heard: Promise<void> = Promise.resolve();
  /** The error of each call's last execution. */
  readonly thrown = new Map<string, unknown>();
  readonly #callback: ToolCallback | undefined;
  readonly #aborted: (error: unknown) => void;
  /** Executions that are running or succeeded. */
  readonly #ran = new Map<string, Promise<unknown>>();

  constructor(callback: ToolCallback | undefined, aborted: (error: unknown) => void) {
    this.#callback = callback;
    this.#aborted = aborted;
  }

  async execute(definition: ToolDefinition, args: never, context: ToolContext): Promise<unknown> {
    const { callId } = context;
    try {
      if (!this.#callback) return await definition.execute(args, context);
      return await this.#callCallback(this.#callback, definition, args, context);
    } catch (error) {
      this.thrown.set(callId, error);
      if (isUserAbort(error)) this.#aborted(error);
      throw error;
    }
  }

  async #callCallback(callback: ToolCallback, definition: ToolDefinition, args: never, context: ToolContext) {
    const { callId } = context;
    // One promise for each execution, so repeated requests get the same failure.
    let execution: Promise<unknown> | undefined;
    const run = (): Promise<unknown> => {
      execution ??= this.#executeOnce(callId, async () => definition.execute(args, context));
      return execution;
    };
    const answer = await callback({ callId, name: definition.name, args }, { run });
    return answer === undefined ? execution : answer;
  }

  #executeOnce(callId: string, act: () => Promise<unknown>): Promise<unknown> {
    const existing = this.#ran.get(callId);
    if (existing) return existing;
    const running = act();
    this.#ran.set(callId, running);
    running.catch(() => this.#ran.delete(callId));
    return running;
  }
}

/** The active requests of an agent by conversation. */
export type CallsByConversation = Map<string, CallExecutor>;

type Properties = { properties?: { [name: string]: Json }; additionalProperties?: Json };
type JsonSchema = { jsonSchema?: { input(options: { target: string }): Properties } };

/** Returns the schema with an additional check: it refuses arguments that its JSON Schema does not name. */
function strict(schema: StandardSchemaV1): StandardSchemaV1 {
  const standard = schema['~standard'];
  const { properties, additionalProperties } = (standard as JsonSchema).jsonSchema?.input({ target: 'draft-07' }) ?? {};
  if (!properties || additionalProperties === true || typeof additionalProperties === 'object') return schema;
  const validate = (value: unknown) => {
    const stray = Object.keys(value as object).filter((key) => !Object.hasOwn(properties, key));
    if (stray.length === 0) return validatorOf(schema)(value);
    return { issues: stray.map((key) => ({ message: 'is no argument of this tool', path: [key] })) };
  };
  return { '~standard': { ...standard, validate } };
}

/** Wraps a tool for the requests of an agent. Without an active request, as in a sub-agent, the tool runs directly. */
export function loopTool(tool: Tool, requests: CallsByConversation, isStrict: boolean): Tool {
  const definition = definitionOf(tool);
  if (!definition) return tool;
  const parameters = isStrict ? strict(definition.parameters) : definition.parameters;
  const execute = (args: never, context: ToolContext): unknown => {
    const request = requests.get(context.conversationId);
    return request ? request.execute(definition, args, context) : definition.execute(args, context);
  };
  const spawn = spawnOf(tool);
  const wrapped = { ...definition, parameters, execute };
  return defineTool(spawn ? spawning(wrapped, spawn) : wrapped);
}
