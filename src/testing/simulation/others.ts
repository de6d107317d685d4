/**
 * Conversations beside the one that is simulated: another one of the same agent, and forks of it. Rule: each has a log of
 * its own, watched like the first; what is done in one is not seen in another.
 */
import { modelMessages } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { forkConversation } from '../../conversation/fork.ts';
import { sameJson } from './watch/sameJson.ts';
import type { Told } from './watch/told.ts';
import type { SimulatedStore } from './world/store.ts';
import { CONVERSATION, type World } from './world/world.ts';

const NEIGHBOUR = 'neighbour';
const FORK = 'fork';

export class Others {
  #open: Conversation | undefined;
  #isOpening = false;
  readonly #world: World;
  readonly #store: SimulatedStore;
  readonly #told: Told;

  constructor(world: World, store: SimulatedStore, told: Told) {
    this.#world = world;
    this.#store = store;
    this.#told = told;
  }

  crashed(): void {
    this.#open = undefined;
    this.#isOpening = false;
  }

  /** Something happens in the other conversation. */
  act(agent: Agent): void {
    const { tape } = this.#world;
    if (!this.#open) return this.#opens(agent, NEIGHBOUR);
    const conversation = this.#open;
    try {
      const act = tape.pick(['send', 'send', 'resume', 'cancel', 'decide'] as const);
      if (act === 'send') conversation.send(`to the other ${tape.next(3)}`);
      else if (act === 'resume') conversation.resume();
      else if (act === 'cancel') void conversation.cancel();
      else for (const { callId } of conversation.pending) this.#decides(conversation, callId);
    } catch (error) {
      this.#told.refused('the other', error);
    }
  }

  #decides(conversation: Conversation, callId: string): void {
    conversation.decide({ callId, action: 'approve' }).catch((error: unknown) => this.#told.refused('decide', error));
  }

  #opens(agent: Agent, id: string): void {
    if (this.#isOpening) return;
    const { life } = this.#world;
    this.#isOpening = true;
    const over = (conversation?: Conversation): void => {
      if (life !== this.#world.life) return;
      this.#isOpening = false;
      this.#open = conversation;
    };
    agent.open(id).then(over, (error: unknown) => {
      over();
      this.#told.refused('open', error);
    });
  }

  /** Nothing runs in another conversation. */
  get rests(): boolean {
    const status = this.#open?.status;
    return !this.#isOpening && status !== 'active' && status !== 'cancelling';
  }

  /** What holds of another conversation at rest. */
  holds(): void {
    const conversation = this.#open;
    const told = (): string => `nothing is left to do and ${conversation?.id} is ${conversation?.status}`;
    this.#world.hold(this.rests, 'I6', told);
    if (!conversation || this.#store.misled.size > 0) return;
    const log = this.#store.logOf(conversation.id);
    const same = sameJson(conversation.messages(), modelMessages(log));
    this.#world.hold(same, 'READ', () => `the messages of ${conversation.id} are not those of its log`);
  }

  /** Copies the log up to some entry, and goes on from there with the same agent. */
  async fork(agent: Agent): Promise<void> {
    const world = this.#world;
    const log = this.#store.logOf(CONVERSATION);
    const starts = log.filter(({ type }) => type === 'tool-started').map(({ seq }) => seq + 1);
    const until =
      starts.length > 0 && !world.tape.chance(0.3) ? world.tape.pick(starts) : 1 + world.tape.next(log.length);
    world.facts.forks.set(FORK, CONVERSATION);
    world.count('fork');
    try {
      await forkConversation(this.#store, CONVERSATION, FORK, until);
      this.#open = await agent.open(FORK);
      // What goes on there is what was copied: the same calls, with the keys of their first start.
      this.#open.resume();
    } catch (error) {
      this.#told.refused('fork', error);
    }
  }
}
