/** Checks the messages of a log. Invariant: each message is delivered or returned once, and queued ones in order. */
import type { LogEntry, QueuedMessage } from '../../../machines/internal.ts';
import type { CheckedWorld } from './checkedWorld.ts';

export class MessageWatch {
  readonly places = new Map<string, 'queued' | 'delivered' | 'returned'>();
  /** The place at which each waiting message was queued. */
  readonly queuedAt = new Map<string, number>();
  #queue: { messageId: string; kind: QueuedMessage['kind'] }[] = [];
  readonly #world: CheckedWorld;

  constructor(world: CheckedWorld) {
    this.#world = world;
  }

  get queued(): readonly string[] {
    return this.#queue.map(({ messageId }) => messageId);
  }

  learn(entry: LogEntry): void {
    const world = this.#world;
    if (entry.type === 'message-queued') {
      const { messageId, kind } = entry;
      world.check(!this.places.has(messageId), 'I29', () => `${messageId} is queued twice`);
      this.places.set(messageId, 'queued');
      this.queuedAt.set(messageId, entry.seq);
      this.#queue.push({ messageId, kind });
    } else if (entry.type === 'user-message' || entry.type === 'message-returned') {
      const { messageId } = entry;
      const before = this.places.get(messageId);
      const fine = before === undefined || before === 'queued';
      world.check(fine, 'I1', () => `${entry.type} of ${messageId}, which is ${before}`);
      this.places.set(messageId, entry.type === 'user-message' ? 'delivered' : 'returned');
      this.#unqueue(entry);
    }
  }

  #unqueue({ type, messageId }: Extract<LogEntry, { type: 'user-message' | 'message-returned' }>): void {
    const { facts } = this.#world;
    const message = this.#queue.find((candidate) => candidate.messageId === messageId);
    if (!message) return;
    const before = this.#queue.slice(0, this.#queue.indexOf(message)).filter(({ kind }) => kind === message.kind);
    // A message whose delivery the store refused is still in the log's queue, but not in the conversation's. If a crash
    // cuts off the start of a run, the next process writes it with a copy of the message.
    const overtaken = before.find((candidate) => !facts.hasLostMessage(candidate.messageId, 'ever'));
    const fits = type !== 'user-message' || !overtaken;
    this.#world.check(fits, 'I29', () => `${messageId} overtakes ${overtaken?.messageId}`);
    this.#queue = this.#queue.filter((candidate) => candidate !== message);
  }
}
