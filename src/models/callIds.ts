/**
 * Assembled calls → `tool-call` parts. Rule: every part has a name and an id of its own; ids are made from the call's
 * place in the reply, so that the same bytes give the same ids.
 */
import type { Json } from '../../machines/vocabulary.ts';
import type { OpenCall } from './callAssembly.ts';
import type { ModelPart } from './model.ts';

type ToolCallPart = Extract<ModelPart, { type: 'tool-call' }>;

/** Longer ids are not ids: they would be sent back, and kept, with every request. */
const ID_CHARS = 256;

/** `note` takes a diagnostic: call_without_name (dropped), id_duplicate and id_too_long (renamed). */
export function completeCalls(
  calls: readonly OpenCall[],
  note: (code: string, detail?: Json) => void,
): readonly ToolCallPart[] {
  const taken = new Set<string>();
  const given = new Set<string>();
  for (const { id } of calls) if (id !== undefined) given.add(id);

  function ownId(call: OpenCall): string {
    const { id } = call;
    if (id !== undefined && id.length <= ID_CHARS && !taken.has(id)) return id;
    let at = call.position + 1;
    while (taken.has(`call_${at}`) || given.has(`call_${at}`)) at += 1;
    const made = `call_${at}`;
    if (id !== undefined)
      note(id.length > ID_CHARS ? 'id_too_long' : 'id_duplicate', { given: id.slice(0, ID_CHARS), used: made });
    return made;
  }

  const parts: ToolCallPart[] = [];
  for (const call of calls) {
    if (call.name === '') {
      note('call_without_name', { id: call.id?.slice(0, ID_CHARS) ?? null });
      continue;
    }
    const callId = ownId(call);
    taken.add(callId);
    const part: ToolCallPart = { type: 'tool-call', callId, name: call.name, args: call.args };
    parts.push(call.extra === undefined ? part : { ...part, extra: call.extra });
  }
  return parts;
}
