/**
 * The cost of many conversations on disk for a store: the first list ever, the first list after a start, a page of 100, an append that a
 * list follows, and an opening. `node test/bench/listBench.mjs 1000 10000`; default: 1,000, 10,000 and 100,000.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jsonlStore } from '../../dist/src/node.js';
import { makeLogs, STARTED } from './manyLogs.mjs';

async function timed(act) {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  await act();
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - start, cpuMs: (user + system) / 1000 };
}

async function median(act, times = 20) {
  const all = [];
  for (let time = 0; time < times; time += 1) all.push((await timed(act)).ms);
  return all.sort((a, b) => a - b)[times >> 1];
}

const show = ({ ms, cpuMs }) => `${ms.toFixed(0)} ms (${cpuMs.toFixed(0)} ms CPU)`;

async function measure(count) {
  const directory = mkdtempSync(join(tmpdir(), 'runchart-list-'));
  try {
    makeLogs(directory, count);
    console.log(`${count} conversations`);
    console.log(
      `  first list of the directory: ${show(await timed(() => jsonlStore(directory).list({ limit: 100 })))}`,
    );
    const store = jsonlStore(directory);
    console.log(`  first list after a start:    ${show(await timed(() => store.list({ limit: 100 })))}`);
    console.log(`  100 rows:                    ${(await median(() => store.list({ limit: 100 }))).toFixed(2)} ms`);
    console.log(
      `  100 rows of an owner:        ${(await median(() => store.list({ limit: 100, owner: 'u7' }))).toFixed(2)} ms`,
    );
    console.log(
      `  100 rows that wait:          ${(await median(() => store.list({ limit: 100, status: 'waiting' }))).toFixed(2)} ms`,
    );
    const handle = await store.open('c0');
    let seq = 3;
    const append = async () => {
      const entry = Object.freeze({
        seq,
        at: STARTED + count + seq,
        conversationId: 'c0',
        runId: null,
        type: 'notice',
        code: 'n',
        text: 't',
      });
      await handle.append([entry], seq++);
    };
    console.log(`  an append:                   ${(await median(append, 200)).toFixed(2)} ms`);
    const both = async () => {
      await append();
      await store.list({ limit: 100 });
    };
    console.log(`  an append and 100 rows:      ${(await median(both)).toFixed(2)} ms`);
    await handle.close();
    const openings = async () => (await store.open('c1')).close();
    console.log(`  an opening and a close:      ${(await median(openings)).toFixed(2)} ms`);
    console.log(`  resident:                    ${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const sizes = process.argv.slice(2).map(Number);
for (const count of sizes.length > 0 ? sizes : [1000, 10_000, 100_000]) await measure(count);
