/**
 * `runchart/transports` connects conversations to clients. Rule: this entry uses web standards only; code that needs
 * Node is in the CLI.
 */
export { toAgUi } from './chat/agUi.ts';
export { agUiHandler, type ChatHandlerOptions, uiMessageHandler } from './chat/interfaceHandlers.ts';
export { toUiMessages } from './chat/uiMessages.ts';
export { createHandlers, type HandlerOptions } from './handlers.ts';
export { inProcessTransport } from './inProcess.ts';
export { type RouteOptions, route } from './router.ts';
export { type SessionOptions, type Sessions, sessions } from './sessions.ts';
export { type LineStreams, stdioTransport } from './stdio.ts';
export type { Incoming, Outgoing, Transport } from './wireMessages.ts';
