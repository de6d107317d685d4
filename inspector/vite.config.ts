/** Builds the inspector's page into the package: separate files, nothing inline. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  logLevel: 'warn',
  build: {
    outDir: '../dist/inspect/page',
    emptyOutDir: true,
    target: 'es2022',
    // Fonts and the layout worker stay files: the page's policy forbids `data:` addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: false,
  },
});
