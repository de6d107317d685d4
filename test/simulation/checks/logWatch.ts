/**
 * Checks a log, entry by entry, as entries become durable. Invariant: it reads only entries, and does not depend on how
 * the library writes them.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { SECRET } from '../../../src/testing/simulation/world/simulatedModel.ts';
import { SUMMARY } from '../../../src/testing/simulation/world/simulatedReply.ts';
import { CONVERSATION } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { AnswerWatch, learnOwnSchema } from './answerWatch.ts';
import { CallWatch } from './callWatch.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { LimitWatch } from './limitWatch.ts';
import { MessageWatch } from './messageWatch.ts';
import { PolicyWatch } from './policyWatch.ts';
import { subAgentIn, tokensIn, usageFault } from './spending.ts';

/** The entries of a run that may follow its stop. */
const BEHIND_THE_END: ReadonlySet<string> = new Set([
  'checkpoint',
  'message-queued',
  'message-returned',
  'decision',
  'call-settled',
  'diagnostic',
  'notice',
  'tool-result',
  'run-stop',
  'state-changed',
  'sub-agent',
  'extension',
]);

export class LogWatch {
  readonly calls: CallWatch;
  readonly messages: MessageWatch;
  readonly #policies: PolicyWatch;
  readonly #limits: LimitWatch;
  readonly answers: AnswerWatch | undefined;
  /** The runs that began and ended, and the state of the last cycle. */
  readonly runs = new Set<string>();
  readonly ended = new Set<string>();
  cycle: 'none' | 'running' | 'suspended' | 'stopped' = 'none';
  runId: string | null = null;
  /** The process in which its last run began. */
  beganInProcess = 0;
  /** The last end of a cycle, and the process that wrote it. */
  stop: Extract<LogEntry, { type: 'run-stop' }> | undefined;
  stoppedInProcess = 0;
  /** The parent and its call, if this is the log of a sub-agent. */
  parent: { readonly conversationId: string; readonly callId: string } | undefined;
  /** The last recorded phase of each sub-agent. */
  readonly children = new Map<string, 'started' | 'ended'>();
  /** The tokens of its own replies with their seq, and the recorded tokens of each sub-agent. */
  readonly replies: { seq: number; tokens: number }[] = [];
  readonly subAgentUsage = new Map<string, { upTo: number; tokens: number }>();
  /** The seq of the last summarized entry. */
  summedUpTo = -1;
  #next = 0;
  readonly #id: string;
  readonly #world: CheckedWorld;

  constructor(world: CheckedWorld, id: string) {
    this.#world = world;
    this.#id = id;
    this.calls = new CallWatch(world);
    this.messages = new MessageWatch(world);
    this.#policies = new PolicyWatch(world, this.calls.calls);
    this.#limits = new LimitWatch(world, this.calls.calls);
    if (world.answers && id === CONVERSATION) this.answers = new AnswerWatch(world, world.answers);
  }

  learn(entry: LogEntry): void {
    const world = this.#world;
    world.check(entry.seq === this.#next, 'I3', () => `seq ${entry.seq} where ${this.#next} is next`);
    this.#next = entry.seq + 1;
    world.check(!containsSecret(entry), 'I40', () => `a secret is in ${JSON.stringify(entry)}`);
    if (entry.runId !== null && this.ended.has(entry.runId)) {
      world.check(BEHIND_THE_END.has(entry.type), 'I2', () => `${entry.type} after the end of ${entry.runId}`);
    }
    const owner = world.facts.runs.get(entry.runId ?? '') ?? this.#id;
    const mine = owner === this.#id || owner === world.facts.forks.get(this.#id) || world.facts.forks.size > 0;
    world.check(mine, 'I31', () => `${entry.type} of ${entry.runId} is in the log of ${this.#id}`);
    this.#learnRun(entry);
    this.#learnReply(entry);
    learnOwnSchema(world, entry);
    this.answers?.learn(entry);
    this.messages.learn(entry);
    this.calls.learn(entry);
    // A sub-agent has other limits.
    if (this.parent) return;
    this.#policies.learn(entry, this.messages.queued.length);
    this.#limits.learn(entry);
  }

  /** Checks one append as a whole. */
  appended(entries: readonly LogEntry[]): void {
    // A fork begins with one append of all copied entries.
    if (entries[0]?.seq === 0 && this.#world.facts.forks.size > 0) return;
    const at = entries.map(({ type }) => type).lastIndexOf('checkpoint');
    const last = at < 0 || at === entries.length - 1;
    this.#world.check(last, 'CKPT', () => `a checkpoint is ${at} of ${entries.length} in its append`);
    const ends = entries.some(({ type }) => type === 'run-stop' || type === 'run-suspended');
    const mark = entries[at];
    if (mark?.type === 'checkpoint' && mark.boundary === 'RunFinished')
      this.#world.check(ends, 'CKPT', () => 'RunFinished stands without the end of its run');
    this.calls.appended(entries);
  }

  #learnRun(entry: LogEntry): void {
    const world = this.#world;
    const id = entry.runId ?? '';
    switch (entry.type) {
      case 'run-started':
      case 'run-resumed':
        world.check(this.cycle !== 'running', 'I2', () => `${id} begins while ${this.runId} runs`);
        world.check(!this.runs.has(id), 'I2', () => `${id} begins twice`);
        world.check(entry.type === 'run-resumed' || this.cycle !== 'suspended', 'INV-3', () => `${id} forgets a cycle`);
        this.runs.add(id);
        world.facts.runs.set(id, this.#id);
        this.runId = id;
        this.beganInProcess = world.processId;
        this.cycle = 'running';
        world.facts.running.set(this.#id, 0);
        return;
      case 'run-suspended':
        world.check(this.cycle === 'running', 'I2', () => `${id} is suspended while ${this.cycle}`);
        this.cycle = 'suspended';
        break;
      case 'run-stop':
        world.check(this.cycle === 'running' || this.cycle === 'suspended', 'INV-3', () => `${id} stops twice`);
        if (entry.cause === 'cancelled') this.#checkClosed(id);
        this.cycle = 'stopped';
        this.stop = entry;
        this.stoppedInProcess = world.processId;
        break;
      case 'sub-agent':
        return this.#learnChild(entry);
      case 'conversation':
        this.parent = entry.parent;
        if (entry.parent) world.facts.hasSubAgents = true;
        return;
      case 'model-retry':
        world.facts.running.set(this.#id, world.elapsedMs + entry.waitMs);
        return;
      default:
        return;
    }
    this.ended.add(id);
    world.facts.running.delete(this.#id);
  }

  /** After a cancel no call is open, neither of this run nor of an earlier one. */
  #checkClosed(runId: string): void {
    const world = this.#world;
    for (const [callId, { status }] of this.calls.calls) {
      world.check(status === 'ended', 'INV-1', () => `${callId} is ${status} after the cancel of ${runId}`);
    }
  }

  /** Checks that a sub-agent begins once and ends once. */
  #learnChild({ child: id, callId, phase }: Extract<LogEntry, { type: 'sub-agent' }>): void {
    const { facts } = this.#world;
    const before = this.children.get(id) ?? 'unknown';
    // In a fork it has another id and the same call.
    const isCopy = facts.forks.has(this.#id);
    const isLost = (entry: LogEntry): boolean =>
      entry.type === 'sub-agent' && (entry.child === id || (isCopy && entry.callId === callId));
    const fits =
      before === (phase === 'started' ? 'unknown' : 'started') || facts.hasLost(isLost, isCopy ? 'ever' : 'now');
    this.#world.check(fits, 'I32', () => `the sub-agent ${id} is ${phase} where it is ${before}`);
    this.children.set(id, phase);
  }

  /** Checks that a summary covers more than the previous one, and has its usage. */
  #learnSummary(entry: Extract<LogEntry, { type: 'compaction' }>): void {
    const world = this.#world;
    const { upToSeq, seq, usage, costUsd = null, summary, runId } = entry;
    world.check(upToSeq < seq, 'SUMMARY', () => `entry ${seq} sums up entries up to ${upToSeq}`);
    world.check(upToSeq > this.summedUpTo, 'SUMMARY', () => `entries up to ${upToSeq} are summed up again`);
    world.check(this.cycle === 'running', 'SUMMARY', () => `${runId} sums up while ${this.cycle}`);
    this.summedUpTo = upToSeq;
    world.facts.summaries.set(summary, this.#id);
    world.reach('summaries', usage ? (summary.startsWith(SUMMARY) ? 'made' : 'useless') : 'failed');
    if (usage) this.replies.push({ seq, tokens: tokensIn(entry) });
    if (world.facts.begun.size === 0 || !world.policies) return;
    const fault = usage ? usageFault({ usage, costUsd }, world.profile.priced) : undefined;
    if (fault) world.violate('USAGE', `a summary of ${runId} tells its use wrong: ${fault}`);
    const free = usage === undefined && summary.startsWith(SUMMARY);
    world.check(!free, 'USAGE', () => `a summary of ${runId} has no usage`);
  }

  #learnReply(entry: LogEntry): void {
    const world = this.#world;
    if (entry.type === 'model-reply') {
      world.facts.running.set(this.#id, 0);
      this.replies.push({ seq: entry.seq, tokens: tokensIn(entry) });
      const fault = world.facts.begun.size > 0 && world.policies && usageFault(entry, world.profile.priced);
      if (fault) world.violate('USAGE', `a reply of ${entry.runId} tells its use wrong: ${fault}`);
    }
    if (entry.type === 'compaction') this.#learnSummary(entry);
    const child = subAgentIn(entry);
    if (child) {
      const before = this.subAgentUsage.get(child.conversationId) ?? { upTo: 0, tokens: 0 };
      const tokens = before.tokens + tokensIn(entry);
      this.subAgentUsage.set(child.conversationId, { upTo: child.upTo, tokens });
    }
    // The replies of another agent's model are unknown.
    if (!world.policies || entry.type !== 'agent-output' || entry.item.type !== 'assistant') return;
    const { text, flag } = entry.item;
    const { begun, completeTexts } = world.facts;
    // The simulated model was never called, so the agent has its own.
    if (begun.size === 0) return;
    if (flag !== 'interrupted')
      return world.check(completeTexts.has(text), 'INV-2', () => `no model said ${text} to its end`);
    world.check(begun.has(text), 'INV-2', () => `no model began to say ${text}`);
    const kept = world.policies.partialReply !== 'discard';
    world.check(kept, 'INV-2', () => `${text} was cut and is kept`);
  }
}

/** Returns true if a string in the value, keys included, contains the secret. */
function containsSecret(value: unknown): boolean {
  if (typeof value === 'string') return value.includes(SECRET);
  if (typeof value !== 'object' || value === null) return false;
  for (const key in value)
    if (key.includes(SECRET) || containsSecret((value as { [key: string]: unknown })[key])) return true;
  return false;
}
