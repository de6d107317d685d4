/** `npm run mutate`: every guard removed and every arrow redirected, one at a time, against the generated paths. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/mutate/**/*.mutate.ts'],
    testTimeout: 600_000,
    root: new URL('../..', import.meta.url).pathname,
  },
});
