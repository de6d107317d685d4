/**
 * Plugins that take part in every phase and may answer anything there. Invariant: the tape determines their answers.
 */
import type { Plugin } from '../../../src/plugins/plugin.ts';
import { SECRET } from '../../../src/testing/simulation/world/simulatedModel.ts';
import type { CheckedWorld } from '../checks/checkedWorld.ts';
import { callKey } from '../checks/lifeFacts.ts';

type Verdict = { block: string } | { suspend: { reason: string } } | { args: { text: string | number } } | undefined;

export function simulatedPlugin(world: CheckedWorld): Plugin {
  const share = world.profile.plugin;
  const goesWrong = async (kind: string): Promise<void> => {
    if (world.fault('plugin-slow', share / 2)) await world.wait('plugin');
    if (world.fault('plugin-deaf', share / 8)) await new Promise(() => undefined);
    if (world.fault(`plugin-${kind}`, share / 4)) throw new Error(`a plugin broke with ${SECRET}`);
  };
  return {
    name: 'simulated',
    required: world.tape.chance(0.2),
    runStart: () => goesWrong('runStart'),
    stepStart: () => goesWrong('stepStart'),
    async beforeInference() {
      await goesWrong('beforeInference');
      return world.fault('plugin-terminates', share / 8) ? { terminate: 'enough' } : undefined;
    },
    async afterInference() {
      await goesWrong('afterInference');
      return world.fault('plugin-terminates', share / 8) ? { terminate: 'enough' } : undefined;
    },
    async beforeToolExecute({ conversationId, call, decision }) {
      const key = callKey(conversationId, call.callId);
      world.facts.rewritten.delete(key);
      await goesWrong('beforeToolExecute');
      const answer = verdict(world, decision ? share / 4 : share);
      if (answer && 'args' in answer) world.facts.rewritten.set(key, answer.args);
      return answer;
    },
    async afterToolExecute() {
      await goesWrong('afterToolExecute');
      return world.fault('plugin-rewrites', share / 4) ? { result: 'tool said something else' } : undefined;
    },
    stepEnd: () => goesWrong('stepEnd'),
    async preCompact() {
      await goesWrong('preCompact');
      if (world.fault('plugin-keeps-all', share / 4)) return { block: `all of it matters, and ${SECRET}` };
      return { instructions: 'in few words' };
    },
    runEnd: () => goesWrong('runEnd'),
  };
}

/** A second plugin before or after the first one, which only blocks calls. */
export function simulatedGuard(world: CheckedWorld): Plugin {
  return {
    name: 'guard',
    beforeToolExecute({ conversationId, call }) {
      const key = callKey(conversationId, call.callId);
      world.facts.blocked.delete(key);
      if (!world.fault('guard-forbids', world.profile.plugin / 4)) return undefined;
      world.facts.blocked.add(key);
      return { block: 'forbidden' };
    },
  };
}

function verdict(world: CheckedWorld, share: number): Verdict {
  if (world.fault('plugin-suspends', share / 2)) return { suspend: { reason: 'look at this' } };
  if (world.fault('plugin-blocks', share / 4)) return { block: 'not today' };
  if (world.fault('plugin-edits', share / 4)) return { args: { text: world.tape.pick(['by a plugin', 5]) } };
  return undefined;
}
