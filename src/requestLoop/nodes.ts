/**
 * Nodes and their parts, with the attributes that a caller reads (docs/internals/contracts.md, 4), and the fold that
 * makes them from a log. Invariant: one node is one model call with its request and its reply. A node contains nothing
 * that is not in the log.
 */
import { type LogEntry, textOfContent, type Usage } from '../../machines/internal.ts';

/** A part of a request or a response. */
export interface Part {
  /** `retry-prompt`: the result of a call that did not succeed. */
  partKind: 'text' | 'thinking' | 'tool-call' | 'tool-return' | 'user-prompt' | 'retry-prompt';
  /** The text, or the result of a call. */
  content?: unknown;
  /** The id of the call, for parts about a call. */
  toolCallId?: string;
  /** The name of the tool, for parts about a call. */
  toolName?: string;
  /** JSON text, or the parsed object. */
  args?: string | { [key: string]: unknown };
}

/** A step of a request: its input, the model's response, or both. */
export interface Node {
  /** The input of this step: prompts, and the returns of the calls before. */
  request?: { parts: readonly Part[] };
  /** The response of the model. */
  modelResponse?: { parts: readonly Part[]; usage: Usage };
  /** The reasoning of the model. */
  thought?: string;
  /** The last node of a request with an answer has it. */
  result?: { output: string };
  /** Yields the text of the response again. */
  stream?(): AsyncIterable<{ delta: string }>;
}

export const isText = (content: unknown): content is string => typeof content === 'string' && content.trim() !== '';

/** Returns true if there is neither visible text nor a structured call (docs/internals/contracts.md, 1.2). */
export const isEmptyResponse = ({ parts }: { parts: readonly Part[] }): boolean =>
  !parts.some(({ partKind, content }) => partKind === 'tool-call' || (partKind === 'text' && isText(content)));

const textsOf = (parts: readonly Part[], kind: Part['partKind']): string[] =>
  parts.flatMap(({ partKind, content }) => (partKind === kind && typeof content === 'string' ? [content] : []));

async function* deltasOf(parts: readonly Part[]): AsyncGenerator<{ delta: string }> {
  for (const delta of textsOf(parts, 'text')) yield { delta };
}

/** Collects the nodes of a request from the entries of its run. */
export class NodeFold {
  readonly #nodes: Node[] = [];
  /** The input of the next model call. */
  #prompt: Part[] = [];
  #response: Part[] = [];
  /** Calls of the last reply, in order, with their results. */
  #calls = new Map<string, Part | undefined>();
  readonly #names = new Map<string, string>();

  /** Includes a last node for input that no model call received. */
  get nodes(): readonly Node[] {
    const unsent = [...this.#prompt, ...this.#returns()];
    return unsent.length > 0 ? [...this.#nodes, { request: { parts: unsent } }] : this.#nodes;
  }

  /** Returns the returns that an entry adds to the next request, or the node that it ends, counted from 1. */
  take(entry: LogEntry): { returns: readonly Part[] } | { node: Node; index: number } | undefined {
    switch (entry.type) {
      case 'user-message':
        this.#prompt.push({ partKind: 'user-prompt', content: textOfContent(entry.content) });
        return undefined;
      case 'continuation':
        this.#prompt.push({ partKind: 'user-prompt', content: entry.text });
        return undefined;
      case 'agent-output':
        return this.#item(entry.item);
      case 'tool-result':
        return this.#result(entry);
      case 'model-reply':
        return { node: this.#end(entry.usage), index: this.#nodes.length };
      case 'checkpoint':
        return entry.boundary === 'ToolResultsCommitted' ? { returns: this.#commit() } : undefined;
      case 'run-stop':
        if (entry.reason === 'completed') this.#answer();
        return { returns: this.#commit() };
      default:
        return undefined;
    }
  }

  #item(item: Extract<LogEntry, { type: 'agent-output' }>['item']): undefined {
    if (item.type === 'tool-call') {
      const { callId: toolCallId, name: toolName, args, argsText } = item;
      const callArguments = argsText ?? (args as { [key: string]: unknown });
      this.#names.set(toolCallId, toolName);
      this.#response.push({ partKind: 'tool-call', toolCallId, toolName, args: callArguments });
    } else {
      this.#response.push({ partKind: item.type === 'assistant' ? 'text' : 'thinking', content: item.text });
    }
  }

  #result({ callId, outcome, content }: Extract<LogEntry, { type: 'tool-result' }>): undefined {
    this.#calls.set(callId, {
      partKind: outcome === 'succeeded' ? 'tool-return' : 'retry-prompt',
      toolCallId: callId,
      toolName: this.#names.get(callId) ?? '',
      content: textOfContent(content),
    });
  }

  #end(usage: Usage): Node {
    const parts = this.#response;
    const thought = textsOf(parts, 'thinking').join('');
    const node: Node = {
      request: { parts: this.#prompt },
      modelResponse: { parts, usage },
      ...(thought !== '' && { thought }),
      stream: () => deltasOf(parts),
    };
    this.#nodes.push(node);
    this.#prompt = [];
    this.#response = [];
    this.#calls = new Map(
      parts.flatMap(({ partKind, toolCallId = '' }) => (partKind === 'tool-call' ? [[toolCallId, undefined]] : [])),
    );
    return node;
  }

  #returns(): Part[] {
    return [...this.#calls.values()].flatMap((part) => part ?? []);
  }

  /** Adds the existing results to the next request, in call order. */
  #commit(): readonly Part[] {
    const returns = this.#returns();
    this.#prompt.push(...returns);
    this.#calls = new Map([...this.#calls].filter(([, part]) => !part));
    return returns;
  }

  /** The last reply is the answer. */
  #answer(): void {
    const last = this.#nodes.at(-1);
    const output = textsOf(last?.modelResponse?.parts ?? [], 'text').join('');
    if (last && output !== '') last.result = { output };
  }
}
