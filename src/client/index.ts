/**
 * `runchart/client`: an agent behind a server of `createHandlers`. Invariant: web standards only, so it runs in browsers and
 * in every server runtime.
 */
export { connect, type RemoteAgent } from './connect.ts';
export type { ConnectionState } from './remoteConnection.ts';
export type { ClientOptions } from './serverCalls.ts';
export type { ServerConversation as RemoteConversation } from './serverConversation.ts';
