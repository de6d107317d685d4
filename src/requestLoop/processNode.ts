/**
 * Processes one node of another engine (docs/internals/contracts.md, 1.2, 2.5 and 7.2): its returns, its thought, its
 * usage, its calls. Invariant: the charts of a request also run these calls, with the node as the only reply of a
 * model. Without a `toolCallback` the calls are registered only.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Json } from '../../machines/internal.ts';
import { presets } from '../agentPolicies.ts';
import type { Model, ModelPart } from '../models/model.ts';
import { textCalls } from '../models/textCalls.ts';
import { defineTool, type Tool } from '../tools/tool.ts';
import { parsedCall } from '../tools/toolbox.ts';
import { agentFor } from './agentCache.ts';
import { CallFollower } from './followLog.ts';
import { LoopRun } from './loopRun.ts';
import { isEmptyResponse, type Node, type Part } from './nodes.ts';
import { isObserved, markObserved, observeResponse, observeReturns, type RequestCallbacks } from './observation.ts';
import { checkCallbacks } from './processRequest.ts';
import { ValidationError } from './requestErrors.ts';
import { type OpenSession, type RequestState, sessionOf } from './session.ts';
import { checkedSettings } from './settings.ts';

interface NodeCall {
  callId: string;
  name: string;
  args: { [key: string]: Json };
}

const PREVIEW = 200;

/** Returns the arguments of a call as an object. Throws ValidationError, which quotes the beginning of anything else. */
export function normalizeArgs(args: unknown): { [key: string]: Json } {
  const text = typeof args === 'string' ? args : (JSON.stringify(args ?? {}) ?? '');
  const parsed = parsedCall('', '', text).args;
  if (parsed !== null) return parsed as { [key: string]: Json };
  throw new ValidationError(`the arguments of a call must be a JSON object, got ${text.slice(0, PREVIEW)}`);
}

/** Returns the structured calls of a response. If there are none and a callback executes calls, the calls in its text. */
function callsOf(parts: readonly Part[], { options, ports }: OpenSession, isExecuted: boolean): NodeCall[] {
  const structured = parts.filter(({ partKind }) => partKind === 'tool-call');
  if (structured.length > 0) {
    return structured.map(({ toolCallId, toolName = 'unknown', args }) => ({
      callId: toolCallId || ports.newId(),
      name: toolName,
      args: normalizeArgs(args),
    }));
  }
  const formats = options.policies?.textToolCalls ?? presets.requestLoop.textToolCalls;
  if (!formats || !isExecuted) return [];
  const texts = parts.flatMap(({ partKind, content }) =>
    partKind === 'text' && typeof content === 'string' ? [content] : [],
  );
  return textCalls(texts, formats).map(({ name, args }) => ({
    callId: ports.newId(),
    name,
    args: normalizeArgs(args),
  }));
}

/** A model whose only reply makes these calls. */
const calling = (calls: readonly NodeCall[]): Model => ({
  id: 'node',
  async *stream() {
    for (const { callId, name, args } of calls) {
      yield { type: 'tool-call', callId, name, args: JSON.stringify(args) } satisfies ModelPart;
    }
    yield { type: 'finish', reason: 'tool-calls' };
  },
});

const anyArgs: StandardSchemaV1 = {
  '~standard': { version: 1, vendor: 'runchart', validate: (value) => ({ value }) },
};

const NAME = /^[\w-]{1,64}$/;
/** A tool that only the other engine has, so only the callback can execute it. */
const foreign = (name: string): Tool =>
  defineTool({
    name,
    description: '',
    parameters: anyArgs,
    execute() {
      throw new ValidationError(`createStateManager was given no tool ${JSON.stringify(name)} to run`);
    },
  });

/** The message of a conversation whose only reply is the node. No model reads it. */
const UNSEEN = 'the calls of a node';

/** Runs the calls through the charts: validated, in parallel, repeated if the policies allow it. */
async function dispatch(calls: readonly NodeCall[], own: OpenSession, callbacks: RequestCallbacks): Promise<void> {
  const { options, ports } = own;
  const ownNames = new Set(options.tools.map(({ name }) => name));
  const others = [...new Set(calls.map(({ name }) => name))].filter((name) => !ownNames.has(name) && NAME.test(name));
  const tools = [...options.tools, ...others.map(foreign)];
  const settings = { ...checkedSettings(own.settings), maxIterations: 1, requestDelayMs: 0 };
  // Spending of the other engine is not a cost of this model.
  const policies = { ...options.policies, limits: { ...options.policies?.limits, costUsd: false as const } };
  const serving = agentFor(calling(calls), { ...options, policies, tools }, settings);
  const follower = new CallFollower(own, callbacks);
  try {
    const run = new LoopRun({ serving, setTimer: ports.setTimer, callbacks, follower });
    const { failure } = await run.run({ id: ports.newId(), message: UNSEEN, history: [], timeoutSeconds: 0 });
    if (failure) throw failure.error;
  } finally {
    await serving.agent.close();
  }
}

/**
 * Processes a node. A node that was already processed does not count again. Rejects with UnregisteredCallError,
 * ValidationError, UserAbortError, and errors of a callback.
 */
export async function processNode(
  node: Node,
  state: Pick<RequestState, 'session'>,
  callbacks: RequestCallbacks = {},
): Promise<{ isEmpty: boolean; reason: 'empty' | null }> {
  const own = sessionOf(state);
  checkCallbacks(callbacks);
  const { request, modelResponse } = node;
  const isEmpty = modelResponse !== undefined && isEmptyResponse(modelResponse);
  const verdict = { isEmpty, reason: isEmpty ? ('empty' as const) : null };
  if (isObserved(node)) return verdict;
  markObserved(node);
  await observeReturns(request?.parts ?? [], own, callbacks.toolResultCallback);
  observeResponse(node, own, null);
  const isExecuted = callbacks.toolCallback !== undefined;
  const calls = callsOf(modelResponse?.parts ?? [], own, isExecuted);
  for (const { callId, name, args } of calls) own.session.runtime.toolRegistry.register(callId, name, args);
  if (isExecuted && calls.length > 0) await dispatch(calls, own, callbacks);
  return verdict;
}
