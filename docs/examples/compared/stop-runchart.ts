/** A Stop button that ends the reply on the server and keeps what was shown. The server is that of `reload-runchart.ts`. */
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { openai } from 'runchart/openai';
import { uiMessageHandler } from 'runchart/transports';

const agent = createAgent({
  model: openai('gpt-5.2'),
  store: jsonlStore('.chats'),
  policies: { partialReply: 'keep' },
});
export const handler = uiMessageHandler(agent, { authorize: () => true, basePath: '/api/chat' });

/** In the page, beside `stop()` of `useChat`. */
export const stopReply = (id: string): Promise<Response> => fetch(`/api/chat/${id}/stop`, { method: 'POST' });
