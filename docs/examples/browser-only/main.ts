/** Shows the page, once the worker with the agent answers its requests. Any number of tabs may show it. */
const { serviceWorker } = navigator;
await serviceWorker.register('./worker.js', { type: 'module' });
if (!serviceWorker.controller)
  await new Promise((resolve) => serviceWorker.addEventListener('controllerchange', resolve, { once: true }));
await import('./page/main.tsx');

export {};
