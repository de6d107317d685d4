/**
 * Rates of faults, policies and abilities of one simulation. Rule: they are drawn anew for each seed, since one fixed mixture
 * finds fewer defects than many different ones.
 */
import { contextDefaults, type DeepPartial, type Policies } from '../../policies.ts';
import type { Tape } from './tape.ts';
import { type Answers, drawAnswers } from './world/finalAnswer.ts';

export interface Profile {
  /** Shares of the steps that are acts of the host, and crashes. */
  act: number;
  crash: number;
  clockJump: number;
  /** Shares of model calls, tool runs, appends and hooks that go wrong. */
  model: number;
  tool: number;
  store: number;
  plugin: number;
  /** Share of the completions that are delivered twice. */
  deliveredTwice: number;
  /** Share of the decisions that the host's authorizer turns away. */
  unauthorized: number;
  /** The agent has sub-agents. */
  spawns: boolean;
  /** Context window of the model in tokens; 0 where it names none. */
  window: number;
  /** There is a fallback model. */
  fallback: boolean;
  /** Appends answer at once, as the memory store's do. */
  appendsAtOnce: boolean;
  policies: DeepPartial<Policies>;
  /** The observer reads the conversation at every so many appends. */
  observesEvery: number;
  /** The models have prices. */
  priced: boolean;
  /** Share of the steps in which somebody decides a call that waits. */
  decides: number;
  /** Share of the replies that repeat the one before. */
  repeats: number;
  /** Some messages have images; the store keeps their bytes as blobs. */
  images: boolean;
  keepsBlobs: boolean;
  /** The agent has another conversation, and this one is forked in the end. */
  secondConversation: boolean;
  fork: boolean;
  /** Some appends are slow and then refused: the rarer their entries, the more often. */
  overtaken: boolean;
  /** Some acts of the host follow one another before the first is answered. */
  actsTwice: boolean;
  /** Final answers are held to a schema. */
  answers: Answers | undefined;
  /** There is a listener of `live$`. */
  hasListener: boolean;
  /** Steps before faults are switched off. */
  steps: number;
}

const RATES = [0, 0.02, 0.1, 0.3] as const;
/** Most defects show in a short simulation, some only in a long one. */
const STEPS = [12, 24, 60, 60] as const;

/** In a window of this size nothing is summed up, and replies are short. */
export const UNSUMMED = 1200;
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

export function drawProfile(tape: Tape): Profile {
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
  // One number for three: a tape that was recorded before there were the others goes on as it was.
  const last = tape.next(8);
  const overtaken = last === 3 || last === 5 || last === 7;
  const context = profile.window === UNSUMMED ? { context: UNCOMPACTED } : {};
  const all = { ...limits, ...moreLimits(tape, profile.priced) };
  const answers = last === 4 || last === 5 ? drawAnswers(tape) : undefined;
  const repairs = answers && { outputRepairs: answers.repairs };
  const drawn = { ...profile.policies, ...context, limits: { ...all, ...repairs } };
  return { ...profile, overtaken, answers, actsTwice: last > 5, policies: drawn };
}

/** Limits that end most runs early where they are small, which is seldom. */
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
