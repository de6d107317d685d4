/**
 * How much of each proof a run of the tests takes. Rule: `npm test` takes the first figure of each row and ends within
 * two minutes on two cores, `npm run prove` the second and ends within ten, `EXHAUSTIVE=1 npm run prove` the third, where a row
 * has one, and takes an hour or two; no other place decides on volume. The sources decide which sample that is, as they decide
 * everything that is drawn (`sourceSeed.ts`).
 */
import { sourceSeed } from './sourceSeed.ts';

/** The third tier takes all that can be listed. */
const exhausts = process.env.EXHAUSTIVE === '1';
/** The second tier, or the third: `PROVE=1 npx vitest run test/paths` for a part of it. */
export const proves: boolean = process.env.PROVE === '1' || exhausts;

const VOLUME = {
  /** Simulated lives: half with the first seeds, half with seeds of the sources. */
  lives: [160, 2_000],
  /** Lives in which XState runs beside the compiled plans, and random charts run by both. */
  shadowLives: [12, 400, 2_000],
  /** Starts of charts, one in so many, whose paths XState takes beside them. */
  shadowStartOf: [24, 3, 1],
  randomCharts: [60, 500, 2_000],
  /** Lives lived twice, and compared byte for byte. */
  livesTwice: [8, 40, 100],
  /** Lives on tapes of arbitrary numbers. */
  tapes: [15, 100],
  /** Lives of an agent that breaks what its author holds of it, which shows in the first few. */
  brokenLives: [6, 40],
  /** Lives of each agent that makes no mistake. */
  rightLives: [6, 60, 200],
  /** One start of a chart in so many is taken, which ones the sources decide. */
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
  killedRunOf: [6, 2, 1],
  killOf: [30, 4, 2],
  /** Runs of the walk against the strict server. */
  walks: [12, 150],
  /** Random lives on stores that fail, of subscribers, of messages and of recordings. */
  storeLives: [60, 300, 1_000],
  /** Random lives in the events of AG-UI and the chunks of UI messages. */
  protocolLives: [40, 200, 1_000],
  watchers: [50, 150, 300],
  readers: [20, 100],
  messageLives: [40, 200, 500],
  recordings: [80, 300],
  /** Of the kinds of messages under all policies, one in so many; what is left out is spread over the policies. */
  messagesOf: [3, 1],
  /** Arbitrary values, schemas and bytes at each boundary. */
  anything: [40, 100, 150],
  expressions: [15, 60, 150],
  bytes: [60, 150, 200],
  /** Random logs whose views are compared with a browser's. */
  browserLogs: [40, 150, 400],
  /** Command lines with one operator of the shell, one in so many (prime to how many there are of each operator). */
  operatorLineOf: [5, 2, 1],
  /** Files that rules hide from one command; the second figure is the bound of the library. */
  hiddenFiles: [25, 2_000],
  /** Command lines of arbitrary text. */
  commandLines: [40, 400, 2_000],
  /**
   * Command lines of each grammar that look for a way around each list of rules; those allowed are run. The third tier judges
   * 24,000.
   */
  oracleLines: [12, 30, 1_400],
  /** Repositories that make git run programs. */
  oracleRepositories: [2, 1_000],
  /** Command lines that run in a sandbox, also those that are asked about. */
  sandboxLines: [30, 80, 2_000],
  /** Commands that leave nothing in their sandbox. */
  sandboxRuns: [3, 50],
  /** Working directories with odd names, of which the profile of a sandbox is made. */
  profilePaths: [8, 100, 300],
  /** Calls while a link is changed, and paths given to file tools. */
  racedCalls: [3, 15, 40],
  filePaths: [60, 200, 6_000],
  /** Lists of events, and views of each beginning. */
  events: [80, 500],
  /** A file is cut, and a disk is full, at each byte or at every so many-th. */
  byteStep: [9, 2, 1],
  /** Lines of a file that is read while it is written. */
  longFileLines: [200_000, 1_000_000, 2_000_000],
  /** Bytes of a large file that is no log. */
  rubbish: [10_000_000, 50_000_000],
  /** Starts of a chart whose every state is looked into. */
  spread: [2, 6],
  /** One of the alike cases of a slow test in so many: signals, endings, forms of output. */
  caseOf: [3, 1],
  /** Of what is asked for while a store is in trouble, one in so many behind each place and on each store. */
  cancelOf: [6, 1],
  /**
   * Of all orders of up to four acts around a cancel, and their moments, one in so many (a prime, so that none is left out).
   */
  cancelOrderOf: [293, 37, 1],
  /** Of the stores with one fault, and of the cases of a store that waits for the disk. */
  storeFaultOf: [6, 2, 1],
  storeCaseOf: [4, 1],
  /** Of the agents with a seeded mistake, one in so many; and random conversations that are told again. */
  agentDefects: [26, 3, 1],
  retold: [16, 100, 500],
  /** Real trees of processes that are cancelled. */
  trees: [6, 20, 60],
  /** Entries of the log that the inspector's page is given. */
  pageEntries: [10_000, 20_000, 40_000],
} as const satisfies Record<string, readonly [test: number, prove: number, exhaust?: number]>;

export const volume = Object.fromEntries(
  Object.entries(VOLUME).map(([name, [test, prove, exhaust = prove]]) => [
    name,
    exhausts ? exhaust : proves ? prove : test,
  ]),
) as { readonly [Name in keyof typeof VOLUME]: number };

/** Ends a test that hangs, and none that is slow: where this tier decides how much it does, beside other work. */
export const HANG_MS: number = proves ? 600_000 : 120_000;

/** One in so many of a list, at least one, from a place that the sources decide; all of it where `of` is 1. */
export function sampled<T>(all: readonly T[], of: number): T[] {
  const step = Math.max(1, Math.min(of, all.length));
  const from = Math.floor(sourceSeed() / 1_000) % step;
  return all.filter((_, index) => index % step === from);
}
