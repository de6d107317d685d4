/** How the inspector's page is built: into the package, from files of its own, nothing inline. */
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
    // Fonts and the layout worker stay files: a page that may load nothing but its own files takes no data addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: false,
  },
});
