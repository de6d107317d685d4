/**
 * An observer of the inspector in simulated lives: from the start, attached at any moment, attached twice, and
 * detached. Invariant: its account of a conversation equals the log, each entry once and in order. Without an observer
 * there is no account.
 */
import { type Conversation, runtimeOf } from '../../../src/conversation/conversation.ts';
import { Observed } from '../../../src/inspect/observed.ts';
import { RecordLog } from '../../../src/inspect/recordLog.ts';
import type { Recorded, StateValue } from '../../../src/inspect/wire.ts';
import type { SimulatedStore } from '../../../src/testing/simulation/world/simulatedStore.ts';
import { CONVERSATION } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import type { CheckedWorld } from '../checks/checkedWorld.ts';
import { sameJson } from '../checks/sameJson.ts';
import type { Equipment, Parts } from './equipment.ts';

const LIMITS = { moves: 2_000, events: 20, rest: 20_000 };

/** The account of one process, from its records. */
class Account {
  /** The number of the next record. */
  read = 0;
  /** By conversation: the seq of the next entry, and the last status. */
  readonly next = new Map<string, number>();
  readonly status = new Map<string, string>();
  /** Running actors without a parent, with the conversation and the state of each. */
  readonly roots = new Map<string, { conversation: string; value: StateValue | undefined }>();
}

export class Inspection implements Equipment {
  readonly #world: CheckedWorld;
  readonly #store: SimulatedStore;
  readonly #fromTheBeginning: boolean;
  #records = new RecordLog(() => 0, LIMITS);
  #observed = new Observed(this.#records);
  #account = new Account();
  #detaches: { conversation: Conversation; detach(): void }[] = [];

  constructor(world: CheckedWorld, store: SimulatedStore) {
    this.#world = world;
    this.#store = store;
    this.#fromTheBeginning = world.tape.next(2) === 0;
  }

  parts(): Parts {
    return this.#fromTheBeginning ? { inspect: this.#observed.observe } : {};
  }

  /** Attaches an observer, or detaches an earlier one. */
  act(conversation: Conversation): void {
    const { tape } = this.#world;
    this.#read();
    if (this.#detaches.length > 0 && tape.chance(0.5)) {
      const at = tape.next(this.#detaches.length);
      const [held] = this.#detaches.splice(at, 1);
      this.#world.reach('inspected', 'detached');
      held?.detach();
      // A second detach has no effect.
      if (tape.chance(0.3)) held?.detach();
      return;
    }
    this.#world.reach('inspected', this.#isObserved(conversation) ? 'attached again' : 'attached');
    this.#detaches.push({ conversation, detach: this.#observed.attach(conversation) });
  }

  #isObserved(conversation: Conversation): boolean {
    return this.#fromTheBeginning || this.#detaches.some((held) => held.conversation === conversation);
  }

  closing(conversation: Conversation): void {
    this.#read();
    this.#detaches = this.#detaches.filter((held) => held.conversation !== conversation);
  }

  async crashed(): Promise<void> {
    this.#read();
    this.#observed.close();
    this.#records = new RecordLog(() => 0, LIMITS);
    this.#observed = new Observed(this.#records);
    this.#account = new Account();
    this.#detaches = [];
  }

  /** Reads everything that was recorded since the last call. */
  #read(): void {
    for (const record of this.#records.since(this.#account.read)) {
      this.#account.read = record.n + 1;
      this.#learn(record);
    }
  }

  #learn(record: Recorded): void {
    const { next, status, roots } = this.#account;
    const world = this.#world;
    switch (record.type) {
      case 'entry': {
        const { conversation, entry } = record;
        const due = next.get(conversation) ?? 0;
        world.check(
          entry.seq === due,
          'INSPECT',
          () => `entry ${entry.seq} of ${conversation} is sent, ${due} is next`,
        );
        next.set(conversation, entry.seq + 1);
        const stored = this.#store.logOf(conversation)[entry.seq];
        const same = this.#store.falselyRefused.size > 0 || sameJson(entry, stored);
        world.check(same, 'INSPECT', () => `entry ${entry.seq} of ${conversation} differs from the stored entry`);
        return;
      }
      case 'status':
        status.set(record.conversation, record.status);
        return;
      case 'actor':
        if (record.parent === undefined)
          roots.set(record.actor, { conversation: record.conversation, value: record.value });
        return;
      case 'transition':
      case 'settled': {
        const root = roots.get(record.actor);
        if (root) root.value = record.value;
        return;
      }
      case 'stopped':
        roots.delete(record.actor);
        return;
      case 'closed':
        for (const [actor, { conversation }] of roots) if (conversation === record.conversation) roots.delete(actor);
    }
  }

  check(conversation: Conversation): void {
    if (this.#store.falselyRefused.size > 0) return;
    this.#read();
    const world = this.#world;
    const { length } = conversation.log();
    const recordedCount = this.#account.next.get(CONVERSATION) ?? 0;
    const { now, stop } = this.#observed.conversations({ begun: () => undefined, ended: () => undefined });
    stop();
    const isObserved = this.#isObserved(conversation);
    world.check(
      now.includes(conversation) === isObserved,
      'INSPECT',
      () => `it is observed, and ought to be ${isObserved}`,
    );
    if (!isObserved) return;
    world.reach('inspected', 'compared');
    world.check(recordedCount === length, 'INSPECT', () => `${recordedCount} of ${length} entries are sent`);
    const status = this.#account.status.get(CONVERSATION);
    world.check(
      status === conversation.status,
      'INSPECT',
      () => `the status sent is ${status}, and it is ${conversation.status}`,
    );
    const value: unknown = runtimeOf(conversation).chart.root?.getSnapshot().value;
    const shown = [...this.#account.roots.values()].filter((root) => root.conversation === CONVERSATION);
    const same = shown.length === 1 && sameJson(shown[0]?.value, value);
    world.check(same, 'INSPECT', () => `its chart is in ${JSON.stringify(value)}, sent is ${JSON.stringify(shown)}`);
  }

  async over(): Promise<void> {
    this.#observed.close();
  }
}
