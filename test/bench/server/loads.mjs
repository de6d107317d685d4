/**
 * Turns and cancels under load, of runchart and of the server by hand. Rule: a measured turn is one that all its readers have
 * received completely, and the CPU is that of the server's process alone.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start } from './remote.mjs';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const names = (count, prefix = 'c') => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

/** One server and one process of clients. */
export async function withServer(file, form, act, ...options) {
  const directory = mkdtempSync(join(tmpdir(), 'runchart-server-'));
  const [server, clients] = await Promise.all([start(file, form, directory, ...options), start('clients.mjs')]);
  try {
    await clients.ask('begin', { port: await server.ask('port') });
    return await act(server, clients);
  } finally {
    await Promise.all([server.end(), clients.end()]);
    rmSync(directory, { recursive: true, force: true });
  }
}

/** CPU of one round of turns of a server, in milliseconds. Each round sends one message to each conversation. */
async function cpuOfRound(server, clients, { ids, each, spreadMs }, round) {
  const since = await server.ask('cpu');
  await clients.ask('send', { ids, content: 'turn', spreadMs });
  while ((await server.ask('finishedReplies')) < round * ids.length) await sleep(20);
  const faults = await clients.ask('stops', { count: each > 0 ? round : 0 });
  if (faults > 0) throw new Error(`${faults} entries came twice or not at all`);
  await sleep(100);
  return (await server.ask('cpu')) - since;
}

/**
 * CPU of a turn in milliseconds, of runchart and by hand. The rounds of both servers alternate, so that load on the machine hits
 * both alike. The first rounds are not counted.
 */
export function cpuOfTurns({ form = 'node', conversations, each, rounds, warmUps, spreadMs }) {
  const ids = names(conversations);
  const begin = async (clients) => {
    await clients.ask('create', { ids });
    if (each > 0) await clients.ask('read', { ids, each });
  };
  return withServer('runchartServer.mjs', form, (server, clients) =>
    withServer('handServer.mjs', form, async (handServer, handClients) => {
      await Promise.all([begin(clients), begin(handClients)]);
      const turns = { ids, each, spreadMs };
      const sums = { measured: 0, byHand: 0 };
      for (let round = 1; round <= warmUps + rounds; round++) {
        const measured = await cpuOfRound(server, clients, turns, round);
        const byHand = await cpuOfRound(handServer, handClients, turns, round);
        if (round <= warmUps) continue;
        sums.measured += measured;
        sums.byHand += byHand;
      }
      const turnsCounted = rounds * conversations;
      return { measured: sums.measured / turnsCounted, byHand: sums.byHand / turnsCounted };
    }),
  );
}

const at = (times, share) =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.ceil(times.length * share) - 1)];

/** After this number of rounds V8 has compiled most of what is run. */
const WARM_UPS = 3;

/**
 * Milliseconds of cancels of conversations that stream, while as many turns run as the server can do. `way`: `http` or
 * `inProcess`. `beyond`: without the time of a request of the same moment that needs no work, or of one call of the file system.
 */
export function cancelUnderLoad(file, way, { others = 60, each = 5, cancels = 50 } = {}) {
  return withServer(file, 'node', async (server, clients) => {
    const busy = names(others, 'busy');
    const cancelled = names(cancels, 'cancelled');
    await clients.ask('create', { ids: [...busy, ...cancelled] });
    await clients.ask('read', { ids: busy, each });
    let isOver = false;
    let rounds = 0;
    const load = (async () => {
      while (!isOver) {
        const wanted = (await server.ask('finishedReplies')) + others;
        await clients.ask('send', { ids: busy, content: 'turn' });
        while ((await server.ask('finishedReplies')) < wanted) await sleep(5);
        rounds += 1;
      }
    })();
    while (rounds < WARM_UPS) await sleep(20);
    await clients.ask('send', { ids: cancelled, content: 'endless' });
    const times = [];
    for (const id of cancelled) times.push(await (way === 'http' ? clients : server).ask('cancel', { id }));
    isOver = true;
    await load;
    const all = times.map(({ cancel }) => cancel);
    const beyond = times.map(({ cancel, probe }) => Math.max(0, cancel - probe));
    return { p50: at(all, 0.5), p99: at(all, 0.99), beyond: at(beyond, 0.99) };
  });
}

/** The resources that a server holds after its clients and turns have ended. */
const IDLE_MS = 1_000;

export function heldAfterwards(file) {
  return withServer(
    file,
    'node',
    async (server, clients) => {
      const ids = names(200);
      await clients.ask('create', { ids: ['first'] });
      await sleep(2_500);
      const before = await server.ask('held');
      await clients.ask('create', { ids });
      await clients.ask('read', { ids, each: 5 });
      for (let round = 1; round <= 3; round++) {
        await clients.ask('send', { ids, content: 'turn' });
        await clients.ask('stops', { count: round });
      }
      const during = await server.ask('held');
      await clients.ask('leave');
      await sleep(3_000);
      return { before, during, after: await server.ask('held') };
    },
    IDLE_MS,
  );
}

/**
 * Turns of healthy readers, beside readers that never read, half-sent bodies of 8 MB, reconnects in mid-reply, 2,000 creations
 * and a model that streams 20,000 deltas in one turn of the event loop.
 */
export function hostileMix() {
  return withServer('runchartServer.mjs', 'node', async (server, clients) => {
    const ids = names(40);
    await clients.ask('create', { ids });
    await clients.ask('read', { ids, each: 5 });
    await clients.ask('send', { ids, content: 'turn' });
    await clients.ask('stops', { count: 1 });
    const before = await server.ask('held');
    let rss = 0;
    const sample = async () => {
      rss = Math.max(rss, (await server.ask('held')).rss);
    };
    await clients.ask('annoy', { ids, silent: 190, halfSent: 100, bodyBytes: 8_000_000 });
    await sample();
    const refused = clients.ask('create', { ids: names(2_000, 'n') });
    await clients.ask('send', { ids: ids.slice(1), content: 'turn' });
    await clients.ask('storm', { times: 5 });
    await sample();
    await clients.ask('send', { ids: ids.slice(0, 1), content: 'flood 20000' });
    const faults = await clients.ask('stops', { count: 2 });
    await sample();
    const refusedCreations = (await refused).length;
    return { faults, refusedCreations, growth: rss - before.rss };
  });
}
