/**
 * Who looks on while a conversation lives, as an interface does: at its messages, view, queue and calls at any entry,
 * and at its live signals. Rule: reading changes nothing, and what is seen is what the log says at that moment; text
 * that was streamed is the text that is committed.
 */
import { type LogEntry, modelMessages } from '../../../../machines/internal.ts';
import type { Conversation } from '../../../conversation/conversation.ts';
import type { Live } from '../../../live.ts';
import { project } from '../../../projector/index.ts';
import type { SimulatedStore } from '../world/store.ts';
import { CONVERSATION, type World } from '../world/world.ts';
import { sameJson } from './sameJson.ts';

/** The view costs more than all the rest: it is held at every so many looks. */
const LOOKS_A_VIEW = 16;

/** What the attempt under way has streamed, as a listener puts it together. */
interface Streamed {
  text: string;
  reasoning: string;
}
const nothing = (): Streamed => ({ text: '', reasoning: '' });

export class Observer {
  readonly #world: World;
  readonly #store: SimulatedStore;
  readonly #conversation: Conversation;
  readonly #life: number;
  readonly #subscriptions: { unsubscribe(): void }[] = [];
  #looks = 0;
  #streamed = nothing();
  /** Items of the reply that is being committed. */
  #committed = nothing();
  #isCatchingUp = false;
  /** What streamed was dropped with the end of its run. */
  #isCut = false;

  constructor(world: World, store: SimulatedStore, conversation: Conversation) {
    this.#world = world;
    this.#store = store;
    this.#conversation = conversation;
    this.#life = world.life;
    this.#follow();
  }

  /** The conversation is being closed: what streamed is dropped, and what is under way may land all the same. */
  leave(): void {
    for (const subscription of this.#subscriptions.splice(0)) subscription.unsubscribe();
  }

  /** Another listener joins in the middle, in place of the one before. */
  again(): void {
    this.leave();
    this.#streamed = nothing();
    this.#committed = nothing();
    this.#follow();
  }

  #follow(): void {
    const { profile } = this.#world;
    const conversation = this.#conversation;
    if (profile.listens) {
      // What was streamed before comes first, one kind after the other.
      this.#isCatchingUp = true;
      const live = conversation.live$.subscribe((signal) => this.#hear(signal));
      this.#isCatchingUp = false;
      this.#holdsInFlight('status');
      const read = conversation.log$(conversation.log().length).subscribe((entry) => this.#read(entry));
      this.#subscriptions.push(live, read);
    }
    const looked = conversation.log$(conversation.log().length).subscribe(() => {
      this.#looks += 1;
      if (this.#looks % profile.looksEach === 0) this.look();
    });
    this.#subscriptions.push(looked);
  }

  /** Everything that can be read is what the log says. */
  look(): void {
    const world = this.#world;
    if (this.#life !== world.life || this.#store.misled.size > 0) return;
    const conversation = this.#conversation;
    const log = conversation.log();
    const same = sameJson(conversation.messages(), modelMessages(log));
    world.hold(same, 'READ', () => 'the messages are not those of the log');
    if (log.length === this.#store.logOf(CONVERSATION).length) this.#holdsOpen();
    if (this.#looks % LOOKS_A_VIEW !== 0) return;
    world.hold(sameJson(conversation.view(), project(log)), 'INV-9', () => 'a view is not that of the log');
  }

  /** The calls and messages that wait are those of the log. */
  #holdsOpen(): void {
    const world = this.#world;
    const conversation = this.#conversation;
    const { calls, messages } = this.#store.watchOf(CONVERSATION);
    const queued = conversation.queue.map(({ messageId }) => messageId).join();
    world.hold(queued === messages.queued.join(), 'READ', () => `queued are ${messages.queued}, listed ${queued}`);
    // A call that sub-agents wait within is no call that waits.
    if (world.profile.spawns) return;
    const waiting = [...calls.calls].flatMap(([callId, { status, decided, suspension }]) =>
      status === 'suspended' && !decided.has(suspension) ? [`${callId}/${suspension}`] : [],
    );
    const listed = conversation.pending.map(({ callId, suspension }) => `${callId}/${suspension}`);
    const same = waiting.sort().join() === listed.sort().join();
    world.hold(same, 'READ', () => `pending are ${waiting}, listed ${listed}`);
  }

  #hear(signal: Live): void {
    if (this.#life !== this.#world.life || !('runId' in signal)) return;
    // Of a sub-agent.
    if ('path' in signal) return;
    if (signal.type === 'reset') this.#drop();
    else if (signal.type === 'text-delta') this.#streamed.text += signal.text;
    else if (signal.type === 'reasoning-delta') this.#streamed.reasoning += signal.text;
    this.#holdsInFlight(signal.type);
  }

  /** What is in flight is what a listener has heard, whole. */
  #holdsInFlight(type: Live['type']): void {
    const { inFlight } = this.#conversation;
    if (this.#isCatchingUp || this.#store.misled.size > 0) return;
    const { text, reasoning } = inFlight ?? nothing();
    const same = text === this.#streamed.text && reasoning === this.#streamed.reasoning;
    const heard = JSON.stringify(this.#streamed);
    this.#world.hold(same, 'LIVE', () => `in flight is ${JSON.stringify(inFlight)}, heard ${heard} (${type})`);
  }

  /** A run that ends while its reply is being stored has what streamed dropped; the reply may land all the same. */
  #drop(): void {
    this.#forget();
    this.#isCut = this.#conversation.status !== 'active';
  }

  #forget(): void {
    this.#isCut = false;
    this.#streamed = nothing();
  }

  #read(entry: LogEntry): void {
    if (this.#life !== this.#world.life) return;
    switch (entry.type) {
      case 'agent-output':
        if (entry.item.type === 'assistant' && entry.item.flag !== 'interrupted')
          this.#committed.text += entry.item.text;
        if (entry.item.type === 'reasoning') this.#committed.reasoning += entry.item.text;
        return;
      case 'model-reply':
        this.#holdsCommitted(entry.runId);
        this.#committed = nothing();
        return this.#forget();
      case 'run-stop':
      case 'run-suspended':
        this.#committed = nothing();
        return this.#forget();
    }
  }

  #holdsCommitted(runId: string | null): void {
    const { text, reasoning } = this.#committed;
    if (this.#isCut || this.#store.misled.size > 0) return;
    const same = text === this.#streamed.text && reasoning === this.#streamed.reasoning;
    const heard = JSON.stringify(this.#streamed);
    this.#world.hold(same, 'LIVE', () => `${runId} streamed ${heard} and committed ${JSON.stringify(this.#committed)}`);
  }
}
