/**
 * Runs one script on the user's own agent. Rule: real charts, real runtime, real tools; whatever no script may lead to is
 * a failure: a call with two results, messages that a provider refuses, a tool that does not heed its signal or does what
 * it declares not to do.
 */
import type { Json, LogEntry, PendingCall, Termination } from '../../../machines/internal.ts';
import { zeroUsage } from '../../../machines/internal.ts';
import type { RunResult } from '../../conversation/run.ts';
import {
  anything,
  callback,
  checkOptionsOf,
  choice,
  hasMethods,
  isList,
  list,
  number,
  object,
} from '../../validation.ts';
import { pairingFaults } from '../simulation/watch/pairing.ts';
import { type Move, sentenceOf } from './moves.ts';
import { type MakeAgent, ScriptRun } from './scriptRun.ts';
import type { TestWorldOptions } from './world/testWorld.ts';
import { declarationFaults, type Outside } from './world/toolWatch.ts';

/** What becomes of a call before it runs. */
export type Verdict = 'runs' | 'asks' | 'blocked' | 'refused';

export interface AgentPathsOptions {
  /** Arguments that a tool is called with, and what must become of them; the first are the base that others vary. */
  examples?: {
    readonly [tool: string]: readonly { readonly args: Json; readonly then?: Verdict | 'failed' }[];
  };
  /** What must become of a call, for any arguments that its schema admits. */
  expect?: { readonly [tool: string]: (args: never) => Verdict };
  /** The world that the tools act on. Without it nothing is said about effects. */
  outside?: Outside;
  /** Tools whose ends are made up instead of executed; none where it is not given. */
  stubs?: 'all' | readonly string[];
  cover?: 'transitions' | 'pairs';
  /** What a case may hold besides requests, replies and decisions; everything where it is not given. */
  moves?: readonly (
    | 'cancel'
    | 'steer'
    | 'followUp'
    | 'crash'
    | 'modelFailure'
    | 'oddReply'
    | 'toolFailure'
    | 'fullWindow'
  )[];
  bounds?: {
    rounds?: number;
    calls?: number;
    replies?: number;
    troubles?: number;
    decisions?: number;
    resumes?: number;
    /** How many moves are explored before the bounds of calls, decisions and troubles are lowered; 15,000 where it is not given. */
    steps?: number;
  };
  /** How long a tool may go on after it was cancelled, in real milliseconds; 250 where it is not given. */
  abortMs?: number;
  /** Called with what each case came to; what it throws is the case's failure. */
  check?(outcome: PathOutcome): void | Promise<void>;
}

export interface PathOutcome {
  readonly path: AgentPath;
  readonly result: RunResult;
  readonly pending: readonly PendingCall[];
  readonly log: readonly LogEntry[];
}

export interface AgentPath {
  readonly name: string;
  readonly script: readonly Move[];
  readonly ends: Termination | 'crashed';
  /** Rejects with the move and what stood there instead. */
  run(): Promise<PathOutcome>;
}

/** What a script came to, before anybody has judged it. */
export interface Played {
  readonly run: ScriptRun;
  readonly result: RunResult;
  readonly pending: readonly PendingCall[];
  readonly log: readonly LogEntry[];
}

export interface PlayOptions extends Pick<AgentPathsOptions, 'outside' | 'stubs' | 'abortMs' | 'examples'> {
  /** Looks at the run behind its beginning (0) and behind each move; what it throws is the script's failure. */
  behind?(run: ScriptRun, moves: number): void;
  taken?: TestWorldOptions['taken'];
  answered?: TestWorldOptions['answered'];
}

const ABORT_MS = 250;

const pathsValidator = object({
  ...{ examples: anything, expect: anything, bounds: anything, check: callback, abortMs: number(0) },
  outside: { expected: 'an object with reset and state', test: (value) => hasMethods(value, 'reset', 'state') },
  stubs: {
    expected: "'all' or a list of names",
    test: (value) => value === 'all' || (isList(value) && value.every((name) => typeof name === 'string')),
  },
  cover: choice('transitions', 'pairs'),
  moves: list('kinds of moves', (move) => typeof move === 'string'),
});

/** Throws ConfigurationError for an option that is unknown or cannot work. */
export const checkPathsOptions = (call: string, options: AgentPathsOptions): unknown =>
  checkOptionsOf(call, options, pathsValidator);

/** Plays a script to its end. Rejects with the move that failed, or with what is wrong with what came of it. */
export async function play(make: MakeAgent, script: readonly Move[], options: PlayOptions = {}): Promise<Played> {
  const { outside, stubs, abortMs = ABORT_MS, behind, taken, answered, examples } = options;
  await outside?.reset();
  const argsFor = (tool: string): unknown => examples?.[tool]?.[0]?.args;
  const run = new ScriptRun(make, script, { outside, stubs, taken, answered, argsFor });
  try {
    await run.begin();
    behind?.(run, 0);
    while (run.moves < script.length) {
      const move = script[run.moves];
      await run.move();
      await heeded(run, move, abortMs);
      behind?.(run, run.moves);
    }
    holds(run);
  } catch (error) {
    await run.end().catch(() => undefined);
    throw error;
  }
  const { log, pending } = run;
  const left = run.standing;
  await run.end();
  const result = run.result ?? cutOff(log, left.status === 'waiting' ? [...pending] : []);
  return { run, result, pending, log };
}

/** What was cancelled has to settle; what a dead process left behind is given the time to. */
async function heeded({ world }: ScriptRun, move: Move | undefined, abortMs: number): Promise<void> {
  const { tools } = world;
  if (move?.do === 'crash') {
    await world.until(() => tools.underWay.every(({ asleep }) => asleep > 0), abortMs);
    return;
  }
  if (tools.deaf.length === 0) return;
  await world.until(() => tools.deaf.length === 0, abortMs);
  const [deaf] = tools.deaf;
  if (deaf) throw new Error(`abort: ${deaf.definition.name} had not settled ${abortMs} ms after it was cancelled`);
}

function holds(run: ScriptRun): void {
  const faults = [
    ...declarationFaults(run.world.tools),
    ...run.world.model.requests.flatMap(({ messages }) => pairingFaults(messages)),
    ...resultFaults(run.log),
  ];
  if (faults.length > 0) throw new Error(faults.join('\n'));
}

/** What is to run again has its result once more. */
function resultFaults(log: readonly LogEntry[]): string[] {
  const results = new Map<string, number>();
  const faults: string[] = [];
  for (const entry of log) {
    if (entry.type === 'call-settled') results.delete(entry.callId);
    if (entry.type !== 'tool-result') continue;
    const count = (results.get(entry.callId) ?? 0) + 1;
    results.set(entry.callId, count);
    if (count > 1) faults.push(`${entry.callId} has ${count} results`);
  }
  return faults;
}

/** No run of the process that lives is over: a crash was the last that happened. */
function cutOff(log: readonly LogEntry[], pending: PendingCall[]): RunResult {
  const turns = log.filter(({ type }) => type === 'model-reply').length;
  const last = log.filter(({ runId }) => runId !== null).at(-1);
  return {
    ...{ runId: last?.runId ?? '', termination: pending.length > 0 ? 'Suspended' : 'Cancelled', cause: 'crash' },
    ...{
      reason: 'interrupted',
      subtype: 'error_during_execution',
      text: '',
      turns,
      usage: zeroUsage.usage,
      costUsd: null,
    },
    ...{ pending, calls: [] },
  };
}

export const endOf = (script: readonly Move[], result: RunResult): Termination | 'crashed' =>
  script.at(-1)?.do === 'crash' ? 'crashed' : result.termination;

/** How a run ends, in a name. */
export function endInWords(ends: Termination | 'crashed', cause?: string): string {
  const words: Readonly<Record<Termination | 'crashed', string>> = {
    NaturalEnd: 'completed',
    PluginRequested: 'completed',
    Stopped: 'stopped',
    Suspended: 'waiting',
    Cancelled: 'interrupted',
    Error: 'error',
    crashed: 'crashed',
  };
  const says = cause !== undefined && cause !== 'end_turn' && ends !== 'crashed' && ends !== 'Suspended';
  return says ? `${words[ends]} (${cause})` : words[ends];
}

/**
 * Runs a story told in moves on the agent that the factory makes: `createAgent({ tools, …, ...world })`. Rejects with the
 * move that nothing could bring, and where the conversation stood instead.
 */
export async function runScript(
  agent: MakeAgent,
  script: readonly Move[],
  options: AgentPathsOptions = {},
): Promise<PathOutcome> {
  checkPathsOptions('runScript', options);
  const { result, pending, log } = await play(agent, script, options);
  const ends = endOf(script, result);
  const name = sentenceOf(script, endInWords(ends, result.cause));
  const path: AgentPath = { name, script, ends, run: () => runScript(agent, script, options) };
  const outcome: PathOutcome = { path, result, pending, log };
  await options.check?.(outcome);
  return outcome;
}
