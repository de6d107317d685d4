import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { acts } from './acts.ts';
import { conversations } from './conversations.ts';
import { counts } from './counts.ts';
import { ends } from './ends.ts';
import { logs } from './logs.ts';
import { runs } from './runs.ts';

describe.each([logs, runs, ends, conversations, acts, counts])(
  'what functions say of drawn $name',
  ({ name, clauses, subjects, digest }) => {
    it.each(clauses.map(({ says, holds }) => [says, holds] as const))('%s', (_, holds) => {
      const all = subjects();
      expect(all.length).toBeGreaterThan(100);
      for (const subject of all) holds(subject as never);
    });

    it('is what its committed digest says (-u writes what it is now)', async () => {
      await expect(digest()).toMatchFileSnapshot(join(import.meta.dirname, 'digests', `${name}.txt`));
    });
  },
);
