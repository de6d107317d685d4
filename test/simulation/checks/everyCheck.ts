/** All checks of a simulated life. Each moment of the life is passed to the checks that need it. */

import type { LifeChecks } from '../../../src/testing/simulation/lifeChecks.ts';
import type { Life } from '../../../src/testing/simulation/simulate.ts';
import { CONVERSATION } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { CallerChecks } from './callerChecks.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { OtherChecks } from './otherChecks.ts';
import { ReadingChecks } from './readingChecks.ts';
import { RequestChecks } from './requestChecks.ts';
import { RestChecks } from './restChecks.ts';

/** The share of lives whose views are also compared at the first rest. */
const VIEWS_AT_FIRST = 0.2;

export function everyCheck({ world, store, model, host }: Life<CheckedWorld>): LifeChecks {
  const callers = new CallerChecks(world, store);
  const requests = new RequestChecks(world, model);
  const others = new OtherChecks(world, store, host.others);
  const rest = new RestChecks(world, store, host, callers);
  let reading: ReadingChecks | undefined;
  return {
    stored: (id, entry) => world.watchOf(id).learn(entry),
    appended: (id, entries) => world.watchOf(id).appended(entries),
    refused: (entries) => world.lose(entries),
    blobMissing: (id, reference) => world.violate('IMAGE', `${id} names ${reference}, which is not beside it`),
    called: (call) => requests.check(call),
    streamed: (part) => requests.streamed(part),
    replied: (parts) => requests.replied(parts),
    opening: () => {
      world.facts.openings += 1;
    },
    opened: (conversation, durable) => {
      reading = new ReadingChecks(world, store, conversation);
      callers.checkOpening(conversation, durable);
    },
    openedTwice: () => world.violate('I23', 'a conversation is open twice'),
    watching: (from) => {
      let next = from;
      return ({ seq }) => {
        world.check(seq === next, 'I3', () => `a subscriber is shown entry ${seq}, where ${next} is next`);
        next = seq + 1;
      };
    },
    openedOther: (conversation) => others.opened(conversation),
    forking: (id) => void world.facts.forks.set(id, CONVERSATION),
    forked: () => others.check(),
    closing: (conversation) => {
      reading?.unsubscribe();
      for (const each of world.equipment) each.closing?.(conversation);
    },
    rejoining: () => reading?.resubscribe(),
    signalGiven: (caller) => callers.listensTo(caller),
    runBegan: (run) => callers.checkRun(run),
    messageQueued: (receipt) => callers.checkReceipt(receipt),
    decided: (decision, receipt) => callers.checkDecision(decision, receipt),
    failed: (act, error) => callers.checkError(act, error),
    cancelling: (conversation) => callers.cancelling(conversation),
    withdrawing: (run) => callers.withdrawing(run),
    aborting: (caller) => callers.aborting(caller),
    ...(world.equipment.length > 0 && {
      act: (conversation) => world.tape.pick(world.equipment).act?.(conversation),
    }),
    stepped: () => rest.checkToolTime(),
    waiting: (conversation) => {
      rest.checkToolTime();
      if (conversation) rest.checkTimers(conversation);
    },
    atRest: (conversation) => {
      rest.check(conversation);
      for (const each of world.equipment) each.check?.(conversation);
      others.check();
    },
    restedFirst: (conversation) => {
      if (world.tape.chance(VIEWS_AT_FIRST)) rest.checkViews(conversation);
    },
    leaving: (conversation) => {
      const before = rest.readingBeforeCrash(conversation);
      const { length } = conversation.log();
      return before === undefined ? undefined : (reopened) => rest.checkReload(reopened, before, length);
    },
    restedLast: (conversation) => rest.checkViews(conversation),
    crashed: async () => {
      world.facts.forgetLost();
      callers.crashed();
      for (const each of world.equipment) await each.crashed?.();
    },
    over: async () => {
      for (const each of world.equipment) await each.over?.();
    },
  };
}
