/**
 * The host of a simulated conversation: opens it, acts on it and closes it, at any moment. Rule: it acts as any caller
 * might, and says nothing of what is right; what it is told is held against the log.
 */
import type { Agent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { Deeds } from './deeds.ts';
import { Others } from './others.ts';
import { askingText } from './watch/answerWatch.ts';
import { Observer } from './watch/observer.ts';
import { Told } from './watch/told.ts';
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
/** Who sees that a call waits decides it more often than not. */
const ASKED = { ...ACTS, decide: 16 } as const;

export class Host {
  conversation: Conversation | undefined;
  /** Looks on since the conversation was opened. */
  observer: Observer | undefined;
  signals: CallerSignal[] = [];
  #runs: Run[] = [];
  readonly #told: Told;
  readonly #deeds: Deeds;
  readonly others: Others;
  #agent: Agent | undefined;
  #opening = false;
  readonly #world: World;
  readonly #store: SimulatedStore;
  /** Nothing where the caller has none: the life is over then. */
  readonly #make: () => Agent | undefined;

  constructor(world: World, store: SimulatedStore, make: () => Agent | undefined) {
    this.#world = world;
    this.#store = store;
    this.#make = make;
    this.#told = new Told(world, store);
    this.#deeds = new Deeds(world, store, this.#told);
    this.others = new Others(world, store, this.#told);
  }

  /** Nothing is open, and nothing opens. */
  get isAway(): boolean {
    return !this.conversation && !this.#opening;
  }

  /** Messages whose receipts are not settled. */
  get owed(): readonly string[] {
    return this.#told.unsettled;
  }

  open(): void {
    const { life } = this.#world;
    this.#world.facts.openings += 1;
    this.#opening = true;
    this.#agent = this.#make();
    const { length: durable } = this.#store.logOf(CONVERSATION);
    this.#agent?.open(CONVERSATION).then(
      (conversation) => {
        if (life !== this.#world.life) return;
        this.#opening = false;
        this.conversation = conversation;
        this.observer = new Observer(this.#world, this.#store, conversation);
        this.#told.opened(conversation, durable);
      },
      (error: unknown) => {
        if (life !== this.#world.life) return;
        this.#opening = false;
        this.#told.refused('open', error);
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
    this.#told.crashed();
    this.others.crashed();
  }

  /** A call waits for a person. */
  get isAsked(): boolean {
    return this.conversation !== undefined && this.conversation.pending.length > 0;
  }

  decide(): void {
    if (this.conversation) this.#deeds.decide(this.conversation);
  }

  /** Something happens in another conversation of the agent. */
  beside(): void {
    if (this.#agent) this.others.act(this.#agent);
  }

  /** Everybody who is asked says yes, and the cycle goes on. */
  approve(): void {
    const { conversation } = this;
    if (!conversation || conversation.pending.length === 0) return;
    for (const { callId } of conversation.pending) {
      conversation
        .decide({ callId, action: 'approve', by: 'at rest' })
        .catch((error: unknown) => this.#told.refused('decide', error));
    }
    this.#told.over(conversation.resume());
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
    this.others.holds();
  }

  act(): void {
    const { conversation } = this;
    if (this.isAway) return this.open();
    if (!conversation) return;
    const act = this.#world.tape.weighted<Act>(conversation.pending.length > 0 ? ASKED : ACTS);
    this.#world.count(`act-${act}`);
    try {
      this.#do(act, conversation);
    } catch (error) {
      this.#told.refused(act, error);
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
    const run = conversation.send(content, {
      ...(caller && { signal: caller.signal }),
      ...(asks && { output: answerSchema('message') }),
    });
    this.#runs.push(run);
    this.#told.over(run);
    if (!caller) return;
    this.signals.push(caller);
    run.result.then(() => {
      caller.over = true;
    });
  }

  /** A message behind everything, when nothing goes wrong any more. */
  ask(text: string): void {
    try {
      this.send(text);
    } catch (error) {
      this.#told.refused('send', error);
      this.#world.hold(this.#told.isMisled, 'I6', () => `a conversation at rest takes no message: ${String(error)}`);
    }
  }

  close(): void {
    const { conversation } = this;
    const { life } = this.#world;
    this.conversation = undefined;
    this.observer?.leave();
    this.#opening = true;
    const over = (): void => {
      if (life === this.#world.life) this.#opening = false;
    };
    conversation?.close().then(over, (error: unknown) => {
      over();
      this.#told.refused('close', error);
    });
  }

  #do(act: Act, conversation: Conversation): void {
    const { tape } = this.#world;
    switch (act) {
      case 'send':
        return this.send();
      case 'steer':
        return this.#told.owed(conversation.steer(`steer ${tape.next(3)}`));
      case 'followUp':
        return this.#told.owed(conversation.followUp(`then ${tape.next(3)}`));
      case 'resume':
        return this.#told.over(conversation.resume());
      case 'abort':
        return this.signals[tape.next(this.signals.length)]?.abort();
      case 'withdraw':
        return this.#withdraw();
      case 'look':
        return this.observer?.again();
      case 'close':
        return this.close();
      case 'intrude':
        return this.#intrude(conversation);
      case 'reenter':
        return this.#reenter(conversation);
      default:
        return this.#deeds[act](conversation);
    }
  }

  #withdraw(): void {
    const run = this.#runs[this.#world.tape.next(this.#runs.length)];
    if (!run) return;
    // One that waits in the queue is given back when the store says so.
    const { cycle, runId } = this.#store.watchOf(CONVERSATION);
    const cancelled = run.cancel();
    if (cycle === 'running' && runId === run.id) this.#deeds.inTime(cancelled, 'a withdrawal');
  }

  /** Somebody else opens what is open, as the same agent or as another one. */
  #intrude(conversation: Conversation): void {
    const intruder = this.#world.tape.chance(0.5) ? this.#make() : this.#agent;
    intruder?.open(CONVERSATION).then(
      (second) => {
        const alone = this.conversation !== conversation;
        this.#world.hold(alone, 'I23', () => 'a conversation is open twice');
        return second.close();
      },
      (error: unknown) => this.#told.refused('intrude', error),
    );
  }

  /** A subscriber that acts while it is told. */
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
  /** The run it was given to is over. */
  over = false;

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

  get isOverheard(): boolean {
    return this.over && !this.signal.aborted && this.#listeners.size > 0;
  }

  abort(): void {
    this.#controller.abort();
  }
}
