/**
 * Other conversations beside the simulated one: another one of the same agent, and a fork. Invariant: each has its own
 * log.
 */
import type { Agent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { forkConversation } from '../../conversation/copies/fork.ts';
import type { SimulatedStore } from './world/simulatedStore.ts';
import { CONVERSATION, type SimulatedWorld } from './world/simulatedWorld.ts';

const SECOND = 'neighbour';
const FORK = 'fork';

export class OtherConversations {
  #open: Conversation | undefined;
  #isOpening = false;
  readonly #world: SimulatedWorld;
  readonly #store: SimulatedStore;

  constructor(world: SimulatedWorld, store: SimulatedStore) {
    this.#world = world;
    this.#store = store;
  }

  crashed(): void {
    this.#open = undefined;
    this.#isOpening = false;
  }

  /** Acts on the other conversation. */
  act(agent: Agent): void {
    const { tape } = this.#world;
    if (!this.#open) return this.#opens(agent, SECOND);
    const conversation = this.#open;
    try {
      const act = tape.pick(['send', 'send', 'resume', 'cancel', 'decide'] as const);
      if (act === 'send') conversation.send(`to the other ${tape.next(3)}`);
      else if (act === 'resume') conversation.resume();
      else if (act === 'cancel') void conversation.cancel();
      else for (const { callId } of conversation.pending) this.#decides(conversation, callId);
    } catch (error) {
      this.#world.checks.failed?.('the other', error);
    }
  }

  #decides(conversation: Conversation, callId: string): void {
    conversation
      .decide({ callId, action: 'approve' })
      .catch((error: unknown) => this.#world.checks.failed?.('decide', error));
  }

  #opens(agent: Agent, id: string): void {
    if (this.#isOpening) return;
    const { processId } = this.#world;
    this.#isOpening = true;
    const opened = (conversation?: Conversation): void => {
      if (processId !== this.#world.processId) return;
      this.#isOpening = false;
      this.#open = conversation;
      if (conversation) this.#world.checks.openedOther?.(conversation);
    };
    agent.open(id).then(opened, (error: unknown) => {
      opened();
      this.#world.checks.failed?.('open', error);
    });
  }

  /** The open conversation. */
  get conversation(): Conversation | undefined {
    return this.#open;
  }

  /** No other conversation has an active run. */
  get isAtRest(): boolean {
    const status = this.#open?.status;
    return !this.#isOpening && status !== 'active' && status !== 'cancelling';
  }

  /** Copies the log up to an entry, and continues the copy with the same agent. */
  async fork(agent: Agent): Promise<void> {
    const world = this.#world;
    const log = this.#store.logOf(CONVERSATION);
    const starts = log.filter(({ type }) => type === 'tool-started').map(({ seq }) => seq + 1);
    const until =
      starts.length > 0 && !world.tape.chance(0.3) ? world.tape.pick(starts) : 1 + world.tape.next(log.length);
    world.checks.forking?.(FORK);
    world.count('fork');
    try {
      await forkConversation(this.#store, CONVERSATION, FORK, until);
      this.#open = await agent.open(FORK);
      world.checks.openedOther?.(this.#open);
      // The fork continues with copied calls, which keep their keys.
      this.#open.resume();
    } catch (error) {
      this.#world.checks.failed?.('fork', error);
    }
  }
}
