/**
 * Rounds and gates under the policies of tools, with their real children. Invariant: each script is one story in moves.
 */
import type { EffectValue } from '../../machines/index.ts';
import { allow, decision, type Move, reply, succeeded, suspend } from './playScript.ts';
import { commit, decided, input, type RunScript, resumed, steered, waiting } from './runScripts.ts';

const erred: EffectValue = { kind: 'erred', content: [], code: 'error' };
const retryable: EffectValue = { ...erred, retry: { random: 0 } };
const toolRetry = { attempts: 3, baseMs: 100, factor: 2, capMs: 1000, jitter: 0 };
const failRun = { onToolFailure: 'failRun' } as const;
const afterTool = { steerAt: 'afterTool', toolExecution: 'sequential' } as const;
/** Moves until the calls of the first reply run. */
const calling = (calls: string): readonly Move[] => [commit, ['model', reply(calls)], commit];
const wait = (attempt: number): Move => ['ring', `r/t1/call/0/wait/${attempt}`];

export const toolScripts: readonly RunScript[] = [
  {
    name: 'a tool that fails twice is executed a third time, beside a sibling',
    input: input({ toolRetry }),
    moves: [
      ...calling('ab'),
      ['tool', retryable, 'a'],
      ['tool', succeeded, 'b'],
      wait(2),
      ['tool', retryable, 'a'],
      wait(3),
      ['tool', succeeded, 'a'],
    ],
    ends: 'NaturalEnd',
    calls: { a: 'succeeded', b: 'succeeded' },
  },
  {
    name: 'a replayed tool is executed again at its gate',
    input: resumed(input({ toolRetry }, { suspended: waiting('s'), decisions: [decision('s')] })),
    moves: [commit, ['gate', allow], ['tool', retryable], ['ring', 'r/gate0/s/wait/2'], ['tool', erred]],
    ends: 'NaturalEnd',
    calls: { s: 'failed' },
  },
  {
    name: 'a failing tool ends the run when its sibling is done, and another call still waits',
    input: input({ ...failRun, toolRetry }),
    moves: [
      ...calling('abC'),
      ['gate', suspend, 'c'],
      ['tool', retryable, 'a'],
      wait(2),
      ['tool', erred, 'a'],
      ['tool', succeeded, 'b'],
    ],
    ends: 'Error',
    calls: { a: 'failed', b: 'succeeded', c: 'suspended' },
  },
  {
    name: 'a failing tool ends the run when the replay beside its round is through',
    input: input(failRun),
    moves: [
      ...calling('Ab'),
      ['gate', suspend, 'a'],
      decided('a'),
      ['gate', allow, 'a'],
      ['tool', erred, 'b'],
      commit,
      ['tool', succeeded, 'a'],
      commit,
    ],
    ends: 'Error',
    calls: { a: 'succeeded', b: 'failed' },
  },
  {
    name: 'a replay that fails ends the run, and another call still waits',
    input: resumed(input(failRun, { suspended: waiting('s', 't'), decisions: [decision('s')] })),
    moves: [commit, ['gate', allow], ['tool', erred], commit],
    ends: 'Error',
    calls: { s: 'failed', t: 'suspended' },
  },
  {
    name: 'a replay that fails while the model answers ends the run at once',
    input: input(failRun, { suspended: waiting('s') }),
    moves: [commit, decided('s'), ['gate', allow], ['tool', erred], commit],
    ends: 'Error',
    calls: { s: 'failed' },
  },
  {
    name: 'a steer in a round goes before the calls that are not started',
    input: input(afterTool),
    moves: [...calling('abc'), steered, ['tool', succeeded, 'a'], commit, ['model', reply()], commit],
    ends: 'NaturalEnd',
    calls: { a: 'succeeded', b: 'cancelled', c: 'cancelled' },
  },
  {
    name: 'a steer while a call is asked for: that call waits, and the calls after it do not',
    input: input(afterTool),
    moves: [...calling('Abc'), steered, ['gate', suspend, 'a'], commit, ['model', reply()], commit],
    ends: 'Suspended',
    calls: { a: 'suspended', b: 'cancelled', c: 'cancelled' },
  },
];
