/**
 * What holds of a log by the policies its agent was made with: limits, and which calls of a reply may run together.
 * Rule: it counts entries by itself; a limit that was reached lets no model speak any more, and what was stopped by a
 * limit had reached it.
 */
import type { LogEntry } from '../../../../machines/internal.ts';
import type { World } from '../world/world.ts';
import { spentTokens, usdOf } from './spending.ts';

type Calls = ReadonlyMap<string, { name: string; args: unknown; status: string; suspension: number }>;
/** Of the last reply, in its order. */
interface RoundCall {
  callId: string;
  print: string;
  result?: string;
  startedIn?: number;
}
/** A run may still be writing its last words when its time is up, and a cancel has its own time. */
const TAIL_MS = 200;
const READ_ONLY: ReadonlySet<string> = new Set(['look']);
/** Calls that wait because calls within them do are not counted. */
export const SPAWN_TOOL = 'spawn_agents';

export class PolicyWatch {
  readonly #world: World;
  readonly #calls: Calls;
  /** Replies, empty ones and repeated calls in a row, of the cycle under way. */
  #turns = 0;
  #empty = 0;
  #streaks = new Map<string, number>();
  /** Some call of the cycle got its result late: what was repeated in a row is not known from here. */
  #isVague = false;
  #tokens = 0;
  #usd = 0;
  /** The same when the last reply was counted. */
  #allowed = { tokens: 0, usd: 0 };
  #round: RoundCall[] = [];
  /** The calls of the round under way; a gate runs beside it. */
  #isOpen = false;
  #items: RoundCall[] = [];
  #said = false;
  /** When the cycle began; nothing where it was gone on with. */
  #since: number | undefined;

  constructor(world: World, calls: Calls) {
    this.#world = world;
    this.#calls = calls;
  }

  learn(entry: LogEntry, queued: number): void {
    const { limits } = this.#world.policies ?? {};
    switch (entry.type) {
      case 'user-message':
        // A run has opened no cycle before its message is there.
        if (entry.kind !== 'steer') this.#freshCycle();
        return;
      case 'run-started':
        this.#isOpen = false;
        // What a fork copies took its time elsewhere.
        this.#since = this.#world.facts.forks.has(entry.conversationId) ? undefined : this.#world.steady;
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
        this.#tokens += spentTokens(entry);
        this.#usd += usdOf(entry);
        return;
      case 'tool-started':
        return this.#started(entry.callId);
      case 'tool-suspended':
        this.#isVague = true;
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
        // Of a reply that was cut in the middle of its append.
        this.#items = [];
        this.#said = false;
        if (limits) this.#stopped(entry.cause, entry.runId);
    }
  }

  #name(callId: string): string | undefined {
    return this.#calls.get(callId)?.name;
  }

  #most(limit: 'suspensionsPerCall' | 'queue', count: number, of: string): void {
    const most = this.#world.policies?.limits?.[limit];
    if (most === count) this.#world.reach('limits', limit);
    // What a refused append took may be in the log's queue again, and not in the living one's.
    const fits = most === undefined || count <= most;
    this.#world.hold(fits, 'I4', () => `${limit} is ${most}, and ${of} makes it ${count}`);
  }

  #freshCycle(): void {
    this.#turns = 0;
    this.#empty = 0;
    this.#streaks = new Map();
    this.#isVague = false;
    this.#round = [];
    this.#isOpen = false;
  }

  #item({ item }: Extract<LogEntry, { type: 'agent-output' }>): void {
    if (item.type === 'assistant') this.#said ||= item.text.trim() !== '';
    if (item.type !== 'tool-call') return;
    this.#items.push({ callId: item.callId, print: `${item.name} ${item.argsText ?? JSON.stringify(item.args)}` });
  }

  /** What was reached before a reply should have kept the model from being asked for it. */
  #spoke(entry: Extract<LogEntry, { type: 'model-reply' }>): void {
    const { runId } = entry;
    this.#countRound();
    this.#holdLimits(runId);
    this.#inTime(runId, 'speaks');
    this.#turns += 1;
    this.#empty = this.#said || this.#items.length > 0 ? 0 : this.#empty + 1;
    this.#tokens += spentTokens(entry);
    this.#usd += usdOf(entry);
    this.#allowed = { tokens: this.#tokens, usd: this.#usd };
    this.#round = this.#items;
    this.#isOpen = true;
    this.#items = [];
    this.#said = false;
  }

  /** Sub-agents that work beside a model call use up what is left: what it was allowed by is what was known before. */
  #reached(): ReadonlyMap<string, boolean> {
    const { limits } = this.#world.policies ?? {};
    const { tokens, usd } = this.#world.profile.spawns ? this.#allowed : { tokens: this.#tokens, usd: this.#usd };
    const streak = Math.max(0, ...this.#streaks.values());
    const over = (most: number | false | undefined, count: number): boolean =>
      typeof most === 'number' && count >= most;
    return new Map([
      ['max_turns', over(limits?.turns, this.#turns)],
      ['max_total_tokens', over(limits?.tokens, tokens)],
      ['max_budget', over(limits?.costUsd, usd + 1e-12)],
      ['empty_replies', over(limits?.emptyReplies, this.#empty)],
      ['no_progress', !this.#isVague && over(limits?.identicalCalls, streak)],
    ]);
  }

  #holdLimits(runId: string | null): void {
    for (const [cause, isReached] of this.#reached()) {
      this.#world.hold(!isReached, 'I4', () => `the model of ${runId} speaks where ${cause} was reached`);
    }
  }

  /** Who is stopped by a limit has reached it; a clock that is set does not use up the time of a run. */
  #stopped(cause: string | undefined, runId: string | null): void {
    const world = this.#world;
    this.#countRound();
    const reached = new Map(this.#reached());
    const { limits } = world.policies ?? {};
    if (world.profile.spawns && typeof limits?.tokens === 'number')
      reached.set('max_total_tokens', this.#tokens >= limits.tokens);
    if (world.profile.spawns && typeof limits?.costUsd === 'number')
      reached.set('max_budget', this.#usd + 1e-12 >= limits.costUsd);
    if (cause === 'no_progress' && this.#isVague) return;
    world.hold(
      reached.get(cause ?? '') !== false,
      'I4',
      () => `${runId} is stopped by ${cause}, which was not reached`,
    );
    if (cause !== 'timeout' || this.#since === undefined || typeof limits?.runMs !== 'number') return;
    const took = world.steady - this.#since;
    world.hold(took >= limits.runMs, 'I4', () => `${runId} timed out after ${took} ms`);
  }

  /** Nothing begins when the time of the run is up. A slow store may hold back what began before. */
  #inTime(runId: string | null, what: string): void {
    const { policies, profile, steady } = this.#world;
    const most = policies?.limits?.runMs;
    if (typeof most !== 'number' || this.#since === undefined || !profile.appendsAtOnce || profile.store > 0) return;
    const took = steady - this.#since;
    this.#world.hold(took <= most + TAIL_MS, 'I4', () => `${runId} ${what} after ${took} ms, and may have ${most}`);
  }

  #started(callId: string): void {
    const world = this.#world;
    const index = this.#round.findIndex((call) => call.callId === callId);
    const call = this.#round[index];
    const most = world.policies?.limits?.toolCallsPerTurn;
    if (most !== undefined)
      world.hold(index < most, 'I4', () => `${callId} is call ${index + 1} of its reply and runs`);
    this.#inTime(callId, 'starts');
    // One that was suspended, or left for later, is gone on with at a gate.
    if (!call || !this.#isOpen || (this.#calls.get(callId)?.suspension ?? 0) > 0) return;
    const again = call.startedIn !== undefined;
    call.startedIn = world.life;
    if (!again) this.#holdsWidth(callId, index);
  }

  /** As many run at once as may, and one behind the other in their order. */
  #holdsWidth(callId: string, index: number): void {
    const { toolExecution, maxParallelTools } = this.#world.policies ?? {};
    if (toolExecution === undefined || maxParallelTools === undefined) return;
    const apart = this.#round.some((call) => !READ_ONLY.has(this.#name(call.callId) ?? ''));
    const sequential = toolExecution === 'sequential' || (toolExecution === 'parallelIfReadOnly' && apart);
    const running = this.#round.filter((call) => this.#runs(call)).length;
    const most = sequential ? 1 : maxParallelTools;
    this.#world.reach('width', String(running));
    this.#world.hold(running <= most, 'ORDER', () => `${running} calls run at once with ${callId}, ${most} may`);
    const later = this.#round.slice(index + 1).find(({ startedIn }) => startedIn !== undefined);
    this.#world.hold(!sequential || !later, 'ORDER', () => `${callId} starts behind ${later?.callId}, out of turn`);
  }

  #runs({ callId, startedIn }: RoundCall): boolean {
    const call = this.#calls.get(callId);
    return startedIn === this.#world.life && call?.status === 'started' && call.suspension === 0;
  }

  #ended({ callId, code, outcome, content }: Extract<LogEntry, { type: 'tool-result' }>): void {
    const index = this.#round.findIndex((call) => call.callId === callId);
    const call = this.#round[index];
    // What had to wait is compared when it has its result; which round it counts for is not seen here.
    // Nor is it of one that was cut off, whatever its result says.
    const isCut = outcome === 'cancelled' || outcome === 'unknown';
    if (!call || !this.#isOpen || isCut) this.#isVague = true;
    if (call) call.result = JSON.stringify([outcome, code ?? null, content]);
    const most = this.#world.policies?.limits?.toolCallsPerTurn ?? Number.POSITIVE_INFINITY;
    const fits = code !== 'too_many_calls' || index < 0 || index >= most;
    this.#world.hold(fits, 'I4', () => `${callId} is call ${index + 1} of its reply and was one too many`);
  }

  /** For how many rounds in a row each call was made with the same result. */
  #countRound(): void {
    const round = this.#round;
    if (round.length === 0) return;
    this.#round = [];
    if (round.some(({ result }) => result === undefined)) this.#isVague = true;
    const prints = new Set(round.map(({ print, result }) => `${print} ${result}`));
    this.#streaks = new Map([...prints].map((print) => [print, (this.#streaks.get(print) ?? 0) + 1]));
  }
}
