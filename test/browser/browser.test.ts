/** Tests in a real browser, if one is installed: Debian's Chromium, or the one that CHROMIUM names. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { HANG_MS, proves, sampled, volume } from '../support/tier.ts';

const script = fileURLToPath(new URL('runBrowser.mjs', import.meta.url));
const installed = existsSync(process.env.CHROMIUM ?? '/usr/bin/chromium');

test.skipIf(!installed)(
  'a run, stores in IndexedDB, the projector and images do in Chromium what they do in Node',
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      script,
      '--logs',
      `${volume.browserLogs}`,
      ...(proves ? [] : ['--no-whole', '--place', `${sampled([0, 1], volume.caseOf)}`]),
    ]);
    expect(stdout).toMatch(/^browser: \d+ passed, 0 failed$/m);
  },
  // Chromium and the builds of the pages take two minutes where two slow cores are shared.
  3 * HANG_MS,
);
