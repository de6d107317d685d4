/** Effects of the journal that ends nothing by itself: what a failed effect reports. */
import { expect, it } from 'vitest';
import type { Completion } from '../../machines/internal.ts';
import { EmbeddedJournal, type Execute } from '../../src/runtime/journal.ts';

/** What the effect of this function reports. */
async function reportOf(execute: Execute): Promise<Completion | undefined> {
  const journal = new EmbeddedJournal({
    execute,
    append: () => undefined,
    now: () => 0,
    setTimer: () => () => undefined,
    cycleMs: () => 0,
    report: () => undefined,
    late: () => undefined,
  });
  const rung = new Promise<void>((resolve) => journal.bell(resolve));
  journal.start({ kind: 'context', id: 'r/context' } as never);
  await rung;
  return journal.take()?.completion;
}

const failing: [string, Execute][] = [
  [
    'throws',
    () => {
      throw new Error('out of memory');
    },
  ],
  ['rejects', () => Promise.reject(new Error('out of memory'))],
];

it.each(failing)('an effect that %s without a code fails as "executor", with the message', async (_, execute) => {
  expect(await reportOf(execute)).toEqual({
    type: 'effect.failed',
    id: 'r/context',
    cause: 'executor',
    error: { code: 'executor', message: 'out of memory' },
  });
});

it('an effect whose error has a code and a cause fails with them', async () => {
  const error = Object.assign(new Error('no room'), { code: 'ENOSPC', runCause: 'store' });
  expect(await reportOf(() => Promise.reject(error))).toMatchObject({
    cause: 'store',
    error: { code: 'ENOSPC', message: 'no room' },
  });
});
