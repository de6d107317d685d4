/**
 * The host of a simulated conversation: opens it, acts on it and closes it, at any moment. Rule: it does what any caller
 * might do, and decides nothing about what is right; what the library answers is compared with the log.
 */
import type { Agent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { HostActions } from './hostActions.ts';
import { OtherConversations } from './otherConversations.ts';
import { askingText } from './watch/answerWatch.ts';
import { CallerChecks } from './watch/callerChecks.ts';
import { Observer } from './watch/observer.ts';
import { answerSchema } from './world/finalAnswer.ts';
import { IMAGE } from './world/image.ts';
import type { SimulatedStore } from './world/store.ts';
import { CONVERSATION, type World } from './world/world.ts';

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
/** While a call waits, most actions decide it. */
const WHILE_PENDING = { ...ACTS, decide: 16 } as const;

export class Host {
  conversation: Conversation | undefined;
  /** Reads the conversation since it was opened. */
  observer: Observer | undefined;
  signals: CallerSignal[] = [];
  #runs: Run[] = [];
  readonly #callerChecks: CallerChecks;
  readonly #actions: HostActions;
  readonly others: OtherConversations;
  #agent: Agent | undefined;
  #opening = false;
  readonly #world: World;
  readonly #store: SimulatedStore;
  /** Gives nothing where the caller's function gave no agent; the simulation ends then. */
  readonly #make: () => Agent | undefined;

  constructor(world: World, store: SimulatedStore, make: () => Agent | undefined) {
    this.#world = world;
    this.#store = store;
    this.#make = make;
    this.#callerChecks = new CallerChecks(world, store);
    this.#actions = new HostActions(world, store, this.#callerChecks);
    this.others = new OtherConversations(world, store, this.#callerChecks);
  }

  /** The conversation is not open, and not being opened. */
  get isClosed(): boolean {
    return !this.conversation && !this.#opening;
  }

  /** Messages whose receipts are not settled. */
  get openReceipts(): readonly string[] {
    return this.#callerChecks.openReceipts;
  }

  open(): void {
    const { processId } = this.#world;
    this.#world.facts.openings += 1;
    this.#opening = true;
    this.#agent = this.#make();
    const { length: durable } = this.#store.logOf(CONVERSATION);
    this.#agent?.open(CONVERSATION).then(
      (conversation) => {
        if (processId !== this.#world.processId) return;
        this.#opening = false;
        this.conversation = conversation;
        this.observer = new Observer(this.#world, this.#store, conversation);
        this.#callerChecks.checkOpening(conversation, durable);
      },
      (error: unknown) => {
        if (processId !== this.#world.processId) return;
        this.#opening = false;
        this.#callerChecks.checkError('open', error);
      },
    );
  }

  /** The process died. */
  crashed(): void {
    this.#agent = undefined;
    this.conversation = undefined;
    this.#opening = false;
    this.signals = [];
    this.#runs = [];
    this.#store.crashed();
    this.#callerChecks.crashed();
    this.others.crashed();
  }

  /** A call waits for a person. */
  get hasPendingCall(): boolean {
    return this.conversation !== undefined && this.conversation.pending.length > 0;
  }

  decide(): void {
    if (this.conversation) this.#actions.decide(this.conversation);
  }

  /** The agent's equipment does something of its own. */
  useEquipment(): void {
    const { conversation } = this;
    const [first, ...others] = this.#world.equipment;
    if (!first || !conversation) return;
    this.#world.tape.pick([first, ...others]).act?.(conversation);
  }

  /** Something happens in another conversation of the agent. */
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
        .catch((error: unknown) => this.#callerChecks.checkError('decide', error));
    }
    this.#callerChecks.checkRun(conversation.resume());
  }

  /** The conversation is closed, and a fork of it goes on. */
  async fork(settle: () => Promise<void>): Promise<void> {
    this.close();
    await settle();
    if (!this.#agent) return;
    const forked = this.others.fork(this.#agent);
    await settle();
    await forked;
    await settle();
    this.others.check();
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
      this.#callerChecks.checkError(act, error);
    }
  }

  send(text = `hello ${this.#world.tape.next(3)}`): void {
    const { conversation } = this;
    if (!conversation) return;
    const { tape, profile, answers, facts } = this.#world;
    const asks = answers?.askers.includes('message') && tape.chance(0.5);
    const said = asks ? askingText(text, facts.openings) : text;
    const content = profile.images && tape.chance(0.3) ? [{ type: 'text' as const, text: said }, IMAGE] : said;
    const caller = tape.chance(0.2) ? new CallerSignal() : undefined;
    const joins = conversation.status === 'active';
    const run = conversation.send(content, {
      ...(caller && { signal: caller.signal }),
      ...(asks && { output: answerSchema('message') }),
    });
    this.#runs.push(run);
    this.#callerChecks.checkRun(run);
    if (!caller) return;
    this.signals.push(caller);
    // Who sent a message that joined a run under way takes that message back alone.
    if (!joins) caller.run = run;
    run.result.then(() => {
      caller.isOver = true;
    });
  }

  /** A last message, without faults. */
  ask(text: string): void {
    try {
      this.send(text);
    } catch (error) {
      this.#callerChecks.checkError('send', error);
      this.#world.check(
        this.#callerChecks.storeLied,
        'I6',
        () => `a conversation at rest takes no message: ${String(error)}`,
      );
    }
  }

  close(): void {
    const { conversation } = this;
    const { processId } = this.#world;
    this.conversation = undefined;
    this.observer?.unsubscribe();
    if (conversation) for (const each of this.#world.equipment) each.closing?.(conversation);
    this.#opening = true;
    const closed = (): void => {
      if (processId === this.#world.processId) this.#opening = false;
    };
    conversation?.close().then(closed, (error: unknown) => {
      closed();
      this.#callerChecks.checkError('close', error);
    });
  }

  #do(act: Act, conversation: Conversation): void {
    const { tape } = this.#world;
    switch (act) {
      case 'send':
        return this.send();
      case 'steer':
        return this.#callerChecks.checkReceipt(conversation.steer(`steer ${tape.next(3)}`));
      case 'followUp':
        return this.#callerChecks.checkReceipt(conversation.followUp(`then ${tape.next(3)}`));
      case 'resume':
        return this.#callerChecks.checkRun(conversation.resume());
      case 'abort':
        return this.#abort();
      case 'withdraw':
        return this.#withdraw();
      case 'look':
        return this.observer?.resubscribe();
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

  #withdraw(): void {
    const run = this.#runs[this.#world.tape.next(this.#runs.length)];
    if (!run) return;
    // A message that waits in the queue is given back when the store has answered.
    const { cycle, runId } = this.#store.watchOf(CONVERSATION);
    const cancelled = run.cancel();
    if (cycle === 'running' && runId === run.id) this.#actions.checkDuration(cancelled, 'a withdrawal');
  }

  /** A caller's signal ends the run that it was given to, as a cancel does. */
  #abort(): void {
    const left = this.signals.filter(({ isOver, signal }) => !isOver && !signal.aborted);
    const signals = left.length > 0 ? left : this.signals;
    const caller = signals[this.#world.tape.next(signals.length)];
    if (!caller) return;
    const { signal, run } = caller;
    const { cycle, runId } = this.#store.watchOf(CONVERSATION);
    const ends = !signal.aborted && cycle === 'running' && run !== undefined && runId === run.id;
    caller.abort();
    if (!ends) return;
    this.#world.count('abort-of-run');
    void this.#actions.checkDuration(run.result, 'the abort of a signal');
  }

  /** The same agent or another one opens the open conversation again. */
  #intrude(conversation: Conversation): void {
    const intruder = this.#world.tape.chance(0.5) ? this.#make() : this.#agent;
    intruder?.open(CONVERSATION).then(
      (second) => {
        const alone = this.conversation !== conversation;
        this.#world.check(alone, 'I23', () => 'a conversation is open twice');
        return second.close();
      },
      (error: unknown) => this.#callerChecks.checkError('intrude', error),
    );
  }

  /** A subscriber that acts from within its callback. */
  #reenter(conversation: Conversation): void {
    let left = 1;
    conversation.log$(conversation.log().length).subscribe(() => {
      if (left === 0 || this.conversation !== conversation) return;
      left -= 1;
      this.act();
    });
  }
}

export class CallerSignal {
  readonly #controller = new AbortController();
  #listeners = new Set<unknown>();
  /** The run that it was given to is over. */
  isOver = false;
  /** The run that was begun with it. */
  run: Run | undefined;

  constructor() {
    const { signal } = this.#controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    Object.defineProperties(signal, {
      addEventListener: {
        value: (type: string, listener: EventListener, options?: AddEventListenerOptions) => {
          this.#listeners.add(listener);
          add(type, listener, options);
        },
      },
      removeEventListener: {
        value: (type: string, listener: EventListener) => {
          this.#listeners.delete(listener);
          remove(type, listener);
        },
      },
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isStillHeard(): boolean {
    return this.isOver && !this.signal.aborted && this.#listeners.size > 0;
  }

  abort(): void {
    this.#controller.abort();
  }
}
