/**
 * What holds of every log, watched entry by entry as it becomes durable. Rule: it knows entries only, and never how the
 * library came to write them.
 */
import type { LogEntry } from '../../../../machines/internal.ts';
import { holdsSecret } from '../world/secret.ts';
import { SUMMARY } from '../world/simulatedReply.ts';
import { CONVERSATION, type World } from '../world/world.ts';
import { AnswerWatch } from './answerWatch.ts';
import { CallWatch } from './callWatch.ts';
import { MessageWatch } from './messageWatch.ts';
import { PolicyWatch } from './policyWatch.ts';
import { childIn, spentTokens, usageFault } from './spending.ts';

/** What may still be written of a run that is over. */
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
  readonly answers: AnswerWatch | undefined;
  /** Runs that began, and how the last cycle stands. */
  readonly runs = new Set<string>();
  readonly ended = new Set<string>();
  cycle: 'none' | 'running' | 'suspended' | 'stopped' = 'none';
  runId: string | null = null;
  /** The process in which its last run began. */
  beganIn = 0;
  /** The last end of a cycle, and the process that wrote it. */
  stop: Extract<LogEntry, { type: 'run-stop' }> | undefined;
  stoppedIn = 0;
  /** The call whose sub-agent this is. */
  parentCall: string | undefined;
  /** How far the sub-agents of its calls are on record. */
  readonly children = new Map<string, 'started' | 'ended'>();
  /** Tokens of its own replies, by the entries up to each; and what is told of each sub-agent's. */
  readonly replies: { seq: number; tokens: number }[] = [];
  readonly told = new Map<string, { upTo: number; tokens: number }>();
  /** The last entry that stands in a summary. */
  summedUpTo = -1;
  #next = 0;
  readonly #id: string;
  readonly #world: World;

  constructor(world: World, id: string) {
    this.#world = world;
    this.#id = id;
    this.calls = new CallWatch(world);
    this.messages = new MessageWatch(world);
    this.#policies = new PolicyWatch(world, this.calls.calls);
    if (world.answers && id === CONVERSATION) this.answers = new AnswerWatch(world, world.answers);
  }

  learn(entry: LogEntry): void {
    const world = this.#world;
    world.hold(entry.seq === this.#next, 'I3', () => `seq ${entry.seq} where ${this.#next} is next`);
    this.#next = entry.seq + 1;
    world.hold(!holdsSecret(entry), 'I40', () => `a secret is in ${JSON.stringify(entry)}`);
    if (entry.runId !== null && this.ended.has(entry.runId)) {
      world.hold(BEHIND_THE_END.has(entry.type), 'I2', () => `${entry.type} behind the end of ${entry.runId}`);
    }
    const owner = world.facts.runs.get(entry.runId ?? '') ?? this.#id;
    const mine = owner === this.#id || owner === world.facts.forks.get(this.#id) || world.facts.forks.size > 0;
    world.hold(mine, 'I31', () => `${entry.type} of ${entry.runId} is in the log of ${this.#id}`);
    world.reach('entries', entry.type);
    this.#learnRun(entry);
    this.#learnReply(entry);
    this.answers?.learn(entry);
    this.messages.learn(entry);
    this.calls.learn(entry);
    // A sub-agent has limits of its own.
    if (this.parentCall === undefined) this.#policies.learn(entry, this.messages.queued.length);
  }

  /** One append, as a whole. */
  appended(entries: readonly LogEntry[]): void {
    // A copy is one append of all that was there.
    if (entries[0]?.seq === 0 && this.#world.facts.forks.size > 0) return;
    const at = entries.map(({ type }) => type).lastIndexOf('checkpoint');
    const last = at < 0 || at === entries.length - 1;
    this.#world.hold(last, 'CKPT', () => `a checkpoint is ${at} of ${entries.length} in its append`);
    const ends = entries.some(({ type }) => type === 'run-stop' || type === 'run-suspended');
    const mark = entries[at];
    if (mark?.type === 'checkpoint' && mark.boundary === 'RunFinished')
      this.#world.hold(ends, 'CKPT', () => 'RunFinished stands without the end of its run');
    this.calls.appended(entries);
  }

  #learnRun(entry: LogEntry): void {
    const world = this.#world;
    const id = entry.runId ?? '';
    switch (entry.type) {
      case 'run-started':
      case 'run-resumed':
        world.hold(this.cycle !== 'running', 'I2', () => `${id} begins while ${this.runId} runs`);
        world.hold(!this.runs.has(id), 'I2', () => `${id} begins twice`);
        world.hold(entry.type === 'run-resumed' || this.cycle !== 'suspended', 'INV-3', () => `${id} forgets a cycle`);
        this.runs.add(id);
        world.facts.runs.set(id, this.#id);
        this.runId = id;
        this.beganIn = world.life;
        this.cycle = 'running';
        world.facts.running.set(this.#id, 0);
        return;
      case 'run-suspended':
        world.hold(this.cycle === 'running', 'I2', () => `${id} is suspended while ${this.cycle}`);
        this.cycle = 'suspended';
        break;
      case 'run-stop':
        world.hold(this.cycle === 'running' || this.cycle === 'suspended', 'INV-3', () => `${id} stops twice`);
        if (entry.cause === 'cancelled') this.#holdsClosed(id);
        this.cycle = 'stopped';
        this.stop = entry;
        this.stoppedIn = world.life;
        world.reach('stops', `${entry.reason} ${entry.cause ?? ''}`);
        break;
      case 'sub-agent':
        return this.#learnChild(entry);
      case 'conversation':
        this.parentCall = entry.parent?.callId;
        return;
      case 'model-retry':
        world.facts.running.set(this.#id, world.steady + entry.waitMs);
        return;
      default:
        return;
    }
    this.ended.add(id);
    world.facts.running.delete(this.#id);
  }

  /** A cancel leaves nothing waiting, of this run or of one before it. */
  #holdsClosed(runId: string): void {
    const world = this.#world;
    for (const [callId, { status }] of this.calls.calls) {
      world.hold(status === 'ended', 'INV-1', () => `${callId} is ${status} behind the cancel of ${runId}`);
    }
  }

  /** A sub-agent begins once and ends once. */
  #learnChild({ child: id, callId, phase }: Extract<LogEntry, { type: 'sub-agent' }>): void {
    const { facts } = this.#world;
    const before = this.children.get(id) ?? 'unknown';
    // In a copy it has another id, and the same call.
    const isCopy = facts.forks.has(this.#id);
    const isLost = (entry: LogEntry): boolean =>
      entry.type === 'sub-agent' && (entry.child === id || (isCopy && entry.callId === callId));
    const fits =
      before === (phase === 'started' ? 'unknown' : 'started') || facts.hasLost(isLost, isCopy ? 'ever' : 'now');
    this.#world.hold(fits, 'I32', () => `the sub-agent ${id} is ${phase} where it is ${before}`);
    this.children.set(id, phase);
  }

  /** A run sums up what no run has summed up before, and says what it took. */
  #learnSummary(entry: Extract<LogEntry, { type: 'compaction' }>): void {
    const world = this.#world;
    const { upToSeq, seq, usage, costUsd = null, summary, runId } = entry;
    world.hold(upToSeq < seq, 'SUMMARY', () => `entry ${seq} sums up entries up to ${upToSeq}`);
    world.hold(upToSeq > this.summedUpTo, 'SUMMARY', () => `entries up to ${upToSeq} are summed up again`);
    world.hold(this.cycle === 'running', 'SUMMARY', () => `${runId} sums up while ${this.cycle}`);
    this.summedUpTo = upToSeq;
    world.facts.summaries.add(summary);
    world.reach('summaries', usage ? (summary.startsWith(SUMMARY) ? 'made' : 'useless') : 'failed');
    if (world.facts.begun.size === 0 || !world.policies) return;
    const fault = usage ? usageFault({ usage, costUsd }, world.profile.priced) : undefined;
    if (fault) world.violate('USAGE', `a summary of ${runId} tells its use wrong: ${fault}`);
    const free = usage === undefined && summary.startsWith(SUMMARY);
    world.hold(!free, 'USAGE', () => `a summary of ${runId} tells no use`);
    if (usage) this.replies.push({ seq, tokens: spentTokens(entry) });
  }

  #learnReply(entry: LogEntry): void {
    const world = this.#world;
    if (entry.type === 'model-reply') {
      world.facts.running.set(this.#id, 0);
      this.replies.push({ seq: entry.seq, tokens: spentTokens(entry) });
      const fault = world.facts.begun.size > 0 && world.policies && usageFault(entry, world.profile.priced);
      if (fault) world.violate('USAGE', `a reply of ${entry.runId} tells its use wrong: ${fault}`);
    }
    if (entry.type === 'compaction') this.#learnSummary(entry);
    const child = childIn(entry);
    if (child) {
      const told = this.told.get(child.conversationId) ?? { upTo: 0, tokens: 0 };
      const tokens = told.tokens + spentTokens(entry);
      this.told.set(child.conversationId, { upTo: child.upTo, tokens });
    }
    // The words of somebody else's model are not known.
    if (!world.policies || entry.type !== 'agent-output' || entry.item.type !== 'assistant') return;
    const { text, flag } = entry.item;
    const { begun, said } = world.facts;
    // A model of the caller's own says what it likes.
    if (begun.size === 0) return;
    if (flag !== 'interrupted') return world.hold(said.has(text), 'INV-2', () => `no model said ${text} to its end`);
    world.hold(begun.has(text), 'INV-2', () => `no model began to say ${text}`);
    const kept = world.policies.partialReply !== 'discard';
    world.hold(kept, 'INV-2', () => `${text} was cut and is kept`);
  }
}
