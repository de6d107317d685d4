/**
 * The options and results of `runScript` and `agentPaths`, and the validation of moves, options and names. Invariant:
 * an option without effect is refused, and each refusal names the wrong field.
 */
import type { Json, LogEntry, PendingCall, Termination } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import type { RunResult } from '../../conversation/run.ts';
import { ConfigurationError } from '../../errors.ts';
import { PHASES } from '../../plugins/plugin.ts';
import { beginning } from '../../printable.ts';
import type { Move } from '../../scripts/moves.ts';
import {
  anything,
  callback,
  check,
  checkOptionsOf,
  choice,
  type Fields,
  flag,
  hasMethods,
  isList,
  isObject,
  number,
  object,
  text,
  type Validator,
  whole,
} from '../../validation.ts';
import { checkToolNames } from '../toolNames.ts';
import type { Outside } from './world/toolWatch.ts';

/** The outcome of a call before it runs. */
export type Verdict = 'runs' | 'asks' | 'blocked' | 'refused';

/** The options of `agentPaths`. */
export interface AgentPathsOptions {
  /** Arguments for a tool with their expected verdicts. The first ones are the base for variations. */
  examples?: {
    readonly [tool: string]: readonly { readonly args: Json; readonly then?: Verdict | 'failed' }[];
  };
  /** The expected verdict of a call, for any arguments that its schema allows. */
  expect?: { readonly [tool: string]: (args: never) => Verdict };
  /** The outside world that the tools change. Without it, effects are not checked. */
  outside?: Outside;
  /** Tools whose results are made up instead of executed. Default: none. */
  stubs?: 'all' | readonly string[];
  /** The goal that the cases cover together: each transition (default), or each pair of successive ones. */
  cover?: 'transitions' | 'pairs';
  /** The moves that a case may contain besides requests, replies and decisions. Default: all. */
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
  /** The most rounds, calls and other moves of one case. */
  bounds?: {
    rounds?: number;
    calls?: number;
    replies?: number;
    troubles?: number;
    decisions?: number;
    resumes?: number;
    /**
     * The number of explored moves after which the limits for calls, decisions and faults are lowered. Default: 15,000.
     */
    steps?: number;
  };
  /** The time that a tool may run after its cancellation, in real milliseconds. Default: 250. */
  abortMs?: number;
  /** Receives the outcome of each case. The case fails with the error that it throws. */
  check?(outcome: PathOutcome): void | Promise<void>;
}

/** The outcome of an executed case. */
export interface PathOutcome {
  /** The case. */
  readonly path: AgentPath;
  /** The result of its run. */
  readonly result: RunResult;
  /** The calls that wait at its end. */
  readonly pending: readonly PendingCall[];
  /** The log at its end. */
  readonly log: readonly LogEntry[];
}

/** A generated case: moves of a person, a model and the world, with the expected end. */
export interface AgentPath {
  /** A sentence that lists the moves. */
  readonly name: string;
  /** The moves. */
  readonly script: readonly Move[];
  /** The expected end of the run. */
  readonly ends: Termination | 'crashed';
  /** Rejects with the failed move and the actual state. */
  run(): Promise<PathOutcome>;
}

const VERDICTS: readonly Verdict[] = ['runs', 'asks', 'blocked', 'refused'];
const TROUBLES: readonly NonNullable<AgentPathsOptions['moves']>[number][] = [
  ...(['cancel', 'steer', 'followUp', 'crash', 'modelFailure', 'oddReply', 'toolFailure', 'fullWindow'] as const),
];
const COUNTS = ['rounds', 'calls', 'replies', 'troubles', 'decisions', 'resumes'] as const;

const during = choice(...PHASES, 'storing');
const callNumber = whole(1);
const message: Fields = { text, fills: number(0), during };

/** The fields of each move besides `do`. `NEEDED` contains the required ones. */
const MOVES: Readonly<Record<Move['do'], Fields>> = {
  send: message,
  steer: message,
  followUp: message,
  cancel: { during },
  resume: {},
  crash: { during, lost: callNumber },
  sumUp: {},
  takeBack: {},
  deadline: {},
  reply: { text, calls: anything, finish: choice('stop', 'tool-calls', 'length', 'content-filter', 'pause') },
  modelFails: { retryable: flag },
  tool: { call: callNumber, made: choice('fail', 'timeOut') },
  decide: {
    ...{ call: callNumber, action: choice('approve', 'deny', 'edit', 'answer') },
    ...{ args: anything, payload: anything, during },
  },
  settle: { call: callNumber, how: choice('ran', 'didNotRun', 'retry'), result: anything },
};
const NEEDED: Partial<Readonly<Record<Move['do'], readonly string[]>>> = {
  modelFails: ['retryable'],
  tool: ['call'],
  decide: ['call', 'action'],
  settle: ['call', 'how'],
};
/** Fields that only one variant of a move allows. */
const ONLY_WITH: readonly (readonly [kind: Move['do'], field: string, by: string, value: string])[] = [
  ['decide', 'args', 'action', 'edit'],
  ['decide', 'payload', 'action', 'answer'],
  ['settle', 'result', 'how', 'ran'],
];
const callShape = object({ name: text, args: anything });

/** Throws ConfigurationError for an empty script or an invalid move. */
export function checkScript(script: unknown): void {
  if (!isList(script) || script.length === 0)
    throw new ConfigurationError('runScript needs a list of moves, such as [{ do: "send" }]');
  for (const [index, move] of script.entries()) checkMove(`runScript: move ${index + 1}`, move);
}

function checkMove(place: string, move: unknown): void {
  if (!isObject(move)) throw new ConfigurationError(`${place} must be an object such as { do: "send" }`);
  check(`${place}: do`, move.do ?? null, choice(...Object.keys(MOVES)));
  const kind = move.do as Move['do'];
  const name = `${place} (${kind})`;
  check(name, move, object({ do: text, ...MOVES[kind] }), `${name}: `);
  for (const field of NEEDED[kind] ?? [])
    if (move[field] === undefined) throw new ConfigurationError(`${name}: ${field} is missing`);
  for (const [owner, field, by, value] of ONLY_WITH)
    if (owner === kind && move[field] !== undefined && move[by] !== value)
      throw new ConfigurationError(`${name}: ${field} is for ${by} "${value}" only`);
  if (kind === 'reply') checkCalls(`${name}: calls`, move.calls);
}

function checkCalls(name: string, calls: unknown): void {
  if (calls === undefined) return;
  if (!isList(calls)) throw new ConfigurationError(`${name} must be a list of { name, args }`);
  for (const [index, call] of calls.entries()) {
    const place = `${name}[${index}]`;
    check(place, call, callShape, `${place}.`);
    for (const field of ['name', 'args'] as const)
      if ((call as { [field: string]: unknown })[field] === undefined)
        throw new ConfigurationError(`${place}.${field} is missing`);
  }
}

const named = (expected: string): Validator => ({ ...object({}), expected, refuses: () => false });
const pathsValidator = object({
  ...{ examples: named('an object by the names of tools'), expect: named('an object by the names of tools') },
  bounds: object({ ...Object.fromEntries(COUNTS.map((name) => [name, whole(0)])), steps: whole(1) }),
  ...{ check: callback, abortMs: number(0) },
  outside: { expected: 'an object with reset and state', test: (value) => hasMethods(value, 'reset', 'state') },
  stubs: {
    expected: "'all' or a list of names",
    test: (value) => value === 'all' || (isList(value) && value.every((name) => typeof name === 'string')),
  },
  cover: choice('transitions', 'pairs'),
  moves: { expected: 'a list of kinds of moves', test: isList },
});

/** Throws ConfigurationError for an unknown or invalid option. */
export function checkPathsOptions(call: string, agent: unknown, options: AgentPathsOptions): void {
  if (typeof agent !== 'function') throw new ConfigurationError(`${call} needs a function that makes the agent`);
  checkOptionsOf(call, options, pathsValidator);
  const { moves = [], examples = {}, expect = {} } = options;
  for (const [index, move] of moves.entries()) check(`${call}: moves[${index}]`, move, choice(...TROUBLES));
  for (const [tool, rule] of Object.entries(expect)) check(`${call}: expect.${tool}`, rule, callback);
  for (const [tool, list] of Object.entries(examples)) checkExamples(`${call}: examples.${tool}`, list);
}

// biome-ignore lint/suspicious/noThenProperty: what follows from the arguments; nobody awaits an example.
const example = object({ args: anything, then: choice(...VERDICTS, 'failed') });
function checkExamples(name: string, list: unknown): void {
  if (!isList(list)) throw new ConfigurationError(`${name} must be a list of { args, then? }`);
  for (const [index, each] of list.entries()) {
    const place = `${name}[${index}]`;
    check(place, each, example, `${place}.`);
    if ((each as { args?: unknown }).args === undefined) throw new ConfigurationError(`${place}.args is missing`);
  }
}

/** The verdict that a rule of `expect` returned. Throws ConfigurationError if it is not a verdict. */
export function verdictOf(tool: string, args: Json, verdict: unknown): Verdict {
  const name = `agentPaths: what expect.${tool} returns for ${beginning(JSON.stringify(args), 200)}`;
  return check(name, verdict ?? null, choice(...VERDICTS)) as Verdict;
}

/** Throws ConfigurationError for an option that names a tool which the agent does not have. */
export function checkNamedTools(call: string, agent: Agent, options: AgentPathsOptions): void {
  const { examples = {}, expect = {}, stubs = [] } = options;
  checkToolNames(call, agent, 'examples', Object.keys(examples));
  checkToolNames(call, agent, 'expect', Object.keys(expect));
  if (stubs !== 'all') checkToolNames(call, agent, 'stubs', stubs);
}
