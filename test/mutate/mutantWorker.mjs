/**
 * Judges one mistake after the other. Invariant: the recorded behaviour of the correct charts is the only reference.
 */
import { readFile } from 'node:fs/promises';
import { Script } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { loaded, switched } from './judgeBundle.mjs';

// XState throws and catches inside each pure transition; nobody reads the stack trace.
Error.stackTraceLimit = 0;
/** In milliseconds, for one mistake; a longer one counts as endless. */
const LONGEST = 120_000;

const { code, count } = workerData;
const { judge, make, passed } = switched(code, count);
const atLoad = passed();
const isAtLoad = (place) => ((atLoad[place >> 3] >> (place & 7)) & 1) === 1;
const answers = judge.knowAll(passed);

/** The faults of the unchanged charts. */
async function wrong() {
  const stale = [];
  for (const [file, text] of judge.digests(answers)) {
    const committed = await readFile(new URL(`../paths/digests/${file}.txt`, import.meta.url), 'utf8');
    if (text !== committed) stale.push(file);
  }
  if (stale.length > 0) return `digests that are not those of the charts: ${stale}. See docs/CONTRIBUTING.md`;
  const broken = judge.control(answers);
  return broken && `the charts as they are break: ${broken}`;
}

function inSource({ id, place, near, atMost }) {
  const asItWas = (ask) => {
    make(0);
    try {
      return ask();
    } finally {
      make(id);
    }
  };
  try {
    if (isAtLoad(place)) {
      const later = near.filter((each) => !isAtLoad(each));
      return loaded(code, id).judgeLoaded(answers, later, atMost);
    }
    make(id);
    return judge.judgeFunction(answers, place, atMost, asItWas);
  } catch (error) {
    if (error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    return { digest: 'loading', invariant: `B24: the chart broke: ${error.message}` };
  } finally {
    make(0);
  }
}

function inChart({ chart, index, source, atMost }) {
  const own = answers.filter((place) => place.chart === chart);
  const passing = own.filter(({ passed }) => passed.includes(source));
  return judge.judgeMutant(chart, index, passing.length > 0 ? passing : own, atMost);
}

const asked = new Script('__judged()');
/** A verdict, also for an endless one. */
function verdictOf(job) {
  globalThis.__judged = () => (job.id === undefined ? inChart(job) : inSource(job));
  try {
    return asked.runInThisContext({ timeout: LONGEST });
  } catch (error) {
    if (error.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    make(0);
    return { digest: 'it does not end' };
  }
}

parentPort.on('message', (job) => {
  const began = performance.now();
  const verdict = verdictOf(job);
  parentPort.postMessage({ job, verdict, ms: performance.now() - began });
});
parentPort.postMessage({ wrong: workerData.controls ? await wrong() : undefined });
