/** A chat server whose page chooses the model of each message. */
import { createAgent } from 'runchart';
import { openai } from 'runchart/openai';
import { uiMessageHandler } from 'runchart/transports';

// #region models
const agent = createAgent({ model: openai('gpt-5.2'), models: { small: openai('gpt-5.2-mini') } });
const allow = { models: ['small'] };
export const handler = uiMessageHandler(agent, { authorize: () => true, allow });
// #endregion
