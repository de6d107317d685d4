import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { proves, sampled, volume } from '../support/tier.ts';
import { acts } from './chartFunctions.ts';
import { conversations } from './conversationFunctions.ts';
import { counts } from './countFunctions.ts';
import { logs } from './logFolds.ts';
import { ends } from './runEnds.ts';
import { runs } from './runFunctions.ts';

describe.each([logs, runs, ends, conversations, acts, counts])(
  'what functions say of drawn $name',
  ({ name, batches, clauses, subjects, digest, batchLine }) => {
    const taken = sampled(batches, volume.batchOf);
    it.each(clauses.map(({ says, holds }) => [says, holds] as const))('%s', (_, holds) => {
      const all = subjects(taken);
      expect(all.length).toBeGreaterThan(100);
      for (const subject of all) holds(subject as never);
    });

    const file = join(import.meta.dirname, 'digests', `${name}.txt`);
    it.runIf(proves)('is what its committed digest says (-u writes what it is now)', async () => {
      await expect(digest()).toMatchFileSnapshot(file);
    });

    it.runIf(!proves)('is in each batch that is taken what its committed digest says', () => {
      expect(readFileSync(file, 'utf8').split('\n')).toEqual(expect.arrayContaining(taken.map(batchLine)));
    });
  },
);
