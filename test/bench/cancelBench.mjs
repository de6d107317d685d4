/**
 * Cancels 200 runs while Bash runs a process tree, and prints the time until each was idle and the surviving processes.
 * It then cancels as many runs while a server hangs, and ends programs by signals. The exit code is 1 if an aim was
 * missed. A survivor is counted by its group and its session in /proc, without code under test. Linux only.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent } from '../../dist/src/index.js';
import { codingTools } from '../../dist/src/node.js';
import { conversations, programs } from './cancelHttpBench.mjs';

const TRIALS = Number(process.argv[2] ?? 200);
const AIM_MS = 100;
const GROUP_AFTER_MS = 150;
const SWEPT_WITHIN_MS = 1_000;
/** The time from a signal to the end of the program. */
const ENDED_MS = 1_000;
const trees = Object.entries(JSON.parse(readFileSync(new URL('trees.json', import.meta.url), 'utf8')));

/** Living processes whose group or session is one of these. */
function living(ids) {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const [state, , group, session] = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return !/[ZX]/.test(state) && (ids.includes(group) || ids.includes(session));
    } catch {
      return false;
    }
  }).length;
}

function modelThatRuns(command) {
  return {
    id: 'bench',
    async *stream() {
      yield { type: 'tool-call', callId: 'c1', name: 'Bash', args: JSON.stringify({ command }) };
      yield { type: 'finish', reason: 'tool-calls' };
    },
  };
}

const written = (file) => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
};
async function read(file) {
  for (let text = written(file); ; text = written(file)) {
    if (text !== '') return text;
    await wait(2);
  }
}

async function trial(command) {
  const cwd = mkdtempSync(join(tmpdir(), 'runchart-cancel-'));
  const agent = createAgent({ model: modelThatRuns(`echo $$ > here; (${command}) > up`), tools: codingTools(), cwd });
  const conversation = await agent.open('c');
  conversation.send('Go.');
  const group = await read(join(cwd, 'here'));
  await read(join(cwd, 'up'));
  const away = written(join(cwd, 'away'));
  await wait(10 + Math.random() * 40);
  if (living([group]) === 0) throw new Error('the tree ended by itself');
  const since = performance.now();
  await conversation.cancel();
  const idle = performance.now() - since;
  if (conversation.status !== 'idle') throw new Error(conversation.status);
  await wait(GROUP_AFTER_MS - (performance.now() - since));
  const livingAtGroupAim = living([group]);
  let swept = performance.now() - since;
  const ids = away === '' ? [group] : [group, away];
  while (living(ids) > 0 && swept < SWEPT_WITHIN_MS) {
    await wait(10);
    swept = performance.now() - since;
  }
  const survivors = living(ids);
  await agent.close();
  rmSync(cwd, { recursive: true });
  return { idle, left: livingAtGroupAim, swept, survivors };
}

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)].toFixed(1);
const line = (name, results) => {
  const idle = results.map((each) => each.idle).toSorted((a, b) => a - b);
  const sum = (field) => results.reduce((total, each) => total + each[field], 0);
  const swept = Math.max(...results.map((each) => each.swept)).toFixed(0);
  console.log(
    `${name.padEnd(48)} ${String(results.length).padStart(4)}  p50 ${at(idle, 0.5)}  p99 ${at(idle, 0.99)}  max ${at(idle, 1)} ms` +
      `  of the group after ${GROUP_AFTER_MS} ms: ${sum('left')}  all gone by ${swept} ms  survivors: ${sum('survivors')}`,
  );
  return Number(at(idle, 0.99)) <= AIM_MS && sum('left') === 0 && sum('survivors') === 0;
};

const byTree = new Map(trees.map(([name]) => [name, []]));
for (let count = 0; count < TRIALS; count += 1) {
  const [name, command] = trees[count % trees.length];
  byTree.get(name).push(await trial(command));
}
for (const [name, results] of byTree) if (results.length > 0) line(name, results);
const good = line('all', [...byTree.values()].flat());
console.log(`aim: p99 ${AIM_MS} ms, nothing left: ${good ? 'kept' : 'MISSED'}`);

const sorted = (results, key) => results.map((each) => each[key]).toSorted((a, b) => a - b);
/** Prints one row and returns whether its aim was reached. */
function soon(name, times, aim) {
  const kept = Number(at(times, 0.99)) <= aim;
  const rowText = `p50 ${at(times, 0.5)}  p99 ${at(times, 0.99)}  max ${at(times, 1)} ms  aim: p99 ${aim} ms: ${kept ? 'kept' : 'MISSED'}`;
  console.log(`${name.padEnd(48)} ${String(times.length).padStart(4)}  ${rowText}`);
  return kept;
}
const rows = [];
for (const [name, speaks] of [
  ['a server that never answers', false],
  ['a reply that hangs', true],
]) {
  const results = await conversations(TRIALS, speaks);
  rows.push(soon(`${name}: idle`, sorted(results, 'idle'), AIM_MS));
  rows.push(soon(`${name}: socket closed`, sorted(results, 'socket'), AIM_MS));
}
rows.push(soon('the program: ended after a signal', sorted(await programs(Math.ceil(TRIALS / 5)), 'idle'), ENDED_MS));
process.exitCode = good && rows.every(Boolean) ? 0 : 1;
