import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { batches, digestOfLogs, foldsOf, logClauses } from './logs.ts';

describe('what a log says', () => {
  it.each(logClauses.map(({ says, holds }) => [says, holds] as const))('%s', (_, holds) => {
    const logs = new Set(batches().flatMap((batch) => [...foldsOf(batch)].map(({ log }) => log)));
    expect(logs.size).toBeGreaterThan(batches().length);
    for (const log of logs) holds(log);
  });

  it('is what its committed digest says (-u writes what it is now)', async () => {
    await expect(digestOfLogs()).toMatchFileSnapshot(join(import.meta.dirname, 'digests', 'LOGS.txt'));
  });
});
