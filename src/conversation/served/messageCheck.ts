/**
 * Checks a message before the changes that come before it. Rule: a message that `send` would refuse is refused here, before anything
 * changes.
 */
import type { StoredPart } from '../../../machines/internal.ts';
import { type Content, mustAccept } from '../../content/content.ts';
import { ConfigurationError } from '../../errors.ts';
import { noNames } from '../../runtime/currentRequest.ts';
import { display } from '../../validation.ts';
import { type Conversation, entriesOf, runtimeOf } from '../conversation.ts';
import { acceptedAs } from '../runs.ts';
import { checkSending, choicesIn, type SendOptions } from '../sendOptions.ts';

/** The moment of the message: after other changes, or now, when the state of the conversation may refuse it. */
export type Moment = 'later' | 'now';

/** Throws the error of `send`. Names of models and outputs are not checked, because the host has allowed them. */
export function checkMessage(
  conversation: Conversation,
  content: Content,
  options: SendOptions,
  moment: Moment = 'later',
): void {
  const runtime = runtimeOf(conversation);
  const { attachments, request, toolbox } = runtime;
  const { model, output: _, ...choices } = checkSending(options);
  choicesIn(choices, { named: noNames, tools: () => toolbox.specs.map(({ name }) => name) });
  mustAccept(attachments.read(content), request.modelNamed(model));
  mustRefer(conversation, content);
  if (moment === 'now') acceptedAs(runtime, options.kind, options.whileSuspended);
}

const PREFIX = 'blob:';
/** The same bytes may have another media type in another part. */
const hashIn = (data: string): string => data.split(':')[1] ?? '';

/** Throws ConfigurationError if a part refers to bytes that no entry refers to: the store has no other ones to give. */
export function mustRefer(conversation: Conversation, content: Content): void {
  for (const part of Array.isArray(content) ? content : []) {
    const { type, data } = (part ?? {}) as { type?: unknown; data?: unknown };
    if (typeof data !== 'string' || !data.startsWith(PREFIX)) continue;
    const hash = hashIn(data);
    const refers = (other: { content: readonly StoredPart[] }): boolean =>
      other.content.some((each) => 'data' in each && each.data.startsWith(PREFIX) && hashIn(each.data) === hash);
    const isKnown = entriesOf(conversation).some((entry) =>
      entry.type === 'history' ? entry.messages.some(refers) : 'content' in entry && refers(entry),
    );
    if (!isKnown)
      throw new ConfigurationError(
        `data of the ${String(type)} must be a reference from an entry of this conversation, or its bytes, base64 or an http(s) URL, got ${display(data)}`,
      );
  }
}
