/** Scripts of a run and its real children. Invariant: each script is one story in moves. */
import {
  type ChartPolicies,
  defaultPolicies,
  freshCounters,
  noOpenCalls,
  type OpenCalls,
  type Phases,
  type RunInput,
} from '../../machines/internal.ts';
import { allow, committed, decision, type Move, pending, reply, succeeded, suspend } from './playScript.ts';

const quiet: Phases = {
  runStart: false,
  stepStart: false,
  beforeInference: false,
  afterInference: false,
  beforeToolExecute: false,
  afterToolExecute: false,
  stepEnd: false,
  naturalEnd: false,
  preCompact: false,
  runEnd: false,
};
const loud = Object.fromEntries(Object.keys(quiet).map((phase) => [phase, true])) as unknown as Phases;

export function input(policies: Partial<ChartPolicies> = {}, open: Partial<OpenCalls> = {}, phases = quiet): RunInput {
  return {
    ...noOpenCalls,
    ...open,
    runId: 'r',
    settings: {
      conversationId: 'c',
      policies: { ...defaultPolicies, ...policies, limits: { ...defaultPolicies.limits, runMs: 60_000 } },
      phases,
      models: ['m'],
    },
    trigger: { kind: 'message', message: { messageId: 'u', kind: 'direct', content: [] } },
    counters: freshCounters,
    steers: [],
  };
}
export const resumed = (run: RunInput): RunInput => ({ ...run, trigger: { kind: 'resume', of: 'q' } });
export const waiting = (...ids: string[]) =>
  ids.map((callId) => ({
    call: { callId, name: 'write', gated: true, readOnly: false, fingerprint: callId },
    suspension: 1,
  }));

export interface RunScript {
  name: string;
  input: RunInput;
  moves: readonly Move[];
  /** The end of the run, and of each call: the outcome of the result, or `suspended`. */
  ends: string;
  calls: Record<string, string>;
}

export const commit: Move = ['commit', committed];
const phase: Move = ['phase', { kind: 'done' }];
const shown: Move = ['afterTool', { kind: 'shown', content: [] }];
export const decided = (callId: string, action: 'approve' | 'deny' = 'approve', suspension = 1): Move => [
  'event',
  { type: 'decision.arrived', held: decision(callId, action, suspension) } as never,
];
export const steered: Move = [
  'event',
  { type: 'message.steered', message: { messageId: 'm1', kind: 'steer', content: [] } } as never,
];
const failedAttempt: Move = [
  'model',
  { kind: 'failed', code: 'network', message: 'lost', retryable: true, random: 0, model: 'm' },
];

export const runScripts: readonly RunScript[] = [
  {
    name: 'a reply without calls',
    input: input(),
    moves: [commit, ['model', reply()], commit, commit],
    ends: 'NaturalEnd',
    calls: {},
  },
  {
    name: 'two calls at once, the second done first',
    input: input(),
    moves: [
      commit,
      ['model', reply('ab')],
      commit,
      ['tool', succeeded, 'b'],
      ['tool', { kind: 'erred', content: [], code: 'error' }, 'a'],
      commit,
      ['model', reply()],
    ],
    ends: 'NaturalEnd',
    calls: { a: 'failed', b: 'succeeded' },
  },
  {
    name: 'a call that a plugin blocks beside one that is allowed',
    input: input(),
    moves: [
      commit,
      ['model', reply('AB')],
      commit,
      ['gate', { kind: 'block', code: 'blocked', text: 'no' }, 'a'],
      ['gate', allow, 'b'],
      ['tool', succeeded, 'b'],
      commit,
    ],
    ends: 'NaturalEnd',
    calls: { a: 'failed', b: 'succeeded' },
  },
  {
    name: 'one call waits and one is done: the model continues, and the run waits at its end',
    input: input(),
    moves: [commit, ['model', reply('Ab')], commit, ['gate', suspend, 'a'], ['tool', succeeded, 'b'], commit],
    ends: 'Suspended',
    calls: { a: 'suspended', b: 'succeeded' },
  },
  {
    name: 'all calls wait',
    input: input(),
    moves: [commit, ['model', reply('AB')], commit, ['gate', suspend, 'b'], ['gate', suspend, 'a'], commit, commit],
    ends: 'Suspended',
    calls: { a: 'suspended', b: 'suspended' },
  },
  {
    name: 'a decision in the round is replayed while a sibling runs',
    input: input(),
    moves: [
      commit,
      ['model', reply('Ab')],
      commit,
      ['gate', suspend, 'a'],
      decided('a'),
      ['gate', allow, 'a'],
      ['tool', succeeded, 'a'],
      ['tool', succeeded, 'b'],
      commit,
      commit,
    ],
    ends: 'NaturalEnd',
    calls: { a: 'succeeded', b: 'succeeded' },
  },
  {
    name: 'an early denial is taken as soon as its call waits',
    input: input(),
    moves: [commit, ['model', reply('Ab')], commit, decided('a', 'deny'), ['gate', suspend, 'a'], ['tool', succeeded]],
    ends: 'NaturalEnd',
    calls: { a: 'failed', b: 'succeeded' },
  },
  {
    name: 'decisions at the gate only: a decision that arrives in the round is replayed after it',
    input: input({ decisionsDuringRound: 'atGate' }),
    moves: [
      commit,
      ['model', reply('AB')],
      commit,
      ['gate', suspend, 'a'],
      decided('a'),
      ['gate', suspend, 'b'],
      commit,
      ['gate', allow, 'a'],
      ['tool', succeeded, 'a'],
      commit,
    ],
    ends: 'Suspended',
    calls: { a: 'succeeded', b: 'suspended' },
  },
  {
    name: 'a resumed call waits again, and its next decision is already there',
    input: resumed(input({}, { suspended: waiting('s'), decisions: [decision('s')] })),
    moves: [
      commit,
      ['gate', allow],
      decided('s', 'approve', 2),
      ['tool', pending],
      commit,
      ['gate', allow],
      ['tool', succeeded],
    ],
    ends: 'NaturalEnd',
    calls: { s: 'succeeded' },
  },
  {
    name: 'two decisions at one gate, one of them a denial that a plugin receives',
    input: resumed(
      input(
        {},
        { suspended: waiting('s', 't'), decisions: [decision('t'), decision('s', 'deny')] },
        { ...quiet, afterToolExecute: true },
      ),
    ),
    moves: [commit, shown, ['gate', allow, 't'], ['tool', succeeded, 't'], shown, commit],
    ends: 'NaturalEnd',
    calls: { s: 'failed', t: 'succeeded' },
  },
  {
    name: 'a resumption with nothing decided',
    input: resumed(input({}, { suspended: waiting('s') })),
    moves: [commit],
    ends: 'Suspended',
    calls: { s: 'suspended' },
  },
  {
    name: 'one after the other: the call after a waiting call follows its decision',
    input: input({ toolExecution: 'sequential' }),
    moves: [
      commit,
      ['model', reply('Abc')],
      commit,
      decided('a'),
      ['gate', suspend, 'a'],
      ['gate', allow, 'a'],
      ['tool', succeeded, 'a'],
      commit,
      commit,
      ['tool', succeeded, 'b'],
      ['tool', succeeded, 'c'],
      commit,
    ],
    ends: 'NaturalEnd',
    calls: { a: 'succeeded', b: 'succeeded', c: 'succeeded' },
  },
  {
    name: 'one after the other: the run continues without the call after a waiting call',
    input: input({ toolExecution: 'sequential' }),
    moves: [commit, ['model', reply('aBc')], commit, ['tool', succeeded, 'a'], ['gate', suspend, 'b'], commit],
    ends: 'Suspended',
    calls: { a: 'succeeded', b: 'suspended', c: 'cancelled' },
  },
  {
    name: 'a decision while the model answers: the reply waits for the gate',
    input: input({}, { suspended: waiting('s') }),
    moves: [commit, decided('s'), ['gate', allow], ['model', reply()], commit, ['tool', succeeded, 's'], commit],
    ends: 'NaturalEnd',
    calls: { s: 'succeeded' },
  },
  {
    name: 'a call that may run again after a crash',
    input: resumed(input({}, { reruns: waiting('x').map(({ call }) => ({ call, suspension: 0 })) })),
    moves: [commit, ['gate', allow], ['tool', succeeded], commit, ['model', reply()]],
    ends: 'NaturalEnd',
    calls: { x: 'succeeded' },
  },
  {
    name: 'a failed attempt is retried, and a steer turns the end into another loop',
    input: input(),
    moves: [commit, failedAttempt, ['ring', 'r/t1/wait/2'], steered, ['model', reply()], commit, ['model', reply()]],
    ends: 'NaturalEnd',
    calls: {},
  },
  {
    name: 'plugins take part in every phase',
    input: input({}, {}, loud),
    moves: [
      phase,
      commit,
      phase,
      ['model', reply('a')],
      phase,
      commit,
      ['tool', succeeded, 'a'],
      shown,
      commit,
      phase,
      ['model', reply()],
      phase,
      commit,
      phase,
      phase,
      commit,
    ],
    ends: 'NaturalEnd',
    calls: { a: 'succeeded' },
  },
];
