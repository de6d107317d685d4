/**
 * One conversation through random lives: acts of a host at random moments, failing stores, deaths and openings.
 * Invariant: the seed determines everything, time is virtual, and the last life has a working store. The durable log
 * and the answers to the host are checked.
 */
import { z } from 'zod';
import type { Decision, Json, ModelPart, Policies, Run, ToolContext } from '../../src/index.ts';
import { type Conversation, createAgent, defineTool, type LogEntry, type Model, ModelError } from '../../src/index.ts';
import { pairingFaults } from '../../src/testing/pairingFaults.ts';
import { type FaultyStore, faultyStore, randomFates } from './faultyDisk.ts';
import { logFaults, queuedIn, restFaults } from './logRules.ts';
import { type Chance, chance } from './seededChance.ts';
import { VirtualClock } from './virtualClock.ts';

const QUIET_MS = 30_000;

const isUnfinished = ({ status, queue, pending }: Conversation): boolean =>
  status === 'waiting' || queue.length + pending.length > 0;

class Lives {
  readonly log: LogEntry[] = [];
  readonly faults: string[] = [];
  readonly #chance: Chance;
  readonly #clock = new VirtualClock();
  readonly #ran = new Map<string, number>();
  /** The answers that the host received; the log must agree with each. */
  readonly #answers: { what: string; holds(entry: LogEntry): boolean }[] = [];
  readonly #policies: Partial<Policies>;
  #ids = 0;
  #replies = 0;
  /** Recorded process by process: acts of a dead process do not count. */
  #life = 0;

  constructor(seed: number) {
    this.#chance = chance(seed);
    const { one } = this.#chance;
    this.#policies = {
      toolExecution: one(['parallel', 'sequential']),
      onPartialSuspend: one(['continue', 'wait']),
      decisionsDuringRound: one(['immediate', 'atGate']),
      whileSuspended: one(['followUp', 'denyAndRun']),
      whileActive: one(['followUp', 'steer']),
      promoteFollowUpOn: one([['completed', 'interrupted', 'error'], ['completed']]),
      onRestart: one(['idle', 'replayDecided']),
      partialReply: one(['discard', 'keep']),
    };
  }

  async run(): Promise<void> {
    const lives = 1 + this.#chance.below(3);
    for (let life = 0; life < lives; life++) await this.#live();
    await this.#last();
  }

  #fault(text: string): void {
    this.faults.push(text);
  }

  #id(prefix: string): string {
    this.#ids += 1;
    return `${prefix}${this.#ids}`;
  }

  #pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#clock.setTimer(ms, resolve);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }

  #call(): ModelPart {
    const name = this.#chance.one(['echo', 'slow', 'deaf', 'boom', 'ask', 'ask', 'same', 'missing']);
    return { type: 'tool-call', callId: this.#id('c'), name, args: '{}' };
  }

  #model(): Model {
    const lives = this;
    const random = this.#chance;
    return {
      id: 'random',
      async *stream(request, { signal }): AsyncGenerator<ModelPart> {
        for (const fault of pairingFaults(request.messages)) lives.#fault(`a request: ${fault}`);
        lives.#replies += 1;
        const kind =
          lives.#replies > 40
            ? 'text'
            : random.one(['text', 'text', 'calls', 'calls', 'calls', 'slow', 'late', 'empty', 'down', 'wrong']);
        if (kind === 'down') throw new ModelError({ code: 'server', status: 500 });
        if (kind === 'wrong') throw new ModelError({ code: 'bad-request', status: 400 });
        if (kind === 'slow') await lives.#pause(random.one([20, 70, 200]), signal);
        if (kind !== 'empty') yield { type: 'text-delta', text: 'words' };
        if (kind === 'late') await lives.#pause(150);
        const count = kind === 'calls' || kind === 'late' ? 1 + random.below(3) : 0;
        for (let made = 0; made < count; made++) yield lives.#call();
        yield { type: 'finish', reason: count > 0 ? 'tool-calls' : 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
      },
    };
  }

  /** Called when a tool starts: the log must permit it. */
  #begins({ callId }: ToolContext, name: string): void {
    const entries = this.log.filter((entry) => 'callId' in entry && entry.callId === callId);
    const count = (type: LogEntry['type']): number => entries.filter((entry) => entry.type === type).length;
    const retries = entries.filter((entry) => entry.type === 'call-settled' && 'retry' in entry.how).length;
    const ran = (this.#ran.get(callId) ?? 0) + 1;
    this.#ran.set(callId, ran);
    if (count('tool-started') === 0) this.#fault(`${callId} began before that was on record`);
    if (count('tool-result') > retries) this.#fault(`${callId} ran after its result`);
    if (ran > 1 + retries && name !== 'same') this.#fault(`${callId} ran ${ran} times`);
    const decided = entries.some((entry) => entry.type === 'decision' && entry.decision.action !== 'deny');
    if (name === 'ask' && !decided) this.#fault(`${callId} ran without a decision on record`);
  }

  #tools() {
    const life = this.#life;
    const tool = (name: string, work: (context: ToolContext) => unknown, more: object = {}) =>
      defineTool({
        name,
        description: name,
        parameters: z.object({}),
        ...more,
        execute: (_, context) => {
          if (life !== this.#life) return new Promise(() => undefined);
          this.#begins(context, name);
          return work(context);
        },
      });
    return [
      tool('echo', () => 'ok'),
      tool('slow', async ({ signal }) => this.#pause(40, signal)),
      tool('deaf', async () => this.#pause(500)),
      tool('boom', () => Promise.reject(new Error('boom'))),
      tool('ask', () => 'done', { needsApproval: true }),
      tool('same', async () => this.#pause(30), { idempotent: true }),
    ];
  }

  async #open(store: FaultyStore): Promise<Conversation> {
    this.#life += 1;
    const { now, setTimer } = this.#clock;
    const ports = { now, setTimer, random: () => 0, newId: () => this.#id('m') };
    const options = { model: this.#model(), tools: this.#tools(), store, ports };
    const opening = createAgent({ ...options, policies: this.#policies as object }).open('c');
    await this.#clock
      .until(
        opening.catch(() => undefined),
        1000,
      )
      .catch(() => undefined);
    const conversation = await Promise.race([opening, Promise.reject(new Error('the opening hangs'))]);
    const waiting = conversation.queue.map(({ messageId }) => messageId);
    if (waiting.join() !== queuedIn(this.log).join())
      this.#fault(`queued is ${waiting}, the log has ${queuedIn(this.log)}`);
    return conversation;
  }

  #tell(what: string, holds: (entry: LogEntry) => boolean): void {
    if (this.#answers.some((each) => each.what === what)) return;
    this.#answers.push({ what, holds });
  }

  #hear(run: Run): void {
    const life = this.#life;
    void run.result.then(({ runId, reason, termination, cause }) => {
      if (life !== this.#life || runId === '') return;
      if (reason === 'completed' && !this.log.some((entry) => entry.runId === runId)) return;
      if (reason === 'completed')
        this.#tell(`${runId} completed`, (entry) => entry.type === 'run-stop' && entry.runId === runId);
      if (termination === 'Suspended')
        this.#tell(`${runId} suspended`, (entry) => entry.type === 'run-suspended' && entry.runId === runId);
      if (cause === 'internal' || cause === 'executor') this.#fault(`${runId} ended with ${cause}`);
    });
  }

  #say(conversation: Conversation): void {
    const how = this.#chance.one(['send', 'steer', 'followUp'] as const);
    if (how === 'send') return this.#hear(conversation.send('words'));
    const { messageId, delivered } = conversation[how]('words');
    const life = this.#life;
    const heard = (outcome: string): void => {
      if (life !== this.#life || outcome !== 'delivered') return;
      this.#tell(`${messageId} delivered`, (entry) => entry.type === 'user-message' && entry.messageId === messageId);
    };
    // A failing store leaves the outcome open.
    delivered.then(heard, () => undefined);
  }

  #decide(conversation: Conversation): void {
    const ids = [...conversation.pending.map(({ callId }) => callId), 'c1', `c${this.#ids}`];
    const callId = ids[this.#chance.below(ids.length)] ?? 'c1';
    const how = this.#chance.one<object>([{ action: 'approve' }, { action: 'deny' }, { action: 'edit', args: {} }]);
    const decision = { callId, ...how } as Decision;
    const life = this.#life;
    const heard = (receipt: string): void => {
      if (life !== this.#life || (receipt !== 'applied' && receipt !== 'held')) return;
      this.#tell(`${callId} ${decision.action}`, (entry) => entry.type === 'decision' && entry.callId === callId);
    };
    conversation.decide(decision).then(heard, () => undefined);
  }

  #settle(conversation: Conversation): void {
    const [call] = conversation.unsettled;
    const how = this.#chance.one<{ ran: Json } | { didNotRun: true } | { retry: true }>([
      { ran: 1 },
      { didNotRun: true },
      { retry: true },
    ]);
    const life = this.#life;
    const heard = (answer: string): void => {
      if (call && life === this.#life && answer === 'applied')
        this.#tell(`${call.callId} settled`, (entry) => entry.type === 'call-settled' && entry.callId === call.callId);
    };
    if (call) conversation.settle(call.callId, how).then(heard, () => undefined);
  }

  #act(conversation: Conversation): void {
    const act = this.#chance.below(12);
    try {
      if (act < 4) this.#say(conversation);
      else if (act < 6) this.#decide(conversation);
      else if (act < 7) this.#settle(conversation);
      else if (act < 9) this.#hear(conversation.resume());
      else if (act < 11) void conversation.cancel();
      else void Promise.all([conversation.cancel(), conversation.cancel()]);
    } catch {
      // Busy, cancelling or full: the message was refused with an error.
    }
  }

  async #live(): Promise<void> {
    const store = faultyStore(this.log, this.#clock, randomFates(this.#chance), this.#chance.odds(0.4));
    const conversation = await this.#open(store).catch(() => undefined);
    if (!conversation) return store.kill();
    const acts = 3 + this.#chance.below(10);
    for (let count = 0; count < acts; count++) {
      this.#act(conversation);
      await this.#clock.advance(this.#chance.one([0, 0, 1, 20, 60, 150, 400]));
    }
    const end = this.#chance.one(['kill', 'close', 'quiet', 'quiet']);
    // The call rejects if the store no longer answers.
    if (end === 'close') void conversation.close().catch(() => undefined);
    if (end !== 'kill') await this.#clock.advance(QUIET_MS);
    const { status } = conversation;
    if (end === 'quiet' && !store.stuck && (status === 'active' || status === 'cancelling'))
      this.#fault(`is ${status} for ever`);
    store.kill();
    this.#life += 1;
    await this.#clock.advance(QUIET_MS);
    for (const fault of logFaults(this.log)) this.#fault(`life ${this.#life}: ${fault}`);
    for (const { what, holds } of this.#answers.splice(0))
      if (!this.log.some(holds)) this.#fault(`an answer was that ${what}, and the log does not contain that`);
  }

  async #decideAll(conversation: Conversation): Promise<void> {
    for (let round = 0; round < 30 && isUnfinished(conversation); round++) {
      for (const { callId } of conversation.pending)
        await conversation.decide({ callId, action: this.#chance.one(['approve', 'deny']) });
      this.#hear(conversation.resume());
      await this.#clock.advance(QUIET_MS);
    }
  }

  /** A process with a working store completes everything. */
  async #last(): Promise<void> {
    const conversation = await this.#open(faultyStore(this.log, this.#clock, () => 'stored', false));
    await this.#clock.advance(QUIET_MS);
    for (const fault of restFaults(this.log, (name) => name === 'same')) this.#fault(`opened: ${fault}`);
    await this.#decideAll(conversation);
    this.#replies = 1000;
    const { result } = conversation.send('the last words');
    await this.#clock.until(result, QUIET_MS).catch(() => this.#fault('the last run hangs'));
    await this.#decideAll(conversation);
    const { status } = conversation;
    if (status !== 'idle') this.#fault(`is ${status} in the end`);
    await conversation.close();
    for (const fault of restFaults(this.log)) this.#fault(`in the end: ${fault}`);
    if (this.#clock.waiting > 0) this.#fault(`${this.#clock.waiting} timers are left`);
  }
}

/** The faults in the lives of this seed; empty if there were none. */
export async function faultsOfSeed(seed: number): Promise<{ faults: readonly string[]; log: readonly LogEntry[] }> {
  const lives = new Lives(seed);
  try {
    await lives.run();
  } catch (error) {
    lives.faults.push(`thrown: ${error instanceof Error ? error.stack : String(error)}`);
  }
  return lives;
}
