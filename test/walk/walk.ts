/**
 * One random walk: a conversation over the real adapter and a strict server, with aborts, denials, approvals, failures,
 * steers, followUps, suspensions and restarts (B01). Invariant: the acts depend only on
 * the seed and the conversation's state, never on the time. The walk ends with every call decided and one last plain request.
 */
import { createTranscript } from '../../machines/index.ts';
import {
  type Agent,
  type Conversation,
  createAgent,
  type Decision,
  type DeepPartial,
  type LogEntry,
  type LogStore,
  memoryStore,
  type Policies,
  type Run,
} from '../../src/index.ts';
import { wireMessages } from '../../src/models/openai/chatRequest.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { restFaults } from '../support/logRules.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { messageFaults } from './requestFaults.ts';
import type { WalkServer } from './strictServer.ts';
import { randomAnswer } from './walkReplies.ts';
import { randomPolicies, walkPlugin, walkTools } from './walkSurroundings.ts';

export interface WalkReport {
  seed: number;
  /** Answered requests, and requests refused with 400. */
  requests: number;
  refused: number;
  restarts: number;
  faults: readonly string[];
  log: readonly LogEntry[];
}

const CALLS_MAX = 30;
const HANGS_MS = 30_000;

/** Waits between attempts are shortened. Limits that nothing should reach are unchanged. */
function setTimer(ms: number, fire: () => void): () => void {
  const timer = setTimeout(fire, ms >= 100 && ms < 30_000 ? ms / 1000 : ms);
  return () => clearTimeout(timer);
}

class Walk {
  requests = 0;
  refused = 0;
  restarts = 0;
  readonly faults: string[] = [];
  readonly #seed: number;
  readonly #server: WalkServer;
  readonly #chance: Chance;
  readonly #policies: DeepPartial<Policies>;
  readonly #window: number | undefined;
  #store: LogStore = memoryStore();
  #agent: Agent | undefined;
  #now: Conversation | undefined;
  #run: Run | undefined;
  #signal = new AbortController();
  #ids = 0;
  /** Only plain replies from now on. */
  #calm = false;
  #restart: (() => void) | undefined;

  constructor(seed: number, server: WalkServer) {
    this.#seed = seed;
    this.#server = server;
    this.#chance = chance(seed);
    this.#policies = randomPolicies(this.#chance);
    this.#window = this.#chance.odds(0.3) ? 3_000 : undefined;
  }

  async run(): Promise<readonly LogEntry[]> {
    await this.#open();
    const steps = 3 + this.#chance.below(8);
    for (let step = 0; step < steps; step++) await this.#step();
    await this.#finish();
    const log = this.#conversation.log();
    await this.#agent?.close();
    this.#server.forget(this.#path);
    this.faults.push(...restFaults(log), ...transcriptFaults(log));
    return log;
  }

  get #conversation(): Conversation {
    if (!this.#now) throw new Error('no conversation is open');
    return this.#now;
  }

  get #path(): string {
    return `${this.#seed}-${this.restarts}`;
  }

  async #open(): Promise<void> {
    const answer = () => {
      this.requests += 1;
      return randomAnswer(this.#chance, () => this.#act(), this.#calm || this.requests > CALLS_MAX);
    };
    this.#server.serve(this.#path, answer, (faults) => {
      this.refused += 1;
      this.faults.push(...faults.map((fault) => `400: ${fault}`));
    });
    const baseURL = this.#server.baseURL(this.#path);
    const window = this.#window === undefined ? {} : { contextWindow: this.#window, maxOutputTokens: 100 };
    this.#agent = createAgent({
      model: openai('walker', { apiKey: 'walk-key-0123456789', baseURL, ...window }),
      instructions: 'Walk.',
      tools: walkTools(this.#chance, () => this.#perhaps()),
      plugins: [walkPlugin(this.#chance)],
      policies: this.#policies,
      store: this.#store,
      ports: { setTimer, random: () => 0, newId: () => `m${++this.#ids}` },
    });
    this.#now = await this.#agent.open('c');
  }

  /** The process ends regularly, or dies and leaves the durable entries of that moment. */
  async #reopen(): Promise<void> {
    const dies = this.#chance.odds(0.5);
    const durable = this.#conversation.log().slice();
    this.#server.forget(this.#path);
    await this.#agent?.close();
    this.restarts += 1;
    if (dies) {
      this.#store = memoryStore();
      const handle = await this.#store.open('c');
      await handle.append(durable, 0);
      await handle.close();
    }
    this.#run = undefined;
    await this.#open();
  }

  #perhaps(): void {
    if (this.#chance.odds(0.25)) this.#act();
  }

  /** An act of the host during a run. */
  #act(): void {
    if (this.#calm) return;
    const conversation = this.#conversation;
    const what = this.#chance.below(10);
    try {
      if (what === 0) void conversation.cancel();
      else if (what === 1) void this.#run?.cancel();
      else if (what === 2) this.#signal.abort();
      else if (what < 5) conversation.steer('turn left');
      else if (what === 5) conversation.followUp('then turn right');
      else if (what === 6) this.#restart?.();
      else this.#decide();
    } catch {
      // Refused with an error: closed, or busy.
    }
  }

  #decide(): void {
    const waiting = this.#conversation.pending;
    const call = waiting[this.#chance.below(waiting.length)];
    if (!call) return;
    const { callId, reason } = call;
    const plain: readonly [object, ...object[]] = [{ action: 'approve' }, { action: 'deny', reason: 'no' }];
    const more: object[] = [{ action: 'edit', args: this.#chance.one<object>([{ m: 'edited' }, { m: 1 }]) }];
    if (reason !== 'permission') more.push({ action: 'answer', payload: null });
    const how = this.#chance.odds(0.6) ? this.#chance.one(plain) : (more[this.#chance.below(more.length)] ?? plain[0]);
    this.#conversation.decide({ callId, ...how } as Decision).catch((error: Error) => {
      if (!/closed/.test(error.message)) this.faults.push(`a decision was refused: ${error.message}`);
    });
  }

  #begin(): Run {
    const conversation = this.#conversation;
    if (this.#chance.odds(0.3)) return conversation.resume();
    this.#signal = new AbortController();
    return conversation.send('walk on', this.#chance.odds(0.3) ? { signal: this.#signal.signal } : {});
  }

  async #step(): Promise<void> {
    for (let each = this.#chance.below(3); each > 0; each--) this.#decide();
    const [unsettled] = this.#conversation.unsettled;
    if (unsettled && this.#chance.odds(0.7)) {
      const how = this.#chance.one<{ ran: string } | { didNotRun: true } | { retry: true }>([
        { ran: 'it did' },
        { didNotRun: true },
        { retry: true },
      ]);
      await this.#conversation.settle(unsettled.callId, how);
    }
    if (this.#chance.odds(0.1)) return this.#reopen();
    try {
      this.#run = this.#begin();
    } catch {
      return;
    }
    const restarted = new Promise<'restart'>((resolve) => {
      this.#restart = () => resolve('restart');
    });
    const over = await this.#within(Promise.race([this.#run.result, this.#rest(), restarted]));
    this.#restart = undefined;
    if (over === 'restart') await this.#reopen();
  }

  /** A message may wait for a decision: then its run has no end yet. */
  async #rest(): Promise<void> {
    const conversation = this.#conversation;
    do await new Promise((resolve) => setTimeout(resolve, 1));
    while (conversation.status === 'active' || conversation.status === 'cancelling');
  }

  /** Every call is decided, and a last request succeeds. */
  async #finish(): Promise<void> {
    this.#calm = true;
    const conversation = this.#conversation;
    const open = (): boolean =>
      conversation.status !== 'idle' && conversation.status !== 'error'
        ? true
        : conversation.queue.length + conversation.pending.length > 0;
    for (let round = 0; round < 50 && open(); round++) {
      for (const { callId } of conversation.pending) await conversation.decide({ callId, action: 'approve' });
      await this.#within(Promise.race([conversation.resume().result, this.#rest()]));
    }
    const { termination, error } = await this.#within(conversation.send('the last one').result);
    if (termination === 'Suspended') await this.#again();
    else if (termination !== 'NaturalEnd' && termination !== 'Stopped')
      this.faults.push(`the last request ended as ${termination}: ${error?.message ?? ''}`);
    // It promotes the messages in the queue.
    await this.#within(this.#rest());
  }

  /** A call that was left waiting delays the last request. */
  async #again(): Promise<void> {
    for (const { callId } of this.#conversation.pending) await this.#conversation.decide({ callId, action: 'deny' });
    await this.#within(this.#conversation.resume().result);
  }

  #within<T>(promise: Promise<T>): Promise<T> {
    let stop = (): void => {};
    const late = new Promise<never>((_, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing ended it in ${HANGS_MS} ms`)), HANGS_MS);
      stop = () => clearTimeout(timer);
    });
    return Promise.race([promise, late]).finally(stop);
  }
}

/** At every commit the transcript is a valid request, except for the missing last word. */
function transcriptFaults(log: readonly LogEntry[]): string[] {
  const transcript = createTranscript();
  const faults: string[] = [];
  for (const entry of log) {
    transcript.push(entry);
    if (entry.type !== 'checkpoint') continue;
    const messages = transcript.messages();
    if (messages.length === 0) continue;
    for (const fault of messageFaults(wireMessages('', messages), false))
      faults.push(`at entry ${entry.seq}: ${fault}`);
  }
  return faults;
}

export async function walk(seed: number, server: WalkServer): Promise<WalkReport> {
  const path = new Walk(seed, server);
  const log = await path.run().catch((error: unknown): LogEntry[] => {
    path.faults.push(`thrown: ${error instanceof Error ? error.stack : String(error)}`);
    return [];
  });
  const { requests, refused, restarts, faults } = path;
  return { seed, requests, refused, restarts, faults: [...new Set(faults)], log };
}
