/** The diff of a changed file. */
import { expect, it } from 'vitest';
import { diffOf } from '../../../src/tools/coding/fileText.ts';

it('a long diff is never cut inside a character', async () => {
  for (const start of ['x', 'xy']) {
    const diff = await diffOf('a.txt', '', `${start}${'😀'.repeat(15_000)}\n`);
    expect(diff).toContain('[the rest of the change is not shown]');
    expect(diff).not.toMatch(/\p{Surrogate}/u);
  }
});
