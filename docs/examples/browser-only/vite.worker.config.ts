import { defineConfig } from 'vite';

/**
 * The worker is one file, because a service worker cannot import modules on demand. It lies beside the page, because it answers
 * only requests below its own place.
 */
export default defineConfig({
  publicDir: false,
  build: {
    target: 'es2022',
    emptyOutDir: false,
    rolldownOptions: {
      input: 'worker.ts',
      // A server of Node would load them.
      external: [/^@hono\/node-server/, /^node:/],
      output: { entryFileNames: 'worker.js', codeSplitting: false },
    },
  },
});
