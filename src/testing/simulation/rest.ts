/**
 * What holds of a conversation at rest. Rule: it is held against the durable log alone: every run has its end, every
 * call its outcome or its wait, every message its place, and the views are those of the log.
 */
import type { Json, Message } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { project } from '../../projector/index.ts';
import type { Host } from './host.ts';
import type { WatchedCall } from './watch/callWatch.ts';
import { callKey } from './watch/facts.ts';
import { pairingFaults } from './watch/pairing.ts';
import { sameJson } from './watch/sameJson.ts';
import { childIn } from './watch/spending.ts';
import type { SimulatedStore } from './world/store.ts';
import { CONVERSATION, type World } from './world/world.ts';

export class Rest {
  readonly #world: World;
  readonly #store: SimulatedStore;
  readonly #host: Host;

  constructor(world: World, store: SimulatedStore, host: Host) {
    this.#world = world;
    this.#store = store;
    this.#host = host;
  }

  holds(conversation: Conversation): void {
    const world = this.#world;
    const { status } = conversation;
    world.hold(status !== 'active' && status !== 'cancelling', 'I6', () => `nothing is left to do and it is ${status}`);
    const overheard = this.#host.signals.filter(({ isOverheard }) => isOverheard).length;
    world.hold(
      overheard === 0,
      'I27',
      () => `${overheard} signals of callers are listened to though their runs are over`,
    );
    for (const { signal, life, isOver } of world.facts.streams) {
      const left = life === world.life && !isOver && !signal.aborted;
      world.hold(!left, 'ABORT', () => 'a model goes on though nothing runs, and its signal is not aborted');
    }
    if (this.#store.misled.size > 0) return;
    const watch = this.#store.watchOf(CONVERSATION);
    const ended = watch.cycle !== 'running' || this.#store.lostEnds.has(watch.runId ?? '');
    world.hold(ended, 'I24', () => `${watch.runId} has no end, though no end of it was refused`);
    if (status === 'error') return;
    this.#holdsChildren();
    const rests = watch.cycle === 'suspended' ? 'waiting' : 'idle';
    world.hold(watch.cycle !== 'running', 'INV-3', () => `${watch.runId} has no end`);
    world.hold(status === rests, 'INV-3', () => `the log says ${watch.cycle} and the conversation ${status}`);
    const messages = conversation.messages();
    for (const [callId, call] of watch.calls.calls) {
      this.#holdsCall(callId, call, watch.cycle === 'suspended');
      this.#holdsResult(callId, call, messages);
    }
    this.#holdsQueue(conversation);
    this.#holdsPromoted(conversation);
    this.#holdsState(conversation);
    this.#holdsSpent();
    const open = messages.at(-1)?.role === 'assistant' ? [...messages, GO_ON] : messages;
    for (const fault of pairingFaults(open)) world.violate('INV-2', fault);
    this.#holdsLog(conversation);
  }

  /** No sub-agent goes on while its parent rests, nor waits when its call has its result. */
  #holdsChildren(): void {
    const world = this.#world;
    const { calls } = this.#store.watchOf(CONVERSATION).calls;
    for (const id of this.#store.logs.keys()) {
      const watch = this.#store.watchOf(id);
      if (watch.parentCall === undefined) continue;
      const parent = calls.get(watch.parentCall);
      // A crash or the store may take the last words of one whose end is on record already.
      const isLost = this.#store.lostEnds.has(watch.runId ?? '');
      const cut = watch.beganIn !== world.life || isLost;
      const runs = watch.cycle === 'running' && !cut;
      world.hold(!runs, 'I32', () => `the sub-agent ${watch.runId} runs while its parent rests`);
      // One whose wait was said to be lost, and is stored, has failed for its parent.
      const over = parent?.status !== 'ended' || watch.cycle !== 'suspended' || isLost;
      world.hold(over, 'I32', () => `the sub-agent ${watch.runId} waits though ${watch.parentCall} has its result`);
    }
  }

  /** Where no run is under way nothing is waited for. */
  holdsTimers({ status }: Conversation): void {
    const { timers } = this.#world;
    const rests = status === 'idle' || status === 'waiting' || status === 'error';
    if (!rests || this.#childLeaves() || !this.#host.others.rests) return;
    this.#world.hold(timers.length === 0, 'I27', () => `${timers.length} timers are left while ${status}`);
  }

  /** A sub-agent that was cut short says its last words when its parent rests already. */
  #childLeaves(): boolean {
    const { children } = this.#store.watchOf(CONVERSATION);
    return [...children].some(([id, phase]) => {
      const { cycle, beganIn } = this.#store.watchOf(id);
      return phase === 'started' && cycle !== 'suspended' && beganIn === this.#world.life;
    });
  }

  /** Behind the end of a run nothing waits that the policies let go on; behind a natural one no steer does. */
  #holdsPromoted(conversation: Conversation): void {
    const world = this.#world;
    const { stop, stoppedIn, messages, replies } = this.#store.watchOf(CONVERSATION);
    if (!stop || stop.cause === 'crash' || stoppedIn !== world.life) return;
    if (conversation.status === 'waiting') return;
    const promotes = world.policies?.promoteFollowUpOn?.includes(stop.reason) === true;
    // What came behind the last words of the run came too late for it.
    const natural = stop.cause === 'end_turn' ? (replies.at(-1)?.seq ?? 0) : 0;
    for (const { messageId, kind } of conversation.queue) {
      const stays = kind === 'steer' ? (messages.queuedAt.get(messageId) ?? 0) > natural : !promotes;
      // What a store refused is in the log's queue again, and is promoted behind the next act.
      world.hold(
        stays || world.facts.hasLostMessage(messageId),
        'I29',
        () => `the ${kind} ${messageId} was left behind a run that ${stop.cause} ended`,
      );
    }
  }

  /** What calls wrote to the state is in it, and each of their words once. */
  #holdsState(conversation: Conversation): void {
    const world = this.#world;
    const state: Record<string, Json> = {};
    for (const entry of this.#store.logOf(CONVERSATION)) {
      if (entry.type === 'state-changed') Object.assign(state, entry.writes);
    }
    const same = sorted(state) === sorted(conversation.state);
    world.hold(same, 'STATE', () => `the state is ${sorted(conversation.state)}, the log says ${sorted(state)}`);
    for (const [callId, { writes, ends }] of this.#store.watchOf(CONVERSATION).calls.calls) {
      world.hold(writes <= Math.max(1, ends), 'STATE', () => `${callId} writes to the state ${writes} times`);
      const wrote = world.facts.writes.get(callKey(CONVERSATION, callId)) ?? 0;
      world.hold(writes <= wrote, 'STATE', () => `${callId} writes ${writes} times, and its tool did ${wrote} times`);
    }
  }

  /** What sub-agents used is told to their parent, whole, and nothing twice. */
  #holdsSpent(): void {
    const world = this.#world;
    for (const [id, { upTo, tokens }] of this.#store.watchOf(CONVERSATION).told) {
      const { replies } = this.#store.watchOf(id);
      const used = replies.filter(({ seq }) => seq < upTo).reduce((sum, reply) => sum + reply.tokens, 0);
      world.hold(used === tokens, 'USAGE', () => `${id} used ${used} tokens up to ${upTo}, told are ${tokens}`);
    }
    for (const id of this.#store.watchOf(CONVERSATION).children.keys()) {
      const { replies, beganIn } = this.#store.watchOf(id);
      const told = this.#store.watchOf(CONVERSATION).told.get(id)?.upTo ?? 0;
      const left = replies.filter(({ seq }) => seq >= told);
      const excused = beganIn !== world.life || world.facts.hasLost((entry) => childIn(entry)?.conversationId === id);
      world.hold(excused || left.length === 0, 'USAGE', () => `${left.length} replies of ${id} are told to nobody`);
    }
  }

  /** What can be read of a conversation at rest. */
  readingOf(conversation: Conversation): string {
    const { status, pending, unsettled, queue, state } = conversation;
    const messages = conversation.messages();
    return JSON.stringify({ messages, status, pending, unsettled, queue, state: sorted(state) });
  }

  /** A fresh process reads what the one before it knew: memory and log say one thing. */
  holdsReread(conversation: Conversation, before: string, entries: number): void {
    // Where it went on by itself, or closed what was open, there is more to read.
    if (this.#store.misled.size > 0 || conversation.log().length !== entries) return;
    const now = this.readingOf(conversation);
    this.#world.hold(now === before, 'RELOAD', () => `before a restart it reads ${differing(before, now)}`);
  }

  #holdsCall(callId: string, call: WatchedCall, waiting: boolean): void {
    const world = this.#world;
    // Suspended calls outlive a crash; started ones may, where their tool is idempotent.
    world.hold(call.status !== 'called' || waiting, 'INV-1', () => `${callId} is ${call.status} at rest`);
    const left = waiting && call.status === 'suspended' && call.decided.has(call.suspension);
    const here = call.decidedIn === world.life;
    world.hold(!left || !here, 'I19', () => `${callId} was decided during a run, and goes on waiting`);
  }

  /** The model is shown each result as the log has it, in its place or told behind what was said since. */
  #holdsResult(callId: string, { result, settled, madeAt }: WatchedCall, messages: readonly Message[]): void {
    if (result === undefined || settled) return;
    // What is summed up is in the words of a model.
    if (madeAt < this.#store.watchOf(CONVERSATION).summedUpTo) return;
    const shown = messages.some((message) => {
      if (message.role === 'tool') return message.callId === callId && sameJson(message.content, result);
      return message.role === 'user' && textOf(message.content).includes(JSON.stringify(callId));
    });
    this.#world.hold(shown, 'INV-2', () => `the model is not shown the result of ${callId}`);
  }

  #holdsQueue(conversation: Conversation): void {
    const { queued } = this.#store.watchOf(CONVERSATION).messages;
    const listed = conversation.queue.map(({ messageId }) => messageId);
    this.#world.hold(listed.join() === queued.join(), 'I29', () => `queued are ${queued}, listed ${listed}`);
    for (const messageId of this.#host.owed) {
      this.#world.hold(queued.includes(messageId), 'I29', () => `the receipt of ${messageId} was never settled`);
    }
  }

  #holdsLog(conversation: Conversation): void {
    const log = this.#store.logOf(CONVERSATION);
    const told = conversation.log();
    const same = told.length === log.length && told.every((entry, index) => sameJson(entry, log[index]));
    this.#world.hold(same, 'I22', () => 'the log that is shown is not the durable one');
  }

  /** The live view is that of the log, and what a shorter log closed stays closed as it was. */
  holdsViews(conversation: Conversation): void {
    const log = this.#store.logOf(CONVERSATION);
    const view = project(log);
    const same = sameJson(view, conversation.view());
    this.#world.hold(same || this.#store.misled.size > 0, 'INV-9', () => 'the live view is not that of the log');
    const { cycles } = view;
    const early = project(log.slice(0, Math.floor(log.length / 2))).cycles;
    for (const [index, cycle] of early.entries()) {
      const closed = index < early.length - 1;
      const later = cycles[index];
      const kept = !closed || (later?.stop?.reason === cycle.stop?.reason && later?.id === cycle.id);
      this.#world.hold(kept, 'I34', () => `the closed cycle ${cycle.id} changed`);
    }
  }
}

const GO_ON = { role: 'user' as const, content: [{ type: 'text' as const, text: '' }] };

const textOf = (content: Message['content']): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('');
const sorted = (state: { readonly [key: string]: Json }): string =>
  JSON.stringify(Object.entries(state).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Where two readings part. */
function differing(before: string, now: string): string {
  let at = 0;
  while (at < before.length && before[at] === now[at]) at += 1;
  const from = Math.max(0, at - 60);
  return `${before.slice(from, at + 80)}, and behind it ${now.slice(from, at + 80)}`;
}
