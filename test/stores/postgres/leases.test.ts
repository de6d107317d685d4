/** The renewal of the leases of a process, on a fake clock and without a database. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Database, type PostgresPool } from '../../../src/stores/postgres/database.ts';
import { type LeaseHolder, Leases } from '../../../src/stores/postgres/leases.ts';
import type { Statements } from '../../../src/stores/postgres/statements.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const LEASE_MS = 900;
const holderOf = (id: string): LeaseHolder & { lost: number } => ({
  ...{ id, epoch: 1, isFencing: false, liveFeed: undefined, lost: 0, close: async () => undefined },
  lose() {
    this.lost += 1;
  },
});

/** Every renewal is granted after `answered`. `renewed`: the ids of each. */
function granting(answered: () => Promise<void> = async () => undefined) {
  const renewed: string[] = [];
  const query = async (text: string, [ids]: readonly unknown[] = []) => {
    if (text === 'renew') {
      renewed.push(String(ids));
      await answered();
    }
    return { rows: [...String(ids).matchAll(/[\w-]+/g)].map(([id]) => ({ id })) };
  };
  const client = { query, release: () => undefined, on: () => undefined, off: () => undefined };
  const database = new Database({ query, connect: async () => client } as PostgresPool);
  const statements = new Proxy({}, { get: (_, name) => String(name) }) as Statements;
  return { leases: new Leases(database, statements, LEASE_MS), renewed };
}

describe('the leases of a process', () => {
  it('are renewed three times in the time of a lease, also those of later conversations after all others were closed', async () => {
    const { leases, renewed } = granting();
    for (const time of [1, 2, 3]) {
      const holder = holderOf('c');
      leases.add(holder, performance.now());
      await vi.advanceTimersByTimeAsync(3 * LEASE_MS);
      expect([renewed.length, holder.lost]).toEqual([9 * time, 0]);
      leases.delete(holder);
      await vi.advanceTimersByTimeAsync(LEASE_MS);
      expect([renewed.length, vi.getTimerCount()]).toEqual([9 * time, 0]);
    }
  });

  it('are renewed together by one statement, whichever of them began first or ends first', async () => {
    const { leases, renewed } = granting();
    const [first, second] = [holderOf('first'), holderOf('second')];
    leases.add(first, performance.now());
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    leases.add(second, performance.now());
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    leases.delete(first);
    leases.delete(first);
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
    const ids = renewed.map((text) => text.match(/[\w-]+/g));
    expect(ids).toEqual([['first'], ['first', 'second'], ['second']]);
    leases.delete(second);
    expect([first.lost, second.lost, vi.getTimerCount()]).toEqual([0, 0, 0]);
  });

  it.each([1, 2, 3])('are kept if the database never answers the renewal with number %i', async (silent) => {
    let renewals = 0;
    const { leases } = granting(() => {
      renewals += 1;
      return new Promise((resolve) => void (renewals !== silent && setTimeout(resolve, 5)));
    });
    const holder = holderOf('c');
    leases.add(holder, performance.now());
    await vi.advanceTimersByTimeAsync(10 * LEASE_MS + 50);
    expect(holder.lost).toBe(0);
    leases.delete(holder);
    expect(vi.getTimerCount()).toBe(0);
  });
});
