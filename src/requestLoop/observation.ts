/**
 * Updates the session for a node and calls the callbacks (docs/internals/contracts.md, 2.5, 3.5, 3.6 and 5). Invariant:
 * nodes from a log and nodes of another engine are processed in the same way. A return counts for a registered call,
 * with its arguments.
 */
import { zeroUsage } from '../../machines/internal.ts';
import type { ToolCallback } from './loopTools.ts';
import { isEmptyResponse, type Node, type Part } from './nodes.ts';
import { UnregisteredCallError } from './requestErrors.ts';
import type { OpenSession } from './session.ts';
import type { ToolRegistry } from './toolRegistry.ts';

/** The callbacks of `processRequest`. */
export interface RequestCallbacks {
  /** Executes or observes each tool call. */
  toolCallback?: ToolCallback;
  /**
   * Receives each delta of the text in order. The next one waits for the returned promise. An error fails the
   * request.
   */
  streamingCallback?(delta: string): void | Promise<void>;
  /** Receives each return when it is observed. An error fails the request. */
  toolResultCallback?(
    name: string,
    status: string,
    args: unknown,
    result: string | null,
    durationMs: number | null,
  ): void;
  /** Called once for each batch, before its first tool runs. */
  toolStartCallback?(label: string): void;
  /** Called when the model is asked again after an empty reply. */
  noticeCallback?(text: string): void;
  /** Cancels the request. It then rejects with UserAbortError. */
  signal?: AbortSignal;
}

/** Nodes that have already updated the session. */
const observed = new WeakSet<Node>();
export const isObserved = (node: Node): boolean => observed.has(node);
export const markObserved = (node: Node): void => void observed.add(node);

const NAMES_SHOWN = 3;
/** Returns the name of a batch. */
export const labelOf = (names: readonly string[]): string =>
  `${names.slice(0, NAMES_SHOWN).join(', ')}${names.length > NAMES_SHOWN ? '...' : ''}`;

function textOfReturn(content: unknown): string | null {
  if (content === undefined || content === null) return null;
  return typeof content === 'string' ? content : (JSON.stringify(content) ?? String(content));
}

/** Returns the registered call of a return. Throws UnregisteredCallError. */
function callOf({ toolCallId, toolName = 'unknown' }: Part, registry: ToolRegistry) {
  if (!toolCallId) {
    throw new UnregisteredCallError(
      `a return of ${JSON.stringify(toolName)} has no call id, so nobody knows its arguments`,
    );
  }
  const call = registry.get(toolCallId);
  if (call?.args !== undefined && call.args !== null) return call;
  throw new UnregisteredCallError(`no arguments are registered for the call ${JSON.stringify(toolCallId)}`);
}

type ResultNotice = readonly [name: string, status: string, args: unknown, result: string | null];

/** Handles the return of a call that did not succeed. Unregistered calls are skipped. */
function recordFailure({ toolCallId = '', toolName, content }: Part, registry: ToolRegistry): ResultNotice[] {
  const call = registry.get(toolCallId);
  if (!call) return [];
  const text = textOfReturn(content);
  const isOpen = call.status === 'pending' || call.status === 'running';
  if (isOpen) registry.fail(toolCallId, text ?? '');
  return [[toolName ?? call.name, isOpen ? 'failed' : call.status, call.args, text]];
}

function recordReturn(part: Part, registry: ToolRegistry): ResultNotice[] {
  if (part.partKind === 'retry-prompt') return recordFailure(part, registry);
  if (part.partKind !== 'tool-return') return [];
  const { callId, name, args } = callOf(part, registry);
  const result = textOfReturn(part.content);
  registry.complete(callId, result);
  return [[part.toolName ?? name, 'completed', args, result]];
}

/**
 * Completes the calls of the returns, then calls the callback for each in order. Rejects with the error of an async
 * callback.
 */
export function observeReturns(
  parts: readonly Part[],
  { session }: OpenSession,
  callback: RequestCallbacks['toolResultCallback'],
): Promise<unknown> | undefined {
  const notices = parts.flatMap((part) => recordReturn(part, session.runtime.toolRegistry));
  const answers = notices.map(([name, status, args, result]): unknown => callback?.(name, status, args, result, null));
  return answers.some((answer) => answer instanceof Promise) ? Promise.all(answers) : undefined;
}

/** Records a model's reply: its thought, its usage, and the number of consecutive empty replies. */
export function observeResponse(node: Node, own: OpenSession, costUsd: number | null): void {
  const { conversation, runtime } = own.session;
  if (node.thought) conversation.thoughts.push(node.thought);
  const { modelResponse } = node;
  if (!modelResponse) return;
  // Another engine may omit counts.
  own.spend({ usage: { ...zeroUsage.usage, ...modelResponse.usage }, costUsd });
  const isEmpty = isEmptyResponse(modelResponse);
  runtime.consecutiveEmptyResponses = isEmpty ? runtime.consecutiveEmptyResponses + 1 : 0;
}
