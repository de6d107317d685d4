/**
 * What a node changes in the session, and whom it is told (agent-loop-contract 2.5, 3.5, 3.6, 5). Rule: the same for a node
 * that was made of a log and for one of another engine; a return counts for a call that was registered, with its arguments.
 */
import { zeroUsage } from '../../machines/internal.ts';
import type { ToolCallback } from './loopTools.ts';
import { isEmptyResponse, type Node, type Part } from './nodes.ts';
import { UnregisteredCallError } from './requestErrors.ts';
import type { OpenSession } from './session.ts';
import type { ToolRegistry } from './toolRegistry.ts';

export interface RequestCallbacks {
  toolCallback?: ToolCallback;
  /** Each delta of the text, in order; the next one waits for the answer. What it throws fails the request. */
  streamingCallback?(delta: string): void | Promise<void>;
  /** Each return, when it is observed. What it throws fails the request. */
  toolResultCallback?(
    name: string,
    status: string,
    args: unknown,
    result: string | null,
    durationMs: number | null,
  ): void;
  /** Once a batch, before its first tool runs. */
  toolStartCallback?(label: string): void;
  /** Where the model is asked again behind an empty reply. */
  noticeCallback?(text: string): void;
  signal?: AbortSignal;
}

/** Nodes whose effects on the session have happened. */
const observed = new WeakSet<Node>();
export const isObserved = (node: Node): boolean => observed.has(node);
export const markObserved = (node: Node): void => void observed.add(node);

const NAMES_SHOWN = 3;
/** What a batch is called where it starts. */
export const labelOf = (names: readonly string[]): string =>
  `${names.slice(0, NAMES_SHOWN).join(', ')}${names.length > NAMES_SHOWN ? '...' : ''}`;

function textOfReturn(content: unknown): string | null {
  if (content === undefined || content === null) return null;
  return typeof content === 'string' ? content : (JSON.stringify(content) ?? String(content));
}

/** The registered call of a return. Throws UnregisteredCallError. */
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

type Told = readonly [name: string, status: string, args: unknown, result: string | null];

/** What a call came to that did not succeed; calls of nobody are passed over. */
function learnFailure({ toolCallId = '', toolName, content }: Part, registry: ToolRegistry): Told[] {
  const call = registry.get(toolCallId);
  if (!call) return [];
  const text = textOfReturn(content);
  const isOpen = call.status === 'pending' || call.status === 'running';
  if (isOpen) registry.fail(toolCallId, text ?? '');
  return [[toolName ?? call.name, isOpen ? 'failed' : call.status, call.args, text]];
}

function learnReturn(part: Part, registry: ToolRegistry): Told[] {
  if (part.partKind === 'retry-prompt') return learnFailure(part, registry);
  if (part.partKind !== 'tool-return') return [];
  const { callId, name, args } = callOf(part, registry);
  const result = textOfReturn(part.content);
  registry.complete(callId, result);
  return [[part.toolName ?? name, 'completed', args, result]];
}

/** Returns complete their calls; then each is told, in order. */
export function observeReturns(
  parts: readonly Part[],
  { session }: OpenSession,
  callback: RequestCallbacks['toolResultCallback'],
): void {
  const told = parts.flatMap((part) => learnReturn(part, session.runtime.toolRegistry));
  for (const [name, status, args, result] of told) callback?.(name, status, args, result, null);
}

/** What the model replied: its thought, what it took, and how often in a row there was nothing in it. */
export function observeResponse(node: Node, own: OpenSession, costUsd: number | null): void {
  const { conversation, runtime } = own.session;
  if (node.thought) conversation.thoughts.push(node.thought);
  const { modelResponse } = node;
  if (!modelResponse) return;
  // Another engine may leave counts out.
  own.spend({ usage: { ...zeroUsage.usage, ...modelResponse.usage }, costUsd });
  const isEmpty = isEmptyResponse(modelResponse);
  runtime.consecutiveEmptyResponses = isEmpty ? runtime.consecutiveEmptyResponses + 1 : 0;
}
