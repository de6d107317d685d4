/** Checks the conversations beside the simulated one. Invariant: an act on one conversation does not affect another. */
import { modelMessages } from '../../../machines/internal.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { OtherConversations } from '../../../src/testing/simulation/otherConversations.ts';
import type { SimulatedStore } from '../../../src/testing/simulation/world/simulatedStore.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { sameJson } from './sameJson.ts';

export class OtherChecks {
  readonly #world: CheckedWorld;
  readonly #store: SimulatedStore;
  readonly #others: OtherConversations;

  constructor(world: CheckedWorld, store: SimulatedStore, others: OtherConversations) {
    this.#world = world;
    this.#store = store;
    this.#others = others;
  }

  /** Reads a conversation's entries as they arrive, like those of the simulated one. */
  opened(conversation: Conversation): void {
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

  /** Checks the other conversation at rest. */
  check(): void {
    const { conversation, isAtRest } = this.#others;
    const detail = (): string => `nothing is left to do and ${conversation?.id} is ${conversation?.status}`;
    this.#world.check(isAtRest, 'I6', detail);
    if (!conversation || this.#store.falselyRefused.size > 0) return;
    const stored = this.#store.logOf(conversation.id);
    const isWhole = sameJson(conversation.log(), stored);
    this.#world.check(isWhole, 'I22', () => `the log that ${conversation.id} shows is not the durable one`);
    this.#checkReads(conversation);
  }
}
