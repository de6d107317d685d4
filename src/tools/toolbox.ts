/**
 * The tools of an agent, and a call made ready to run: its tool is known, its arguments are parsed once and validated.
 * Rule: arguments are own properties only, bounded and frozen, so that log, check and tool see the same value. What
 * cannot run is refused here with a text the model can act on, and reaches neither gate nor tool; a schema that throws,
 * answers nonsense or does not answer refuses the call.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { fingerprintOf, type Json, type RoundCall, type ToolCall } from '../../machines/internal.ts';
import { ConfigurationError, thrownMessage, thrownText } from '../errors.ts';
import { bytesOf, deepFreeze, isShared, parseJson } from '../json.ts';
import type { ToolSpec } from '../models/model.ts';
import { within } from '../timeLimit.ts';
import { type CallGrant, definitionOf, type Tool, type ToolDefinition, validatedArgs } from './tool.ts';

/** How long a schema may think about the arguments of one call. */
export const CHECK_MS = 30_000;
const NAMES_SHOWN = 5;
const NAME_SHOWN = 100;
const ISSUES_SHOWN = 20;
const ISSUE_SHOWN = 500;

export interface PreparedCall {
  call: ToolCall;
  tool: Tool;
  definition: ToolDefinition;
  /** What the schema made of the arguments; a frozen copy. */
  args: unknown;
  /** See ToolContext. */
  grant?: CallGrant | undefined;
}
export type Preparation = { kind: 'ready'; prepared: PreparedCall } | { kind: 'refused'; code: string; text: string };
/** How a wait for somebody else's code is bounded. */
export interface Waiting {
  setTimer(ms: number, fire: () => void): () => void;
  signal: AbortSignal;
}

export const refused = (code: string, text: string): Preparation => ({ kind: 'refused', code, text });

/** The tools of an agent by their exact name. */
export class Toolbox {
  readonly #tools = new Map<string, Tool>();
  readonly specs: readonly ToolSpec[];

  constructor(tools: readonly Tool[]) {
    for (const tool of tools) this.#tools.set(tool.name, tool);
    this.specs = Object.freeze(tools.map(specOf));
  }

  find(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  /** Whether a call of this tool may run again after a crash. */
  isIdempotent(name: string): boolean {
    const tool = this.find(name);
    return tool !== undefined && definitionOf(tool)?.idempotent === true;
  }

  /** What a model is told that asked for a tool nobody has. */
  missing(name: string): string {
    const wanted = name.toLowerCase();
    const names = [...this.#tools.keys()];
    const close = names.filter((known) => known.toLowerCase() === wanted || known.toLowerCase().includes(wanted));
    const shown = (close.length > 0 ? close : names).slice(0, NAMES_SHOWN).join(', ');
    return `There is no tool ${JSON.stringify(name.slice(0, NAME_SHOWN))}.${shown && ` Did you mean: ${shown}?`}`;
  }

  /** Validates a call; the schema may be asynchronous. Rejects only where the signal was aborted meanwhile. */
  async prepare(call: ToolCall, waiting: Waiting): Promise<Preparation> {
    const tool = this.find(call.name);
    const definition = tool && definitionOf(tool);
    if (!tool || !definition) return refused('unknown_tool', this.missing(call.name));
    const why = unreadable(call);
    if (why !== undefined) return refused('invalid_arguments', why);
    try {
      const given = validatedArgs(definition, call.args);
      const result = 'then' in given ? await within(CHECK_MS, waiting, () => given) : given;
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
  const left = issues.length - lines.length;
  return [head, ...lines, ...(left > 0 ? [`and ${left} more`] : [])].join('\n');
}

export type JsonSchemaSource = { jsonSchema?: { input(o: { target: string }): Json } };

/** JSON Schema of a tool's arguments, as its schema library gives it. Throws ConfigurationError where it cannot. */
function specOf(tool: Tool): ToolSpec {
  const standard = definitionOf(tool)?.parameters['~standard'] as JsonSchemaSource | undefined;
  let spec: ToolSpec;
  try {
    const given = standard?.jsonSchema?.input({ target: 'draft-07' }) ?? { type: 'object' };
    const { $schema: _, ...parameters } = given as { [key: string]: Json };
    spec = deepFreeze({ name: tool.name, description: tool.description, parameters });
  } catch (cause) {
    const why = thrownMessage(cause);
    throw new ConfigurationError(`the parameters of tool "${tool.name}" have no JSON Schema: ${why}`, { cause });
  }
  const { type } = spec.parameters as { type?: Json };
  if (type === 'object') return spec;
  const came = type === undefined ? 'a schema without a type' : JSON.stringify(type);
  throw new ConfigurationError(
    `the parameters of tool "${tool.name}" must be an object at their root, got ${came}: providers take nothing else`,
  );
}

/** How the round sees a call. `pluginGates`: some plugin takes part in BeforeToolExecute. */
export function roundCall(call: ToolCall, preparation: Preparation, pluginGates: boolean): RoundCall {
  const { callId, name } = call;
  const fingerprint = fingerprintOf(name, call.argsText ?? call.args);
  if (preparation.kind === 'refused') {
    const { code, text } = preparation;
    return { callId, name, gated: false, readOnly: false, refused: { code, text }, fingerprint };
  }
  const { needsApproval, readOnly } = preparation.prepared.definition;
  const gated = pluginGates || (needsApproval !== undefined && needsApproval !== false);
  return { callId, name, gated, readOnly: readOnly === true, fingerprint };
}

/** Bytes of unreadable arguments that are kept. */
const TEXT_BYTES = 65_536;
/** Longer arguments are not looked at. */
export const ARGS_LONGEST = 4 * 1_048_576;
const LAST_CHARACTER = 4;
const NAME_LONGEST = 256;
const SHOWN = 200;

const encoder = new TextEncoder();
const room = new Uint8Array(TEXT_BYTES);

const isRecord = (value: Json): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A model's call with its arguments parsed once; an empty text is no arguments. */
export function parsedCall(callId: string, name: string, argsText: string, extra?: Json): ToolCall {
  const base = { callId, name: name.slice(0, NAME_LONGEST) };
  const parsed =
    argsText.length > ARGS_LONGEST ? undefined : parseJson(argsText.trim() === '' ? '{}' : argsText, isShared);
  const args = parsed?.kind === 'parsed' && isRecord(parsed.value) ? parsed.value : null;
  const kept = args ? undefined : argsText.slice(0, encoder.encodeInto(argsText, room).read);
  const call: ToolCall = kept === undefined ? { ...base, args } : { ...base, args, argsText: kept };
  return extra === undefined ? call : { ...call, extra };
}

/** Why arguments cannot be given to a tool, in words for the model; nothing where they can. */
function unreadable({ name, args, argsText }: ToolCall): string | undefined {
  if (argsText === undefined) {
    return isRecord(args)
      ? undefined
      : `The arguments of ${name} must be a JSON object, not ${JSON.stringify(args)?.slice(0, SHOWN)}`;
  }
  const shown = JSON.stringify(argsText.slice(0, SHOWN));
  // What was cut off is no fault of the model's.
  const parsed = bytesOf(argsText) > TEXT_BYTES - LAST_CHARACTER ? undefined : parseJson(argsText);
  const why = parsed?.kind === 'refused' ? ` (${parsed.why})` : '';
  return `The arguments of ${name} are no JSON object${why}: ${shown}`;
}

/**
 * A frozen copy of what a schema made of the arguments: objects and lists own property by own property; anything of a
 * class (a Date, a handle the schema looked up) is the schema's own and stays as it is.
 */
function ownArgs(value: unknown, copies = new Map<object, object>()): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const known = copies.get(value);
  if (known) return known;
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
