/** `npm run crash`: real processes, killed after each append of their log file. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/crash/**/*.crash.ts'],
    testTimeout: 600_000,
    root: new URL('../..', import.meta.url).pathname,
  },
});
