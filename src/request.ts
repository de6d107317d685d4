/**
 * The next model request of a conversation. Rule: messages come from the log and from nowhere else; what hooks add to
 * the system text or change of the request holds for one request and is then forgotten.
 */
import type { Transcript } from '../machines/internal.ts';
import type { Model, ModelRequest } from './models/model.ts';
import type { Toolbox } from './tools/toolbox.ts';

export type RequestPatch = Partial<Pick<ModelRequest, 'system' | 'tools' | 'maxOutputTokens' | 'temperature'>>;

export class NextRequest {
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
