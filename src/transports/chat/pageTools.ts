/**
 * Tools that a page of AG-UI defines and carries out. Rule: a call waits like any other suspended call, and its result comes
 * with a later request. The agent's own tools come first.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Json } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { ToolSpec } from '../../models/model.ts';
import { defineTool, type Tool, toolResult } from '../../tools/tool.ts';
import { Toolbox } from '../../tools/toolbox.ts';
import { type Fields, malformed } from '../clientActs.ts';
import { offerTools } from '../followed/eitherConversation.ts';
import { PAGE_TOOL } from './agUi.ts';
import { isFields, listOf } from './chatRequests.ts';

const isObject = (value: unknown): value is { [key: string]: Json } => isFields(value);

/** The page validates the arguments; the model receives the page's schema. */
function schemaOf(parameters: Json): StandardSchemaV1<unknown, { [key: string]: Json }> {
  const validate = (value: unknown) =>
    isObject(value) ? { value } : { issues: [{ message: 'the arguments must be an object' }] };
  const jsonSchema = { input: () => parameters, output: () => parameters };
  return { '~standard': { validate, version: 1, vendor: 'runchart', jsonSchema } } as never;
}

function resultOf(payload: Json): ReturnType<typeof toolResult.success> {
  const { content, error } = payload as { content?: string; error?: string };
  return error === undefined ? toolResult.success(content ?? '') : toolResult.error(error);
}

function pageTool({ name, description, parameters }: Fields): Tool {
  if (typeof name !== 'string' || name === '') throw malformed('tools with a name');
  return defineTool({
    name,
    description: typeof description === 'string' ? description : name,
    parameters: schemaOf(isObject(parameters) ? parameters : { type: 'object' }),
    execute: (_, { decision }) =>
      decision?.action === 'answer' ? resultOf(decision.payload) : toolResult.pending({ reason: PAGE_TOOL }),
  });
}

function toolsIn(definitions: unknown): Tool[] {
  if (definitions !== undefined && !Array.isArray(definitions)) throw malformed('tools to be a list');
  return listOf(definitions).map(pageTool);
}

/** The tools of one conversation: the agent's, and those of its last page. */
class PageToolbox extends Toolbox {
  #page = new Toolbox([]);
  /** The specs of both, and those of the agent that they were made of. */
  #all: { own: readonly ToolSpec[]; specs: readonly ToolSpec[] } | undefined;

  override get specs(): readonly ToolSpec[] {
    const own = super.specs;
    if (this.#all?.own !== own) {
      const page = this.#page.specs.filter(({ name }) => !super.find(name));
      this.#all = { own, specs: Object.freeze([...own, ...page]) };
    }
    return this.#all.specs;
  }

  override find(name: string): Tool | undefined {
    return super.find(name) ?? this.#page.find(name);
  }

  /** Offers these tools in place of those before. A tool of the agent keeps its name. */
  override offerPageTools(definitions: unknown): void {
    this.#page = new Toolbox(toolsIn(definitions));
    this.#all = undefined;
  }
}

/** Conversations that the agent opens from now on can take tools of pages. A wrapper of an agent may have no profile, and takes none. */
export function acceptPageTools({ profile }: Partial<Agent>): void {
  if (!profile) return;
  const { toolbox } = profile;
  toolbox.ofConversation = () => new PageToolbox(toolbox.specs.flatMap(({ name }) => toolbox.find(name) ?? []));
}

/** Throws RunchartError, code malformed, or ConfigurationError for tools that cannot be offered. */
export const checkPageTools = (tools: unknown): void => void toolsIn(tools);

/** The requests of the conversation offer these tools from now on. */
export async function offerPageTools(conversation: Conversation, tools: unknown): Promise<void> {
  // Another protocol names no tools.
  if (tools !== undefined) await offerTools(conversation, tools);
}
