/** What the model is told of a call whose arguments a person changed. Rule: it learns what ran, in the result itself. */
import type { CallRecord, ToolCall, ToolValue } from '../../machines/index.ts';
import { cut } from './result.ts';

/** By the decision of this start, or by one before the call was suspended anew. */
function wasEdited({ decisions }: CallRecord, suspension: number): boolean {
  return [...decisions].some(([number, { action }]) => action === 'edit' && number <= suspension);
}

/** The value as it is where nobody changed anything. `most`: bytes of the arguments that are shown. */
export function withEditNote(
  value: ToolValue,
  { call, record, suspension }: { call: ToolCall; record: CallRecord | undefined; suspension: number },
  most: number,
): ToolValue {
  if (value.kind === 'pending' || !record || !wasEdited(record, suspension)) return value;
  const note = `The user changed the arguments of this call before it ran: ${cut(JSON.stringify(call.args), most)}`;
  return { ...value, content: [...value.content, { type: 'text', text: note }] };
}
