/** What the servers of pages with React need of the library. */
export { createAgent, defineTool } from '../../src/index.ts';
export { agUiHandler, createHandlers, nodeHandler, uiMessageHandler } from '../../src/transports/index.ts';
