/**
 * A tool call made ready to run: the tool is known, the arguments are parsed once and validated. Rule: what cannot
 * run is refused here with a text the model can mend it by; nothing of it reaches a gate or a tool.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type Json, printOf, type RoundCall, type ToolCall } from '../../machines/index.ts';
import { deepFreeze } from '../freeze.ts';
import { parseJson } from '../json.ts';
import type { ToolSpec } from '../models/model.ts';
import { definitionOf, type Tool, type ToolDefinition } from './define.ts';

const ARGS_TEXT_MAX = 65_536;
const NAMES_SHOWN = 5;

export interface PreparedCall {
  call: ToolCall;
  tool: Tool;
  definition: ToolDefinition;
  /** What the schema made of the arguments; frozen. */
  args: unknown;
}
export type Preparation = { kind: 'ready'; prepared: PreparedCall } | { kind: 'refused'; code: string; text: string };

const refused = (code: string, text: string): Preparation => ({ kind: 'refused', code, text });

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

  /** What a model is told that asked for a tool nobody has. */
  missing(name: string): string {
    const wanted = name.toLowerCase();
    const names = [...this.#tools.keys()];
    const close = names.filter((known) => known.toLowerCase() === wanted || known.toLowerCase().includes(wanted));
    const shown = (close.length > 0 ? close : names).slice(0, NAMES_SHOWN).join(', ');
    return `There is no tool ${JSON.stringify(name)}.${shown && ` Did you mean: ${shown}?`}`;
  }

  /** Validates a call; the schema may be asynchronous. */
  async prepare(call: ToolCall): Promise<Preparation> {
    const tool = this.find(call.name);
    const definition = tool && definitionOf(tool);
    if (!tool || !definition) return refused('unknown_tool', this.missing(call.name));
    if (call.argsText !== undefined) {
      const seen = call.argsText.slice(0, 200);
      return refused('invalid_arguments', `The arguments of ${call.name} are no JSON object: ${JSON.stringify(seen)}`);
    }
    const result = await definition.parameters['~standard'].validate(call.args);
    if (result.issues) return refused('invalid_arguments', issuesText(call.name, result.issues));
    return { kind: 'ready', prepared: { call, tool, definition, args: deepFreeze(result.value) } };
  }
}

function issuesText(name: string, issues: readonly StandardSchemaV1.Issue[]): string {
  const lines = issues.map(({ path, message }) => {
    const at = path?.map((key) => String(typeof key === 'object' ? key.key : key)).join('.');
    return at ? `${at}: ${message}` : message;
  });
  return `Invalid arguments for ${name}:\n${lines.join('\n')}`;
}

/** JSON Schema of a tool's arguments, as its schema library gives it. */
function specOf(tool: Tool): ToolSpec {
  const definition = definitionOf(tool);
  const standard = definition?.parameters['~standard'] as { jsonSchema?: { input(o: { target: string }): Json } };
  const given = standard?.jsonSchema?.input({ target: 'draft-07' }) ?? { type: 'object' };
  const { $schema: _, ...parameters } = given as { [key: string]: Json };
  return deepFreeze({ name: tool.name, description: tool.description, parameters });
}

/** A model's call with its arguments parsed once; an empty text is no arguments. */
export function parsedCall(callId: string, name: string, argsText: string, extra?: Json): ToolCall {
  const parsed = parseJson(argsText.trim() === '' ? '{}' : argsText);
  const object = parsed.kind === 'parsed' && typeof parsed.value === 'object' && parsed.value !== null;
  const isRecord = object && !Array.isArray(parsed.value);
  const call: ToolCall = isRecord
    ? { callId, name, args: parsed.value }
    : { callId, name, args: null, argsText: argsText.slice(0, ARGS_TEXT_MAX) };
  return extra === undefined ? call : { ...call, extra };
}

/** How the round sees a call. `pluginGates`: some plugin takes part in BeforeToolExecute. */
export function roundCall(call: ToolCall, preparation: Preparation, pluginGates: boolean): RoundCall {
  const { callId, name } = call;
  const print = printOf(name, call.argsText ?? call.args);
  if (preparation.kind === 'refused') {
    const { code, text } = preparation;
    return { callId, name, gated: false, readOnly: false, refused: { code, text }, print };
  }
  const { needsApproval, readOnly } = preparation.prepared.definition;
  const gated = pluginGates || (needsApproval !== undefined && needsApproval !== false);
  return { callId, name, gated, readOnly: readOnly === true, print };
}
