/**
 * Plays a script on the real runtime, move by move. Invariant: an impossible move is an error that contains the state
 * of the conversation. After each move the agent has finished all its own work.
 */
import type { LogEntry, PendingCall } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import { type Conversation, openRun } from '../../conversation/conversation.ts';
import type { Run, RunResult } from '../../conversation/run.ts';
import { ConfigurationError } from '../../errors.ts';
import { duringOf, filling, inWords, type Move, type MoveOf, toolNames } from '../../scripts/moves.ts';
import { hasMethods } from '../../validation.ts';
import type { AgentWorld } from '../world/agentWorld.ts';
import { watchTimers } from './world/platformTimers.ts';
import { TESTED, TestWorld, type TestWorldOptions } from './world/testWorld.ts';

/** Creates the agent under test from the options of a world. */
export type MakeAgent = (world: AgentWorld) => Agent;

/** The state of a conversation between two moves. Calls are numbered from 1. */
export interface Standing {
  readonly status: Conversation['status'];
  /** A model call is open. */
  readonly model: boolean;
  /** The open model call asks for a summary. */
  readonly summary: boolean;
  readonly running: readonly number[];
  readonly waiting: readonly number[];
  readonly queued: number;
}

export function standingInWords({ status, model, summary, running, waiting, queued }: Standing): string {
  const calls = (numbers: readonly number[], what: string): string[] => numbers.map((call) => `call ${call} ${what}`);
  const facts = [
    ...(model ? ['the model is asked'] : []),
    ...(summary ? ['the model is asked for a summary'] : []),
    ...calls(running, 'runs'),
    ...calls(waiting, 'waits for a decision'),
    ...(queued > 0 ? [`${queued} in the queue`] : []),
  ];
  return [`the conversation is ${status}`, ...facts].join(', ');
}

const SUMMARY = 'so far';
const SPREAD = 'spread the world into it last: createAgent({ …, ...world })';
/** The real time that an act on the agent may take. */
const ACT_MS = 20_000;

async function limited<T>(act: Promise<T> | undefined, what: string): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${ACT_MS} ms`)), ACT_MS);
  });
  try {
    return await Promise.race([act, late]);
  } finally {
    clearTimeout(timer);
  }
}

const numberOf = (callId: string): number => Number(callId.slice('call'.length));

export interface ScriptRunOptions extends TestWorldOptions {
  /** Called with the agent of each process. */
  made?(agent: Agent): void;
}

export class ScriptRun {
  readonly world: TestWorld;
  readonly #script: Move[];
  readonly #make: MakeAgent;
  readonly #options: ScriptRunOptions;
  readonly #toolOf: (call: number) => string;
  #at = 0;
  #agent: Agent | undefined;
  #conversation: Conversation | undefined;
  #lastResult: RunResult | undefined;
  /** The results of the runs that have ended in this process, by id. */
  #results = new Map<string, RunResult>();
  /** The signals of the messages of this process, in the order in which they were sent. */
  #signals: AbortController[] = [];
  /** The ids in the log when this process opened it. */
  #earlierIds: ReadonlySet<string> = new Set();
  readonly #unwatch = watchTimers();
  /** The rejection of an act that nobody awaited. */
  #refusal: unknown;

  constructor(make: MakeAgent, script: readonly Move[], options: ScriptRunOptions) {
    this.#make = make;
    this.#options = options;
    this.#script = [...script];
    this.#toolOf = (call) => toolNames(this.#script)(call);
    this.world = new TestWorld({ ...options, madeEnd: (callId) => this.#madeEnd(numberOf(callId)) });
  }

  async begin(): Promise<void> {
    const agent: unknown = this.#make(this.world.around());
    if (!hasMethods(agent, 'open', 'close')) throw new ConfigurationError('agent() must give an agent of createAgent');
    this.#agent = agent as Agent;
    this.#options.made?.(this.#agent);
    this.#conversation = await limited(this.#agent.open(TESTED), 'open() of the agent');
    const { isStoring, journal } = this.world;
    const missing = [...(journal ? [] : ['ports']), ...(isStoring ? [] : ['store'])];
    if (missing.length > 0)
      throw new ConfigurationError(`the agent does not use the world's ${missing.join(' and ')}: ${SPREAD}`);
    await this.world.settled();
    this.#earlierIds = messageIdsIn(this.log);
  }

  /** Continues with a move that is not in the script. */
  async goOn(move: Move): Promise<void> {
    this.#script.splice(this.#at, this.#script.length, move);
    await this.move();
  }

  /** Performs the next move. Rejects if the move is impossible now. */
  async move(): Promise<void> {
    const move = this.#script[this.#at] as Move;
    this.#at += 1;
    try {
      const during = duringOf(move);
      if (during !== undefined && !this.world.journal?.isHolding)
        throw this.#impossible(`nothing is under way in ${during}`);
      // An interrupted activity ends after the move, not before it.
      if (during === undefined) this.world.stopIn(duringOf(this.#script[this.#at]));
      await limited(this.#do(move), 'the move');
      await this.world.settled();
      if (during !== undefined) {
        this.world.stopIn(duringOf(this.#script[this.#at]));
        await this.world.settled();
      }
      if (this.#refusal !== undefined) throw this.#refusal;
    } catch (error) {
      const moveInWords = `move ${this.#at} (${inWords(move, this.#toolOf)})`;
      throw new Error(`${moveInWords}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }

  get standing(): Standing {
    const { journal, model } = this.world;
    const { status, queue } = this.conversation;
    const running = [...(journal?.open.values() ?? [])].flatMap((request) =>
      request.kind === 'tool' ? [numberOf(request.callId)] : [],
    );
    const asksSummary = this.#asksSummary;
    // If a call waits for a person, the calls inside it wait too.
    const suspended = suspendedIn(this.log);
    const waiting = this.pending.flatMap(({ callId, path }) => {
      const own = path[0] ?? callId;
      return path.length < 2 || suspended.has(own) ? [numberOf(own)] : [];
    });
    return {
      status,
      model: model.open !== undefined && !asksSummary,
      summary: asksSummary,
      running: running.sort((a, b) => a - b),
      waiting: [...new Set(waiting)].sort((a, b) => a - b),
      queued: queue.length,
    };
  }

  get conversation(): Conversation {
    if (!this.#conversation) throw new Error('the conversation is not open');
    return this.#conversation;
  }

  get pending(): readonly PendingCall[] {
    return this.conversation.pending;
  }

  get log(): readonly LogEntry[] {
    return this.conversation.log();
  }

  /** The log of the last process, or an empty list if the conversation was never open. */
  get lastLog(): readonly LogEntry[] {
    return this.#conversation?.log() ?? [];
  }

  get moves(): number {
    return this.#at;
  }

  /** The result of the last run that has ended in the current process. */
  get result(): RunResult | undefined {
    return this.#lastResult;
  }

  /**
   * The result of the last run that began. If no run began, it is the result of the last `resume()`. It can be read after the
   * conversation is closed.
   */
  async resultAtEnd(): Promise<RunResult | undefined> {
    const { log } = this;
    const begun = log.filter(({ type }) => type === 'run-started' || type === 'run-resumed').at(-1)?.runId ?? undefined;
    if (begun === undefined) return this.#lastResult;
    const result = this.#results.get(begun);
    const isStopped = log.some(({ type, runId }) => type === 'run-stop' && runId === begun);
    // A run that waits may be cancelled later. Only the log has its end then.
    if (result && (result.termination !== 'Suspended' || !isStopped)) return result;
    return openRun(this.conversation, begun).result;
  }

  /**
   * Closes the agent and ends everything that still runs. Rejects if that takes too long, or if timers remain for
   * longer than `timersMs`.
   */
  async end(timersMs = 0): Promise<void> {
    const { world } = this;
    const { tools, clock } = world;
    try {
      world.stopIn(undefined);
      await limited(this.#agent?.close(), 'close() of the agent');
      await world.settled();
      if (clock.waiting > 0)
        throw new Error(`timer: ${clock.waiting} timers are left on the agent's clock after its close()`);
      if (timersMs > 0) await world.until(() => tools.leaving.length === 0, timersMs);
      const [leaving] = timersMs > 0 ? tools.leaving : [];
      if (leaving)
        throw new Error(
          `timer: ${leaving.definition.name} left a timer that still runs after the close() of the agent`,
        );
    } finally {
      this.#unwatch();
      tools.clearTimers();
    }
  }

  async #do(move: Move): Promise<void> {
    const { world, conversation } = this;
    switch (move.do) {
      case 'send':
      case 'steer':
      case 'followUp':
        return this.#say(move);
      case 'cancel':
        return void conversation.cancel().catch((error: unknown) => this.#refused(error));
      case 'resume':
        return this.#follow(conversation.resume());
      case 'crash':
        return this.#crash(move);
      case 'takeBack':
        return this.#takeBack();
      case 'deadline':
        if (!world.clock.ring((owner) => owner === 'deadline')) throw this.#impossible('no time limit runs');
        return;
      case 'reply':
        if (this.#asksSummary) throw this.#impossible('the model is asked for a summary: sumUp');
        if (!world.model.reply(move)) throw this.#impossible('the model is not asked');
        return;
      case 'sumUp':
        if (!this.#asksSummary || !world.model.reply({ text: SUMMARY }))
          throw this.#impossible('no summary is asked for');
        return;
      case 'modelFails':
        if (!world.model.fail(move.retryable)) throw this.#impossible('the model is not asked');
        return;
      case 'tool':
        return this.#endTool(move);
      case 'decide':
        return this.#decide(move);
      case 'settle':
        return this.#settle(move);
    }
  }

  get #asksSummary(): boolean {
    return [...(this.world.journal?.open.values() ?? [])].some(({ kind }) => kind === 'summary');
  }

  #say({
    do: kind,
    fills,
    text = fills === undefined ? kind : filling(fills),
  }: Extract<Move, { text?: string; do: 'send' | 'steer' | 'followUp' }>): void {
    const controller = new AbortController();
    const { signal } = controller;
    const run = this.conversation.send(text, kind === 'send' ? { signal } : { kind, signal });
    this.#signals.push(controller);
    this.#follow(run);
  }

  #follow(run: Run): void {
    const agent = this.#agent;
    void run.result.then((result) => {
      if (agent !== this.#agent) return;
      this.#lastResult = result;
      this.#results.set(result.runId, result);
    });
  }

  async #takeBack(): Promise<void> {
    const last = this.conversation.queue.at(-1);
    if (!last) throw this.#impossible('no message waits');
    // The log has the messages of this process in the order in which they were sent.
    const ids = [...messageIdsIn(this.log)].filter((id) => !this.#earlierIds.has(id));
    this.#signals[ids.indexOf(last.messageId)]?.abort();
    await this.world.settled();
    const isWaiting = this.conversation.queue.some(({ messageId }) => messageId === last.messageId);
    if (isWaiting) throw this.#impossible('the message that waits belongs to a process or a run that has ended');
  }

  async #crash({ lost }: MoveOf<'crash'>): Promise<void> {
    if (lost !== undefined) {
      if (!this.standing.running.includes(lost)) throw this.#impossible(`call ${lost} does not run`);
      await this.world.toolsEnd();
    }
    this.world.crash();
    this.#signals = [];
    this.#lastResult = undefined;
    this.#results = new Map();
    await this.begin();
  }

  async #endTool({ call, made }: MoveOf<'tool'>): Promise<void> {
    const { journal, tools } = this.world;
    const request = [...(journal?.open.values() ?? [])].find(
      (open) => open.kind === 'tool' && numberOf(open.callId) === call,
    );
    if (!request) throw this.#impossible(`call ${call} does not run`);
    if (made === 'timeOut') tools.of(`call${call}`)[0]?.timeOut?.();
    journal?.release(request.id);
  }

  async #decide({ call, action, args, payload }: MoveOf<'decide'>): Promise<void> {
    const pending = this.pending.filter(({ callId, path }) => numberOf(path[0] ?? callId) === call);
    if (pending.length === 0) throw this.#impossible(`call ${call} waits for no decision`);
    for (const { callId, args: own } of pending) {
      const base = { callId, by: 'script' };
      if (action === 'edit') await this.conversation.decide({ ...base, action, args: args ?? own });
      else if (action === 'answer') await this.conversation.decide({ ...base, action, payload: payload ?? 'answer' });
      else await this.conversation.decide({ ...base, action });
    }
  }

  async #settle({ call, how, result }: MoveOf<'settle'>): Promise<void> {
    const settlements = {
      ran: { ran: result ?? 'done' },
      didNotRun: { didNotRun: true },
      retry: { retry: true },
    } as const;
    const answer = await this.conversation.settle(`call${call}`, settlements[how]);
    if (answer === 'unknown') throw this.#impossible(`the outcome of call ${call} is known`);
  }

  /**
   * Returns how the script ends the next execution. The first matching move decides, and nothing ends after a crash.
   */
  #madeEnd(call: number): 'fail' | 'timeOut' | undefined {
    for (const move of this.#script.slice(this.#at)) {
      if (move.do === 'tool' && move.call === call) return move.made;
      if (move.do === 'crash') return undefined;
    }
    return undefined;
  }

  #impossible(why: string): Error {
    return new Error(`${why}; ${standingInWords(this.standing)}`);
  }

  #refused(error: unknown): void {
    this.#refusal ??= error;
  }
}

/** Returns the ids of messages, in the order in which the log names them first. */
const messageIdsIn = (log: readonly LogEntry[]): Set<string> =>
  new Set(
    log.flatMap((entry) => (entry.type === 'message-queued' || entry.type === 'user-message' ? [entry.messageId] : [])),
  );

/** Returns the calls whose last entry is a suspension. */
function suspendedIn(log: readonly LogEntry[]): Set<string> {
  const suspendedIds = new Set<string>();
  for (const entry of log) {
    if (entry.type === 'tool-suspended') suspendedIds.add(entry.callId);
    else if (entry.type === 'tool-started' || entry.type === 'tool-result') suspendedIds.delete(entry.callId);
  }
  return suspendedIds;
}
