/**
 * The agent of all tabs, in a service worker: it answers their requests as a server would. The browser may end the worker at
 * any time. The next request starts it again, and the run continues from its log in IndexedDB.
 */
import { createAgent } from 'runchart';
import { indexedDbStore } from 'runchart/browser';
import { createHandlers } from 'runchart/transports';
import { model, transfer } from './model.js';

declare const self: ServiceWorkerGlobalScope;

// #region worker
const agent = createAgent({
  model, // in your app, the model is on your server
  tools: [transfer],
  store: indexedDbStore('chat'),
  policies: { onRestart: 'resume', partialReply: 'keep' },
});
// Only pages of this origin reach the worker.
const handler = createHandlers(agent, { authorize: () => true, basePath: '/api' });

self.addEventListener('install', (event) => event.waitUntil(self.skipWaiting()));
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (new URL(event.request.url).pathname.startsWith('/api/')) event.respondWith(handler(event.request));
});
// #endregion
