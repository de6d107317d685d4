/** Where a conversation stands now, read off its chart. Rule: it is ahead of the log by what is not durable yet. */
import type { AnyActorRef, SnapshotFrom } from 'xstate';
import type { conversationMachine, QueuedMessage } from '../machines/index.ts';
import type { ConversationStatus } from './live.ts';

export class Standing {
  readonly #root: AnyActorRef;

  constructor(root: AnyActorRef) {
    this.#root = root;
  }

  get status(): ConversationStatus {
    const value = this.#snapshot.value as string | { [key: string]: string };
    if (typeof value === 'string') return value === 'waiting' ? 'waiting' : value === 'closing' ? 'cancelling' : 'idle';
    if (value.busy) return value.busy === 'cancelling' ? 'cancelling' : 'active';
    return value.idle === 'error' ? 'error' : 'idle';
  }

  /** A message would start a run now. */
  get isIdle(): boolean {
    const { status } = this;
    return status === 'idle' || status === 'error';
  }

  /** The run under way. */
  get runId(): string | undefined {
    const { children, context } = this.#snapshot;
    return children.run ? context.runId : undefined;
  }

  /** Messages that were accepted and are not delivered. */
  get queue(): readonly QueuedMessage[] {
    return this.#snapshot.context.queue;
  }

  get #snapshot(): SnapshotFrom<typeof conversationMachine> {
    return this.#root.getSnapshot();
  }
}
