/**
 * One life of a conversation that a durable engine holds: people send, decide, settle and cancel, and attempts end at any point. The
 * invariants are those of every log, and the promises of `docs/promises.md` about tools.
 */
import { z } from 'zod';
import { applyEntry } from '../../../machines/internal.ts';
import { engineAgentOf } from '../../../src/agent.ts';
import { createAgent, defineTool, type LogEntry, subAgents, type Tool, type ToolContext } from '../../../src/index.ts';
import { emptyFolds, foldEntry } from '../../../src/log/conversationLog.ts';
import { type Model, ModelError, type ModelPart } from '../../../src/models/model.ts';
import type { EngineAttempt } from '../../../src/restate/chain/engineAttempt.ts';
import { holdConversation } from '../../../src/restate/chain/holdConversation.ts';
import { pendingWithin, WAITS } from '../../../src/runtime/subAgentPort.ts';
import type { Act } from '../../../src/stores/logStore.ts';
import { pairingFaults } from '../../../src/testing/pairingFaults.ts';
import { nextTurn } from '../../../src/timeLimit.ts';
import { partialResult } from '../../../src/tools/tool.ts';
import { logFaults, restFaults } from '../../support/logRules.ts';
import { type Chance, chance as seeded } from '../../support/seededChance.ts';
import { SimulatedEngine } from './simulatedEngine.ts';

export interface EngineReport {
  seed: number;
  log: readonly LogEntry[];
  violations: { invariant: string; detail: string }[];
  counts: Record<string, number>;
}

export interface EngineLife {
  seed: number;
  /** The probability that an attempt ends at each step. Default: drawn. */
  deaths?: number;
  /** Default: drawn. */
  onRestart?: 'idle' | 'replayDecided' | 'resume';
  /** The agent has a tool that spawns sub-agents. */
  hasSubAgents?: boolean;
  /** Models and tools fail and are called again after a wait, and runs have a time limit. */
  hasTimers?: boolean;
  /** The model replies after which another invocation continues. Default: drawn. */
  repliesMost?: number;
  /** The invocations after this number have another version of the charts. Default: none. */
  sameVersion?: number;
  /** The invocations after this number have an agent with another plugin. Default: none. */
  sameAgent?: number;
  /** Plants a mistake. */
  spoil?(invocation: EngineAttempt): EngineAttempt;
}

const ID = 'life';

class Tools {
  /** Starts by idempotency key. */
  readonly starts = new Map<string, number>();
  readonly #chance: Chance;
  readonly #broken: (invariant: string, detail: string) => void;
  /** The entries of the conversation and of its sub-agents. */
  readonly #log: () => readonly LogEntry[];

  constructor(chance: Chance, broken: (invariant: string, detail: string) => void, log: () => readonly LogEntry[]) {
    this.#chance = chance;
    this.#broken = broken;
    this.#log = log;
  }

  all(): Tool[] {
    return [
      this.#tool('once', {}),
      this.#tool('again', { idempotent: true }),
      this.#tool('ask', { needsApproval: true }),
      this.#tool('look', { readOnly: true, idempotent: true }),
    ];
  }

  #tool(name: string, options: { idempotent?: boolean; readOnly?: boolean; needsApproval?: boolean }): Tool {
    return defineTool({
      name,
      description: name,
      parameters: z.object({}),
      ...options,
      execute: (_, context) => this.#execute(name, context, options.idempotent === true),
    });
  }

  async #execute(name: string, context: ToolContext, isIdempotent: boolean) {
    const { callId, idempotencyKey, signal } = context;
    // Some print before they end.
    if (this.#chance.odds(0.5)) partialResult(context, () => `so far ${callId}`);
    const starts = (this.starts.get(idempotencyKey) ?? 0) + 1;
    this.starts.set(idempotencyKey, starts);
    const log = this.#log();
    const retries = log.filter((entry) => entry.type === 'call-settled' && entry.callId === callId).length;
    const repeats = log.filter((entry) => entry.type === 'notice' && entry.text.includes(` in call ${callId} `)).length;
    if (!isIdempotent && starts > 1 + retries + repeats)
      this.#broken('ONCE', `${name} ${callId} started ${starts} times`);
    const result = log.find((entry) => entry.type === 'tool-result' && entry.callId === callId);
    if (result && retries === 0 && !(result.type === 'tool-result' && result.outcome === 'unknown'))
      this.#broken('RESULT', `${name} ${callId} started after its result`);
    const isDeaf = this.#chance.odds(0.3);
    for (let turns = this.#chance.below(20); turns > 0; turns -= 1) {
      if (signal.aborted && !isDeaf) throw signal.reason;
      await nextTurn();
    }
    if (this.#chance.odds(0.15)) throw new Error('the tool failed');
    return `done ${callId}`;
  }
}

/** `failures`: how likely a call fails, and may succeed later. */
function modelOf(
  chance: Chance,
  broken: (invariant: string, detail: string) => void,
  failures: { odds(): boolean },
): Model {
  let calls = 0;
  return {
    id: 'drawn',
    async *stream({ messages, tools }, { signal }): AsyncIterable<ModelPart> {
      const faults = pairingFaults(messages);
      if (faults.length > 0) broken('I13', faults.join(', '));
      for (let turns = chance.below(8); turns > 0 && !signal.aborted; turns -= 1) await nextTurn();
      signal.throwIfAborted();
      if (failures.odds()) throw new ModelError({ code: 'server' });
      if (chance.odds(0.5)) yield { type: 'text-delta', text: `text ${calls}` };
      const wanted = chance.odds(0.65) ? 1 + chance.below(3) : 0;
      for (let call = 0; call < wanted && tools.length > 0; call += 1) {
        calls += 1;
        const name = tools[chance.below(tools.length)]?.name ?? 'once';
        yield { type: 'tool-call', callId: `call-${calls}`, name, args: argsOf(name, chance) };
        await nextTurn();
      }
      if (wanted === 0) yield { type: 'text-delta', text: 'the end' };
      yield { type: 'finish', reason: wanted > 0 ? 'tool-calls' : 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
    },
  };
}

function argsOf(name: string, chance: Chance): string {
  if (name === 'submit_result') return '{"result":"submitted"}';
  if (name !== 'spawn_agents') return '{}';
  const tasks = Array.from({ length: 1 + chance.below(3) }, (_, index) => ({ id: `${index}`, task: `task ${index}` }));
  return JSON.stringify({ tasks });
}

class People {
  #acts = 0;
  #messages = 0;
  readonly asked: Act[] = [];
  readonly #chance: Chance;
  readonly #engine: SimulatedEngine;

  constructor(chance: Chance, engine: SimulatedEngine) {
    this.#chance = chance;
    this.#engine = engine;
  }

  put(act: object): void {
    this.#acts += 1;
    const whole = { ...act, actId: `act-${this.#acts}` } as unknown as Act;
    this.asked.push(whole);
    this.#engine.put(whole);
    if (this.#chance.odds(0.1)) this.#engine.put(whole);
  }

  act(): void {
    const { waiting, unsettled } = stateOf(this.#engine);
    const run = runsOf(this.#engine.log).at(-1);
    const draw = this.#chance.next();
    if (draw < 0.3) this.send();
    else if (draw < 0.45) this.put({ type: 'cancel', ...(run && this.#chance.odds(0.5) && { runId: run }) });
    else if (draw < 0.55) this.put({ type: 'resume', resumptionId: `resumption-${this.#acts}` });
    else if (draw < 0.6) this.put({ type: 'rename', title: `title ${this.#acts}` });
    else if (draw < 0.7 && unsettled[0]) this.#settle(unsettled[0]);
    else if (waiting[0]) this.decide(waiting[0]);
    else this.send();
  }

  send(): void {
    this.#messages += 1;
    const kind = this.#chance.one<'steer' | 'followUp' | undefined>([undefined, undefined, 'steer', 'followUp']);
    const options = { messageId: `message-${this.#messages}`, ...(kind && { kind }) };
    this.put({ type: 'send', content: `hello ${this.#messages}`, options });
  }

  decide({ callId, suspension }: { callId: string; suspension: number }): void {
    const action = this.#chance.one<'approve' | 'deny'>(['approve', 'approve', 'deny']);
    this.put({
      type: 'decide',
      decision: { callId, suspension, action, by: 'somebody', ...(action === 'deny' && { reason: 'no' }) },
    });
  }

  #settle(callId: string): void {
    this.put({ type: 'settle', callId, how: this.#chance.odds(0.5) ? { retry: true } : { result: 'it ran' } });
  }
}

function stateOf({ log, logs }: SimulatedEngine) {
  const folds = emptyFolds();
  for (const entry of log) foldEntry(folds, entry);
  const { calls, unsettled, cycle, queue } = folds.logState;
  const waiting: { callId: string; suspension: number }[] = [...calls.values()]
    .filter(({ status }) => status === 'suspended')
    .flatMap<{ callId: string; suspension: number }>((call) =>
      call.reason === WAITS ? pendingWithin(call.callId, call.payload) : [call],
    );
  const within = [...logs.values()].flatMap(unsettledIn);
  return { waiting, unsettled: [...unsettled.keys(), ...within], cycle, queue, transcript: folds.transcript };
}

function unsettledIn(log: readonly LogEntry[]): string[] {
  const { logState } = emptyFolds();
  for (const entry of log) applyEntry(logState, entry);
  return [...logState.unsettled.keys()];
}

/** Lives one life. The same seed gives nearly the same life: work of one turn may finish in another order. */
export async function simulateEngine(life: EngineLife): Promise<EngineReport> {
  const { seed, deaths, spoil = (whole) => whole } = life;
  const chance = seeded(seed);
  const violations: EngineReport['violations'] = [];
  const broken = (invariant: string, detail: string): void => void violations.push({ invariant, detail });
  const tools = new Tools(seeded(seed + 1_000_003), broken, () => engine.entries);
  const timed = seeded(seed + 6_000_003);
  const retry = { attempts: 3, baseMs: timed.one([10, 5000]) };
  const options = {
    model: modelOf(seeded(seed + 2_000_003), broken, { odds: () => life.hasTimers === true && timed.odds(0.25) }),
    tools: [...tools.all(), ...(life.hasSubAgents ? [subAgents({ limits: { turns: 3 } })] : [])],
    policies: {
      // With a limit, sub-agents receive what the others have spent.
      limits: {
        turns: 8,
        ...(life.hasSubAgents && { tokens: 1_000_000 }),
        runMs: life.hasTimers ? timed.one<number | false>([false, 50, 5000]) : false,
      },
      ...(life.hasTimers && { modelRetry: retry, toolRetry: retry }),
      onRestart: life.onRestart ?? seeded(seed + 4_000_003).one(['idle', 'replayDecided', 'resume']),
      toolExecution: chance.one<'parallel' | 'sequential'>(['parallel', 'sequential']),
    },
  };
  const agent = engineAgentOf(createAgent(options));
  const other = engineAgentOf(createAgent({ ...options, plugins: [{ name: 'other', stepEnd: () => undefined }] }));
  if (!agent || !other) throw new Error('the agent is not of this process');
  const repliesMost = life.repliesMost ?? seeded(seed + 5_000_003).one([1, 2, 4, 50]);
  const { sameVersion = Number.POSITIVE_INFINITY, sameAgent = Number.POSITIVE_INFINITY } = life;
  const engine: SimulatedEngine = new SimulatedEngine({
    chance: seeded(seed + 3_000_003),
    conversationId: ID,
    deaths: deaths ?? chance.one([0, 0.05, 0.1, 0.2]),
    hold: (invocation) => {
      const { invocations } = engine.member(invocation.conversationId);
      return holdConversation({
        agent: invocations > sameAgent ? other : agent,
        invocation: spoil(invocation),
        repliesMost,
        ...(life.hasTimers && { beatMs: 3 }),
        // Each invocation stays with the version that began it.
        version: invocations > sameVersion ? 2 : 1,
      });
    },
    broken,
  });
  const people = new People(chance, engine);
  people.put({ type: 'open', cwd: '/', owner: 'somebody' });
  people.send();
  for (let acts = 2 + chance.below(6); acts > 0 && violations.length === 0; acts -= 1) {
    for (let turns = chance.below(60); turns > 0; turns -= 1) await nextTurn();
    people.act();
  }
  await settle(engine, people);
  if (!engine.isBroken) check(engine, people, tools, broken);
  await Promise.all([agent.close(), other.close()]);
  const { log, members } = engine;
  const sum = (count: (member: SimulatedEngine) => number): number =>
    members.reduce((all, each) => all + count(each), 0);
  const unknown = log.filter((entry) => entry.type === 'tool-result' && entry.outcome === 'unknown').length;
  const counts = {
    attempts: sum((member) => member.attempts),
    invocations: sum((member) => member.invocations),
    continued: sum((member) => member.continued),
    repeated: sum((member) => member.repeated),
    entries: log.length,
    subAgents: engine.logs.size,
    timers: sum((member) => member.timers),
    suspended: sum((member) => member.suspended),
    starts: tools.starts.size,
    unknown,
  };
  return { seed, log, violations, counts };
}

/** Decides about the waiting calls and resumes, until the conversation needs nothing more. */
async function settle(engine: SimulatedEngine, people: People): Promise<void> {
  // A life with sub-agents takes seconds of CPU, and others may use the machine.
  const limit = AbortSignal.timeout(100_000);
  const over = new Promise<never>((_, reject) => limit.addEventListener('abort', () => reject(new Error('no end'))));
  over.catch(() => undefined);
  for (let round = 0; round < 40; round += 1) {
    await Promise.race([engine.atRest(), over]);
    const { waiting, queue, cycle } = stateOf(engine);
    const [call] = waiting;
    const stop = engine.log.filter(({ type }) => type === 'run-stop').at(-1);
    // A cycle without time left ends as often as it is resumed.
    const isOver = queue.length === 0 || (stop?.type === 'run-stop' && stop.cause === 'timeout');
    if (engine.isBroken || (cycle !== 'suspended' && isOver)) return;
    if (call && round < 20) people.decide(call);
    else people.put({ type: 'cancel' });
    // A steer that came while only a settled call ran again waits for the next message.
    if (cycle !== 'suspended' && round > 20) people.send();
    people.put({ type: 'resume', resumptionId: `rest-${round}` });
  }
}

const runsOf = (log: readonly LogEntry[]): (string | null)[] =>
  log.filter(({ type }) => type === 'run-started' || type === 'run-resumed').map((entry) => entry.runId);
const ENDS: ReadonlySet<LogEntry['type']> = new Set(['run-stop', 'run-suspended']);

/** The run by which the engine continued this one after it had lost a tool. */
function continuationOf(log: readonly LogEntry[], runId: unknown): string | undefined {
  const runs = runsOf(log);
  const next = runs.includes(runId as string) ? runs[runs.lastIndexOf(runId as string) + 1] : undefined;
  const isCrashed = log.some((entry) => entry.runId === runId && entry.type === 'run-stop' && entry.cause === 'crash');
  return next && /^run_(resumed-\d+|opened-[-\d]+)$/.test(next) && isCrashed ? next : undefined;
}

function check(
  engine: SimulatedEngine,
  people: People,
  tools: Tools,
  broken: (invariant: string, detail: string) => void,
): void {
  const { log, logs, answers } = engine;
  for (const each of [log, ...logs.values()]) {
    for (const fault of logFaults(each)) broken('LOG', fault);
    for (const fault of restFaults(each, (name) => REPEATED.has(name))) broken('REST', fault);
  }
  checkSubAgents(engine, broken);
  const { cycle } = stateOf(engine);
  if (cycle === 'running') broken('I6', 'a run has no end');
  const random = runsOf(log).find((runId) => !/^run_(message|resumption|rest|resumed|opened)-/.test(String(runId)));
  if (random) broken('IDS', `the run ${random} has an id that no other attempt gives it`);
  for (const act of people.asked) {
    const answer = answers.get(act.actId);
    if (!answer) broken('ANSWER', `${JSON.stringify(act)} has no answer`);
    else if ('error' in answer && (answer.error.code === 'internal' || answer.error.code === 'closed'))
      broken('ANSWER', `${JSON.stringify(act)}: ${JSON.stringify(answer)}`);
    else if ('value' in answer && act.type === 'send') {
      const { messageId } = act.options as { messageId: string };
      if (!log.some((entry) => 'messageId' in entry && entry.messageId === messageId))
        broken('I9', `the message ${messageId} was accepted and is not in the log`);
    } else if ('value' in answer && act.type === 'cancel') {
      const entries = (answer.value as { entries: number }).entries;
      const next = continuationOf(log, act.runId);
      if (next && !log.some(({ type, runId, seq }) => ENDS.has(type) && runId === next && seq < entries))
        broken('CANCEL', `${act.runId} was cancelled and continues as ${next}`);
    }
  }
  for (const [key, starts] of tools.starts)
    if (starts > 0 && !engine.entries.some((entry) => entry.type === 'tool-started' && entry.idempotencyKey === key))
      broken('STARTED', `${key} ran and the log does not say so`);
}

const REPEATED: ReadonlySet<string> = new Set(['again', 'look', 'spawn_agents', 'submit_result']);

/** Each sub-agent has its start and its end in the log of its parent, and a log of its own that has ended. */
function checkSubAgents({ log, logs }: SimulatedEngine, broken: (invariant: string, detail: string) => void): void {
  const changes = log.flatMap((entry) => (entry.type === 'sub-agent' ? [entry] : []));
  for (const { child, callId } of changes) {
    const phases = changes.filter((change) => change.child === child).map(({ phase }) => phase);
    // A limit may end a run whose call waits.
    const isOver = log.some((entry) => entry.type === 'tool-result' && entry.callId === callId);
    if (phases.join() !== 'started,ended' && (isOver || phases.join() !== 'started'))
      broken('CHILD', `${child} has the phases ${phases.join()}`);
    const own = logs.get(child) ?? [];
    const { logState } = emptyFolds();
    for (const entry of own) applyEntry(logState, entry);
    const { cycle } = logState;
    if (cycle === 'running' || (isOver && cycle === 'suspended')) broken('CHILD', `${child} is ${cycle}`);
  }
  for (const id of logs.keys())
    if (!changes.some(({ child }) => child === id)) broken('CHILD', `${id} is not in the log of its parent`);
}
