/**
 * The host of a simulated conversation: opens it, acts on it and closes it, at any moment. Invariant: it performs any
 * act that a caller can perform, and never judges a result.
 */
import type { Agent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Receipt } from '../../conversation/receipts.ts';
import type { Run } from '../../conversation/run.ts';
import { CallerSignal } from './callerSignal.ts';
import { HostActions } from './hostActions.ts';
import { OtherConversations } from './otherConversations.ts';
import type { SimulatedStore } from './world/simulatedStore.ts';
import { CONVERSATION, type SimulatedWorld } from './world/simulatedWorld.ts';

/** An image of one pixel, which never needs scaling. */
export const IMAGE = {
  type: 'image' as const,
  mediaType: 'image/png',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
};

const ACTS = {
  send: 5,
  decide: 1.5,
  steer: 2,
  followUp: 2,
  resume: 2,
  cancel: 1.5,
  settle: 1,
  watch: 1,
  look: 1,
  abort: 0.5,
  withdraw: 0.5,
  close: 0.5,
  intrude: 0.3,
  reenter: 0.5,
} as const;
type Act = keyof typeof ACTS;
/** The violation of an agent whose log is not in the simulation's store. */
const OTHER_STORE = 'the agent keeps its log in another store: name none, or wrap the one that is given';
/** While a call waits, most actions decide it. */
const WHILE_PENDING = { ...ACTS, decide: 16 } as const;

export class Host {
  conversation: Conversation | undefined;
  signals: CallerSignal[] = [];
  #runs: Run[] = [];
  readonly #actions: HostActions;
  readonly others: OtherConversations;
  #agent: Agent | undefined;
  #opening = false;
  readonly #world: SimulatedWorld;
  readonly #store: SimulatedStore;
  /** Returns undefined if the caller's function returned no agent. The simulation then ends. */
  readonly #make: () => Agent | undefined;

  constructor(world: SimulatedWorld, store: SimulatedStore, make: () => Agent | undefined) {
    this.#world = world;
    this.#store = store;
    this.#make = make;
    this.#actions = new HostActions(world, store);
    this.others = new OtherConversations(world, store);
  }

  /** The conversation is neither open nor opening. */
  get isClosed(): boolean {
    return !this.conversation && !this.#opening;
  }

  open(): void {
    const { processId } = this.#world;
    this.#world.checks.opening?.();
    this.#opening = true;
    this.#agent = this.#make();
    const { length: durable } = this.#store.logOf(CONVERSATION);
    this.#agent?.open(CONVERSATION).then(
      (conversation) => {
        if (processId !== this.#world.processId) return;
        this.#opening = false;
        this.conversation = conversation;
        if (!this.#store.logs.has(CONVERSATION)) this.#world.violate('setup', OTHER_STORE);
        this.#world.checks.opened?.(conversation, durable);
      },
      (error: unknown) => {
        if (processId !== this.#world.processId) return;
        this.#opening = false;
        this.#world.checks.failed?.('open', error);
      },
    );
  }

  /** The process has died. */
  crashed(): void {
    this.#agent = undefined;
    this.conversation = undefined;
    this.#opening = false;
    this.signals = [];
    this.#runs = [];
    this.#store.crashed();
    this.others.crashed();
  }

  /** A call waits for a person. */
  get hasPendingCall(): boolean {
    return this.conversation !== undefined && this.conversation.pending.length > 0;
  }

  decide(): void {
    if (this.conversation) this.#actions.decide(this.conversation);
  }

  /** A part of the agent, such as its plugins, acts. */
  actOnOwn(): void {
    if (this.conversation) this.#world.checks.act?.(this.conversation);
  }

  /** Acts on another conversation of the agent. */
  actElsewhere(): void {
    if (this.#agent) this.others.act(this.#agent);
  }

  /** Approves every pending call and resumes. */
  approve(): void {
    const { conversation } = this;
    if (!conversation || conversation.pending.length === 0) return;
    for (const { callId } of conversation.pending) {
      conversation
        .decide({ callId, action: 'approve', by: 'at rest' })
        .catch((error: unknown) => this.#world.checks.failed?.('decide', error));
    }
    this.#began(conversation.resume());
  }

  /** Closes the conversation and continues with a fork of it. */
  async fork(settle: () => Promise<void>): Promise<void> {
    this.close();
    await settle();
    if (!this.#agent) return;
    const forked = this.others.fork(this.#agent);
    await settle();
    await forked;
    await settle();
    this.#world.checks.forked?.();
  }

  act(): void {
    this.#actOnce();
    const { profile, tape } = this.#world;
    if (!profile.actsTwice || !this.conversation || !tape.chance(0.4)) return;
    this.#world.count('acts-twice');
    this.#actOnce();
  }

  #actOnce(): void {
    const { conversation } = this;
    if (this.isClosed) return this.open();
    if (!conversation) return;
    const act = this.#world.tape.weighted<Act>(conversation.pending.length > 0 ? WHILE_PENDING : ACTS);
    this.#world.count(`act-${act}`);
    try {
      this.#do(act, conversation);
    } catch (error) {
      this.#world.checks.failed?.(act, error);
    }
  }

  send(text = `hello ${this.#world.tape.next(3)}`): void {
    const { conversation } = this;
    if (!conversation) return;
    const { tape, profile, checks, finalAnswers } = this.#world;
    const { text: words, output } = finalAnswers?.ask(text) ?? { text, output: undefined };
    const content = profile.images && tape.chance(0.3) ? [{ type: 'text' as const, text: words }, IMAGE] : words;
    const caller = tape.chance(0.2) ? new CallerSignal() : undefined;
    if (caller) checks.signalGiven?.(caller);
    const joins = conversation.status === 'active';
    const run = conversation.send(content, {
      ...(caller && { signal: caller.signal }),
      ...(output && { output }),
    });
    this.#runs.push(run);
    this.#began(run);
    if (!caller) return;
    this.signals.push(caller);
    // If a message joined an active run, its sender withdraws only that message.
    if (!joins) caller.run = run;
    run.result.then(() => {
      caller.isOver = true;
    });
  }

  /** Sends a last message without faults. */
  ask(text: string): void {
    try {
      this.send(text);
    } catch (error) {
      this.#world.checks.failed?.('send', error);
      this.#world.check(
        this.#store.falselyRefused.size > 0,
        'I6',
        () => `a conversation at rest takes no message: ${String(error)}`,
      );
    }
  }

  #began(run: Run): void {
    run.text.catch(() => undefined);
    this.#world.checks.runBegan?.(run);
  }

  close(): void {
    const { conversation } = this;
    const { processId } = this.#world;
    this.conversation = undefined;
    if (conversation) this.#world.checks.closing?.(conversation);
    this.#opening = true;
    const closed = (): void => {
      if (processId === this.#world.processId) this.#opening = false;
    };
    conversation?.close().then(closed, (error: unknown) => {
      closed();
      this.#world.checks.failed?.('close', error);
    });
  }

  #do(act: Act, conversation: Conversation): void {
    const { tape } = this.#world;
    switch (act) {
      case 'send':
        return this.send();
      case 'steer':
        return this.#queued(conversation.steer(`steer ${tape.next(3)}`));
      case 'followUp':
        return this.#queued(conversation.followUp(`then ${tape.next(3)}`));
      case 'resume':
        return this.#began(conversation.resume());
      case 'abort':
        return this.#abort();
      case 'withdraw':
        return this.#withdraw();
      case 'look':
        return this.#world.checks.rejoining?.();
      case 'close':
        return this.close();
      case 'intrude':
        return this.#intrude(conversation);
      case 'reenter':
        return this.#reenter(conversation);
      default:
        return this.#actions[act](conversation);
    }
  }

  #queued(receipt: Receipt): void {
    receipt.delivered.catch(() => undefined);
    this.#world.checks.messageQueued?.(receipt);
  }

  #withdraw(): void {
    const run = this.#runs[this.#world.tape.next(this.#runs.length)];
    if (!run) return;
    const afterwards = this.#world.checks.withdrawing?.(run);
    const cancelled = run.cancel();
    afterwards?.(cancelled);
  }

  /** Aborts a caller's signal, which cancels the run that received it. */
  #abort(): void {
    const openSignals = this.signals.filter(({ isOver, signal }) => !isOver && !signal.aborted);
    const signals = openSignals.length > 0 ? openSignals : this.signals;
    const caller = signals[this.#world.tape.next(signals.length)];
    if (!caller) return;
    const afterwards = this.#world.checks.aborting?.(caller);
    caller.abort();
    afterwards?.();
  }

  /** Opens the conversation again, from the same agent or another one. */
  #intrude(conversation: Conversation): void {
    const intruder = this.#world.tape.chance(0.5) ? this.#make() : this.#agent;
    intruder?.open(CONVERSATION).then(
      (second) => {
        if (this.conversation === conversation) this.#world.checks.openedTwice?.();
        return second.close();
      },
      (error: unknown) => this.#world.checks.failed?.('intrude', error),
    );
  }

  /** Adds a subscriber that acts within its callback. */
  #reenter(conversation: Conversation): void {
    let remainingActs = 1;
    conversation.log$(conversation.log().length).subscribe(() => {
      if (remainingActs === 0 || this.conversation !== conversation) return;
      remainingActs -= 1;
      this.act();
    });
  }
}
