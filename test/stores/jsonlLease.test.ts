/** Tests the lease of a log: one living process can write, and the next one as soon as it has ended. */
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { holderOf, takeLease } from '../../src/stores/jsonl/lease.ts';
import { isAlive, isSameProcess, ownIdentity } from '../../src/stores/jsonl/processIdentity.ts';
import {
  conversation,
  notice,
  notices,
  opened,
  refused,
  stored,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { proves } from '../support/tier.ts';
import { children } from './childProcess.ts';
import { place } from './storeDirectory.ts';

const run = children();
const HOLD = "const handle = await jsonlStore(directory).open('c'); say('open');";
const TAKE = `
  try {
    const handle = await jsonlStore(directory).open('c');
    say('open');
  } catch (error) { say(error.code); }
`;

/** The fencing tokens of conversation `c`, with the contents of their files. */
async function leases(directory: string): Promise<Map<number, string>> {
  const folder = join(directory, 'c.jsonl.lock');
  const found = new Map<number, string>();
  for (const name of await readdir(folder)) found.set(Number(name), await readFile(join(folder, name), 'utf8'));
  return found;
}

describe('two processes', () => {
  test('H-150 a log that is open in another process is busy, and free at once when that process is killed', async () => {
    const { directory, store } = await place();
    const other = run(directory, `${HOLD} await handle.append([entry(0)], 0); say('wrote');`);
    expect([await other.line(), await other.line()]).toEqual(['open', 'wrote']);
    await expect(store.open('c')).rejects.toThrow(`process ${other.process.pid} `);
    await refused('session_busy', () => store.delete('c'));
    const [before = 0] = (await leases(directory)).keys();
    await other.kill();
    await opened(store, 'c', async (handle) => {
      const [token = 0, ...more] = (await leases(directory)).keys();
      expect(more).toEqual([]);
      expect(token).toBeGreaterThan(before);
      await handle.append([notice('c', 1)], 1);
    });
    expect((await stored(store, 'c')).map((entry) => entry.seq)).toEqual([0, 1]);
  });

  test('CKPT-6 exactly one of several processes opens the log of a dead process', async () => {
    const { directory } = await place();
    const dead = run(directory, HOLD);
    expect(await dead.line()).toBe('open');
    await dead.kill();
    const takers = Array.from({ length: 4 }, () => run(directory, TAKE));
    const answers = await Promise.all(takers.map((taker) => taker.line()));
    expect(answers.sort()).toEqual(['open', 'session_busy', 'session_busy', 'session_busy']);
  });

  test('INV-5 a log of a process that was killed while writing opens with every acknowledged entry', async () => {
    const { directory, store } = await place();
    for (let round = 0; round < 4; round += 1) {
      const writer = run(
        directory,
        `${HOLD}
        let seq = 0;
        for await (const found of handle.read()) seq = found.seq + 1;
        for (;; seq += 1) { await handle.append([entry(seq)], seq); say(String(seq)); }`,
      );
      let acknowledged = await writer.line();
      for (let count = 0; count < 25; count += 1) acknowledged = await writer.line();
      await writer.kill();
      const entries = await stored(store, 'c');
      expect(entries.length).toBeGreaterThan(Number(acknowledged));
      expect(entries.map((entry) => entry.seq)).toEqual(entries.map((_, index) => index));
    }
  });

  test.skipIf(!proves)(
    'CKPT-6 processes that open, append and close at once never lose their lease or an entry',
    async () => {
      const { directory, store } = await place();
      const turns = 40;
      const writers = Array.from({ length: 5 }, () =>
        run(
          directory,
          `
        for (let got = 0; got < ${turns}; ) {
          try {
            const handle = await jsonlStore(directory).open('c');
            let seq = 0;
            for await (const found of handle.read()) seq = found.seq + 1;
            await handle.append([entry(seq)], seq);
            await handle.close();
            got += 1;
          } catch (error) {
            if (error.code !== 'session_busy') { say(error.code + ': ' + error.message); break; }
          }
        }
        say('done');
        `,
        ),
      );
      expect(await Promise.all(writers.map((writer) => writer.line()))).toEqual(writers.map(() => 'done'));
      const seqs = (await stored(store, 'c')).map((entry) => entry.seq);
      expect(seqs).toEqual(Array.from({ length: writers.length * turns }, (_, index) => index));
    },
  );

  test('a conversation of another process is listed as active, and by its entries after that process has ended', async () => {
    const { directory, store } = await place();
    await write(store, 'c', [conversation('c')]);
    const other = run(directory, HOLD);
    await other.line();
    expect((await store.list()).map((found) => found.status)).toEqual(['active']);
    await other.kill();
    expect((await store.list()).map((found) => found.status)).toEqual(['idle']);
  });

  test('a stopped process keeps its lease', async () => {
    const { directory, store } = await place();
    const other = run(directory, HOLD);
    await other.line();
    other.process.kill('SIGSTOP');
    await refused('session_busy', () => store.open('c'));
  });
});

describe('one process', () => {
  test('H-149 a second store on the same directory is busy too, also through a link to the log', async () => {
    const { directory, store, path } = await place();
    await opened(store, 'c', async () => {
      await refused('session_busy', () => jsonlStore(directory).open('c'));
      await symlink(path('c.jsonl'), path('d.jsonl'));
      await refused('session_busy', () => store.open('d'));
    });
  });

  test('a released lease keeps its number, and the next one is greater', async () => {
    const { directory, store } = await place();
    await opened(store, 'c', async () => {});
    expect([...(await leases(directory))]).toEqual([[1, '']]);
    await opened(store, 'c', async () => expect([...(await leases(directory)).keys()]).toEqual([2]));
  });

  test('a writer without its lease is refused, and nothing is written', async () => {
    const { store, path } = await place();
    const handle = await store.open('c');
    await handle.append([notice('c', 0)], 0);
    await rm(path('c.jsonl.lock'), { recursive: true });
    const next = await store.open('c');
    await expect(handle.append([notice('c', 1)], 1)).rejects.toThrow(/lease 1 .* no longer held/);
    await refused('store_conflict', () => handle.append([notice('c', 1)], 1));
    await handle.close();
    await refused('session_busy', () => store.open('c'));
    await next.append([notice('c', 1)], 1);
    await next.close();
    expect(await stored(store, 'c')).toEqual(notices('c', 0, 2));
  });

  test.each(['resume', 'release', 'remove'] as const)(
    'a lease whose directory was removed leaves the next lease of that number intact: %s',
    async (act) => {
      const { directory } = await place();
      const folder = join(directory, 'c.jsonl.lock');
      for (const isSuspended of [false, true]) {
        const lost = await takeLease(folder, 'the log');
        if (isSuspended) await lost.suspend();
        await rm(folder, { recursive: true });
        const next = await takeLease(folder, 'the log');
        expect(next.token).toBe(lost.token);
        await lost[act]();
        expect([isSuspended, lost.holds(), next.holds()]).toEqual([isSuspended, false, true]);
        await expect(takeLease(folder, 'the log')).rejects.toMatchObject({ code: 'session_busy' });
        await next.release();
        await rm(folder, { recursive: true });
      }
    },
  );

  test('a failed opening releases the lease', async () => {
    const { store, path } = await place();
    await writeFile(path('c.jsonl'), 'not a log\n');
    await refused('no_header', () => store.open('c'));
    await refused('no_header', () => store.open('c'));
    expect(await holderOf(path('c.jsonl.lock'))).toBe('nobody');
  });

  test('many concurrent openers never have the lease together, and each gets it once', async () => {
    const { path } = await place();
    let holders = 0;
    let turns = 0;
    const taker = async () => {
      for (let got = 0; got < 5; ) {
        const lease = await takeLease(path('lock'), 'it').catch((error: { code?: string }) => {
          if (error.code !== 'session_busy') throw error;
        });
        if (lease === undefined) {
          await new Promise((resolve) => setImmediate(resolve));
          continue;
        }
        holders += 1;
        expect(holders).toBe(1);
        expect(lease.holds()).toBe(true);
        await new Promise((resolve) => setImmediate(resolve));
        holders -= 1;
        got += 1;
        turns += 1;
        await (turns % 4 === 0 ? lease.remove() : lease.release());
      }
    };
    await Promise.all(Array.from({ length: 6 }, taker));
    expect(turns).toBe(30);
  });
});

describe('a living process', () => {
  const own = ownIdentity();

  /** A store whose conversation `c` has a lease with this text. */
  async function leasedBy(text: string) {
    const found = await place();
    await mkdir(found.path('c.jsonl.lock'));
    await writeFile(found.path('c.jsonl.lock/7'), text);
    return found.store;
  }

  test('a reused process number is another process', async () => {
    expect(isAlive(own)).toBe(true);
    expect(isAlive({ ...own, started: `${own.started}1` })).toBe(false);
    const store = await leasedBy(JSON.stringify({ ...own, started: '1', token: 7 }));
    await write(store, 'c', [notice('c', 0)]);
  });

  test('processes of an earlier boot or container start of this host have ended; those of another host count as alive', async () => {
    const [boot = ''] = own.space.split(' ');
    expect(isAlive({ ...own, space: 'an earlier boot' })).toBe(false);
    expect(isAlive({ ...own, space: 'earlier pid:[4026531836]' })).toBe(false);
    expect(isAlive({ ...own, space: `${boot} pid:[1]` })).toBe(false);
    expect(isAlive({ ...own, space: `${boot} pid:[1]`, host: 'another-host' })).toBe(true);
    expect(isAlive({ ...own, space: 'another boot', host: 'another-host' })).toBe(true);
    const store = await leasedBy(JSON.stringify({ ...own, space: 'x', host: 'another-host', token: 7 }));
    await expect(store.open('c')).rejects.toThrow(`process ${process.pid} on another-host`);
  });

  test('an unreadable lease counts as released', async () => {
    for (const text of ['', '\0\0\0', '{"pid":', 'null', '{"pid":-1}', '{"pid":"1"}', `{"pid":${process.pid}}`]) {
      await write(await leasedBy(text), 'c', [notice('c', 0)]);
    }
  });

  test('a zombie process does not count', async () => {
    // The shell starts a child and becomes a program that never collects it; only then the child is ended.
    const shell = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      const pid = Number(await new Promise((resolve) => shell.stdout.once('data', resolve)));
      await expect.poll(() => readFile(`/proc/${shell.pid}/comm`, 'utf8')).toBe('sleep\n');
      process.kill(pid, 'SIGKILL');
      await expect.poll(() => readFile(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /);
      const started = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[19];
      expect(isAlive({ ...own, pid, started: started ?? null })).toBe(false);
      expect(isSameProcess(own, { ...own, pid })).toBe(false);
    } finally {
      shell.kill('SIGKILL');
    }
  });
});

/** The files below a directory that this process has open. */
async function openFiles(directory: string): Promise<string[]> {
  const links = (await readdir('/proc/self/fd')).map((name) => readlink(`/proc/self/fd/${name}`).catch(() => ''));
  return (await Promise.all(links)).filter((path) => path.startsWith(directory));
}

describe.skipIf(process.platform !== 'linux')('a log that is closed', () => {
  const cases: [string, (found: Awaited<ReturnType<typeof place>>) => Promise<unknown>][] = [
    ['its lease was released', async ({ path }) => (await takeLease(path('lock'), 'it')).release()],
    ['its lease was removed', async ({ path }) => (await takeLease(path('lock'), 'it')).remove()],
    [
      'its lease was released twice',
      async ({ path }) => {
        const lease = await takeLease(path('lock'), 'it');
        await Promise.all([lease.release(), lease.release()]);
      },
    ],
    [
      'another one was refused meanwhile',
      async ({ path }) => {
        const lease = await takeLease(path('lock'), 'it');
        await refused('session_busy', () => takeLease(path('lock'), 'it'));
        await lease.release();
      },
    ],
    [
      'several wanted it at once',
      async ({ path }) => {
        const all = await Promise.allSettled(Array.from({ length: 8 }, () => takeLease(path('lock'), 'it')));
        for (const each of all) if (each.status === 'fulfilled') await each.value.release();
      },
    ],
    ['it was written', ({ store }) => write(store, 'c', [conversation('c')])],
    ['it was read', async ({ store }) => stored(store, 'c')],
    [
      'it was deleted',
      async ({ store }) => {
        await write(store, 'c', [conversation('c')]);
        await store.delete('c');
      },
    ],
  ];

  test.each(cases)('has no file open any more: %s', async (_, act) => {
    const found = await place();
    for (let times = 1; times <= 3; times++) {
      await act(found);
      expect(await openFiles(found.directory)).toEqual([]);
      await rm(found.path('c.jsonl'), { force: true });
    }
  });
});
