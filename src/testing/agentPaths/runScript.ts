/**
 * Runs one script on the user's own agent. Invariant: charts, runtime and tools are real, and a script fails on every
 * forbidden result. Examples are two results for one call, or a tool that ignores its signal.
 */
import type { LogEntry, PendingCall, Termination } from '../../../machines/internal.ts';
import { zeroUsage } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import type { RunResult } from '../../conversation/run.ts';
import { type Move, sentenceOf } from '../../scripts/moves.ts';
import { pairingFaults } from '../pairingFaults.ts';
import { explained, failureText, ownFailures } from './failureCauses.ts';
import {
  type AgentPath,
  type AgentPathsOptions,
  checkNamedTools,
  checkPathsOptions,
  checkScript,
  type PathOutcome,
} from './pathOptions.ts';
import { type MakeAgent, ScriptRun } from './scriptRun.ts';
import type { TestWorldOptions } from './world/testWorld.ts';
import { type CleanEffects, declarationFaults } from './world/toolWatch.ts';

/** The outcome of a script, before any check. */
export interface Played {
  readonly run: ScriptRun;
  readonly result: RunResult;
  readonly pending: readonly PendingCall[];
  readonly log: readonly LogEntry[];
}

export interface PlayOptions extends Pick<AgentPathsOptions, 'outside' | 'stubs' | 'abortMs' | 'examples' | 'expect'> {
  /** Checks the run after its start (0) and after each move. An error fails the script. */
  afterMove?(run: ScriptRun, moves: number): void;
  taken?: TestWorldOptions['taken'];
  answered?: TestWorldOptions['answered'];
  /** The outside world after the tools ran without an interruption. */
  clean?: CleanEffects;
}

const ABORT_MS = 250;

/** Plays a script to its end. Rejects with the failed move, or with the faults of the outcome. */
export async function play(make: MakeAgent, script: readonly Move[], options: PlayOptions = {}): Promise<Played> {
  const { outside, stubs, abortMs = ABORT_MS, afterMove, taken, answered, examples } = options;
  await outside?.reset();
  const argsFor = (tool: string): unknown => examples?.[tool]?.[0]?.args;
  const made = (agent: Agent): void => checkNamedTools('runScript', agent, options);
  const run = new ScriptRun(make, script, { outside, stubs, taken, answered, argsFor, made });
  try {
    await run.begin();
    afterMove?.(run, 0);
    while (run.moves < script.length) {
      const move = script[run.moves];
      await run.move();
      await heeded(run, move, abortMs);
      afterMove?.(run, run.moves);
    }
    holds(run, options.clean);
  } catch (error) {
    await run.end().catch(() => undefined);
    throw explained(error, ownFailures(run.lastLog).map(failureText));
  }
  const { log, pending } = run;
  await run.end(abortMs);
  const result = (await run.resultAtEnd()) ?? NEVER_BEGUN;
  return { run, result, pending, log };
}

/**
 * Waits until aborted tools settle. After a crash, waits until the tools of the dead process sleep. Waits for `abortMs`
 * at most.
 */
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

function holds(run: ScriptRun, clean?: CleanEffects): void {
  const faults = [
    ...ownFailures(run.log).map(failureText),
    ...declarationFaults(run.world.tools, clean),
    ...run.world.model.requests.flatMap(({ messages }) => pairingFaults(messages)),
    ...resultFaults(run.log),
  ];
  if (faults.length > 0) throw new Error(faults.join('\n'));
}

/** A call that runs again gets another result. */
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

/** The result of a story in which the process died before any run. */
const NEVER_BEGUN: RunResult = {
  ...{ runId: '', termination: 'Cancelled', cause: 'crash', reason: 'interrupted', subtype: 'error_during_execution' },
  ...{ text: '', turns: 0, usage: zeroUsage.usage, costUsd: 0, pending: [], calls: [] },
};

export const endOf = (script: readonly Move[], result: RunResult): Termination | 'crashed' =>
  script.at(-1)?.do === 'crash' ? 'crashed' : result.termination;

/** Returns how a run ends, for the name of a case. */
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
 * Runs a list of moves on the agent that the factory makes: `createAgent({ tools, …, ...world })`. Rejects with the
 * impossible move and the state of the conversation at that move.
 */
export async function runScript(
  agent: MakeAgent,
  script: readonly Move[],
  options: AgentPathsOptions = {},
): Promise<PathOutcome> {
  checkPathsOptions('runScript', agent, options);
  checkScript(script);
  const { result, pending, log } = await play(agent, script, options);
  const ends = endOf(script, result);
  const name = sentenceOf(script, endInWords(ends, result.cause));
  const path: AgentPath = { name, script, ends, run: () => runScript(agent, script, options) };
  const outcome: PathOutcome = { path, result, pending, log };
  await options.check?.(outcome);
  return outcome;
}
