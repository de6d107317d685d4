/**
 * The next model request of a conversation, and how full the context window is with it. Rule: messages come from the log and
 * from nowhere else; what hooks add holds for one request. The model's own count replaces the estimate where it is larger.
 */
import {
  CHARACTERS_A_TOKEN,
  type ContextValue,
  type LogState,
  shareOf,
  type Transcript,
} from '../../machines/internal.ts';
import type { Model, ModelRequest, ToolSpec } from '../models/model.ts';
import type { RequestDraft, RequestPatch } from '../plugins/plugin.ts';
import type { Toolbox } from '../tools/toolbox.ts';

export class NextRequest implements RequestDraft {
  readonly #instructions: string;
  readonly #toolbox: Toolbox;
  readonly #transcript: Transcript;
  readonly #model: Model;
  #contexts: string[] = [];
  #patch: RequestPatch = {};
  /** The request of the turn under way: every attempt sends the same. */
  #current: { turn: string; request: ModelRequest } | undefined;

  constructor(options: { instructions: string; toolbox: Toolbox; transcript: Transcript; model: Model }) {
    this.#instructions = options.instructions;
    this.#toolbox = options.toolbox;
    this.#transcript = options.transcript;
    this.#model = options.model;
  }

  addContext(text: string | undefined): void {
    if (text) this.#contexts.push(text);
  }

  /** A request is prepared anew: what was patched for one that was never sent is forgotten. */
  begin(): void {
    this.#patch = {};
  }

  /** Takes what a patch may change and nothing else: messages come from the log. */
  patch({ system, tools, maxOutputTokens, temperature }: RequestPatch): void {
    this.#patch = {
      ...this.#patch,
      ...(system !== undefined && { system }),
      ...(tools !== undefined && { tools }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
    };
  }

  /** Tokens the model takes in and gives out together. */
  get window(): number {
    return this.#model.contextWindow ?? 0;
  }

  /** What would be sent now beside the messages. */
  frame(): Omit<ModelRequest, 'messages'> {
    const { maxOutputTokens } = this.#model;
    const system = [this.#patch.system ?? this.#instructions, ...this.#contexts].filter(Boolean).join('\n\n');
    const tools = this.#toolbox.specs;
    return { tools, ...(maxOutputTokens !== undefined && { maxOutputTokens }), ...this.#patch, system };
  }

  /** What would be sent now. */
  preview(): ModelRequest {
    return { messages: this.#transcript.messages(), ...this.frame() };
  }

  /** The request of a turn; built at its first attempt. */
  of(turn: string): ModelRequest {
    if (this.#current?.turn !== turn) {
      this.#current = { turn, request: this.preview() };
      this.#contexts = [];
      this.#patch = {};
    }
    return this.#current.request;
  }

  /** Whether a tool was offered in the request of the turn under way. */
  offered(name: string): boolean {
    const tools = this.#current?.request.tools ?? this.#toolbox.specs;
    return tools === this.#toolbox.specs || tools.some((tool) => tool.name === name);
  }

  /** The request was answered; messages are not kept. */
  answered(): void {
    if (this.#current) this.#current = { ...this.#current, request: { ...this.#current.request, messages: [] } };
  }
}

/** Tokens kept free for the reply, unless the model replies with less. */
const RESERVE = 16_384;

/** Characters of tool lists; an agent's own is always the same one. */
const measured = new WeakMap<readonly ToolSpec[], number>();
function sizeOfTools(tools: readonly ToolSpec[]): number {
  if (tools.length === 0) return 0;
  const size = measured.get(tools) ?? JSON.stringify(tools).length;
  measured.set(tools, size);
  return size;
}

export function contextUse(
  { pruneAbove = Number.POSITIVE_INFINITY }: { pruneAbove?: number },
  { next, transcript, known }: { next: NextRequest; transcript: Transcript; known: LogState },
): ContextValue {
  const limit = next.window;
  const { system, tools, maxOutputTokens = RESERVE } = next.frame();
  const { characters, reported } = transcript.size();
  const estimate = (characters + system.length + sizeOfTools(tools)) / CHARACTERS_A_TOKEN;
  const held = Math.max(reported, estimate) + Math.min(RESERVE, maxOutputTokens);
  const value: ContextValue = { kind: 'context', used: Math.ceil(held), limit, warned: known.warned };
  const prunable = shareOf(value) > pruneAbove ? transcript.prunable() : undefined;
  if (!prunable) return value;
  const { callIds, tokens } = prunable;
  return { ...value, prunable: { callIds, used: Math.ceil(held - tokens) } };
}
