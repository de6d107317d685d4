/** What holds of the messages of a log. Rule: each is delivered or given back once, those that wait in their order. */
import type { LogEntry, QueuedMessage } from '../../../../machines/internal.ts';
import type { World } from '../world/world.ts';

export class MessageWatch {
  readonly places = new Map<string, 'queued' | 'delivered' | 'returned'>();
  /** Where each message that had to wait was queued. */
  readonly queuedAt = new Map<string, number>();
  #queue: { messageId: string; kind: QueuedMessage['kind'] }[] = [];
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  get queued(): readonly string[] {
    return this.#queue.map(({ messageId }) => messageId);
  }

  learn(entry: LogEntry): void {
    const world = this.#world;
    if (entry.type === 'message-queued') {
      const { messageId, kind } = entry;
      world.hold(!this.places.has(messageId), 'I29', () => `${messageId} is queued twice`);
      this.places.set(messageId, 'queued');
      this.queuedAt.set(messageId, entry.seq);
      this.#queue.push({ messageId, kind });
    } else if (entry.type === 'user-message' || entry.type === 'message-returned') {
      const { messageId } = entry;
      const before = this.places.get(messageId);
      const fine = before === undefined || before === 'queued';
      world.hold(fine, 'I1', () => `${entry.type} of ${messageId}, which is ${before}`);
      this.places.set(messageId, entry.type === 'user-message' ? 'delivered' : 'returned');
      this.#unqueue(entry);
    }
  }

  #unqueue({ type, messageId }: Extract<LogEntry, { type: 'user-message' | 'message-returned' }>): void {
    const { facts } = this.#world;
    const message = this.#queue.find((candidate) => candidate.messageId === messageId);
    if (!message) return;
    const before = this.#queue.slice(0, this.#queue.indexOf(message)).filter(({ kind }) => kind === message.kind);
    // One whose end a store refused is in the log's queue, and not in the living one. A beginning that a crash cut in two
    // is completed by the next process, and told by a copy.
    const overtaken = before.find((candidate) => !facts.hasLostMessage(candidate.messageId, 'ever'));
    const fits = type !== 'user-message' || !overtaken;
    this.#world.hold(fits, 'I29', () => `${messageId} overtakes ${overtaken?.messageId}`);
    this.#queue = this.#queue.filter((candidate) => candidate !== message);
  }
}
