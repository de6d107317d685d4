/**
 * The tools of an agent, and the preparation of a call: its tool is looked up, and its arguments are parsed once and
 * validated. Rule: arguments have own properties only, and are bounded and frozen, so that the log, the check and the
 * tool see the same value. A call that cannot run is refused here with a message for the model. It reaches neither gate
 * nor tool. A schema that throws, returns an invalid result or does not answer refuses the call.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { deepFreeze, fingerprintOf, type Json, type RoundCall, type ToolCall } from '../../machines/internal.ts';
import { ConfigurationError, thrownMessage, thrownText } from '../errors.ts';
import { bytesOf, isShared, parseJson } from '../json.ts';
import type { ToolSpec } from '../models/model.ts';
import { within } from '../timeLimit.ts';
import { type CallGrant, changesOf, definitionOf, type Tool, type ToolDefinition, validatedArgs } from './tool.ts';

/** The time limit of a schema for one call's arguments. */
export const CHECK_MS = 30_000;
const NAMES_SHOWN = 5;
const NAME_SHOWN = 100;
const ISSUES_SHOWN = 20;
const ISSUE_SHOWN = 500;

export interface PreparedCall {
  call: ToolCall;
  tool: Tool;
  definition: ToolDefinition;
  /** The arguments as the schema returned them; a frozen copy. */
  args: unknown;
  /** See ToolContext. */
  grant?: CallGrant | undefined;
}
export type Preparation = { kind: 'ready'; prepared: PreparedCall } | { kind: 'refused'; code: string; text: string };
/** Limits the wait for foreign code. */
export interface Waiting {
  setTimer(ms: number, fire: () => void): () => void;
  signal: AbortSignal;
}

export const refused = (code: string, text: string): Preparation => ({ kind: 'refused', code, text });

/** The tools of an agent by their exact name. Tools that change are read again at each use. */
export class Toolbox {
  #tools = new Map<string, Tool>();
  #specs: readonly ToolSpec[] = [];
  #list: readonly Tool[] | undefined;
  /** The names of all lists so far. */
  readonly #names = new Set<string>();
  /** Reads the current list; undefined if it cannot change. */
  readonly #read: (() => readonly Tool[]) | undefined;
  /** Each conversation has a toolbox of its own, made by this function. */
  ofConversation: (() => Toolbox) | undefined;

  constructor(tools: readonly Tool[]) {
    for (const follow of new Set(tools.flatMap((tool) => changesOf(tool) ?? [])))
      this.#read = follow(this.#read ?? (() => tools));
    this.#take(this.#read?.() ?? tools);
  }

  get specs(): readonly ToolSpec[] {
    this.#update();
    return this.#specs;
  }

  /** False if it has no tool and never will. */
  get mayHaveTools(): boolean {
    return this.#specs.length > 0 || !!this.#read || !!this.ofConversation;
  }

  find(name: string): Tool | undefined {
    this.#update();
    return this.#tools.get(name);
  }

  /** Offers the tools of a page, in a toolbox that accepts them. */
  offerPageTools(_definitions: unknown): void {}

  #update(): void {
    const list = this.#read?.();
    if (list && list !== this.#list) this.#take(list);
  }

  #take(list: readonly Tool[]): void {
    this.#list = list;
    this.#tools = new Map(list.map((tool) => [tool.name, tool]));
    this.#specs = Object.freeze(list.map(specOf));
    for (const { name } of list) this.#names.add(name);
  }

  /** True if a call of this tool may run again after a crash. */
  isIdempotent(name: string): boolean {
    const tool = this.find(name);
    return tool !== undefined && definitionOf(tool)?.idempotent === true;
  }

  /** The message for a model that called a tool which does not exist. */
  missing(name: string): string {
    if (this.#names.has(name)) return `The tool ${name} was removed by its server. It was not run.`;
    const lowerName = name.toLowerCase();
    const names = [...this.#tools.keys()];
    const close = names.filter((toolName) => toolName.toLowerCase().includes(lowerName));
    const shown = (close.length > 0 ? close : names).slice(0, NAMES_SHOWN).join(', ');
    return `There is no tool ${JSON.stringify(name.slice(0, NAME_SHOWN))}.${shown && ` Did you mean: ${shown}?`}`;
  }

  /** Validates a call; the schema may be asynchronous. Rejects only if the signal is aborted. */
  async prepare(call: ToolCall, waiting: Waiting): Promise<Preparation> {
    const tool = this.find(call.name);
    const definition = tool && definitionOf(tool);
    if (!tool || !definition) return refused('unknown_tool', this.missing(call.name));
    const why = unreadable(call);
    if (why !== undefined) return refused('invalid_arguments', why);
    try {
      const jsonSchema = validatedArgs(definition, call.args);
      const result = 'then' in jsonSchema ? await within(CHECK_MS, waiting, () => jsonSchema) : jsonSchema;
      if (result.issues)
        return refused('invalid_arguments', issuesText(`Invalid arguments for ${call.name}:`, result.issues));
      if (!('value' in result)) throw new TypeError('the schema answered neither a value nor issues');
      return { kind: 'ready', prepared: { call, tool, definition, args: ownArgs(result.value) } };
    } catch (error) {
      if (waiting.signal.aborted) throw error;
      return refused('invalid_arguments', `The arguments of ${call.name} could not be checked: ${thrownText(error)}`);
    }
  }
}

const keyText = (key: unknown): string =>
  String(typeof key === 'object' && key !== null && 'key' in key ? key.key : key);

export function issuesText(head: string, issues: readonly StandardSchemaV1.Issue[]): string {
  if (!Array.isArray(issues)) throw new TypeError('the issues of the schema are no list');
  const lines = issues.slice(0, ISSUES_SHOWN).map(({ path, message }) => {
    const at = path?.map(keyText).join('.');
    return (at ? `${at}: ${message}` : String(message)).slice(0, ISSUE_SHOWN);
  });
  const issuesLeft = issues.length - lines.length;
  return [head, ...lines, ...(issuesLeft > 0 ? [`and ${issuesLeft} more`] : [])].join('\n');
}

export type JsonSchemaSource = { jsonSchema?: { input(o: { target: string }): Json } };

/** The JSON Schema of a tool's arguments. Throws ConfigurationError if the schema library cannot provide it. */
function specOf(tool: Tool): ToolSpec {
  const standard = definitionOf(tool)?.parameters['~standard'] as JsonSchemaSource | undefined;
  let spec: ToolSpec;
  try {
    const jsonSchema = standard?.jsonSchema?.input({ target: 'draft-07' }) ?? { type: 'object' };
    const { $schema: _, ...parameters } = jsonSchema as { [key: string]: Json };
    spec = deepFreeze({ name: tool.name, description: tool.description, parameters });
  } catch (cause) {
    const why = thrownMessage(cause);
    throw new ConfigurationError(`the parameters of tool "${tool.name}" have no JSON Schema: ${why}`, { cause });
  }
  const { type } = spec.parameters as { type?: Json };
  if (type === 'object') return spec;
  const shownType = type === undefined ? 'a schema without a type' : JSON.stringify(type);
  throw new ConfigurationError(
    `the parameters of tool "${tool.name}" must be an object at their root, got ${shownType}: providers take nothing else`,
  );
}

/** The call as TOOL_ROUND receives it. `pluginGates`: a plugin has a BeforeToolExecute hook. */
export function roundCall(call: ToolCall, preparation: Preparation, pluginGates: boolean): RoundCall {
  const { callId, name } = call;
  const fingerprint = fingerprintOf(name, call.argsText ?? call.args);
  if (preparation.kind === 'refused') {
    const { code, text } = preparation;
    return { callId, name, gated: false, readOnly: false, refused: { code, text }, fingerprint };
  }
  const { needsApproval, readOnly } = preparation.prepared.definition;
  const gated = pluginGates || !!needsApproval;
  return { callId, name, gated, readOnly: readOnly === true, fingerprint };
}

/** The most bytes of unreadable arguments that are kept. */
const TEXT_BYTES = 65_536;
/** Longer arguments are refused without parsing. */
export const ARGS_LONGEST = 4 * 1_048_576;
const LAST_CHARACTER = 4;
const NAME_LONGEST = 256;
const SHOWN = 200;

const encoder = new TextEncoder();
const room = new Uint8Array(TEXT_BYTES);

const isRecord = (value: Json): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A model's call with its arguments parsed once; an empty text means no arguments. */
export function parsedCall(callId: string, name: string, argsText: string, extra?: Json): ToolCall {
  const base = { callId, name: name.slice(0, NAME_LONGEST) };
  const parsed =
    argsText.length > ARGS_LONGEST ? undefined : parseJson(argsText.trim() === '' ? '{}' : argsText, isShared);
  const args = parsed?.kind === 'parsed' && isRecord(parsed.value) ? parsed.value : null;
  const keptText = args ? undefined : argsText.slice(0, encoder.encodeInto(argsText, room).read);
  const call: ToolCall = keptText === undefined ? { ...base, args } : { ...base, args, argsText: keptText };
  return extra === undefined ? call : { ...call, extra };
}

/** The reason why a tool cannot receive the arguments, as a message for the model; undefined if it can. */
function unreadable({ name, args, argsText }: ToolCall): string | undefined {
  if (argsText === undefined) {
    return isRecord(args)
      ? undefined
      : `The arguments of ${name} must be a JSON object, not ${JSON.stringify(args)?.slice(0, SHOWN)}`;
  }
  const shown = JSON.stringify(argsText.slice(0, SHOWN));
  // A text that was cut here is not the model's syntax error.
  const parsed = bytesOf(argsText) > TEXT_BYTES - LAST_CHARACTER ? undefined : parseJson(argsText);
  const why = parsed?.kind === 'refused' ? ` (${parsed.why})` : '';
  return `The arguments of ${name} are no JSON object${why}: ${shown}`;
}

/**
 * A frozen copy of the schema's output, with own properties only. An instance of a class (a Date, a handle that the
 * schema looked up) is kept as it is.
 */
function ownArgs(value: unknown, copies = new Map<object, object>()): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const earlierCopy = copies.get(value);
  if (earlierCopy) return earlierCopy;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    copies.set(value, list);
    for (const item of value) list.push(ownArgs(item, copies));
    return Object.freeze(list);
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return value;
  const copy: { [key: string]: unknown } = {};
  copies.set(value, copy);
  for (const [key, child] of Object.entries(value)) if (!isShared(key)) copy[key] = ownArgs(child, copies);
  return Object.freeze(copy);
}
