/**
 * Checks a message before the change that makes room for it. Rule: what `send` would refuse, whatever the conversation does, is
 * refused here, and nothing changes.
 */
import { type Content, mustAccept, mustRefer } from '../../content/content.ts';
import { noNames } from '../../runtime/currentRequest.ts';
import { type Conversation, runtimeOf } from '../conversation.ts';
import { checkSending, choicesIn, type SendOptions } from '../sendOptions.ts';

/** Throws the error of `send`. Names of models and outputs are not checked, because the host has allowed them. */
export function checkMessage(conversation: Conversation, content: Content, options: SendOptions): void {
  const { attachments, log, request, toolbox } = runtimeOf(conversation);
  checkSending(options);
  const { model, output: _, ...choices } = options;
  choicesIn(choices, { named: noNames, tools: () => toolbox.specs.map(({ name }) => name) });
  const parts = attachments.read(content);
  mustAccept(parts, request.modelNamed(model));
  mustRefer(parts, log.entries);
}
