/**
 * The sub-agents of one conversation, by the calls that spawned them. Rule: what is known of them comes from the
 * conversation's own log and from theirs; when a call has its result, none of its sub-agents goes on.
 */
import {
  type CallRecord,
  type Decision,
  type DecisionReceipt,
  type Knowledge,
  type NewEntry,
  type PendingCall,
  type Settlement,
  type SubAgentChange,
  subAgentEntries,
} from '../../machines/internal.ts';
import type { Policies } from '../policies.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type ToolContext, type ToolResult, toolResult } from '../tools/tool.ts';
import { BEGUN, Brood } from './brood.ts';
import { overBudget } from './budget.ts';
import type { SpawnCast, SpawnCasts } from './cast.ts';
import { Child } from './child.ts';
import type { Claims } from './claims.ts';
import { type Found, keeperIn } from './keeper.ts';
import { type Birth, type Nest, type Nested, nestWithin } from './nested.ts';
import { PastCalls } from './past.ts';
import { Places } from './places.ts';
import { childIdOf, type Task, tasksOf } from './task.ts';
import { ToldBook } from './told.ts';
import { WAITS } from './waiting.ts';
import { type Word, wakeCall, wakingEntries } from './wake.ts';
import { openWard } from './ward.ts';

export interface NurseryOptions {
  id: string;
  runtime: Runtime;
  policies: Policies;
  spawns: SpawnCasts;
  /** Of its family. */
  claims: Claims;
  birth: Birth;
}

export class Nursery implements Nested {
  readonly #options: NurseryOptions;
  readonly #known: Knowledge;
  readonly #places: Places;
  readonly #told = new ToldBook();
  readonly #broods = new Map<string, Brood>();
  readonly #past = new PastCalls();
  readonly #leaving = new Set<Promise<void>>();
  /** Takes what is to be stored while the conversation is opened: its chart does not run yet. */
  #opening: NewEntry[] | undefined;

  constructor(options: NurseryOptions) {
    const { runtime, claims, policies } = options;
    this.#options = options;
    this.#known = runtime.known;
    this.#places = new Places(policies.limits.subAgents);
    claims.join(runtime.known);
    nestWithin(runtime.known, this);
    for (const entry of runtime.log.entries) this.#told.learn(entry);
    runtime.log.listen((entry) => {
      this.#told.learn(entry);
      const brood = entry.type === 'tool-result' ? this.#broods.get(entry.callId) : undefined;
      if (brood && entry.type === 'tool-result') void this.#dissolve(entry.callId, brood);
    });
  }

  get pending(): readonly PendingCall[] {
    return this.#atWork.flatMap((brood) => brood.pending);
  }

  get unsettled(): readonly PendingCall[] {
    return this.#atWork.flatMap((brood) => brood.unsettled);
  }

  waitsWithin({ callId, reason }: CallRecord): boolean {
    return reason === WAITS && this.#broods.has(callId);
  }

  find(callId: string): Found | undefined {
    return keeperIn(this.#broods, callId) ?? this.#past.find(callId);
  }

  async decide(decision: Decision): Promise<DecisionReceipt> {
    const found = keeperIn(this.#broods, decision.callId);
    if (!found) return this.#past.receipt(decision);
    const receipt = await found.child.decide(decision);
    if (receipt === 'applied' || receipt === 'held' || receipt === 'duplicate') {
      await found.brood.decided(found.child, decision);
    }
    return receipt;
  }

  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    const found = keeperIn(this.#broods, callId);
    const answer = (await found?.child.settle(callId, how)) ?? 'unknown';
    if (found && answer === 'applied' && 'retry' in how) await found.brood.decided(found.child, { callId });
    return answer;
  }

  claims(callId: string): boolean {
    return this.#options.claims.claim(this.#known, callId);
  }

  async raise(tasks: readonly Task[], context: ToolContext): Promise<ToolResult> {
    const brood = this.#broodOf(context.callId, tasks);
    if (brood && context.decision?.action === 'edit' && !brood.isFor(tasks))
      return toolResult.error(BEGUN, 'invalid_arguments');
    if (brood) return brood.raise(context);
    return toolResult.error('No sub-agents are allowed here (limits.subAgents). None was started.', 'limit');
  }

  /** The sub-agents of a call that is open wait for it to go on; those of a call that has its result are ended. */
  async restore(): Promise<NewEntry[]> {
    const entries: NewEntry[] = [];
    this.#opening = entries;
    for (const { callId, unended } of this.#told.calls()) {
      const record = this.#known.calls.get(callId);
      const over = this.#isOver(callId);
      const brood = record && (unended || !over) ? this.#broodOf(callId, tasksOf(record.args)) : undefined;
      if (!record || !brood) continue;
      if (over) await this.#dissolve(callId, brood);
      else for (const child of brood.children) await child.rejoin();
      // What was decided when the process died is to be gone on with.
      if (record.status === 'suspended' && this.waitsWithin(record) && brood.goesOn) {
        entries.push(...wakingEntries(this.#known, callId));
      }
    }
    this.#opening = undefined;
    return entries;
  }

  async close(): Promise<void> {
    await Promise.all(this.#leaving);
    for (const brood of this.#broods.values()) for (const child of brood.children) await child.close();
    this.#options.claims.leave(this.#known);
  }

  get #atWork(): Brood[] {
    return [...this.#broods].flatMap(([callId, brood]) => (this.#isOver(callId) ? [] : [brood]));
  }

  #isOver(callId: string): boolean {
    return this.#known.calls.get(callId)?.status === 'ended';
  }

  #dissolve(callId: string, brood: Brood): Promise<void> {
    // A log that cannot be written keeps what it has; the next opening finds it.
    const left = brood.dissolve().catch(() => undefined);
    const gone = left.then(() => {
      this.#leaving.delete(gone);
      if (this.#broods.get(callId) === brood) this.#broods.delete(callId);
    });
    this.#leaving.add(gone);
    return gone;
  }

  /** Nothing where the call spawns nothing. */
  #broodOf(callId: string, tasks: readonly Task[]): Brood | undefined {
    const living = this.#broods.get(callId);
    const spawn = this.#options.spawns.get(this.#known.calls.get(callId)?.name ?? '');
    if (living || !spawn || spawn.most < 1) return living;
    const children = tasks.map((task) => this.#child(callId, task, spawn));
    const { resultBytes } = this.#options.policies.limits;
    const wake = (word: Word): Promise<void> => wakeCall(this.#options.runtime, callId, word);
    const brood = new Brood({ callId, children, most: spawn.most, places: this.#places, resultBytes, wake });
    this.#broods.set(callId, brood);
    return brood;
  }

  #child(callId: string, task: Task, spawn: SpawnCast): Child {
    const { id: conversationId, policies, claims, birth } = this.#options;
    const id = childIdOf(conversationId, callId, task.id);
    const parent = { conversationId, callId };
    const nest: Nest = (around) => new Nursery({ ...around, claims, spawns: new Map() });
    const uncounted = () =>
      [...this.#broods.values()].flatMap(({ children }) => children.flatMap((child) => child.uncounted ?? []));
    const broke = (): boolean => overBudget(policies.limits, this.#known.counters, uncounted);
    return new Child({
      task,
      told: this.#told.of(callId, id),
      open: async () => {
        const opened = await openWard({ id, parent, nest, spawn, broke, birth });
        this.#options.runtime.live.join(opened.runtime.live, callId);
        return opened;
      },
      tell: (change) => this.#tell({ type: 'sub-agent.changed', callId, conversationId: id, ...change }),
      asked: () => this.#broods.get(callId)?.tellWaiting(),
      left: (known) => {
        this.#past.keep(callId, known);
        claims.leave(known);
      },
    });
  }

  async #tell(change: SubAgentChange): Promise<void> {
    if (this.#opening) this.#opening.push(...subAgentEntries(null, change));
    else await this.#options.runtime.act(change);
  }
}
