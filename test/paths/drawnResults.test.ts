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
  'functions of drawn $name',
  ({ name, batches, clauses, subjects, digest, batchLine }) => {
    const taken = sampled(batches, volume.batchOf);
    it.each(clauses.map(({ says, holds }) => [says, holds] as const))('%s', (_, holds) => {
      const all = subjects(taken);
      expect(all.length).toBeGreaterThan(100);
      for (const subject of all) holds(subject as never);
    });

    const file = join(import.meta.dirname, 'digests', `${name}.txt`);
    const message = `${name} have other results than recorded; if you changed them on purpose, \`npm run record\` records them`;
    it.runIf(proves)('equals its committed digest (-u writes a new one)', async () => {
      await expect(digest(), message).toMatchFileSnapshot(file);
    });

    it.runIf(!proves)('equals its committed digest in each selected batch', () => {
      const committed = readFileSync(file, 'utf8').split('\n');
      expect(
        taken.map(batchLine).filter((line) => !committed.includes(line)),
        message,
      ).toEqual([]);
    });
  },
);
