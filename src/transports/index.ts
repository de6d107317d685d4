/**
 * `runchart/transports` connects conversations to clients. Rule: this entry uses web standards only. `nodeHandler` loads modules of Node
 * with its first request; other code that needs Node is in the CLI.
 */
export { type Subscribable, toAgUi } from './chat/agUi.ts';
export { agUiHandler, type ChatHandlerOptions, uiMessageHandler } from './chat/interfaceHandlers.ts';
export { type UiMessage, uiMessagesOf } from './chat/uiHistory.ts';
export { toUiMessages } from './chat/uiMessages.ts';
export { createHandlers, type HandlerOptions } from './handlers.ts';
export type { Authorized } from './httpRequests.ts';
export { inProcessTransport } from './inProcess.ts';
export { nodeHandler } from './nodeHandler.ts';
export { type RouteOptions, route } from './router.ts';
export { type SessionOptions, type Sessions, sessions } from './sessions.ts';
export { type LineStreams, stdioTransport } from './stdio.ts';
export type { Incoming, Outgoing, Transport } from './wireMessages.ts';
