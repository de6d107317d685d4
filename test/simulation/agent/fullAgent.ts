/** The agent with every ability of an agent: tools, plugins, sub-agents, a fallback model, final answers. */
import type { Decision } from '../../../machines/internal.ts';
import { type Agent, createAgent } from '../../../src/agent.ts';
import type { Model } from '../../../src/models/model.ts';
import { subAgents } from '../../../src/subAgents/spawnTool.ts';
import type { Life } from '../../../src/testing/simulation/simulate.ts';
import { SECRET, type SimulatedModel } from '../../../src/testing/simulation/world/simulatedModel.ts';
import type { FinalAnswers } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import type { AgentWorld } from '../../../src/testing/world/agentWorld.ts';
import { askingText } from '../checks/answerWatch.ts';
import type { CheckedWorld } from '../checks/checkedWorld.ts';
import { ToolExecutions } from '../checks/toolExecutions.ts';
import { answerSchema, askedIn, drawAnswer } from './answerForms.ts';
import { simulatedGuard, simulatedPlugin } from './simulatedPlugins.ts';
import { simulatedTools } from './simulatedTools.ts';

/** Returns the same model under another name. */
function fallbackOf(model: SimulatedModel): Model {
  const { secrets, prices } = model;
  const stream: Model['stream'] = (request, context) => model.stream(request, context);
  return { id: 'simulated-fallback', secrets, stream, ...(prices && { prices }) };
}

/** Returns the factory of each process's agent. `isInspected`: the agent reports to an inspector. */
export function fullAgent({ world, model }: Life<CheckedWorld>, isInspected: boolean): (around: AgentWorld) => Agent {
  const { profile, tape, facts } = world;
  const own = simulatedTools(world, new ToolExecutions(world));
  const authorize = ({ by }: Decision): boolean => {
    const away = world.fault('unauthorized', profile.unauthorized);
    if (away && by !== undefined) facts.turnedAway.add(by);
    return !away;
  };
  return ({ store, ports, inspect }) => {
    const plugins = profile.plugin > 0 ? [simulatedPlugin(world), simulatedGuard(world)] : [];
    if (tape.next(2) === 1) plugins.reverse();
    const fallbackModels = profile.fallback ? [fallbackOf(model)] : [];
    const policies = { ...profile.policies, modelRetry: { ...profile.policies.modelRetry, fallbackModels } };
    const spawns = profile.spawns ? [subAgents({ tools: own, limits: { turns: 2 }, maxSubAgents: 2 })] : [];
    const parts = world.equipment.map((each) => each.parts());
    const tools = [...own, ...spawns, ...parts.flatMap((part) => part.tools ?? [])];
    plugins.push(...parts.flatMap((part) => part.plugins ?? []));
    const observe = parts.find((part) => part.inspect)?.inspect;
    return createAgent({
      ...{ model, tools, plugins, policies, store, authorize, ports },
      ...{ cwd: '/', secrets: [SECRET] },
      ...(profile.answers?.askers.includes('agent') && { output: answerSchema('agent') }),
      ...(observe && { inspect: observe }),
      ...(isInspected && { inspect }),
    });
  };
}

/** Returns the final answers of the two schemas, with the probabilities of the profile. */
export function finalAnswersOf(world: CheckedWorld): FinalAnswers | undefined {
  const { answers, tape, facts } = world;
  if (!answers) return undefined;
  return {
    ask(text) {
      if (!answers.askers.includes('message') || !tape.chance(0.5)) return undefined;
      return { text: askingText(text, facts.openings), output: answerSchema('message') };
    },
    isAsked: (system) => askedIn(system) !== undefined,
    answer(words, system) {
      const asker = askedIn(system);
      return asker ? drawAnswer(tape, asker, answers.model, words) : words;
    },
  };
}
