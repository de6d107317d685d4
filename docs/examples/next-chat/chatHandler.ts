/** The agent, and the handler of the requests of its chats. It keeps conversations in `.conversations`. */
import { createAgent, defineTool, type Model } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { uiMessageHandler } from 'runchart/transports';
import * as z from 'zod';

const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ to: z.string(), euros: z.number() }),
  needsApproval: true,
  execute: ({ to, euros }) => `sent ${euros} euros to ${to}`,
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Replace it by openai('gpt-5.2'), for example. This one pays the rent, and repeats every other message slowly. */
const model: Model = {
  id: 'example',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [part] = last?.content ?? [];
    const text = part?.type === 'text' ? part.text : '';
    if (last?.role === 'user' && /rent/i.test(text)) {
      yield { type: 'text-delta', text: 'I will pay the rent.' };
      yield { type: 'tool-call', callId: 'call', name: 'transfer', args: '{"to":"the landlord","euros":900}' };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    const reply =
      last?.role === 'tool' ? `Done: ${text}.` : `You wrote “${text}”. ${'I am still talking. '.repeat(40)}`;
    for (const word of reply.split(/(?<= )/)) {
      await pause(60);
      yield { type: 'text-delta', text: word };
    }
    yield { type: 'finish', reason: 'stop' };
  },
};

// #region handler
function makeHandler() {
  const agent = createAgent({
    model,
    tools: [transfer],
    store: jsonlStore('.conversations'),
    // What a person has seen of a reply before Stop stays.
    policies: { partialReply: 'keep' },
  });
  // Replace this with your own check of a session or a token. With { by, owner } each user has conversations of their own.
  return uiMessageHandler(agent, { authorize: () => ({ by: 'ada', owner: 'ada' }), basePath: '/api/chat' });
}

// Next evaluates this module once for pages, once for routes, and again after a change. A second agent could not open the
// conversations of the first (`session_busy`), so the first one stays. After a change of this file, restart `next dev`.
const kept = globalThis as { chatHandler?: ReturnType<typeof makeHandler> };
kept.chatHandler ??= makeHandler();
export const chatHandler = kept.chatHandler;
// #endregion
