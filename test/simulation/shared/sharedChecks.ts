/**
 * The rules for logs that several processes write, whatever happens to the processes. Invariant: the checks read the tables and the
 * answers of the clients, and no memory of a process.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { logFaults, restFaults } from '../../support/logRules.ts';
import type { StatementName } from './databaseModel.ts';
import type { Ask } from './sharedClients.ts';
import type { SharedWorld } from './sharedWorld.ts';

type Answer = readonly Record<string, unknown>[];
type OfMessage = Extract<LogEntry, { messageId: string }>;

const isMessage = (entry: LogEntry): entry is OfMessage =>
  entry.type === 'user-message' || entry.type === 'message-queued';

export class SharedChecks {
  /** Conversations that went from one process to another. */
  takeovers = 0;
  readonly #shared: SharedWorld;
  readonly #logs = new Map<string, LogEntry[]>();
  /** The process that took the lease last. */
  readonly #holders = new Map<string, string>();
  readonly #formerHolders = new Map<string, Set<string>>();
  /** All processes that took it. */

  constructor(shared: SharedWorld) {
    this.#shared = shared;
  }

  /** The durable entries. */
  logOf(id: string): readonly LogEntry[] {
    const log = this.#logs.get(id) ?? [];
    this.#logs.set(id, log);
    const stored = this.#shared.database.entries.get(id) ?? [];
    for (const { text } of stored.slice(log.length)) log.push(JSON.parse(text) as LogEntry);
    return log;
  }

  /** True if the process has lost the conversation and may not have noticed that yet. */
  isStale(process: string, id: string): boolean {
    return this.#holders.get(id) !== process && this.#formerHolders.get(id)?.has(process) === true;
  }

  /** A process that takes a conversation over excludes the former holder. */
  readonly executed = (process: string, name: StatementName, values: readonly unknown[], answer: Answer): void => {
    if (answer.length === 0) return;
    const id = String(values[0]);
    const holder = this.#holders.get(id);
    if (name === 'open') {
      if (holder !== undefined && holder !== process) this.takeovers += 1;
      this.#holders.set(id, process);
      this.#formerHolders.set(id, (this.#formerHolders.get(id) ?? new Set()).add(process));
    }
    if (name === 'append' || name === 'appendWithAnswers' || name === 'fence')
      this.#shared.check(
        holder === process,
        'EPOCH',
        () => `${name} of process ${process} on ${id} took effect, but process ${holder} holds it`,
      );
  };

  /** This rule applies at every moment. */
  growing(ids: readonly string[]): void {
    for (const id of ids) for (const fault of logFaults(this.logOf(id))) this.#shared.violate('LOG', `${id}: ${fault}`);
  }

  /** This rule applies when nothing is under way any more. */
  atRest(ids: readonly string[], asks: readonly Ask[]): void {
    const shared = this.#shared;
    for (const id of ids) {
      const log = this.logOf(id);
      for (const fault of restFaults(log, (name) => name === 'fetch')) shared.violate('REST', `${id}: ${fault}`);
      log.forEach((entry, seq) => {
        shared.check(entry.seq === seq, 'I3', () => `entry ${seq} of ${id} has seq ${entry.seq}`);
      });
      this.#countMessages(id, log, asks);
      this.#countDecisions(id, log);
    }
  }

  /** Each message counts once, however often it was sent. */
  #countMessages(id: string, log: readonly LogEntry[], asks: readonly Ask[]): void {
    const messages = log.filter(isMessage);
    for (const { conversation, kind, body, by, state, status, answer } of asks) {
      if (conversation !== id || body.content === undefined) continue;
      const own = messages.filter((entry) => JSON.stringify(entry).includes(JSON.stringify(body.content)));
      for (const type of ['user-message', 'message-queued'] as const) {
        const count = own.filter((entry) => entry.type === type).length;
        this.#shared.check(count <= 1, 'ONCE', () => `the ${kind} of ${by} is ${count} times in ${id} as ${type}`);
      }
      if (state === 'over' && status === 202)
        this.#shared.check(
          own.some(({ messageId }) => messageId === answer.messageId),
          'ONCE',
          () => `the ${kind} of ${by} was accepted and is not in ${id}`,
        );
    }
  }

  /** Each person decides a suspension once. */
  #countDecisions(id: string, log: readonly LogEntry[]): void {
    const seen = new Set<string>();
    for (const entry of log) {
      if (entry.type !== 'decision') continue;
      const key = `${entry.callId} ${entry.suspension} ${entry.decision.by}`;
      this.#shared.check(!seen.has(key), 'ONCE', () => `the decision of ${key} is in ${id} twice`);
      seen.add(key);
    }
  }
}
