import { defineConfig } from 'vite';

/** The page and the server have one origin: vite passes requests for conversations on. */
export default defineConfig({ server: { proxy: { '/api': 'http://127.0.0.1:8787' } } });
