/**
 * Checks a conversation in which no work remains. Invariant: it is compared with the durable log alone. Every run has
 * an end, every call an outcome or a wait, every message a place.
 */
import {
  type Counters,
  countersOf,
  type Json,
  type LogEntry,
  type Message,
  usageOf,
} from '../../../machines/internal.ts';
import { type Conversation, runtimeOf } from '../../../src/conversation/conversation.ts';
import { project } from '../../../src/projector/index.ts';
import { pairingFaults } from '../../../src/testing/pairingFaults.ts';
import type { Host } from '../../../src/testing/simulation/host.ts';
import type { SimulatedStore } from '../../../src/testing/simulation/world/simulatedStore.ts';
import { CONVERSATION } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import type { CallerChecks } from './callerChecks.ts';
import { isPending, type WatchedCall } from './callWatch.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { callKey } from './lifeFacts.ts';
import { sameJson } from './sameJson.ts';
import { subAgentIn } from './spending.ts';

export class RestChecks {
  readonly #world: CheckedWorld;
  readonly #store: SimulatedStore;
  readonly #host: Host;
  readonly #callers: CallerChecks;

  constructor(world: CheckedWorld, store: SimulatedStore, host: Host, callers: CallerChecks) {
    this.#world = world;
    this.#store = store;
    this.#host = host;
    this.#callers = callers;
  }

  check(conversation: Conversation): void {
    const world = this.#world;
    const { status } = conversation;
    const stillHeard = this.#host.signals.filter((caller) => this.#callers.isStillHeard(caller)).length;
    world.check(
      stillHeard === 0,
      'I27',
      () => `${stillHeard} signals of callers are listened to though their runs are over`,
    );
    for (const { signal, processId, isOver } of world.streams) {
      const isAbandoned = processId === world.processId && !isOver && !signal.aborted;
      world.check(!isAbandoned, 'ABORT', () => 'a model continues though nothing runs, and its signal is not aborted');
    }
    if (this.#store.falselyRefused.size > 0) return;
    const watch = this.#world.watchOf(CONVERSATION);
    const ended = watch.cycle !== 'running' || this.#world.lostStops.has(watch.runId ?? '');
    world.check(ended, 'I24', () => `${watch.runId} has no end, though no end of it was refused`);
    this.#checkSpent(conversation);
    if (status === 'error') return;
    this.#checkSubAgents();
    if (world.facts.hasSubAgents && !this.#isSubAgentClosed) this.#checkPendingWithin(conversation);
    const due = watch.cycle === 'suspended' ? 'waiting' : 'idle';
    world.check(watch.cycle !== 'running', 'INV-3', () => `${watch.runId} has no end`);
    world.check(status === due, 'INV-3', () => `the log has ${watch.cycle} and the conversation ${status}`);
    const messages = conversation.messages();
    for (const [callId, call] of watch.calls.calls) {
      this.#checkCall(callId, call, watch.cycle === 'suspended');
      this.#checkResult(callId, call, messages);
    }
    this.#checkQueue(conversation);
    this.#checkPromoted(conversation);
    this.#checkState(conversation);
    this.#checkSubAgentUsage();
    const open = messages.at(-1)?.role === 'assistant' ? [...messages, GO_ON] : messages;
    for (const fault of pairingFaults(open)) world.violate('INV-2', fault);
    this.#checkLog(conversation);
  }

  /** Checks that no sub-agent runs while its parent is at rest, or waits after its call has a result. */
  #checkSubAgents(): void {
    const world = this.#world;
    const { calls } = this.#world.watchOf(CONVERSATION).calls;
    for (const id of this.#store.logs.keys()) {
      const watch = this.#world.watchOf(id);
      if (!watch.parent) continue;
      const { conversationId, callId } = watch.parent;
      // A crash or the store may lose a sub-agent's stop after the parent's log recorded its end.
      const isLost = this.#world.lostStops.has(watch.runId ?? '');
      const cut = watch.beganInProcess !== world.processId || isLost;
      const runs = watch.cycle === 'running' && !cut;
      world.check(!runs, 'I32', () => `the sub-agent ${watch.runId} runs while its parent rests`);
      // If the store falsely refused its suspension, the sub-agent has failed for its parent.
      const hasResult = conversationId === CONVERSATION && calls.get(callId)?.status === 'ended';
      const isOver = !hasResult || watch.cycle !== 'suspended' || isLost;
      world.check(isOver, 'I32', () => `the sub-agent ${watch.runId} waits though ${callId} has its result`);
    }
  }

  /** A sub-agent that could not record its interruption by a crash is closed until the next process. */
  get #isSubAgentClosed(): boolean {
    return this.#world.facts.hasLost(
      (entry) => entry.type === 'run-stop' && entry.cause === 'crash' && entry.conversationId !== CONVERSATION,
    );
  }

  /** Checks that every call that a sub-agent waits for is listed at rest, and no other. */
  #checkPendingWithin({ pending }: Conversation): void {
    const {
      calls: { calls },
      children,
    } = this.#world.watchOf(CONVERSATION);
    const waiting = [...this.#store.logs.keys()].flatMap((id) => {
      const { parent, calls: own } = this.#world.watchOf(id);
      const call = parent?.conversationId === CONVERSATION ? calls.get(parent.callId) : undefined;
      if (!call || call.status === 'ended' || children.get(id) === 'ended') return [];
      return [...own.calls].flatMap(([callId, each]) => (isPending(each) ? [callId] : []));
    });
    const listed = pending.flatMap(({ callId, path }) => (path.length > 1 ? [callId] : []));
    const same = waiting.sort().join() === listed.sort().join();
    this.#world.check(same, 'READ', () => `pending in sub-agents are ${waiting}, listed ${listed}`);
  }

  /** Checks that no timer remains without an active run. */
  checkTimers({ status }: Conversation): void {
    const { waiting } = this.#world.clock;
    const isAtRest = status === 'idle' || status === 'waiting' || status === 'error';
    if (!isAtRest || this.#subAgentIsEnding() || !this.#host.others.isAtRest) return;
    if (this.#world.elapsedMs <= this.#world.facts.closesUntilMs) return;
    this.#world.check(waiting === 0, 'I27', () => `${waiting} timers are left while ${status}`);
  }

  /** Checks that a tool's signal is aborted when its time is up, at any moment. */
  checkToolTime(): void {
    const { facts, processId, elapsedMs, policies } = this.#world;
    const most = policies?.limits?.toolMs;
    if (most === undefined) return;
    for (const execution of facts.executions) {
      const { callId, since } = execution;
      if (execution.processId !== processId || execution.signal.aborted) facts.executions.delete(execution);
      else if (elapsedMs - since > most)
        this.#world.violate('I4', `${callId} runs for ${elapsedMs - since} ms, and may for ${most}`);
    }
  }

  /** A cancelled sub-agent may still write its stop when its parent is at rest, in any conversation. */
  #subAgentIsEnding(): boolean {
    const children = [...this.#store.logs.keys()].flatMap((id) => [...this.#world.watchOf(id).children]);
    return children.some(([id, phase]) => {
      const { cycle, beganInProcess } = this.#world.watchOf(id);
      return phase === 'started' && cycle !== 'suspended' && beganInProcess === this.#world.processId;
    });
  }

  /** Checks that no promotable followUp waits after a stop, and that no steer waits after a natural end. */
  #checkPromoted(conversation: Conversation): void {
    const world = this.#world;
    const { stop, stoppedInProcess, messages, replies } = this.#world.watchOf(CONVERSATION);
    if (!stop || stop.cause === 'crash' || stoppedInProcess !== world.processId) return;
    if (conversation.status === 'waiting') return;
    const promotes = world.policies?.promoteFollowUpOn?.includes(stop.reason) === true;
    // A steer after the last reply came too late for the run.
    const natural = stop.cause === 'end_turn' ? (replies.at(-1)?.seq ?? 0) : 0;
    // Only the log contains the call of a refused entry, so the promotion waits for the next command.
    const isBehindLoss = world.facts.hasLost((entry) => 'callId' in entry && entry.runId === stop.runId);
    for (const { messageId, kind } of conversation.queue) {
      const queuedAt = messages.queuedAt.get(messageId) ?? 0;
      const stays = kind === 'steer' ? queuedAt > natural : !promotes || isBehindLoss;
      // If the store refuses the return of messages, a closed conversation keeps them.
      const isOfClosed = world.facts.hasLost(
        (entry) => entry.type === 'message-returned' && entry.why === 'closed' && entry.seq > queuedAt,
      );
      // A message whose delivery the store refused is queued again, and promoted after the next command.
      world.check(
        stays || isOfClosed || world.facts.hasLostMessage(messageId),
        'I29',
        () => `the ${kind} ${messageId} was left after a run that ${stop.cause} ended`,
      );
    }
  }

  /** Checks that the state contains each write of a call once. */
  #checkState(conversation: Conversation): void {
    const world = this.#world;
    const state: Record<string, Json> = {};
    for (const entry of this.#store.logOf(CONVERSATION)) {
      if (entry.type === 'state-changed') Object.assign(state, entry.writes);
    }
    const same = sorted(state) === sorted(conversation.state);
    world.check(same, 'STATE', () => `the state is ${sorted(conversation.state)}, the log has ${sorted(state)}`);
    for (const [callId, { writes, ends }] of this.#world.watchOf(CONVERSATION).calls.calls) {
      world.check(writes <= Math.max(1, ends), 'STATE', () => `${callId} writes to the state ${writes} times`);
      const wrote = world.facts.writes.get(callKey(CONVERSATION, callId)) ?? 0;
      world.check(writes <= wrote, 'STATE', () => `${callId} writes ${writes} times, and its tool did ${wrote} times`);
    }
  }

  /** Checks that a parent's log contains the usage of its sub-agents, complete and once. */
  #checkSubAgentUsage(): void {
    const world = this.#world;
    for (const [id, { upTo, tokens }] of this.#world.watchOf(CONVERSATION).subAgentUsage) {
      const { replies } = this.#world.watchOf(id);
      const used = replies.filter(({ seq }) => seq < upTo).reduce((sum, reply) => sum + reply.tokens, 0);
      world.check(used === tokens, 'USAGE', () => `${id} used ${used} tokens up to ${upTo}, reported are ${tokens}`);
    }
    for (const id of this.#world.watchOf(CONVERSATION).children.keys()) {
      const { replies, beganInProcess } = this.#world.watchOf(id);
      const upTo = this.#world.watchOf(CONVERSATION).subAgentUsage.get(id)?.upTo ?? 0;
      const uncounted = replies.filter(({ seq }) => seq >= upTo);
      // The store refused its end or its usage, so its parent reads it at the next opening.
      const isOfEnd = (entry: LogEntry): boolean =>
        entry.type === 'sub-agent'
          ? entry.child === id && entry.phase === 'ended'
          : subAgentIn(entry)?.conversationId === id;
      const excused = beganInProcess !== world.processId || world.facts.hasLost(isOfEnd);
      world.check(
        excused || uncounted.length === 0,
        'USAGE',
        () => `${uncounted.length} replies of ${id} are counted nowhere`,
      );
    }
  }

  /**
   * Returns the reading that the next process must repeat. Undefined after a false refusal, because memory then lacks
   * durable entries.
   */
  readingBeforeCrash(conversation: Conversation): string | undefined {
    const isBehind = conversation.status === 'error' || this.#isSubAgentClosed || this.#store.falselyRefused.size > 0;
    return isBehind ? undefined : this.#readingOf(conversation);
  }

  /** Returns everything that can be read of a conversation, as one text. */
  #readingOf(conversation: Conversation): string {
    const { status, pending, unsettled, queue, state } = conversation;
    const messages = conversation.messages();
    const counters = this.#countersOf(conversation);
    return JSON.stringify({ counters, messages, status, pending, unsettled, queue, state: sorted(state) });
  }

  /** Checks that the chart's usage equals the log's, also after entries that the store refused. */
  #checkSpent(conversation: Conversation): void {
    const { chart, logState } = runtimeOf(conversation);
    const counted: Counters = chart.root?.getSnapshot().context.counters;
    const due = countersOf(logState);
    const isClose = Math.abs(counted.costUsd - due.costUsd) < 1e-9 && counted.unpriced === due.unpriced;
    const detail = (): string =>
      `counted are ${counted.tokens} tokens and ${counted.costUsd} USD, the log has ${due.tokens} and ${due.costUsd}`;
    // Usage that is not in the log yet stays counted until the next run, even if the store refuses it.
    const isLost = this.#world.facts.hasLost((entry) => usageOf(entry) !== undefined);
    const isMore = isLost && counted.tokens > due.tokens;
    this.#world.check(isMore || (counted.tokens === due.tokens && isClose), 'USAGE', detail);
  }

  /** Returns the counters for the limits, from the log and from the chart. */
  #countersOf(conversation: Conversation): unknown {
    const { chart, logState } = runtimeOf(conversation);
    const ofLog = countersOf(logState);
    const ofChart: Counters = chart.root?.getSnapshot().context.counters;
    // Neither streaks nor the results of a round have an order.
    const streaks = ofLog.streaks.map(({ fingerprint, count }) => `${count} ${fingerprint}`).sort();
    const rounds = ofLog.rounds.map(({ open, fingerprints }) => [...open, ...[...fingerprints].sort()]);
    return { chart: sumsOf(ofChart), log: sumsOf(ofLog), streaks, rounds, cycleMs: logState.cycleMs };
  }

  /** Checks that a new process reads the same as the previous one. */
  checkReload(conversation: Conversation, before: string, entries: number): void {
    // If the opening wrote entries, there is more to read.
    if (this.#store.falselyRefused.size > 0 || conversation.log().length !== entries) return;
    const now = this.#readingOf(conversation);
    this.#world.check(now === before, 'RELOAD', () => `before a restart it reads ${differing(before, now)}`);
  }

  #checkCall(callId: string, call: WatchedCall, waiting: boolean): void {
    const world = this.#world;
    // Suspended calls outlive a crash, and so do started calls of idempotent tools.
    world.check(call.status !== 'called' || waiting, 'INV-1', () => `${callId} is ${call.status} at rest`);
    const isUnused = waiting && call.status === 'suspended' && call.decided.has(call.suspension);
    const here = call.decidedInProcess === world.processId;
    // The store refused the stop of a cancel. The cancelled work must not continue by itself.
    const { runId } = this.#world.watchOf(CONVERSATION);
    const wasCancelled = world.facts.hasLost((entry) => entry.type === 'run-stop' && entry.runId === runId);
    world.check(
      !isUnused || !here || wasCancelled,
      'I19',
      () => `${callId} was decided during a run, and goes on waiting`,
    );
  }

  /** Checks that the model's messages contain each result of the log, in its place or quoted later. */
  #checkResult(callId: string, { result, settled, madeAt }: WatchedCall, messages: readonly Message[]): void {
    if (result === undefined || settled) return;
    // A summary contains the summarized results as text.
    if (madeAt < this.#world.watchOf(CONVERSATION).summedUpTo) return;
    const shown = messages.some((message) => {
      if (message.role === 'tool') return message.callId === callId && sameJson(message.content, result);
      return message.role === 'user' && textOf(message.content).includes(JSON.stringify(callId));
    });
    this.#world.check(shown, 'INV-2', () => `the model is not shown the result of ${callId}`);
  }

  #checkQueue(conversation: Conversation): void {
    const { queued } = this.#world.watchOf(CONVERSATION).messages;
    const listed = conversation.queue.map(({ messageId }) => messageId);
    this.#world.check(listed.join() === queued.join(), 'I29', () => `queued are ${queued}, listed ${listed}`);
    for (const messageId of this.#callers.openReceipts) {
      this.#world.check(queued.includes(messageId), 'I29', () => `the receipt of ${messageId} was never settled`);
    }
  }

  #checkLog(conversation: Conversation): void {
    const log = this.#store.logOf(CONVERSATION);
    const shown = conversation.log();
    const same = shown.length === log.length && shown.every((entry, index) => sameJson(entry, log[index]));
    this.#world.check(same, 'I22', () => 'the log that is shown is not the durable one');
  }

  /** Checks that the live view equals that of the log. A closed cycle of a shorter log must not change. */
  checkViews(conversation: Conversation): void {
    const log = this.#store.logOf(CONVERSATION);
    const view = project(log);
    const same = sameJson(view, conversation.view());
    this.#world.check(
      same || this.#store.falselyRefused.size > 0,
      'INV-9',
      () => 'the live view is not that of the log',
    );
    const { cycles } = view;
    const early = project(log.slice(0, Math.floor(log.length / 2))).cycles;
    for (const [index, cycle] of early.entries()) {
      const closed = index < early.length - 1;
      const later = cycles[index];
      const kept = !closed || (later?.stop?.reason === cycle.stop?.reason && later?.id === cycle.id);
      this.#world.check(kept, 'I34', () => `the closed cycle ${cycle.id} changed`);
    }
  }
}

const GO_ON = { role: 'user' as const, content: [{ type: 'text' as const, text: '' }] };

const textOf = (content: Message['content']): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('');
const sorted = (state: { readonly [key: string]: Json }): string =>
  JSON.stringify(Object.entries(state).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Sums of fractions depend on the order of their parts. */
const sumsOf = ({ turns, emptyReplies, tokens, costUsd, unpriced }: Counters): unknown => ({
  ...{ turns, emptyReplies, tokens, unpriced },
  costUsd: Math.abs(costUsd).toFixed(9),
});

/** Returns the position at which two texts begin to differ. */
function differing(before: string, now: string): string {
  let at = 0;
  while (at < before.length && before[at] === now[at]) at += 1;
  const from = Math.max(0, at - 60);
  return `${before.slice(from, at + 80)}, and after it ${now.slice(from, at + 80)}`;
}
