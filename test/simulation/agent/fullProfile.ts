/**
 * The profile of the agent with every ability: rates of faults, policies and abilities. Invariant: tapes store these
 * choices in this order, so a new one is added at the end.
 */
import { contextDefaults, type DeepPartial, type Policies } from '../../../src/agentPolicies.ts';
import type { Tape } from '../../../src/testing/simulation/choiceTape.ts';
import { type Profile, RATES, STEPS, UNSUMMED } from '../../../src/testing/simulation/profile.ts';
import { type Answers, drawAnswers } from './answerForms.ts';

export interface FullProfile extends Profile {
  /** The shares of tool runs and hooks that fail. */
  tool: number;
  plugin: number;
  /** The share of decisions that the host's authorizer rejects. */
  unauthorized: number;
  /** The agent has sub-agents. */
  spawns: boolean;
  /** The agent has a fallback model. */
  fallback: boolean;
  policies: DeepPartial<Policies>;
  /** The number of appends between two reads of the conversation. */
  observesEvery: number;
  /** `live$` has a listener. */
  hasListener: boolean;
  /** A schema validates final answers. */
  answers: Answers | undefined;
}

const UNCOMPACTED: Policies['context'] = contextDefaults.filter(({ kind }) => kind !== 'compact');

const POLICIES: { [K in keyof Policies]?: readonly Policies[K][] } = {
  whileActive: ['reject', 'steer', 'followUp'],
  steerAt: ['afterRound', 'afterTool'],
  queueDrain: ['one', 'all'],
  promoteFollowUpOn: [['completed', 'interrupted', 'error'], ['completed'], ['error', 'interrupted']],
  whileSuspended: ['followUp', 'reject', 'denyAndRun'],
  toolExecution: ['parallel', 'sequential', 'parallelIfReadOnly'],
  maxParallelTools: [8, 1, 2],
  onPartialSuspend: ['continue', 'wait'],
  decisionsDuringRound: ['immediate', 'atGate'],
  onToolFailure: ['tellModel', 'failRun'],
  toolRetry: [false, { attempts: 2, baseMs: 100, factor: 2, capMs: 500, jitter: 0.1 }],
  partialReply: ['discard', 'keep'],
  onRestart: ['idle', 'replayDecided'],
  onEmptyReply: ['notice', 'retry', 'accept'],
  observerErrors: ['isolate', 'propagate'],
};

export function drawFullProfile(tape: Tape): FullProfile {
  const policies: { [key: string]: unknown } = {};
  for (const [name, choices] of Object.entries(POLICIES)) policies[name] = tape.pick(choices as readonly unknown[]);
  policies.modelRetry = { attempts: 1 + tape.next(3), baseMs: 200 };
  const limits: Partial<Policies['limits']> = {
    turns: 3 + tape.next(6),
    runMs: tape.pick([false, 90_000]),
    identicalCalls: 2 + tape.next(4),
    queue: 2 + tape.next(4),
    suspensionsPerCall: 1 + tape.next(3),
    toolCallsPerTurn: 2 + tape.next(6),
  };
  const profile = {
    act: 0.05 + tape.next(5) * 0.05,
    crash: tape.pick([0, 0.01, 0.04]),
    clockJump: tape.pick([0, 0.02]),
    model: tape.pick(RATES),
    tool: tape.pick(RATES),
    store: tape.pick([0, 0.05, 0.2]),
    plugin: tape.pick(RATES),
    deliveredTwice: tape.pick([0, 0, 0, 0.1]),
    unauthorized: tape.pick([0, 0.1]),
    spawns: tape.next(4) === 3,
    window: tape.pick([0, 3000, 2400, 1800, 0, 0, 0, 0, 0, 0, 1200, 2000]),
    fallback: tape.next(3) === 2,
    appendsAtOnce: tape.next(2) === 0,
    policies: policies as DeepPartial<Policies>,
    steps: tape.pick(STEPS),
    observesEvery: tape.pick([17, 5, 1]),
    hasListener: tape.next(2) === 1,
    priced: tape.next(2) === 1,
    decides: tape.pick([0, 0.1, 0.3]),
    repeats: tape.pick([0, 0, 0.6]),
    images: tape.next(4) === 3,
    keepsBlobs: tape.next(2) === 1,
    secondConversation: tape.next(6) === 5,
    fork: tape.next(4) === 3,
  };
  // One draw determines three options, so tapes from before these options keep their meaning.
  const last = tape.next(8);
  const overtaken = last === 3 || last === 5 || last === 7;
  const context = profile.window === UNSUMMED ? { context: UNCOMPACTED } : {};
  const all = { ...limits, ...moreLimits(tape, profile.priced) };
  const answers = last === 4 || last === 5 ? drawAnswers(tape) : undefined;
  const repairs = answers && { outputRepairs: answers.repairs };
  const drawn = { ...profile.policies, ...context, limits: { ...all, ...repairs } };
  return { ...profile, overtaken, answers, actsTwice: last > 5, policies: drawn };
}

/** Rare limits, which end most runs early if they are small. */
function moreLimits(tape: Tape, priced: boolean): Partial<Policies['limits']> {
  return {
    emptyReplies: 1 + tape.next(3),
    tokens: tape.pick([false, false, false, false, 1200, 2500]),
    costUsd: priced ? tape.pick([false, false, 0.004, 0.01]) : false,
    decisions: tape.pick([1000, 1000, 1, 3]),
    toolMs: tape.pick([120_000, 120_000, 3_000]),
    resultBytes: tape.pick([262_144, 262_144, 2_048]),
  };
}
