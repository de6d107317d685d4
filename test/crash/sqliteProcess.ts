/**
 * A doomed run on a SQLite store. Its moments are also some time after the nth append was handed to the store: `asked:3:0.5` is 0.5 ms
 * after the third.
 */
import { sqliteStore } from '../../src/stores/sqlite/sqliteStore.ts';
import { closeNotes, detail, die, number, place, runOn, what } from './doomedProcess.ts';

/** The thread of the store continues meanwhile. */
function dieAfter(ms: number): void {
  const from = performance.now();
  while (performance.now() - from < ms);
  die();
}

let appends = 0;
const store = sqliteStore(place, { durability: 'power' });
await runOn(store, {
  asked() {
    appends += 1;
    if (what === 'asked' && appends === number) setImmediate(() => dieAfter(Number(detail)));
  },
  isDue: () => appends === number,
});
await store.close();
closeNotes();
