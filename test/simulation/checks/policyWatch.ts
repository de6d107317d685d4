/**
 * Checks a log against its agent's policies: limits, and the calls of a reply that may run together. Invariant: it
 * counts entries itself. After a reached limit no model is called, and a run that a limit stopped has reached it.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { tokensIn, usdOf } from './spending.ts';

type Calls = ReadonlyMap<string, { name: string; args: unknown; status: string; suspension: number }>;
/** A call of the last reply. */
interface RoundCall {
  callId: string;
  fingerprint: string;
  result?: string;
  startedInProcess?: number;
}
/** The time for a run's last entries after its deadline, and for a cancel. */
const TAIL_MS = 200;
const READ_ONLY: ReadonlySet<string> = new Set(['look', 'mcp__sim__look']);
/** A suspension of this tool's calls because a sub-agent waits does not count. */
export const SPAWN_TOOL = 'spawn_agents';

export class PolicyWatch {
  readonly #world: CheckedWorld;
  readonly #calls: Calls;
  /** The counts of the active cycle: replies, consecutive empty replies, and consecutive rounds with the same call. */
  #turns = 0;
  #empty = 0;
  #streaks = new Map<string, number>();
  /** Some call of the cycle got its result late, so repetitions cannot be counted from here. */
  #streaksUnknown = false;
  #tokens = 0;
  #costUsd = 0;
  /** The same when the last reply was counted. */
  #allowed = { tokens: 0, usd: 0 };
  #round: RoundCall[] = [];
  /** The round is active. Calls of a gate may run at the same time. */
  #isOpen = false;
  #items: RoundCall[] = [];
  #hasText = false;
  /** The start of the cycle. Undefined if it was resumed. */
  #since: number | undefined;

  constructor(world: CheckedWorld, calls: Calls) {
    this.#world = world;
    this.#calls = calls;
  }

  learn(entry: LogEntry, queued: number): void {
    const { limits } = this.#world.policies ?? {};
    switch (entry.type) {
      case 'user-message':
        // A cycle begins with its message, not with run-started.
        if (entry.kind !== 'steer') this.#freshCycle();
        return;
      case 'run-started':
        this.#isOpen = false;
        // The time of copied entries is unknown.
        this.#since = this.#world.facts.forks.has(entry.conversationId) ? undefined : this.#world.elapsedMs;
        return;
      case 'run-resumed':
        this.#since = undefined;
        this.#isOpen = false;
        return;
      case 'agent-output':
        return this.#item(entry);
      case 'model-reply':
        this.#spoke(entry);
        return;
      case 'compaction':
      case 'extension':
        this.#tokens += tokensIn(entry);
        this.#costUsd += usdOf(entry);
        return;
      case 'tool-started':
        return this.#started(entry.callId);
      case 'tool-suspended':
        this.#streaksUnknown = true;
        this.#most('suspensionsPerCall', this.#name(entry.callId) === SPAWN_TOOL ? 0 : entry.suspension, entry.callId);
        return;
      case 'tool-result':
        return this.#ended(entry);
      case 'message-queued':
        this.#most('queue', queued, entry.messageId);
        return;
      case 'checkpoint':
        if (entry.boundary === 'ToolResultsCommitted') this.#isOpen = false;
        return;
      case 'run-suspended':
        this.#isOpen = false;
        return;
      case 'run-stop':
        this.#isOpen = false;
        // A crash may have cut the append of a reply.
        this.#items = [];
        this.#hasText = false;
        if (limits) this.#stopped(entry.cause, entry.runId);
    }
  }

  #name(callId: string): string | undefined {
    return this.#calls.get(callId)?.name;
  }

  #most(limit: 'suspensionsPerCall' | 'queue', count: number, subject: string): void {
    const most = this.#world.policies?.limits?.[limit];
    if (most === count) this.#world.reach('limits', limit);
    // After a refused append the log's queue may be longer than the conversation's.
    const fits = most === undefined || count <= most;
    this.#world.check(fits, 'I4', () => `${limit} is ${most}, and ${subject} makes it ${count}`);
  }

  #freshCycle(): void {
    this.#turns = 0;
    this.#empty = 0;
    this.#streaks = new Map();
    this.#streaksUnknown = false;
    this.#round = [];
    this.#isOpen = false;
  }

  #item({ item }: Extract<LogEntry, { type: 'agent-output' }>): void {
    if (item.type === 'assistant') this.#hasText ||= item.text.trim() !== '';
    if (item.type !== 'tool-call') return;
    this.#items.push({
      callId: item.callId,
      fingerprint: `${item.name} ${item.argsText ?? JSON.stringify(item.args)}`,
    });
  }

  /** A limit that was reached before this reply should have prevented the model call. */
  #spoke(entry: Extract<LogEntry, { type: 'model-reply' }>): void {
    const { runId } = entry;
    this.#countRound();
    this.#checkLimits(runId);
    this.#inTime(runId, 'speaks');
    this.#turns += 1;
    this.#empty = this.#hasText || this.#items.length > 0 ? 0 : this.#empty + 1;
    this.#tokens += tokensIn(entry);
    this.#costUsd += usdOf(entry);
    this.#allowed = { tokens: this.#tokens, usd: this.#costUsd };
    this.#round = this.#items;
    this.#isOpen = true;
    this.#items = [];
    this.#hasText = false;
  }

  /** Sub-agents use tokens during a model call, so only the earlier usage could prevent it. */
  #reached(): ReadonlyMap<string, boolean> {
    const { limits } = this.#world.policies ?? {};
    const { tokens, usd } = this.#world.profile.spawns ? this.#allowed : { tokens: this.#tokens, usd: this.#costUsd };
    const streak = Math.max(0, ...this.#streaks.values());
    const isReached = (most: number | false | undefined, count: number): boolean =>
      typeof most === 'number' && count >= most;
    return new Map([
      ['max_turns', isReached(limits?.turns, this.#turns)],
      ['max_total_tokens', isReached(limits?.tokens, tokens)],
      ['max_budget', isReached(limits?.costUsd, usd + 1e-12)],
      ['empty_replies', isReached(limits?.emptyReplies, this.#empty)],
      ['no_progress', !this.#streaksUnknown && isReached(limits?.identicalCalls, streak)],
    ]);
  }

  #checkLimits(runId: string | null): void {
    for (const [cause, isReached] of this.#reached()) {
      this.#world.check(!isReached, 'I4', () => `the model of ${runId} speaks where ${cause} was reached`);
    }
  }

  /** Checks that a run stopped by a limit has reached it. A change of the wall clock uses no time of a run. */
  #stopped(cause: string | undefined, runId: string | null): void {
    const world = this.#world;
    this.#countRound();
    const reached = new Map(this.#reached());
    const { limits } = world.policies ?? {};
    if (world.profile.spawns && typeof limits?.tokens === 'number')
      reached.set('max_total_tokens', this.#tokens >= limits.tokens);
    if (world.profile.spawns && typeof limits?.costUsd === 'number')
      reached.set('max_budget', this.#costUsd + 1e-12 >= limits.costUsd);
    if (cause === 'no_progress' && this.#streaksUnknown) return;
    world.check(
      reached.get(cause ?? '') !== false,
      'I4',
      () => `${runId} is stopped by ${cause}, which was not reached`,
    );
    if (cause !== 'timeout' || this.#since === undefined || typeof limits?.runMs !== 'number') return;
    const took = world.elapsedMs - this.#since;
    world.check(took >= limits.runMs, 'I4', () => `${runId} timed out after ${took} ms`);
  }

  /** Nothing begins after a run's deadline, but a slow store may delay the record of an earlier start. */
  #inTime(runId: string | null, what: string): void {
    const { policies, profile, elapsedMs } = this.#world;
    const most = policies?.limits?.runMs;
    if (typeof most !== 'number' || this.#since === undefined || !profile.appendsAtOnce || profile.store > 0) return;
    const took = elapsedMs - this.#since;
    this.#world.check(took <= most + TAIL_MS, 'I4', () => `${runId} ${what} after ${took} ms, and may have ${most}`);
  }

  #started(callId: string): void {
    const world = this.#world;
    const index = this.#round.findIndex((call) => call.callId === callId);
    const call = this.#round[index];
    const most = world.policies?.limits?.toolCallsPerTurn;
    if (most !== undefined)
      world.check(index < most, 'I4', () => `${callId} is call ${index + 1} of its reply and runs`);
    this.#inTime(callId, 'starts');
    // Suspended and kept calls run at a gate, which does not limit concurrency.
    if (!call || !this.#isOpen || (this.#calls.get(callId)?.suspension ?? 0) > 0) return;
    const again = call.startedInProcess !== undefined;
    call.startedInProcess = world.processId;
    if (!again) this.#checkWidth(callId, index);
  }

  /** Checks that at most the allowed number of calls run at once, and sequential ones in order. */
  #checkWidth(callId: string, index: number): void {
    const { toolExecution, maxParallelTools } = this.#world.policies ?? {};
    if (toolExecution === undefined || maxParallelTools === undefined) return;
    const apart = this.#round.some((call) => !READ_ONLY.has(this.#name(call.callId) ?? ''));
    const sequential = toolExecution === 'sequential' || (toolExecution === 'parallelIfReadOnly' && apart);
    const running = this.#round.filter((call) => this.#runs(call)).length;
    const most = sequential ? 1 : maxParallelTools;
    this.#world.reach('width', String(running));
    this.#world.check(running <= most, 'ORDER', () => `${running} calls run at once with ${callId}, ${most} may`);
    const waits = this.#round.slice(0, index).find((call) => this.#calls.get(call.callId)?.status === 'suspended');
    this.#world.check(!sequential || !waits, 'ORDER', () => `${callId} starts after ${waits?.callId}, which waits`);
    const later = this.#round.slice(index + 1).find(({ startedInProcess }) => startedInProcess !== undefined);
    this.#world.check(!sequential || !later, 'ORDER', () => `${callId} starts after ${later?.callId}, out of turn`);
  }

  #runs({ callId, startedInProcess }: RoundCall): boolean {
    const call = this.#calls.get(callId);
    return startedInProcess === this.#world.processId && call?.status === 'started' && call.suspension === 0;
  }

  #ended({ callId, code, outcome, content }: Extract<LogEntry, { type: 'tool-result' }>): void {
    const index = this.#round.findIndex((call) => call.callId === callId);
    const call = this.#round[index];
    // A suspended call counts once it has its result, and a cancelled one never. This check ignores the round that
    // counts it.
    const isCut = outcome === 'cancelled' || outcome === 'unknown';
    if (!call || !this.#isOpen || isCut) this.#streaksUnknown = true;
    if (call) call.result = JSON.stringify([outcome, code ?? null, content]);
    const most = this.#world.policies?.limits?.toolCallsPerTurn ?? Number.POSITIVE_INFINITY;
    const fits = code !== 'too_many_calls' || index < 0 || index >= most;
    this.#world.check(fits, 'I4', () => `${callId} is call ${index + 1} of its reply and was one too many`);
  }

  /** Counts for each call the consecutive rounds with the same call and result. */
  #countRound(): void {
    const round = this.#round;
    if (round.length === 0) return;
    this.#round = [];
    if (round.some(({ result }) => result === undefined)) this.#streaksUnknown = true;
    const prints = new Set(round.map(({ fingerprint, result }) => `${fingerprint} ${result}`));
    this.#streaks = new Map([...prints].map((print) => [print, (this.#streaks.get(print) ?? 0) + 1]));
  }
}
