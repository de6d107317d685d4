/**
 * Short lives around a cancel: a conversation in some status, up to four acts at chosen moments, and a store that is
 * slow, silent or failing. Invariant: a life is judged by the log, the receipts, the results and the fake clock alone.
 */
import { z } from 'zod';
import { sendWithReceipt } from '../../src/conversation/conversation.ts';
import {
  type Conversation,
  createAgent,
  defineTool,
  type LogEntry,
  type LogStore,
  type Model,
  type ModelPart,
  type Receipt,
  type Run,
  RunchartError,
  type RunResult,
} from '../../src/index.ts';
import { pairingFaults } from '../../src/testing/pairingFaults.ts';
import { logFaults, restFaults } from './logRules.ts';
import { call, finish, t } from './scriptedReplies.ts';
import { VirtualClock } from './virtualClock.ts';

export const STARTS = ['idle', 'model', 'tool', 'waiting', 'replaceable'] as const;
/** The situation before the first act. `replaceable`: a call waits, and a message can take its place. */
type Start = (typeof STARTS)[number];
type Act = 'cancel' | 'run.cancel' | 'send' | 'steer' | 'followUp' | 'resume' | 'decide';
/**
 * After the first act an append takes 20 ms. The append with the number `at` fails in the way of `kind`, and so do all
 * later ones unless `once` is set.
 */
export interface Trouble {
  kind: 'none' | 'at once' | 'slow' | 'silent' | 'refusing';
  at: number;
  once: boolean;
}
export interface Order {
  start: Start;
  acts: readonly Act[];
  /** Milliseconds before each act except the first. */
  pauses: readonly number[];
}

const ACTS: readonly Act[] = ['cancel', 'run.cancel', 'send', 'steer', 'followUp', 'resume'];
/** Returns the first documented state after the chart's initial arrow. */
const PAUSES = [0, 10, 30] as const;
export const ACTS_MAX = 4;

/** True if the act has something to act on. */
function fits(act: Act, start: Start, before: readonly Act[]): boolean {
  if (act === 'decide') return start === 'waiting' || start === 'replaceable';
  if (act !== 'run.cancel' || start === 'model' || start === 'tool') return true;
  return before.includes('send') || before.includes('resume');
}

function* actsOf(start: Start, count: number, before: readonly Act[] = []): Generator<readonly Act[]> {
  if (before.length === count) {
    if (before.includes('cancel') || before.includes('run.cancel')) yield before;
    return;
  }
  for (const act of [...ACTS, 'decide' as const])
    if (fits(act, start, before)) yield* actsOf(start, count, [...before, act]);
}

/** Every pattern of moments for up to three acts; for four acts, the patterns with at most one pause. */
function pausesOf(count: number): number[][] {
  let all: number[][] = [[]];
  for (let act = 1; act < count; act++) all = all.flatMap((pauses) => PAUSES.map((pause) => [...pauses, pause]));
  return count < ACTS_MAX ? all : all.filter((pauses) => pauses.filter((pause) => pause > 0).length <= 1);
}

/** All orders of up to four acts with at least one cancel, at all moments. */
export function ordersFrom(start: Start): Order[] {
  return Array.from({ length: ACTS_MAX }, (_, index) => index + 1).flatMap((count) => {
    const moments = pausesOf(count);
    return [...actsOf(start, count)].flatMap((acts) => moments.map((pauses) => ({ start, acts, pauses })));
  });
}

/** Every store for an order whose acts lead to this many appends. */
export function troublesOf({ acts }: Order, appends: number): Trouble[] {
  const places = Array.from({ length: Math.min(appends, acts.length < ACTS_MAX ? 6 : 3) }, (_, at) => at);
  const lasting = acts.length < ACTS_MAX ? (['slow', 'refusing'] as const) : [];
  return [
    { kind: 'at once', at: 0, once: false },
    ...places.flatMap((at): Trouble[] => [
      // Appends run one after the other, so none follows one that is never answered.
      { kind: 'silent', at, once: true },
      { kind: 'slow', at, once: true },
      { kind: 'refusing', at, once: true },
      ...lasting.map((kind) => ({ kind, at, once: false })),
    ]),
  ];
}

const APPEND_MS = 20;
const SLOW_MS = 3_000;
/** The longest time that a cancel may take, whatever else happens. */
const CANCEL_MS = 100;

/** A store in memory that answers late, never or with an error. */
class OrderStore implements LogStore {
  readonly stored: LogEntry[] = [];
  readonly #clock: VirtualClock;
  #trouble: Trouble | undefined;
  /** Number of appends since the store began to fail. */
  tried = 0;
  #release: (() => void) | undefined;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  begin(trouble: Trouble): void {
    this.#trouble = trouble;
  }

  /** The store works again. */
  heal(): void {
    this.#trouble = undefined;
    this.#release?.();
  }

  async open() {
    return {
      read: async function* () {},
      append: (entries: readonly LogEntry[], expected: number) => this.#append(entries, expected),
      close: async () => {},
    };
  }
  async list() {
    return [];
  }
  async delete() {}

  async #append(entries: readonly LogEntry[], expected: number): Promise<void> {
    const trouble = this.#trouble;
    if (trouble && trouble.kind !== 'at once') {
      const { kind, at, once } = trouble;
      const isBad = kind !== 'none' && (once ? this.tried === at : this.tried >= at);
      this.tried += 1;
      if (isBad && kind === 'silent') {
        await new Promise<void>((resolve) => {
          this.#release = resolve;
        });
      } else await this.#wait(isBad && kind === 'slow' ? SLOW_MS : APPEND_MS);
      if (isBad && kind === 'refusing') throw new RunchartError('store', 'the disk is full');
    }
    if (expected !== this.stored.length) throw new Error(`expected entry ${this.stored.length}, got ${expected}`);
    this.stored.push(...entries);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.setTimer(ms, resolve));
  }
}

const gate = defineTool({
  name: 'gate',
  description: 'Never answers.',
  parameters: z.object({}),
  execute: () => new Promise<never>(() => undefined),
});
const ask = defineTool({
  name: 'ask',
  description: 'Waits for a person.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => 'done',
});

/** The first reply brings the conversation to its start; every later reply is text. */
function modelOf(start: Start, faults: string[]): Model {
  let calls = 0;
  async function* reply(first: boolean): AsyncGenerator<ModelPart> {
    if (first && start === 'model') await new Promise(() => undefined);
    const isCall = first && start !== 'idle';
    yield isCall ? call('c1', start === 'tool' ? 'gate' : 'ask') : t('ok');
    yield finish(isCall ? 'tool-calls' : 'stop');
  }
  return {
    id: 'model',
    stream({ messages }) {
      calls += 1;
      faults.push(...pairingFaults(messages));
      return reply(calls === 1);
    },
  };
}

interface Message {
  receipt: Receipt;
  outcome?: 'delivered' | 'returned' | 'rejected';
}

/** The run of the log that has started and has no stop. */
function openRun(log: readonly LogEntry[]): string | undefined {
  let open: string | undefined;
  for (const { type, runId } of log) {
    if (type === 'run-started' || type === 'run-resumed') open = runId ?? undefined;
    else if (type === 'run-stop' || type === 'run-suspended') open = undefined;
  }
  return open;
}
const stopOf = (log: readonly LogEntry[], runId: string) =>
  log.find(
    (entry): entry is Extract<LogEntry, { type: 'run-stop' }> => entry.type === 'run-stop' && entry.runId === runId,
  );
const hasBegun = (log: readonly LogEntry[], id: string): boolean =>
  log.some(({ type, runId }) => runId === id && (type === 'run-started' || type === 'run-resumed'));

/** Runs one life, and returns its faults. */
class Life {
  readonly faults: string[];
  readonly #clock: VirtualClock;
  readonly #store: OrderStore;
  readonly #order: Order;
  readonly #trouble: Trouble;
  readonly #conversation: Conversation;
  readonly #messages: Message[] = [];
  readonly #runs = new Map<Run, RunResult | undefined>();
  readonly #cancels: Promise<void>[] = [];
  readonly #decisions: Promise<void>[] = [];
  /** The time at which the stop of each run became durable. */
  readonly #stops = new Map<string | null, number>();
  #run: Run | undefined;

  constructor(
    order: Order,
    trouble: Trouble,
    on: { clock: VirtualClock; store: OrderStore; conversation: Conversation; faults: string[] },
  ) {
    this.#order = order;
    this.#trouble = trouble;
    this.#clock = on.clock;
    this.#store = on.store;
    this.#conversation = on.conversation;
    this.faults = on.faults;
    this.#conversation.log$().subscribe(({ type, runId }) => {
      if (type === 'run-stop' || type === 'run-suspended') this.#stops.set(runId, this.#clock.now());
    });
  }

  /** True if the store has answered each append, and in time. */
  get #isSound(): boolean {
    const { kind } = this.#trouble;
    return kind === 'none' || kind === 'at once';
  }

  async live(): Promise<void> {
    const { start, acts, pauses } = this.#order;
    if (start !== 'idle') this.#follow(this.#conversation.send('start'));
    await this.#clock.advance(0);
    this.#store.begin(this.#trouble);
    for (const [index, act] of acts.entries()) {
      const pause = index > 0 ? (pauses[index - 1] ?? 0) : 0;
      if (pause > 0) await this.#clock.advance(pause);
      this.#act(act, `message ${index}`, index === acts.length - 1);
    }
    await this.#clock
      .until(Promise.all(this.#cancels), 60_000)
      .catch(() => this.faults.push('a cancel never resolved'));
    await this.#clock.advance(2 * CANCEL_MS);
    this.#store.heal();
    await this.#clock.advance(60_000);
    this.#checkMessages(false);
    await this.#clock
      .until(this.#conversation.close(), 60_000)
      .catch((error: unknown) => this.faults.push(`close: ${error}`));
    await Promise.all(this.#decisions);
    if (this.#clock.waiting > 0) this.faults.push(`${this.#clock.waiting} timers are left`);
    this.#checkLog();
    this.#checkMessages(true);
    for (const [run, result] of this.#runs) this.#checkRun(run, result);
  }

  #act(act: Act, text: string, isLast: boolean): void {
    const conversation = this.#conversation;
    switch (act) {
      case 'cancel':
        return this.#time(conversation.cancel(), { runId: openRun(conversation.log()), isLast });
      case 'run.cancel':
        return this.#time(this.#run?.cancel() ?? Promise.resolve());
      case 'resume':
        return this.#follow(conversation.resume());
      case 'send': {
        const { run, receipt } = sendWithReceipt(conversation, text, {});
        this.#follow(run);
        return this.#expect(receipt);
      }
      case 'decide':
        return void this.#decisions.push(this.#decide());
      default:
        return this.#expect(conversation[act](text));
    }
  }

  /** `runId`: the run that the cancel ends. `isLast`: no other act follows it. */
  #time(
    cancelled: Promise<void>,
    { runId, isLast = false }: { runId?: string | undefined; isLast?: boolean } = {},
  ): void {
    const from = this.#clock.now();
    const done = cancelled.then(() => {
      const took = this.#clock.now() - from;
      if (took > CANCEL_MS) this.faults.push(`a cancel took ${took} ms`);
      if (!this.#isSound) return;
      const { status } = this.#conversation;
      if (runId !== undefined && !stopOf(this.#conversation.log(), runId))
        this.faults.push('a cancel resolved before its stop was durable');
      if (isLast && status === 'cancelling')
        this.faults.push('a cancel resolved while the conversation was cancelling');
    });
    this.#cancels.push(done.catch((error: unknown) => void this.faults.push(`a cancel rejected: ${error}`)));
  }

  #follow(run: Run): void {
    this.#run = run;
    if (this.#runs.has(run)) return;
    this.#runs.set(run, undefined);
    void run.result.then((result) => {
      this.#runs.set(run, result);
      const log = this.#conversation.log();
      const stoppedAt = this.#stops.get(result.runId);
      const late = stoppedAt === undefined ? 0 : this.#clock.now() - stoppedAt;
      if (late > CANCEL_MS) this.faults.push(`${result.runId} was reported ${late} ms after its stop was durable`);
      if (result.termination === 'Cancelled' && hasBegun(log, result.runId) && !stopOf(log, result.runId))
        this.faults.push(`${result.runId} was reported as cancelled before its stop was durable`);
    });
  }

  #expect(receipt: Receipt): void {
    const message: Message = { receipt };
    this.#messages.push(message);
    const became = (outcome: 'delivered' | 'returned' | 'rejected') => (): void => {
      message.outcome = outcome;
    };
    void receipt.delivered.then((how) => became(how)(), became('rejected'));
  }

  async #decide(): Promise<void> {
    const count = (): number => this.#conversation.log().filter(({ type }) => type === 'decision').length;
    try {
      const receipt = await this.#conversation.decide({ callId: 'c1', action: 'approve' });
      if (receipt === 'applied' && count() !== 1)
        this.faults.push(`an applied decision is in the log ${count()} times`);
    } catch (error) {
      if (this.#isSound) this.faults.push(`a decision rejected: ${error}`);
    }
  }

  #checkLog(): void {
    const log = this.#conversation.log();
    this.faults.push(...logFaults(log));
    // A refused entry is not in the log; the next opening writes it.
    if (this.#trouble.kind !== 'refusing') this.faults.push(...restFaults(log));
    if (JSON.stringify(log) !== JSON.stringify(this.#store.stored)) this.faults.push('the store holds another log');
    const delivered = log.flatMap((entry) =>
      entry.type === 'user-message' && entry.kind === 'followUp' ? [entry.messageId] : [],
    );
    const accepted = this.#messages.map(({ receipt }) => receipt.messageId).filter((id) => delivered.includes(id));
    if (this.#isSound && String(delivered) !== String(accepted))
      this.faults.push(`follow-ups were delivered as ${delivered}, accepted as ${accepted}`);
  }

  #checkMessages(isClosed: boolean): void {
    const log = this.#conversation.log();
    const queued = new Set(this.#conversation.queue.map(({ messageId }) => messageId));
    for (const { receipt, outcome } of this.#messages) {
      const { messageId } = receipt;
      const isInLog = log.some((entry) => entry.type === 'user-message' && entry.messageId === messageId);
      const actual = isInLog ? 'delivered' : queued.has(messageId) ? 'queued' : 'returned';
      const outcomeOrQueued = outcome ?? 'queued';
      if (outcomeOrQueued === actual && !(isClosed && outcomeOrQueued === 'queued')) continue;
      // The message could not be taken off the queue, so it may still be delivered.
      if (outcomeOrQueued === 'rejected' && !this.#isSound) continue;
      this.faults.push(
        `${messageId} is ${actual} in the log, its receipt is ${outcomeOrQueued}${isClosed ? ' after the close' : ''}`,
      );
    }
  }

  #checkRun({ id }: Run, result: RunResult | undefined): void {
    const log = this.#conversation.log();
    const say = (what: string): void => void this.faults.push(`the run ${id}: ${what}`);
    if (!result) return say('has no result after the close');
    const { runId, termination, cause, reason } = result;
    const stop = stopOf(log, runId);
    const waits = log.some((entry) => entry.type === 'run-suspended' && entry.runId === runId);
    if (termination === 'Error') {
      if (this.#isSound || cause !== 'store') say(`ended as ${termination}, cause ${cause}, ${result.error?.message}`);
    } else if (termination === 'Suspended') {
      if (!waits) say('is reported as suspended, and is not in the log');
    } else if (hasBegun(log, runId) && stop?.reason !== reason)
      say(`is reported as ${reason}, and the log has ${stop?.reason}`);
    else if (!hasBegun(log, runId) && stop) say('has not begun, and has a stop');
  }
}

/** The faults of a life, and the number of appends that its acts led to. */
export async function livedWith(order: Order, trouble: Trouble): Promise<{ faults: string[]; appends: number }> {
  const clock = new VirtualClock(1_000_000, 1);
  const store = new OrderStore(clock);
  const faults: string[] = [];
  let ids = 0;
  const agent = createAgent({
    model: modelOf(order.start, faults),
    store,
    tools: [gate, ask],
    policies: { whileActive: 'followUp', whileSuspended: order.start === 'replaceable' ? 'denyAndRun' : 'followUp' },
    ports: {
      now: clock.now,
      setTimer: clock.setTimer,
      random: () => 0,
      newId: () => {
        ids += 1;
        return `m${ids}`;
      },
    },
  });
  const conversation = await agent.open('c');
  const life = new Life(order, trouble, { clock, store, conversation, faults });
  try {
    await life.live();
  } catch (error) {
    faults.push(`thrown: ${error instanceof Error ? error.stack : error}`);
  }
  return { faults, appends: store.tried };
}
