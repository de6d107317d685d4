/**
 * The agent that the caller makes for each process of a life. Rule: what it throws, and what it gives that is no agent,
 * is the violation `setup`; nothing of it is thrown into the life or left unhandled.
 */
import type { Agent } from '../../agent.ts';
import { thrownText } from '../../errors.ts';
import { shown, withMethods } from '../../validation.ts';
import type { World } from './world.ts';

const GIVES = 'agent() must give an agent of createAgent at once';

/** Nothing where there is no agent. */
export function madeIn(world: World, make: () => Agent): Agent | undefined {
  try {
    const made: unknown = make();
    if (withMethods(made, 'open', 'close')) return made as Agent;
    world.violate('setup', `${GIVES}, got ${sight(made)}`);
  } catch (error) {
    world.violate('setup', `agent() threw ${thrownText(error)}`);
  }
  return undefined;
}

/** What an async factory says later is told already. */
function sight(made: unknown): string {
  if (!withMethods(made, 'then')) return shown(made);
  Promise.resolve(made).catch(() => undefined);
  return 'a promise';
}
