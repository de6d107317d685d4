/**
 * Reads a conversation like a user interface: messages, view, queue and pending calls at any entry, and live signals.
 * Invariant: a read changes nothing and agrees with the log at that moment. The streamed text equals the committed
 * text.
 */
import { type Json, type LogEntry, modelMessages, type PendingCall } from '../../../machines/internal.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { Live } from '../../../src/live.ts';
import { project } from '../../../src/projector/index.ts';
import type { SimulatedStore } from '../../../src/testing/simulation/world/simulatedStore.ts';
import { CONVERSATION } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { isPending } from './callWatch.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { sameJson } from './sameJson.ts';

/** The view is the slowest read, so it is compared only once in this many appends. */
const APPENDS_A_VIEW = 16;

/** The other listed calls belong to the conversation's sub-agents. */
const isOwn = ({ path }: PendingCall): boolean => path.length === 1;
/** The deltas of the current attempt, joined. */
interface Streamed {
  text: string;
  reasoning: string;
}
const nothing = (): Streamed => ({ text: '', reasoning: '' });

export class ReadingChecks {
  readonly #world: CheckedWorld;
  readonly #store: SimulatedStore;
  readonly #conversation: Conversation;
  readonly #processId: number;
  readonly #subscriptions: { unsubscribe(): void }[] = [];
  #appends = 0;
  #streamed = nothing();
  /** The items of the reply that is being committed. */
  #committed = nothing();
  #isCatchingUp = false;
  /** The run ended while its reply was being stored, so the streamed text was dropped. */
  #isCut = false;

  constructor(world: CheckedWorld, store: SimulatedStore, conversation: Conversation) {
    this.#world = world;
    this.#store = store;
    this.#conversation = conversation;
    this.#processId = world.processId;
    this.#follow();
  }

  /** Called when the conversation is closed. */
  unsubscribe(): void {
    for (const subscription of this.#subscriptions.splice(0)) subscription.unsubscribe();
  }

  /** Replaces the listener, which joins in the middle of a reply. */
  resubscribe(): void {
    this.unsubscribe();
    this.#streamed = nothing();
    this.#committed = nothing();
    this.#follow();
  }

  #follow(): void {
    const { profile } = this.#world;
    const conversation = this.#conversation;
    if (profile.hasListener) {
      // A late listener receives the earlier text as one delta for each kind.
      this.#isCatchingUp = true;
      const live = conversation.live$.subscribe((signal) => this.#onLive(signal));
      this.#isCatchingUp = false;
      this.#checkInFlight('status');
      const read = conversation.log$(conversation.log().length).subscribe((entry) => this.#onEntry(entry));
      this.#subscriptions.push(live, read);
    }
    const looked = conversation.log$(conversation.log().length).subscribe(() => {
      this.#appends += 1;
      if (this.#appends % profile.observesEvery === 0) this.checkReads();
    });
    this.#subscriptions.push(looked);
  }

  /** Checks everything that can be read against the log. */
  checkReads(): void {
    const world = this.#world;
    if (this.#processId !== world.processId || this.#store.falselyRefused.size > 0) return;
    const conversation = this.#conversation;
    const log = conversation.log();
    const same = sameJson(conversation.messages(), modelMessages(log));
    world.check(same, 'READ', () => 'the messages are not those of the log');
    this.#checkFolds(log);
    if (log.length === this.#store.logOf(CONVERSATION).length) this.#checkOpen();
    if (this.#appends % APPENDS_A_VIEW !== 0) return;
    world.check(sameJson(conversation.view(), project(log)), 'INV-9', () => 'a view is not that of the log');
  }

  /** Checks the state and the unsettled calls against the log, whatever runs. */
  #checkFolds(log: readonly LogEntry[]): void {
    const world = this.#world;
    const { state, unsettled } = this.#conversation;
    const written: { [key: string]: Json } = {};
    const unknown = new Set<string>();
    for (const entry of log) {
      if (entry.type === 'state-changed') Object.assign(written, entry.writes);
      if (entry.type === 'tool-result' && entry.outcome === 'unknown') unknown.add(entry.callId);
      else if (entry.type === 'tool-result' || entry.type === 'call-settled') unknown.delete(entry.callId);
    }
    world.check(sameJson(written, state), 'READ', () => 'the state is not that of the log');
    const listed = unsettled.filter(isOwn).map(({ callId }) => callId);
    listed.sort();
    const due = [...unknown].sort();
    world.check(listed.join() === due.join(), 'READ', () => `unsettled are ${due}, listed ${listed}`);
  }

  /** Checks the pending calls and the queued messages against the log. */
  #checkOpen(): void {
    const world = this.#world;
    const conversation = this.#conversation;
    const { calls, messages } = this.#world.watchOf(CONVERSATION);
    const queued = conversation.queue.map(({ messageId }) => messageId).join();
    world.check(queued === messages.queued.join(), 'READ', () => `queued are ${messages.queued}, listed ${queued}`);
    const waiting = [...calls.calls].flatMap(([callId, call]) =>
      isPending(call) ? [`${callId}/${call.suspension}`] : [],
    );
    const { pending } = conversation;
    const listed = pending.filter(isOwn).map(({ callId, suspension }) => `${callId}/${suspension}`);
    const same = waiting.sort().join() === listed.sort().join();
    world.check(same, 'READ', () => `pending are ${waiting}, listed ${listed}`);
    for (const call of pending) if (!isOwn(call)) this.#checkPendingWithin(call);
  }

  /**
   * A listed call of a sub-agent was suspended in its log. The next entries may be durable shortly before they are
   * read.
   */
  #checkPendingWithin({ callId, suspension, path }: PendingCall): void {
    const wasAsked = [...this.#store.logs.keys()].some((id) => {
      const { parent, calls } = this.#world.watchOf(id);
      return parent?.callId === path[0] && (calls.calls.get(callId)?.suspension ?? 0) >= suspension;
    });
    const isBehind = this.#store.falselyRefused.size > 0;
    this.#world.check(
      wasAsked || isBehind,
      'READ',
      () => `${path.join(' > ')} is listed and no sub-agent waits for it`,
    );
  }

  #onLive(signal: Live): void {
    if (this.#processId !== this.#world.processId || !('runId' in signal)) return;
    // The signal belongs to a sub-agent.
    if ('path' in signal) return;
    if (signal.type === 'reset') this.#drop();
    else if (signal.type === 'text-delta') this.#streamed.text += signal.text;
    else if (signal.type === 'reasoning-delta') this.#streamed.reasoning += signal.text;
    this.#checkInFlight(signal.type);
  }

  /** The text in flight is the complete text that a listener has received. */
  #checkInFlight(type: Live['type']): void {
    const { inFlight } = this.#conversation;
    if (this.#isCatchingUp || this.#store.falselyRefused.size > 0) return;
    const { text, reasoning } = inFlight ?? nothing();
    const same = text === this.#streamed.text && reasoning === this.#streamed.reasoning;
    const heard = JSON.stringify(this.#streamed);
    this.#world.check(same, 'LIVE', () => `in flight is ${JSON.stringify(inFlight)}, received ${heard} (${type})`);
  }

  /**
   * If a run ends while its reply is being stored, the streamed text is dropped. The reply may still become durable.
   */
  #drop(): void {
    this.#forget();
    this.#isCut = this.#conversation.status !== 'active';
  }

  #forget(): void {
    this.#isCut = false;
    this.#streamed = nothing();
  }

  #onEntry(entry: LogEntry): void {
    if (this.#processId !== this.#world.processId) return;
    switch (entry.type) {
      case 'agent-output':
        if (entry.item.type === 'assistant' && entry.item.flag !== 'interrupted')
          this.#committed.text += entry.item.text;
        if (entry.item.type === 'reasoning') this.#committed.reasoning += entry.item.text;
        return;
      case 'model-reply':
        this.#checkCommitted(entry.runId);
        this.#committed = nothing();
        return this.#forget();
      case 'run-stop':
      case 'run-suspended':
        this.#committed = nothing();
        return this.#forget();
    }
  }

  #checkCommitted(runId: string | null): void {
    const { text, reasoning } = this.#committed;
    if (this.#isCut || this.#store.falselyRefused.size > 0) return;
    const same = text === this.#streamed.text && reasoning === this.#streamed.reasoning;
    const heard = JSON.stringify(this.#streamed);
    this.#world.check(
      same,
      'LIVE',
      () => `${runId} streamed ${heard} and committed ${JSON.stringify(this.#committed)}`,
    );
  }
}
