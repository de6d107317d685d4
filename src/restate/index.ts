/** Conversations on a Restate server: workers that serve an agent, and the agent as its clients see it. */
export { type BlobBucketOptions, blobBucket } from './blobBucket.ts';
export { type BlobStore, blobDirectory } from './blobStore.ts';
export { type BlobPool, type BlobTableOptions, blobTable } from './blobTable.ts';
export { type NotifyHub, type NotifyHubOptions, notifyHub } from './hub/notifyHub.ts';
export type { ListingStore } from './listedRows.ts';
export type { HubSignal, LiveHub } from './liveHub.ts';
export { type RestateAgentOptions, restateAgent } from './restateAgent.ts';
export { type ServedAgent, type ServeOptions, serveAgent } from './serveAgent.ts';
