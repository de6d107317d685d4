/**
 * How much of each proof a run of the tests takes. Rule: `npm test` takes the first figure of each row and ends within
 * two minutes on two cores, `npm run prove` the second; no other place decides on volume. What a test draws at random
 * comes from the commit, so that each commit tries something new and the same commit always the same.
 */
import { execFileSync } from 'node:child_process';

/** The second tier: `PROVE=1 npx vitest run test/paths` for a part of it. */
export const proves: boolean = process.env.PROVE === '1';

const VOLUME = {
  /** Simulated lives: half with the first seeds, half with seeds of the commit. */
  lives: [160, 2_000],
  /** Lives in which XState runs beside the compiled plans, and random charts run by both. */
  shadowLives: [12, 2_000],
  /** Starts of charts, one in so many, whose paths XState takes beside them. */
  shadowStartOf: [24, 1],
  randomCharts: [60, 2_000],
  /** Lives lived twice, and compared byte for byte. */
  livesTwice: [8, 100],
  /** Lives on tapes of arbitrary numbers. */
  tapes: [15, 100],
  /** Lives of an agent that breaks what its author holds of it, which shows in the first few. */
  brokenLives: [6, 40],
  /** One start of a chart in so many is taken, which ones the commit decides. */
  startOf: [12, 1],
  /** Paths that are driven from one start, spread evenly over all that are generated. */
  pathsMost: [150, 1_000_000],
  /** Starts of RUN and CONVERSATION, one in so many, whose every edge is looked at. */
  stateStartOf: [20, 1],
  /** Batches, one in so many, of what is drawn for the functions of charts. */
  batchOf: [4, 1],
  /** One cut of a composed run in so many. */
  cutOf: [6, 1],
  /** Of the canonical runs, and of the moments at which a real process is killed, one in so many. */
  killedRunOf: [6, 1],
  killOf: [30, 2],
  /** Runs of the walk against the strict server. */
  walks: [12, 150],
  /** Random lives on stores that fail, of subscribers, of messages and of recordings. */
  storeLives: [60, 1_000],
  watchers: [50, 300],
  readers: [20, 100],
  messageLives: [40, 500],
  recordings: [80, 300],
  /** Arbitrary values, schemas and bytes at each boundary. */
  anything: [40, 150],
  expressions: [15, 150],
  bytes: [60, 200],
  /** Random logs whose views are compared with a browser's. */
  browserLogs: [40, 400],
  /** Command lines of arbitrary text. */
  commandLines: [40, 2_000],
  /** Lists of events, and views of each beginning. */
  events: [80, 500],
  /** A file is cut, and a disk is full, at each byte or at every so many-th. */
  byteStep: [9, 1],
  /** Bytes of a large file that is no log. */
  rubbish: [10_000_000, 50_000_000],
  /** Starts of a chart whose every state is looked into. */
  spread: [2, 6],
  /** One of the alike cases of a slow test in so many: signals, endings, forms of output. */
  caseOf: [3, 1],
  /** Of what is asked for while a store is in trouble, one in so many behind each place and on each store. */
  cancelOf: [6, 1],
  /** Of the stores with one fault, and of the cases of a store that waits for the disk. */
  storeFaultOf: [6, 1],
  storeCaseOf: [4, 1],
  /** Of the agents with a seeded mistake, one in so many; and random conversations that are told again. */
  agentDefects: [26, 1],
  retold: [16, 500],
  /** Real trees of processes that are cancelled. */
  trees: [6, 60],
  /** Entries of the log that the inspector's page is given. */
  pageEntries: [10_000, 40_000],
} as const satisfies Record<string, readonly [test: number, prove: number]>;

export const volume = Object.fromEntries(
  Object.entries(VOLUME).map(([name, [test, prove]]) => [name, proves ? prove : test]),
) as { readonly [Name in keyof typeof VOLUME]: number };

let commit: number | undefined;
/** The first of a thousand seeds that belong to the commit which is checked out, far beyond the fixed ones. */
export function commitSeed(): number {
  commit ??= 1_000_000 + Number.parseInt(headOf().slice(0, 5) || '0', 16) * 1_000;
  return commit;
}

function headOf(): string {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
}

/** One in so many of a list, at least one, from a place that the commit decides; all of it where `of` is 1. */
export function sampled<T>(all: readonly T[], of: number): T[] {
  const step = Math.max(1, Math.min(of, all.length));
  const from = (commitSeed() / 1_000) % step;
  return all.filter((_, index) => index % step === from);
}
