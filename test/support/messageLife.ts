/**
 * The life of one conversation with everything that can happen to its messages: acts at any moment, a failing store,
 * processes that end or die. Invariant: it performs the acts and records every answer. `faults` lists the answers that
 * the log contradicts.
 */
import {
  type Conversation,
  createAgent,
  type LogEntry,
  type Message,
  ModelError,
  type Policies,
  type Run,
  RunchartError,
} from '../../src/index.ts';
import { storeWith } from './agentBench.ts';
import { appendFaults } from './logRules.ts';
import { cycleFaults, queueFaults } from './messageFaults.ts';
import { asks, boom, echoTool, gateTool } from './scenarioTools.ts';
import { call, deaf, type Reply, scripted, t } from './scriptedReplies.ts';
import { type TroubledStore, troubledStore } from './troubledStore.ts';
import { flush, VirtualClock } from './virtualClock.ts';

export type Act =
  | { do: 'send'; kind?: 'steer' | 'followUp'; aborted?: true }
  | { do: 'steer' | 'followUp' | 'resume' | 'cancel' | 'close' | 'crash' | 'release' }
  | { do: 'cancelRun' | 'decide' | 'deny' | 'settle'; which: number }
  | { do: 'watch'; entries: number }
  | { do: 'wait'; ms: number }
  | { do: 'trouble'; how: 'failed' | 'slow'; appends: number };
export type Answer =
  | 'text'
  | 'ask'
  | 'asks'
  | 'echo'
  | 'boom'
  | 'gate'
  | 'mixed'
  | 'error'
  | 'deaf'
  | 'halfSaid'
  | 'empty';

export interface LifeOptions {
  policies: Partial<Policies>;
  answers: readonly Answer[];
  synchronous: boolean;
  /** Called with the conversation after each opening. */
  watch?(conversation: Conversation): void;
}

/** An accepted message, and the outcome that its sender received. */
interface Promised {
  messageId: string;
  outcomes: string[];
  receipt: boolean;
}

/** The other requests, and their answers. */
interface Asked {
  what: string;
  answer: unknown;
}

export class MessageLife {
  readonly faults: string[] = [];
  /** The messages of every model call, in order. */
  readonly requests: (readonly Message[])[] = [];
  readonly #policies: Partial<Policies>;
  readonly #answers: readonly Answer[];
  readonly #synchronous: boolean;
  readonly #watch: (conversation: Conversation) => void;
  #asked = 0;
  /** The store failed, so the end of a run may be missing from the log. */
  #troubled = false;
  #ids = 0;
  #promised: Promised[] = [];
  #acts: Asked[] = [];
  #runs: { run: Run; over: boolean }[] = [];
  #clock = new VirtualClock();
  #gate = gateTool();
  #store: TroubledStore = troubledStore();
  #release: () => void = () => undefined;
  #life: { agent: ReturnType<typeof createAgent>; conversation: Conversation } | undefined;

  constructor({ policies, answers, synchronous, watch = () => undefined }: LifeOptions) {
    this.#policies = policies;
    this.#answers = answers;
    this.#synchronous = synchronous;
    this.#watch = watch;
  }

  get conversation(): Conversation {
    if (!this.#life) throw new Error('open it first');
    return this.#life.conversation;
  }

  async open(log: readonly LogEntry[] = []): Promise<void> {
    this.#clock = new VirtualClock();
    this.#gate = gateTool();
    this.#promised = [];
    this.#runs = [];
    this.#acts = [];
    this.#troubled = false;
    const inner = log.length > 0 ? await storeWith(log) : undefined;
    this.#store = troubledStore({ clock: this.#clock, synchronous: this.#synchronous, ...(inner && { inner }) });
    const agent = createAgent({
      model: scripted(Array.from({ length: 400 }, () => this.#reply)),
      tools: [echoTool('ask').tool, echoTool().tool, boom, this.#gate.tool],
      plugins: [asks().plugin],
      policies: this.#policies,
      store: this.#store,
      ports: { now: this.#clock.now, setTimer: this.#clock.setTimer, random: () => 0, newId: () => this.#newId() },
    });
    this.#life = { agent, conversation: await agent.open('c') };
    this.#watch(this.conversation);
  }

  async act(act: Act): Promise<void> {
    try {
      await this.#do(act);
    } catch (error) {
      if (!RunchartError.isRunchartError(error)) throw error;
    }
  }

  /** Waits until the conversation is idle, closes it, and compares the answers with the log. */
  async end(): Promise<void> {
    this.#heal();
    await flush();
    for (let round = 0; round < 30 && ['active', 'cancelling'].includes(this.conversation.status); round++) {
      await this.#clock.until(this.conversation.cancel(), 5000);
      await this.#clock.advance(1);
    }
    await this.#close();
  }

  readonly #reply: Extract<Reply, (...a: never[]) => unknown> = (request, context) => {
    const answer = this.#answers[this.#asked % this.#answers.length] ?? 'text';
    this.#asked += 1;
    this.requests.push([...request.messages]);
    const id = (): string => `k${this.#newId()}`;
    const script: Record<Answer, () => Reply> = {
      text: () => 'done',
      empty: () => '',
      error: () => new ModelError({ code: 'auth', message: 'no key' }),
      deaf: () => deaf(),
      halfSaid: () => deaf(t('half a '), t('word')),
      ask: () => [call(id(), 'ask', { m: 'a' })],
      asks: () => [call(id(), 'ask', { m: 'a' }), call(id(), 'ask', { m: 'b' })],
      echo: () => [call(id(), 'echo', { m: 'a' })],
      boom: () => [call(id(), 'boom')],
      gate: () => [call(id(), 'gate')],
      mixed: () => [call(id(), 'ask', { m: 'a' }), call(id(), 'gate'), call(id(), 'echo', { m: 'b' })],
    };
    return scripted([script[answer]()]).stream(request, context);
  };

  #newId(): string {
    this.#ids += 1;
    return `m${this.#ids}`;
  }

  async #do(act: Act): Promise<void> {
    const { conversation } = this;
    switch (act.do) {
      case 'send':
        return this.#send(act);
      case 'steer':
      case 'followUp': {
        const { messageId, delivered } = conversation[act.do](act.do);
        const promised: Promised = { messageId, outcomes: [], receipt: true };
        this.#promised.push(promised);
        void delivered.then(
          (how) => promised.outcomes.push(how),
          () => promised.outcomes.push('unknown'),
        );
        return;
      }
      case 'resume':
        return this.#keep(conversation.resume());
      case 'cancel':
        return this.#expect('a cancel', conversation.cancel());
      case 'cancelRun':
        return this.#expect('the cancel of a run', this.#runs[act.which % this.#runs.length]?.run.cancel());
      case 'decide':
      case 'deny': {
        const pending = conversation.pending[act.which % Math.max(1, conversation.pending.length)];
        const action = act.do === 'deny' ? 'deny' : 'approve';
        if (pending)
          this.#expect(`a decision on ${pending.callId}`, conversation.decide({ callId: pending.callId, action }));
        return;
      }
      case 'settle': {
        const [unsettled] = conversation.unsettled;
        const how = act.which % 2 === 0 ? ({ retry: true } as const) : ({ didNotRun: true } as const);
        if (unsettled) this.#expect('a settlement', conversation.settle(unsettled.callId, how));
        return;
      }
      case 'watch': {
        let remainingEntries = act.entries;
        const subscription = conversation.log$(conversation.log().length).subscribe(() => {
          remainingEntries -= 1;
          if (remainingEntries > 0) return;
          subscription.unsubscribe();
          throw new Error('careless');
        });
        return;
      }
      case 'release':
        for (const callId of this.#gate.started) this.#gate.release(callId);
        return;
      case 'wait':
        return this.#clock.advance(act.ms);
      case 'trouble':
        return this.#trouble(act.how, act.appends);
      case 'close':
        await this.#close();
        return this.open(conversation.log());
      case 'crash': {
        const log = [...conversation.log()];
        await this.open(log);
        return;
      }
    }
  }

  #send({ kind, aborted }: Extract<Act, { do: 'send' }>): void {
    const ids = this.#ids;
    const options = { ...(kind && { kind }), ...(aborted && { signal: AbortSignal.abort() }) };
    const run = this.conversation.send('hi', options);
    this.#promised.push({ messageId: `m${ids + 1}`, outcomes: [], receipt: false });
    this.#keep(run);
  }

  /** `what` is answered before the conversation is closed. An applied decision is in the log. */
  #expect(what: string, promise: Promise<unknown> | undefined): void {
    if (!promise) return;
    const asked: Asked = { what, answer: undefined };
    this.#acts.push(asked);
    const refused = (): void => {
      asked.answer = 'refused';
    };
    promise.then((answer) => {
      asked.answer = answer ?? 'done';
    }, refused);
  }

  #keep(run: Run): void {
    const kept = { run, over: false };
    this.#runs.push(kept);
    void run.result.then(() => {
      kept.over = true;
    });
  }

  #trouble(how: 'failed' | 'slow', appends: number): void {
    let remainingAppends = appends;
    this.#troubled = true;
    this.#store.trouble(() => {
      remainingAppends -= 1;
      if (remainingAppends < 0) return 'stored';
      return how === 'failed' ? 'failed' : { after: new Promise((resolve) => this.#onRelease(resolve)) };
    });
  }

  #onRelease(release: () => void): void {
    const before = this.#release;
    this.#release = () => {
      before();
      release();
    };
  }

  #heal(): void {
    this.#store.trouble(() => 'stored');
    this.#release();
  }

  async #close(): Promise<void> {
    const { conversation } = this;
    this.#heal();
    await this.#clock.until(conversation.close(), 5000);
    await flush();
    this.#check(conversation);
  }

  #check(conversation: Conversation): void {
    const log = conversation.log();
    const count = (type: LogEntry['type'], messageId: string): number =>
      log.filter((each) => each.type === type && 'messageId' in each && each.messageId === messageId).length;
    const say = (fault: string): void => void this.faults.push(fault);
    const queued = conversation.view().queued.map(({ messageId }) => messageId);
    for (const { messageId, outcomes, receipt } of this.#promised) {
      const delivered = count('user-message', messageId);
      const returned = count('message-returned', messageId);
      if (delivered + returned > 1) say(`${messageId} was delivered ${delivered} times, returned ${returned} times`);
      if (!receipt) continue;
      if (outcomes.length !== 1) say(`the receipt of ${messageId} was settled ${outcomes.length} times`);
      if (outcomes[0] === 'delivered' && delivered !== 1) say(`${messageId} was delivered, and is not in the log`);
      if (outcomes[0] === 'returned' && delivered !== 0) say(`${messageId} was returned, and is in the log`);
      const stays = queued.includes(messageId);
      if (outcomes[0] !== undefined && outcomes[0] !== 'delivered' && stays !== (outcomes[0] === 'unknown'))
        say(`the receipt of ${messageId} is ${outcomes[0]}, and it ${stays ? 'stays' : 'does not stay'} queued`);
      if (count('message-queued', messageId) > delivered + returned && !queued.includes(messageId))
        say(`${messageId} is lost`);
    }
    for (const { what, answer } of this.#acts) {
      if (answer === undefined) say(`${what} was never answered`);
      const callId = what.startsWith('a decision on ') ? what.slice('a decision on '.length) : undefined;
      if (callId === undefined || (answer !== 'applied' && answer !== 'held')) continue;
      if (!log.some((each) => each.type === 'decision' && each.callId === callId)) say(`${what} is not in the log`);
    }
    for (const { run, over } of this.#runs) if (!over) say(`the run ${run.id} is never over`);
    this.faults.push(...cycleFaults(log, this.#troubled), ...queueFaults(log, queued));
    this.faults.push(...appendFaults(this.#store.tried));
  }
}
