/** Collects promises of the library that reject without a handler, until the test ends. */
import { onTestFinished } from 'vitest';

export function unhandledRejections(): readonly unknown[] {
  const found: unknown[] = [];
  const take = (error: unknown): void => void found.push(error);
  process.on('unhandledRejection', take);
  onTestFinished(() => void process.off('unhandledRejection', take));
  return found;
}
