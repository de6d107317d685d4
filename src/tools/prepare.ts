/**
 * A tool call made ready to run: the tool is known, the arguments are parsed once and validated. Rule: what cannot
 * run is refused here with a text the model can mend it by; nothing of it reaches a gate or a tool. A schema that
 * throws, answers nonsense or does not answer at all refuses the call.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type Json, printOf, type RoundCall, type ToolCall } from '../../machines/index.ts';
import { ConfigurationError } from '../errors.ts';
import { deepFreeze } from '../freeze.ts';
import type { ToolSpec } from '../models/model.ts';
import { within } from '../plugins/plugin.ts';
import { thrownMessage, thrownText } from '../thrown.ts';
import { ownArgs, unreadable } from './args.ts';
import { definitionOf, type Tool, type ToolDefinition } from './define.ts';

/** How long a schema may think about the arguments of one call. */
const CHECK_MS = 30_000;
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
      const given = definition.parameters['~standard'].validate(call.args);
      const result = 'then' in given ? await within(CHECK_MS, waiting, () => given) : given;
      if (result.issues) return refused('invalid_arguments', issuesText(call.name, result.issues));
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

function issuesText(name: string, issues: readonly StandardSchemaV1.Issue[]): string {
  if (!Array.isArray(issues)) throw new TypeError('the issues of the schema are no list');
  const lines = issues.slice(0, ISSUES_SHOWN).map(({ path, message }) => {
    const at = path?.map(keyText).join('.');
    return (at ? `${at}: ${message}` : String(message)).slice(0, ISSUE_SHOWN);
  });
  const left = issues.length - lines.length;
  return [`Invalid arguments for ${name}:`, ...lines, ...(left > 0 ? [`and ${left} more`] : [])].join('\n');
}

type JsonSchemaSource = { jsonSchema?: { input(o: { target: string }): Json } };

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
  const print = printOf(name, call.argsText ?? call.args);
  if (preparation.kind === 'refused') {
    const { code, text } = preparation;
    return { callId, name, gated: false, readOnly: false, refused: { code, text }, print };
  }
  const { needsApproval, readOnly } = preparation.prepared.definition;
  const gated = pluginGates || (needsApproval !== undefined && needsApproval !== false);
  return { callId, name, gated, readOnly: readOnly === true, print };
}
