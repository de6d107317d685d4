/** The reasons that reports give for transitions out of reach: what the exploration finds with one capability more. */
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { xstate } from '../../src/runtime/interpreter/xstate.ts';
import type { Standing } from '../../src/testing/agentPaths/scriptRun.ts';
import { courseOf } from '../../src/testing/agentPaths/search/chartPlace.ts';
import { Exploration } from '../../src/testing/agentPaths/search/exploration.ts';
import { walksOver } from '../../src/testing/agentPaths/search/graphCover.ts';
import { Prediction } from '../../src/testing/agentPaths/search/prediction.ts';
import { allTransitions } from '../../src/testing/agentPaths/search/takenTransitions.ts';
import { REACH } from '../../src/testing/agentPaths/transitionNeeds.ts';
import { proves } from '../support/tier.ts';
import { CAPABILITIES, modelOf, reach, reachOf } from './capabilities.ts';

const HEAD = `/**
 * What would open each transition that an agent without tools, plugins and policies of its own cannot take. Rule: nobody
 * writes this file: it is what the exploration finds, as test/testing/reach.test.ts says.
 */
export const REACH: Readonly<Record<string, string>> = `;

/** \`PROVE=1 npx vitest run test/testing/reach.test.ts -u\` writes it anew. */
it.runIf(proves)('is what the exploration finds', async () => {
  const biome = resolve(import.meta.dirname, '../../node_modules/.bin/biome');
  const written = `${HEAD}${JSON.stringify(reach(), null, 2)};\n`;
  const file = execFileSync(biome, ['format', '--stdin-file-path=transitionNeeds.ts'], {
    input: written,
    encoding: 'utf8',
  });
  await expect(file).toMatchFileSnapshot('../../src/testing/agentPaths/transitionNeeds.ts');
});

it('names transitions that there are, and capabilities that open them', () => {
  const all = allTransitions();
  expect(Object.keys(REACH).filter((key) => !all.has(key))).toEqual([]);
  const plugins = CAPABILITIES.filter(({ needs }) => needs.startsWith('a plugin that'));
  expect(plugins.length).toBeGreaterThan(2);
  for (const plugin of proves ? plugins : plugins.slice(0, 1)) {
    const opened = reachOf([...CAPABILITIES.slice(0, 1), plugin]);
    const said = Object.keys(REACH).filter((key) => REACH[key] === plugin.needs);
    expect(said.filter((key) => !opened.has(key))).toEqual([]);
  }
});

it('is explored by the plans, which say what XState itself says of each word', () => {
  const approval = CAPABILITIES.filter(({ needs }) => needs === 'an approval' || needs === 'a tool');
  const model = modelOf(approval);
  const exploration = new Exploration(model, { bounds: { calls: 1, decisions: 1, resumes: 1 } });
  const words = walksOver(exploration.graph(), 'transitions');
  expect(words.length).toBeGreaterThan(10);
  for (const word of words) {
    const [ours, theirs] = [new Prediction(model), new Prediction(model, xstate)];
    const made = word.flatMap((step) => step.kinds.flatMap((kind) => exploration.kinds[kind] ?? []));
    const [moves, stood] = [word.map(({ move }) => move), [] as Standing[]];
    ours.tell(moves, made, () => void stood.push(ours.standing));
    theirs.tell(moves, made, () => expect(theirs.standing).toEqual(stood.shift()));
    expect(courseOf(theirs.entries)).toEqual(courseOf(ours.entries));
  }
});
