/** Judges one mistake after the other. Rule: what it is told of the right charts is all that it compares with. */
import { parentPort, workerData } from 'node:worker_threads';
import { loaded } from './bundle.mjs';

// XState throws and catches inside each pure transition; nobody reads where.
Error.stackTraceLimit = 0;

const { code, known, hits } = workerData;
const unchanged = loaded(code, 0);
const sizeOf = ({ place: { chart, start, steps } }) => (chart < 0 ? start - 1_000 : steps.length);
/** The starts at which a mistake can show: what is drawn, then the starts of charts, the smallest first. */
const bySize = known.map((place, index) => ({ place, hit: hits[index] })).sort((a, b) => sizeOf(a) - sizeOf(b));

function inSource({ id, atMost }) {
  const reached = bySize.filter(({ hit }) => hit[id]).map(({ place }) => place);
  if (reached.length === 0) return { unreached: true };
  try {
    return loaded(code, id).judge(reached, atMost);
  } catch (error) {
    return { digest: 'loading', invariant: `B24: the chart broke: ${error.message}` };
  }
}

function inChart({ chart, index, source, atMost }) {
  const own = bySize.filter(({ place }) => place.chart === chart);
  const passing = own.filter(({ place }) => place.passed.includes(source));
  const first = (passing.length > 0 ? passing : own).map(({ place }) => place);
  return unchanged.judgeMutant(chart, index, first, atMost);
}

parentPort.on('message', (job) => {
  parentPort.postMessage({ job, verdict: job.id === undefined ? inChart(job) : inSource(job) });
});
