/** The parts of the library that servers of pages with React need. */
export { createAgent, defineTool } from '../../src/index.ts';
export { agUiHandler, createHandlers, nodeHandler, uiMessageHandler } from '../../src/transports/index.ts';
