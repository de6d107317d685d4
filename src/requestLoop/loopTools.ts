/**
 * Tools as a request runs them (agent-loop-contract 5.3): by the callback where there is one, which may run the tool itself.
 * Rule: a tool that has succeeded is not run again for its call, whoever asks and however often; what it threw is kept as it
 * was, for whoever the request fails for.
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

/** Called once per call of a batch; where given, it is the executor. What it answers is the result; nothing stands for what `run` gave. */
export type ToolCallback = (
  part: { callId: string; name: string; args: unknown },
  node: { run(): Promise<unknown> },
) => Promise<unknown>;

/** Of one request. */
export class CallExecutor {
  /** Settled when every delta so far was heard. */
  heard: Promise<void> = Promise.resolve();
  /** What the last execution of a call threw. */
  readonly thrown = new Map<string, unknown>();
  readonly #callback: ToolCallback | undefined;
  readonly #aborted: (error: unknown) => void;
  /** What runs, or ran to its end. */
  readonly #ran = new Map<string, Promise<unknown>>();

  constructor(callback: ToolCallback | undefined, aborted: (error: unknown) => void) {
    this.#callback = callback;
    this.#aborted = aborted;
  }

  async execute(definition: ToolDefinition, args: never, context: ToolContext): Promise<unknown> {
    const { callId } = context;
    try {
      if (!this.#callback) return await definition.execute(args, context);
      return await this.#called(this.#callback, definition, args, context);
    } catch (error) {
      this.thrown.set(callId, error);
      if (isUserAbort(error)) this.#aborted(error);
      throw error;
    }
  }

  async #called(callback: ToolCallback, definition: ToolDefinition, args: never, context: ToolContext) {
    const { callId } = context;
    // Of this execution: its failure too is one, however often it is asked for.
    let mine: Promise<unknown> | undefined;
    const run = (): Promise<unknown> => {
      mine ??= this.#once(callId, async () => definition.execute(args, context));
      return mine;
    };
    const answer = await callback({ callId, name: definition.name, args }, { run });
    return answer === undefined ? mine : answer;
  }

  #once(callId: string, act: () => Promise<unknown>): Promise<unknown> {
    const known = this.#ran.get(callId);
    if (known) return known;
    const running = act();
    this.#ran.set(callId, running);
    running.catch(() => this.#ran.delete(callId));
    return running;
  }
}

/** The requests of an agent by their conversation. */
export type CallsByConversation = Map<string, CallExecutor>;

type Properties = { properties?: { [name: string]: Json }; additionalProperties?: Json };
type JsonSchema = { jsonSchema?: { input(options: { target: string }): Properties } };

/** The same schema, that refuses arguments which its JSON Schema does not name. */
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

/** The tool as the requests of an agent run it; where none is under way, as in a sub-agent, it runs by itself. */
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
