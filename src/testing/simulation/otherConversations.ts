/**
 * Conversations beside the one that is simulated: another one of the same agent, and forks of it. Rule: each has a log of
 * its own, watched like the first; what is done in one is not seen in another.
 */
import { modelMessages } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { forkConversation } from '../../conversation/fork.ts';
import type { CallerChecks } from './watch/callerChecks.ts';
import { sameJson } from './watch/sameJson.ts';
import type { SimulatedStore } from './world/store.ts';
import { CONVERSATION, type World } from './world/world.ts';

const SECOND = 'neighbour';
const FORK = 'fork';

export class OtherConversations {
  #open: Conversation | undefined;
  #isOpening = false;
  readonly #world: World;
  readonly #store: SimulatedStore;
  readonly #callerChecks: CallerChecks;

  constructor(world: World, store: SimulatedStore, callerChecks: CallerChecks) {
    this.#world = world;
    this.#store = store;
    this.#callerChecks = callerChecks;
  }

  crashed(): void {
    this.#open = undefined;
    this.#isOpening = false;
  }

  /** Something happens in the other conversation. */
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
      this.#callerChecks.checkError('the other', error);
    }
  }

  #decides(conversation: Conversation, callId: string): void {
    conversation
      .decide({ callId, action: 'approve' })
      .catch((error: unknown) => this.#callerChecks.checkError('decide', error));
  }

  #opens(agent: Agent, id: string): void {
    if (this.#isOpening) return;
    const { processId } = this.#world;
    this.#isOpening = true;
    const opened = (conversation?: Conversation): void => {
      if (processId !== this.#world.processId) return;
      this.#isOpening = false;
      this.#open = conversation;
      if (conversation) this.#observes(conversation);
    };
    agent.open(id).then(opened, (error: unknown) => {
      opened();
      this.#callerChecks.checkError('open', error);
    });
  }

  /** Reads it as its entries come, as the first one is read. */
  #observes(conversation: Conversation): void {
    const { processId, profile } = this.#world;
    let appends = 0;
    conversation.log$(conversation.log().length).subscribe(() => {
      appends += 1;
      if (appends % profile.observesEvery === 0 && processId === this.#world.processId) this.#checkReads(conversation);
    });
  }

  #checkReads(conversation: Conversation): void {
    if (this.#store.falselyRefused.size > 0) return;
    const log = conversation.log();
    const same = sameJson(conversation.messages(), modelMessages(log));
    this.#world.check(same, 'READ', () => `the messages of ${conversation.id} are not those of its log`);
    const foreign = log.find((entry) => entry.conversationId !== conversation.id);
    this.#world.check(!foreign, 'I31', () => `the log of ${conversation.id} has entry ${foreign?.seq} of another`);
  }

  /** Nothing runs in another conversation. */
  get isAtRest(): boolean {
    const status = this.#open?.status;
    return !this.#isOpening && status !== 'active' && status !== 'cancelling';
  }

  /** Checks the other conversation at rest. */
  check(): void {
    const conversation = this.#open;
    const detail = (): string => `nothing is left to do and ${conversation?.id} is ${conversation?.status}`;
    this.#world.check(this.isAtRest, 'I6', detail);
    if (!conversation || this.#store.falselyRefused.size > 0) return;
    const stored = this.#store.logOf(conversation.id);
    const isWhole = sameJson(conversation.log(), stored);
    this.#world.check(isWhole, 'I22', () => `the log that ${conversation.id} shows is not the durable one`);
    this.#checkReads(conversation);
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
      this.#observes(this.#open);
      // The fork continues with copied calls, which keep their keys.
      this.#open.resume();
    } catch (error) {
      this.#callerChecks.checkError('fork', error);
    }
  }
}
