/** Conversations on a Restate server: workers that serve an agent, and the agent as its clients see it. */
export { type BlobStore, blobDirectory } from './blobStore.ts';
export type { HubSignal, LiveHub } from './liveHub.ts';
export { type RestateAgentOptions, restateAgent } from './restateAgent.ts';
export { type ServedAgent, type ServeOptions, serveAgent } from './serveAgent.ts';
