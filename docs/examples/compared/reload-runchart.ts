/** A chat server whose page can be reloaded in the middle of a reply. */
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { openai } from 'runchart/openai';
import { uiMessageHandler } from 'runchart/transports';

const agent = createAgent({ model: openai('gpt-5.2'), store: jsonlStore('.chats') });
export const handler = uiMessageHandler(agent, { authorize: () => true, basePath: '/api/chat' });
