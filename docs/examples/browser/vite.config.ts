/** `npx vite docs/examples/browser`, behind `npm run build`. The inspector's page stands beside the app, so it is of its origin. */
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
