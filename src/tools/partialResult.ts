/**
 * What a call has produced so far. Rule: it is part of the call's result only if the call is cancelled, and never where a journal
 * repeats the conversation, because no tool prints again then.
 */
import type { ToolContext } from './tool.ts';

type TakePartial = (text: () => string) => unknown;
const takers = new WeakMap<ToolContext, TakePartial>();

/** Must be called before the tool receives the context. */
export const takesPartial = (context: ToolContext, take: TakePartial): unknown => takers.set(context, take);

/** `text` is called when the result of the cancelled call is stored. An empty text adds nothing. */
export const partialResult = (context: ToolContext, text: () => string): unknown => takers.get(context)?.(text);
