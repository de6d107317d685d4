/**
 * Tool calls in the form that every server accepts. Invariant: a name has only permitted characters, arguments are an
 * object, and the calls of one reply have unique ids. The same bytes give the same ids.
 */
import type { Json, ToolCall } from '../../../machines/vocabulary.ts';
import type { ModelPart } from '../model.ts';
import { isRecord } from './wireJson.ts';

/** Characters of a function's name. */
const NAME_CHARS = 64;

/** An invented name may have characters for which servers refuse the whole history. The log keeps it unchanged. */
export const wireName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, NAME_CHARS) || 'unnamed';

/** Always an object: servers that parse the history would fail on anything else in every later request. */
export function wireArguments({ args, argsText }: ToolCall): { readonly [name: string]: unknown } {
  if (argsText !== undefined) return { invalid_arguments: argsText };
  return isRecord(args) ? args : { invalid_arguments: args };
}

/** The first text of a failed result, where the API has no mark of its own for it. */
export const ERROR_MARK = '[tool error]';

type ToolCallPart = Omit<Extract<ModelPart, { type: 'tool-call' }>, 'extra'> & { extra?: { [key: string]: Json } };

/** A call of a reply, after its pieces were joined. */
export interface AssembledCall {
  /** Order of first appearance, from 0. */
  readonly position: number;
  readonly id: string | undefined;
  /** Empty until a piece names it. */
  readonly name: string;
  readonly args: string;
  readonly extra: { [key: string]: Json } | undefined;
}

/** Longer ids are replaced, because every later request would repeat them. */
const ID_CHARS = 256;

/**
 * Returns the parts of assembled calls. `diagnose` receives call_without_name (dropped), id_duplicate and id_too_long
 * (renamed).
 */
export function toolCallParts(
  calls: readonly AssembledCall[],
  diagnose: (code: string, detail?: Json) => void,
): readonly ToolCallPart[] {
  const usedIds = new Set<string>();
  const serverIds = new Set<string>();
  for (const { id } of calls) if (id !== undefined) serverIds.add(id);

  function uniqueId(call: AssembledCall): string {
    const { id } = call;
    if (id !== undefined && id.length <= ID_CHARS && !usedIds.has(id)) return id;
    let number = call.position + 1;
    while (usedIds.has(`call_${number}`) || serverIds.has(`call_${number}`)) number += 1;
    const used = `call_${number}`;
    if (id !== undefined)
      diagnose(id.length > ID_CHARS ? 'id_too_long' : 'id_duplicate', { given: id.slice(0, ID_CHARS), used });
    return used;
  }

  const parts: ToolCallPart[] = [];
  for (const call of calls) {
    if (call.name === '') {
      diagnose('call_without_name', { id: call.id?.slice(0, ID_CHARS) ?? null });
      continue;
    }
    const callId = uniqueId(call);
    usedIds.add(callId);
    const part: ToolCallPart = { type: 'tool-call', callId, name: call.name, args: call.args };
    parts.push(call.extra === undefined ? part : { ...part, extra: call.extra });
  }
  return parts;
}
