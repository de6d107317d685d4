/**
 * The volume of each proof in a test run. Each row has up to three figures. `npm test` takes the first, in about
 * three minutes on two cores. `npm run prove` takes the second, in 7 to 15 minutes. `EXHAUSTIVE=1 npm run prove` takes
 * the third, if there is one, and takes an hour or two. Invariant: no other place decides on volume. The sources
 * determine the sample, as they determine all random data (`sourceSeed.ts`).
 */
import { sourceSeed } from './sourceSeed.ts';

/** The third tier takes every case that can be listed. */
const exhausts = process.env.EXHAUSTIVE === '1';
/** The second tier, or the third. `PROVE=1 npx vitest run test/paths` proves one folder. */
export const proves: boolean = process.env.PROVE === '1' || exhausts;

const VOLUME = {
  /** Simulated lives: half with the first seeds, half with seeds of the sources. */
  lives: [160, 2_000],
  /** Lives of several processes over one simulated database; half with seeds of the sources. */
  sharedLives: [40, 500, 10_000],
  /** Lives of a conversation that a durable engine holds; half with seeds of the sources. */
  engineLives: [20, 150, 5_000],
  /** Generated orders of the statements of the store in PostgreSQL, compared with the simulated database. */
  statementOrders: [3, 60, 300],
  /** Lives in which XState runs beside the compiled plans, and random charts run by both. */
  shadowLives: [12, 200, 2_000],
  /** One in this many starts of charts, whose paths XState takes too. */
  shadowStartOf: [24, 6, 1],
  randomCharts: [60, 500, 2_000],
  /** Lives that run twice and are compared byte for byte. */
  livesTwice: [8, 40, 100],
  /** Lives whose random numbers come from an arbitrary list. */
  tapes: [15, 100],
  /** Lives of an agent with a mistake that breaks a promise to its author; it shows in the first few. */
  brokenLives: [6, 40],
  /** Lives of each agent that makes no mistake. */
  rightLives: [6, 30, 200],
  /** One in this many starts of a chart. The sources determine which ones. */
  startOf: [12, 1],
  /** Paths that run from one start, spread evenly over all generated paths. */
  pathsMost: [150, 1_000_000],
  /** One in this many starts of RUN and CONVERSATION. Every edge from them is checked. */
  stateStartOf: [20, 1],
  /** One in this many batches of random input for the functions of charts. */
  batchOf: [4, 1],
  /** One in this many cuts of a composed run. */
  cutOf: [6, 1],
  /** The seconds for which one of several processes is killed each second, and the conversations meanwhile. */
  killSeconds: [0, 6, 60],
  killedConversations: [0, 30, 200],
  /** At the largest size a process takes 100 conversations over at once, which takes a second of two cores. */
  killLeaseMs: [3000, 3000, 5000],
  /** One in this many canonical runs, and moments at which a real process is killed. */
  killedRunOf: [6, 3, 1],
  killOf: [30, 6, 2],
  /** Runs of the walk against the strict server. */
  walks: [12, 150],
  /** Random lives on failing stores, of subscribers, of messages and of recordings. */
  storeLives: [60, 300, 1_000],
  /** Random lives of a directory of logs whose lists are compared with a whole reading. */
  rowLives: [8, 50, 500],
  /** Random lives in the events of AG-UI and the chunks of UI messages. */
  protocolLives: [40, 200, 1_000],
  watchers: [50, 150, 300],
  readers: [20, 100],
  messageLives: [40, 200, 500],
  recordings: [80, 300],
  /** One in this many kinds of messages under all policies. The skipped kinds are spread over the policies. */
  messagesOf: [3, 1],
  /** Arbitrary values, schemas and bytes at each boundary. */
  anything: [40, 100, 150],
  expressions: [15, 60, 150],
  bytes: [60, 150, 200],
  /** Random logs whose views are compared with a browser's. */
  browserLogs: [40, 150, 400],
  /**
   * One in this many command lines with one shell operator. The figure is a prime, relative to the number for each
   * operator.
   */
  operatorLineOf: [5, 2, 1],
  /** Files that rules hide from one command; the second figure is the limit of the library. */
  hiddenFiles: [25, 2_000],
  /** Command lines of arbitrary text. */
  commandLines: [40, 400, 2_000],
  /**
   * Command lines of each grammar that try to bypass each list of rules; allowed ones are run. The third tier judges
   * 24,000.
   */
  oracleLines: [12, 30, 1_400],
  /** Repositories that make git run programs. */
  oracleRepositories: [2, 1_000],
  /** Command lines that run in a sandbox, including those that require approval. */
  sandboxLines: [30, 80, 2_000],
  /** Commands that leave no process in their sandbox. */
  sandboxRuns: [3, 50],
  /** One in this many weakened rules, each tried with command lines that escape without the rule. */
  weakeningOf: [10, 3, 1],
  /** Working directories with unusual names, which the profile of a sandbox contains. */
  profilePaths: [8, 100, 300],
  /** Calls while a link is changed, and paths in calls of file tools. */
  racedCalls: [3, 15, 40],
  filePaths: [60, 200, 6_000],
  /** Lists of events, and views of each prefix. */
  events: [80, 500],
  /** One in this many bytes of a file, at which the file is cut, or the disk is full. */
  byteStep: [9, 4, 1],
  /** Lines of a file that is read while it is written. */
  longFileLines: [200_000, 1_000_000, 2_000_000],
  /** Bytes of a large file that is not a log. */
  rubbish: [10_000_000, 50_000_000],
  /** Starts of a chart whose every state is checked. */
  spread: [2, 6],
  /** One in this many similar cases of a slow test: signals, endings, forms of output. */
  caseOf: [3, 1],
  /** One in this many requests while a store fails, after each place and on each store. */
  cancelOf: [6, 1],
  /** One in this many orders of up to four acts around a cancel. The figure is a prime, so that no kind is skipped. */
  cancelOrderOf: [293, 149, 1],
  /** One in this many stores with one fault, and cases of a store that waits for the disk. */
  storeFaultOf: [6, 1],
  storeCaseOf: [4, 1],
  /** One in this many cases of a store with a thread of its own, for each durability. */
  threadedCaseOf: [8, 3, 1],
  /** One in this many cases of a store whose database runs in the test process. */
  databaseCaseOf: [9, 6, 1],
  /** One in this many agents with a seeded mistake, and random conversations that are written again as scripts. */
  agentDefects: [26, 5, 1],
  retold: [16, 100, 500],
  /** Real process trees that are cancelled. */
  trees: [6, 20, 60],
  /**
   * One in this many pairs of an agent with a late mistake and the same agent without it, and agents without a mistake.
   */
  subtleOf: [4, 1],
  rightAgentOf: [3, 2, 1],
  /** One in this many sets of capabilities, whose explorations are compared with exact ones. */
  capabilitiesOf: [2, 2, 1],
  /** One in this many example servers, whose page is used in a browser. */
  exampleServerOf: [2, 2, 1],
  /** Lives, each lived twice, of an agent whose own code waits in real time. */
  slowLives: [2, 6],
  /** Entries of the log in the inspector's page. */
  pageEntries: [10_000, 20_000, 40_000],
} as const satisfies Record<string, readonly [test: number, prove: number, exhaust?: number]>;

export const volume = Object.fromEntries(
  Object.entries(VOLUME).map(([name, [test, prove, exhaust = prove]]) => [
    name,
    exhausts ? exhaust : proves ? prove : test,
  ]),
) as { readonly [Name in keyof typeof VOLUME]: number };

/** A time limit for hanging tests, far above the slowest test of the tier, even on a busy machine. */
export const HANG_MS: number = exhausts ? 7_200_000 : proves ? 600_000 : 120_000;

/**
 * Returns one in this many items of a list, at least one, from a position that the sources determine. Returns all if
 * `of` is 1.
 */
export function sampled<T>(all: readonly T[], oneIn: number): T[] {
  const step = Math.max(1, Math.min(oneIn, all.length));
  const from = Math.floor(sourceSeed() / 1_000) % step;
  return all.filter((_, index) => index % step === from);
}
