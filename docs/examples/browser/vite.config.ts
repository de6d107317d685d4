/** `npm run build`, then `npx vite docs/examples/browser`. The inspector's page is served beside the app, from the same origin. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  // In an app of yours: node_modules/runchart/dist/inspect
  publicDir: fileURLToPath(new URL('../../../dist/inspect', import.meta.url)),
  build: { target: 'es2022', emptyOutDir: true },
  logLevel: 'warn',
});
