/**
 * The inputs of a case of the request loop suite: an engine's session with a model and tools of the suite. Invariant: a case reads only
 * the facts that a caller can read: the handle, its nodes, the session, the callbacks.
 */
import assert from 'node:assert/strict';
import type { Json, Usage } from '../../../machines/vocabulary.ts';
import type { Model, ModelPart, ModelRequest } from '../../models/model.ts';
import type {
  AgentRun,
  Node,
  Part,
  processNode,
  processRequest,
  RequestCallbacks,
  StateManager,
} from '../../requestLoop/index.ts';
import { defineTool, type Tool } from '../../tools/tool.ts';

export interface SuiteReply {
  thought?: string;
  text?: string;
  calls?: readonly (readonly [callId: string, name: string, args: Json])[];
  /** The number of input tokens, and of output tokens. */
  tokens?: number;
  /** Sends its parts, then hangs forever. */
  hangs?: true;
}

/** Returns the streamed parts of a reply, with its usage. */
export function replyOf({ thought, text, calls = [], tokens = 0 }: SuiteReply): { parts: ModelPart[]; usage: Usage } {
  const usage = {
    inputTokens: tokens,
    outputTokens: tokens,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
  const parts: ModelPart[] = [
    ...(thought === undefined ? [] : [{ type: 'reasoning-delta' as const, text: thought }]),
    // Two pieces, so that their order can be checked.
    ...(text === undefined
      ? []
      : [text.slice(0, 2), text.slice(2)].map((piece) => ({ type: 'text-delta' as const, text: piece }))),
    ...calls.map(([callId, name, args]) => ({ type: 'tool-call' as const, callId, name, args: JSON.stringify(args) })),
    { type: 'finish', reason: calls.length > 0 ? 'tool-calls' : 'stop', usage },
  ];
  return { parts, usage };
}

/** Returns a model that gives these replies in order and records its requests. */
export function suiteModel(replies: readonly SuiteReply[]): Model & { readonly asked: readonly ModelRequest[] } {
  const remainingReplies = [...replies];
  const asked: ModelRequest[] = [];
  return {
    id: 'suite',
    asked,
    async *stream(request, { signal }) {
      asked.push(request);
      const reply = remainingReplies.shift() ?? { text: 'the suite has no reply left' };
      const { parts } = replyOf(reply);
      yield* reply.hangs ? parts.slice(0, -1) : parts;
      if (reply.hangs) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  };
}

/** A tool that records its executions. */
export interface ExecutedTool {
  /** The tool. */
  tool: Tool;
  /** The arguments of each execution. */
  executed: unknown[];
}

const anyObject: Parameters<typeof defineTool>[0]['parameters'] = {
  '~standard': { version: 1, vendor: 'suite', validate: (value) => ({ value }) },
};

/** Returns a tool that records the arguments of its executions. */
export function makeTool(name: string, act: (args: { path?: string }) => unknown): ExecutedTool {
  const executed: unknown[] = [];
  const tool = defineTool({
    name,
    description: `${name} of the suite`,
    parameters: anyObject,
    execute(args) {
      executed.push(args);
      return act(args as { path?: string });
    },
  });
  return { tool, executed };
}

/** The functions of an agent loop that `requestLoopSuite` tests. */
export interface RequestLoopEngine {
  /** Creates the state of the requests. */
  createStateManager(options: {
    resolveModel(name: string): ReturnType<typeof suiteModel>;
    tools: readonly ExecutedTool['tool'][];
    settings?: { maxIterations?: number; maxRetries?: number; globalRequestTimeoutSeconds?: number };
  }): StateManager;
  /** Runs one request. */
  processRequest: typeof processRequest;
  /** Processes one node of a request. */
  processNode: typeof processNode;
}

export interface LoopBench {
  state: StateManager;
  session: StateManager['session'];
  model: ReturnType<typeof suiteModel>;
  read: ExecutedTool;
  broken: ExecutedTool;
  ask(message: string, callbacks?: RequestCallbacks): Promise<AgentRun>;
  process(node: Node, callbacks?: RequestCallbacks): ReturnType<typeof processNode>;
}
export type SuiteSettings = NonNullable<Parameters<RequestLoopEngine['createStateManager']>[0]['settings']>;
export type MakeLoop = (replies: readonly SuiteReply[], settings?: SuiteSettings) => LoopBench;
export type LoopCase = readonly [name: string, check: (make: MakeLoop) => Promise<void>];

export const READ = { calls: [['c1', 'read', { path: 'a.ts' }]] } as const;
export const nodesOf = async (run: AsyncIterable<Node>): Promise<Node[]> => {
  const nodes: Node[] = [];
  for await (const node of run) nodes.push(node);
  return nodes;
};
export const ofKind = (nodes: readonly Node[], where: 'request' | 'modelResponse', kind: Part['partKind']): Part[] =>
  nodes.flatMap((node) => node[where]?.parts ?? []).filter(({ partKind }) => partKind === kind);
export const textsOf = (run: AgentRun): string[] =>
  run.allMessages().flatMap(({ content }) => content.map((part) => (part.type === 'text' ? part.text : '')));
export const rejectsWith = (promise: Promise<unknown>, words: RegExp): Promise<void> =>
  assert.rejects(promise, (error) => words.test(`${(error as Error).name} ${(error as Error).message}`));

/** Returns a session of the engine with two tools: `read` returns the path that it read, and `broken` fails. */
export function loopBench(
  engine: RequestLoopEngine,
  replies: readonly SuiteReply[],
  settings: SuiteSettings = {},
): LoopBench {
  const model = suiteModel(replies);
  const read = makeTool('read', ({ path }) => `read ${path}`);
  const broken = makeTool('broken', () => {
    throw new Error('it is broken');
  });
  const tools = [read.tool, broken.tool];
  const state = engine.createStateManager({ resolveModel: () => model, tools, settings });
  const ask = (message: string, callbacks: RequestCallbacks = {}) =>
    engine.processRequest(message, 'suite', state, callbacks);
  const process = (node: Node, callbacks: RequestCallbacks = {}) => engine.processNode(node, state, callbacks);
  return { state, session: state.session, model, read, broken, ask, process };
}
