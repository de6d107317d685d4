/** Scripts of a conversation with its real runs. Invariant: each script is one story in moves. */
import {
  type ChartPolicies,
  type ConversationInput,
  defaultPolicies,
  freshCounters,
  noOpenCalls,
  type Phases,
} from '../../machines/internal.ts';
import { allow, committed, decision, type Move, reply, succeeded, suspend } from './playScript.ts';

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
const settings = (policies: Partial<ChartPolicies> = {}): ConversationInput['settings'] => ({
  conversationId: 'c',
  policies: { ...defaultPolicies, ...policies },
  phases: quiet,
  models: ['m'],
});
export const fresh = (policies: Partial<ChartPolicies> = {}): ConversationInput => ({
  settings: settings(policies),
  open: noOpenCalls,
  counters: freshCounters,
  queue: [],
  runId: '',
  waiting: false,
});

export interface ConversationScript {
  name: string;
  input: ConversationInput;
  moves: readonly Move[];
  /** The final state at rest. */
  rests: unknown;
  /** The ends of its runs in order. */
  ends: readonly string[];
}

const event = (type: string, rest: object = {}): Move => ['event', { type, ...rest }];
const sent = (messageId: string, kind: 'direct' | 'steer' | 'followUp' = 'direct'): Move =>
  event('message.sent', { messageId, content: [], kind });
const decided = (callId: string, action: 'approve' | 'deny' = 'approve'): Move =>
  event('decision.arrived', { held: decision(callId, action), receipt: 'applied' });
const resumed = (runId: string): Move => event('resume.requested', { runId });
const cancelled = event('cancel.requested');
const commit: Move = ['commit', committed];
const answer = (calls = ''): Move => ['model', reply(calls)];
/** Moves until the only call of a request waits for a person. */
const untilItWaits: readonly Move[] = [sent('u1'), commit, answer('A'), commit, ['gate', suspend, 'a'], commit, commit];
const ready = { idle: 'ready' };

export const conversationScripts: readonly ConversationScript[] = [
  {
    name: 'a followUp sent while a run is under way is the next request',
    input: fresh(),
    moves: [sent('u1'), commit, sent('f1', 'followUp'), answer(), commit, commit, commit, answer(), commit],
    rests: ready,
    ends: ['completed', 'completed'],
  },
  {
    name: 'a steer sent in a round is delivered after it',
    input: fresh(),
    moves: [sent('u1'), commit, answer('a'), commit, sent('s1', 'steer'), ['tool', succeeded], commit, answer()],
    rests: ready,
    ends: ['completed'],
  },
  {
    name: 'a call waits, is decided while nothing runs, and is replayed when the conversation is resumed',
    input: fresh(),
    moves: [
      ...untilItWaits,
      decided('a'),
      resumed('r2'),
      commit,
      ['gate', allow],
      ['tool', succeeded],
      commit,
      answer(),
    ],
    rests: ready,
    ends: ['suspended', 'completed'],
  },
  {
    name: 'a message sent to a waiting conversation is queued, and promoted when the cycle is over',
    input: fresh(),
    moves: [...untilItWaits, sent('u2'), decided('a', 'deny'), resumed('r2'), commit, commit, answer(), commit, commit],
    rests: ready,
    ends: ['suspended', 'completed', 'completed'],
  },
  {
    name: 'the next run applies a decision that arrives after the last gate, without a resume',
    input: fresh(),
    moves: [...untilItWaits.slice(0, -1), decided('a'), commit, commit, ['gate', allow], ['tool', succeeded], commit],
    rests: ready,
    ends: ['suspended', 'completed'],
  },
  {
    name: 'a waiting conversation that is cancelled continues with its queue',
    input: fresh(),
    moves: [...untilItWaits, sent('u2', 'followUp'), cancelled, commit, commit, answer()],
    rests: ready,
    ends: ['suspended', 'interrupted', 'completed'],
  },
  {
    name: 'a message takes the place of the decisions: the cycle is stopped, then its run begins',
    input: fresh({ whileSuspended: 'denyAndRun' }),
    moves: [...untilItWaits, sent('f1', 'followUp'), sent('u2'), commit, commit, answer(), commit, commit, commit],
    rests: ready,
    ends: ['suspended', 'interrupted', 'completed', 'completed'],
  },
  {
    name: 'a promotion takes every followUp, the first as the root and the others as steers',
    input: fresh({ queueDrain: 'all' }),
    moves: [
      ...[sent('u1'), commit, sent('f1', 'followUp'), sent('s1', 'steer'), sent('f2', 'followUp')],
      ...[answer(), commit, answer(), commit, commit, commit, answer(), commit],
    ],
    rests: ready,
    ends: ['completed', 'completed'],
  },
  {
    name: 'a message after an error is a new request',
    input: fresh(),
    moves: [
      sent('u1'),
      commit,
      ['model', { kind: 'failed', code: 'auth', message: 'no', retryable: false, random: 0, model: 'm' }],
      commit,
      sent('u2'),
      commit,
      answer(),
    ],
    rests: ready,
    ends: ['error', 'completed'],
  },
  {
    name: 'a run that is cancelled leaves its followUp to the next',
    input: fresh(),
    moves: [sent('u1'), commit, sent('f1', 'followUp'), answer('ab'), commit, cancelled, commit, commit, answer()],
    rests: ready,
    ends: ['interrupted', 'completed'],
  },
];
