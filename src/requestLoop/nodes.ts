/**
 * Nodes and their parts, by the attributes that a caller of the contract reads (agent-loop-contract 4), and the fold that
 * makes them of a log. Rule: one node a model call, with what it was asked and what it replied; nothing is in a node that
 * is not in the log.
 */
import { type LogEntry, textOfContent, type Usage } from '../../machines/internal.ts';

export interface Part {
  /** `retry-prompt`: the result of a call that did not succeed. */
  partKind: 'text' | 'thinking' | 'tool-call' | 'tool-return' | 'user-prompt' | 'retry-prompt';
  content?: unknown;
  toolCallId?: string;
  toolName?: string;
  /** JSON as text, or what it says. */
  args?: string | { [key: string]: unknown };
}

export interface Node {
  /** What the model was asked in this step: prompts, and the returns of the calls of the step before. */
  request?: { parts: readonly Part[] };
  modelResponse?: { parts: readonly Part[]; usage: Usage };
  thought?: string;
  /** Of the last node of a request that was answered. */
  result?: { output: string };
  /** The text of the response once more. */
  stream?(): AsyncIterable<{ delta: string }>;
}

export const isText = (content: unknown): content is string => typeof content === 'string' && content.trim() !== '';

/** Neither text that can be seen nor a structured call (agent-loop-contract 1.2). */
export const isEmptyResponse = ({ parts }: { parts: readonly Part[] }): boolean =>
  !parts.some(({ partKind, content }) => partKind === 'tool-call' || (partKind === 'text' && isText(content)));

const textsOf = (parts: readonly Part[], kind: Part['partKind']): string[] =>
  parts.flatMap(({ partKind, content }) => (partKind === kind && typeof content === 'string' ? [content] : []));

async function* deltasOf(parts: readonly Part[]): AsyncGenerator<{ delta: string }> {
  for (const delta of textsOf(parts, 'text')) yield { delta };
}

/** What a request was given and gave, node by node; fed with the entries of its run. */
export class NodeFold {
  readonly #nodes: Node[] = [];
  /** What the next model call is asked. */
  #asked: Part[] = [];
  #replied: Part[] = [];
  /** Calls of the reply before, in its order, with what came of them. */
  #calls = new Map<string, Part | undefined>();
  readonly #names = new Map<string, string>();

  /** With what a request was told that no model call was sent any more. */
  get nodes(): readonly Node[] {
    const left = [...this.#asked, ...this.#returns()];
    return left.length > 0 ? [...this.#nodes, { request: { parts: left } }] : this.#nodes;
  }

  /** The returns that an entry makes part of the next request, or the node that it ends, counted from 1. */
  take(entry: LogEntry): { returns: readonly Part[] } | { node: Node; index: number } | undefined {
    switch (entry.type) {
      case 'user-message':
        this.#asked.push({ partKind: 'user-prompt', content: textOfContent(entry.content) });
        return undefined;
      case 'continuation':
        this.#asked.push({ partKind: 'user-prompt', content: entry.text });
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
      const given = argsText ?? (args as { [key: string]: unknown });
      this.#names.set(toolCallId, toolName);
      this.#replied.push({ partKind: 'tool-call', toolCallId, toolName, args: given });
    } else {
      this.#replied.push({ partKind: item.type === 'assistant' ? 'text' : 'thinking', content: item.text });
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
    const parts = this.#replied;
    const thought = textsOf(parts, 'thinking').join('');
    const node: Node = {
      request: { parts: this.#asked },
      modelResponse: { parts, usage },
      ...(thought !== '' && { thought }),
      stream: () => deltasOf(parts),
    };
    this.#nodes.push(node);
    this.#asked = [];
    this.#replied = [];
    this.#calls = new Map(
      parts.flatMap(({ partKind, toolCallId = '' }) => (partKind === 'tool-call' ? [[toolCallId, undefined]] : [])),
    );
    return node;
  }

  #returns(): Part[] {
    return [...this.#calls.values()].flatMap((part) => part ?? []);
  }

  /** The results there are become part of the next request, in call order. */
  #commit(): readonly Part[] {
    const returns = this.#returns();
    this.#asked.push(...returns);
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
