/** The entry `runchart/openai`: models with the APIs of OpenAI, and of servers that have the same. */
export { type OpenAIOptions, openai } from './openai.ts';
export { type OpenAIResponsesOptions, openaiResponses } from './responses.ts';
