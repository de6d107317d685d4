/**
 * runchart as a server, compared with a server that is written by hand for the same job, in one run: CPU of a turn, cancels under load,
 * long logs, many tools, resources held afterwards, hostile clients and many conversations on disk. It prints one table.
 * `node test/bench/serverBench.mjs --most` also measures 100,000 conversations on disk. Other arguments name parts.
 */
import { cancelUnderLoad, cpuOfTurns, heldAfterwards, hostileMix } from './server/loads.mjs';
import { start } from './server/remote.mjs';

const rows = [];
const figure = (value, digits) => (value === undefined ? '' : value.toFixed(value >= 100 ? 0 : digits));

/** A row whose aim is a ratio to the server by hand, or a bound in the unit of the figure. */
function add(name, { measured, byHand, ratioMax, max, unit = 'ms' }) {
  const ratio = byHand === undefined ? undefined : measured / byHand;
  const isMissed = (ratioMax !== undefined && ratio > ratioMax) || (max !== undefined && measured > max);
  const aim = ratioMax === undefined ? (max === undefined ? '' : `≤ ${max} ${unit}`) : `≤ ${ratioMax}`;
  const cells = [
    `${figure(measured, 2)} ${unit}`,
    figure(byHand, 2),
    figure(ratio, 2),
    isMissed ? `${aim} MISSED` : aim,
  ];
  rows.push([name, ...cells]);
  console.error(`${name}: ${cells.join(' | ')}`);
}

async function turns() {
  const load = { conversations: 200, each: 5, rounds: 2, warmUps: 1 };
  add('a turn, 200 × 5 clients, spread', { ...(await cpuOfTurns({ ...load, spreadMs: 4_000 })), ratioMax: 1.4 });
  add('a turn, 200 × 5 clients, at once', { ...(await cpuOfTurns(load)), ratioMax: 1.4 });
  const one = { conversations: 1, each: 1000, rounds: 3, warmUps: 1 };
  add('a turn, 1,000 clients on one', { ...(await cpuOfTurns(one)), ratioMax: 1.3 });
  const alone = { conversations: 200, each: 0, rounds: 6, warmUps: 8 };
  add('a turn, no clients', { ...(await cpuOfTurns(alone)), ratioMax: 2 });
  add('a turn, 200 × 5 clients, web form', { ...(await cpuOfTurns({ ...load, form: 'web' })), ratioMax: 1.25 });
}

async function cancels() {
  for (const [way, name] of [
    ['http', 'over HTTP'],
    ['inProcess', 'in process'],
  ]) {
    const measured = await cancelUnderLoad('runchartServer.mjs', way);
    const byHand = await cancelUnderLoad('handServer.mjs', way);
    add(`a cancel under load, ${name}, p50`, { measured: measured.p50, byHand: byHand.p50 });
    add(`a cancel under load, ${name}, p99`, { measured: measured.p99, byHand: byHand.p99 });
    add('  beyond the delay of the loop, p99', { measured: measured.beyond, byHand: byHand.beyond, max: 100 });
  }
}

async function inCosts(act) {
  const costs = await start('costs.mjs');
  try {
    await act(costs);
  } finally {
    await costs.end();
  }
}

const logs = () =>
  inCosts(async (costs) => {
    for (const [entries, times] of [
      [1_000, 15],
      [10_000, 9],
      [100_000, 3],
    ]) {
      const { parse, stringify, open, show, events } = await costs.ask('longLog', { entries, times });
      const count = entries.toLocaleString('en');
      add(`opening ${count} entries; parsing`, { measured: open, byHand: parse, ratioMax: 3 });
      const byHand = parse + stringify;
      add(`the first GET of ${count}; parsing and stringify`, { measured: show, byHand, ratioMax: 2 });
      add(`events from 0 of ${count}; parsing and stringify`, { measured: events, byHand, ratioMax: 2 });
    }
  });

const tools = () =>
  inCosts(async (costs) => {
    for (const [isStored, where] of [
      [false, 'in memory'],
      [true, 'in files'],
    ]) {
      const measured = await costs.ask('tools', { count: 1_000, isStored });
      add(`a tool of 1,000 in one round, ${where}`, { measured, max: 100, unit: 'µs' });
    }
  });

async function held() {
  const measured = await heldAfterwards('runchartServer.mjs');
  const byHand = await heldAfterwards('handServer.mjs');
  const megabytes = (which) => ({
    measured: (measured[which].heapUsed - measured.before.heapUsed) / 1e6,
    byHand: (byHand[which].heapUsed - byHand.before.heapUsed) / 1e6,
    unit: 'MB',
  });
  const files = (which) => ({
    measured: measured[which].files - measured.before.files,
    byHand: byHand[which].files - byHand.before.files,
    unit: 'files',
  });
  add('heap of 200 × 5 clients', megabytes('during'));
  add('heap after they have left', megabytes('after'));
  add('descriptors of 200 × 5 clients', files('during'));
  add('descriptors after they have left', { ...files('after'), max: 0 });
}

async function hostile() {
  const { faults, refusedCreations, growth } = await hostileMix();
  add('hostile mix: gaps and repeats of healthy readers', { measured: faults, max: 0, unit: '' });
  add('hostile mix: refused of 2,000 creations', { measured: refusedCreations, unit: '' });
  add('hostile mix: memory', { measured: growth / 1e6, max: 300, unit: 'MB' });
}

const disk = (isMost) =>
  inCosts(async (costs) => {
    for (const count of isMost ? [1_000, 10_000, 100_000] : [1_000, 10_000]) {
      const { first, start: started, list, open } = await costs.ask('manyLogs', { count });
      const name = `${count.toLocaleString('en')} conversations on disk:`;
      add(`${name} first list ever`, { measured: first });
      add(`${name} first list after a start`, { measured: started });
      add(`${name} 100 rows`, { measured: list, max: 5 });
      add(`${name} opening one`, { measured: open });
    }
  });

const wanted = process.argv.slice(2).filter((word) => word !== '--most');
const parts = { turns, cancels, logs, tools, held, hostile, disk: () => disk(process.argv.includes('--most')) };
for (const [name, measure] of Object.entries(parts)) if (wanted.length === 0 || wanted.includes(name)) await measure();

const table = [['measured', 'runchart', 'by hand', 'ratio', 'aim'], ['---', '--:', '--:', '--:', '---'], ...rows];
const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
for (const row of table) console.log(`| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`);
