/** Closes what a test of the inspector has opened at the end of that test, the last one first. */
import { onTestFinished } from 'vitest';

export function kept<Opened extends { close(): unknown }>(opened: Opened): Opened {
  onTestFinished(async () => {
    await opened.close();
  });
  return opened;
}
