/** Tests the lease across process namespaces, as containers with a shared volume have them. */
import { spawnSync } from 'node:child_process';
import { existsSync, readlinkSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { notice, opened, refused, stored } from '../../src/testing/storeSuite/storeCase.ts';
import { children } from './childProcess.ts';
import { place } from './storeDirectory.ts';

const HOLD = "const handle = await jsonlStore(directory).open('c'); say('open');";
const TAKE = `
  const said = (error) => say(error.code);
  await jsonlStore(directory).open('c').then(() => say('open'), said);
`;

/** A program in a namespace of its own, under this host's name. The namespace ends when `unshare` is killed. */
const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
const WITHIN = ['unshare', ...asRoot, '--pid', '--fork', '--kill-child', '--mount-proc'] as const;
const [unshare, ...flags] = WITHIN;
const possible = spawnSync(unshare, [...flags, 'true']).status === 0;
const OWN = '/proc/self/ns/pid';
const isFirst = existsSync(OWN) && readlinkSync(OWN) === 'pid:[4026531836]';

describe.skipIf(!possible)('two process namespaces of one host', () => {
  const run = children();

  test('a holder in a nested namespace is visible: busy while it is alive, free at once when it has ended', async () => {
    const { directory, store } = await place();
    const holder = run(directory, `${HOLD} await handle.append([entry(0)], 0); say('wrote');`, WITHIN);
    expect([await holder.line(), await holder.line()]).toEqual(['open', 'wrote']);
    await refused('session_busy', () => store.open('c'));
    expect((await store.list()).map(({ status }) => status)).toEqual(['active']);
    await holder.kill();
    // The system ends the remains of the namespace at an unknown time.
    const tried = () => stored(store, 'c').then((entries) => entries.length, String);
    await expect.poll(tried).toBe(1);
  });

  test.skipIf(!isFirst)('a holder in the initial namespace counts as alive in a nested one', async () => {
    const { directory, store } = await place();
    await opened(store, 'c', async (handle) => {
      expect(await run(directory, TAKE, WITHIN).line()).toBe('session_busy');
      await handle.append([notice('c', 0)], 0);
    });
  });

  test('a restarted container takes the lease of its predecessor at once', async () => {
    const { directory } = await place();
    const before = run(directory, HOLD, WITHIN);
    expect(await before.line()).toBe('open');
    await before.kill();
    expect(await run(directory, TAKE, WITHIN).line()).toBe('open');
  });
});
