/**
 * Sends the updates of a session in order, one at a time. Invariant: while the editor does not read, pieces of one text are joined, so
 * the queue is never longer than the conversation.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk';

export class UpdateQueue {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  readonly #waiting: SessionUpdate[] = [];
  #sending: Promise<void> | undefined;

  /** `send` rejects when the editor is gone. Updates are dropped from then on. */
  constructor(send: (update: SessionUpdate) => Promise<void>) {
    this.#send = send;
  }

  push(updates: readonly SessionUpdate[]): void {
    for (const update of updates) {
      const joined = joinedText(this.#waiting.at(-1), update);
      if (joined) this.#waiting[this.#waiting.length - 1] = joined;
      else this.#waiting.push(update);
    }
    if (this.#waiting.length > 0) this.#sending ??= this.#sendAll();
  }

  /** Resolves when everything was sent. */
  async drained(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    try {
      for (let update = this.#waiting.shift(); update; update = this.#waiting.shift()) await this.#send(update);
    } catch {
      // The connection is closed, which ends the session.
      this.#waiting.length = 0;
    } finally {
      this.#sending = undefined;
    }
  }
}

/** Joins two pieces of one text. Undefined for other updates. */
function joinedText(before: SessionUpdate | undefined, update: SessionUpdate): SessionUpdate | undefined {
  if (!before || !('messageId' in before) || !('messageId' in update)) return undefined;
  if (before.sessionUpdate !== update.sessionUpdate || before.messageId !== update.messageId) return undefined;
  if (before.content.type !== 'text' || update.content.type !== 'text') return undefined;
  return { ...update, content: { type: 'text', text: before.content.text + update.content.text } };
}
