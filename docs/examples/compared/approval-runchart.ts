/** A chat server with a tool that needs approval, and the history of each chat. */
import { createAgent, defineTool } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { openai } from 'runchart/openai';
import { uiMessageHandler } from 'runchart/transports';
import * as z from 'zod';

const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ to: z.string(), euros: z.number() }),
  needsApproval: true,
  execute: ({ to, euros }) => `sent ${euros} euros to ${to}`,
});

const agent = createAgent({ model: openai('gpt-5.2'), tools: [transfer], store: jsonlStore('.chats') });
export const handler = uiMessageHandler(agent, { authorize: () => true, basePath: '/api/chat' });
