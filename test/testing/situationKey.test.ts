/** Tests that situations with equal keys have equal futures, by keys that contain the whole past. */
import { expect, it } from 'vitest';
import type { AgentModel } from '../../src/testing/agentPaths/search/callBehaviour.ts';
import { Exploration, type PathEdge, type PathGraph } from '../../src/testing/agentPaths/search/exploration.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { CAPABILITIES, type Capability, modelOf } from './capabilities.ts';

const [tool, approval] = CAPABILITIES as readonly [Capability, Capability];
const closer: Capability = { needs: '', bounds: { calls: 1, decisions: 1, resumes: 1 } };
const oneCall: Capability = { needs: '', bounds: { calls: 1 } };

/** Sets of capabilities, as the reasons of reports are found with them. */
const all: readonly (readonly Capability[])[] = [
  ...CAPABILITIES.map((each) => (each === tool || each.alone ? [each] : [tool, each])),
  ...CAPABILITIES.filter(({ withApproval }) => withApproval).map((each) => [approval, each, oneCall]),
  [tool, approval, { needs: '', bounds: { rounds: 2, calls: 2, troubles: 0 } }],
];
const continuing = CAPABILITIES.filter(({ needs }) => /naturalEnd|goes on/.test(needs)).map((each) => [tool, each]);
const tried = proves ? sampled(all, volume.capabilitiesOf) : [[tool, approval, closer]];

/** A schema validates final answers. */
function withOutput(model: AgentModel): AgentModel {
  const settings = { ...model.settings, phases: { ...model.settings.phases, naturalEnd: true } };
  return { ...model, settings, surroundings: { ...model.surroundings, answers: new Map([['{"n":1}', { n: 1 }]]) } };
}

const stepOf = ({ step }: PathEdge): string => JSON.stringify([step.move, step.kinds]);

/** Takes both graphs step by step beside each other, and returns where they differ. */
function differences(exact: PathGraph, merged: PathGraph): string[] {
  const places: { left: string; right: string; word: readonly string[] }[] = [
    { left: exact.start, right: merged.start, word: [] },
  ];
  const reached = new Set([`${exact.start} ${merged.start}`]);
  const found: string[] = [];
  // The list grows while it is read.
  for (const { left, right, word } of places) {
    const [one, other] = [exact.vertices.get(left), merged.vertices.get(right)];
    const edges = new Map(other?.edges.map((edge) => [stepOf(edge), edge]));
    if (one?.final !== other?.final || one?.edges.length !== edges.size) found.push(word.join(', '));
    for (const edge of one?.edges ?? []) {
      const step = stepOf(edge);
      const twin = edges.get(step);
      if (!twin || twin.sort !== edge.sort || twin.taken.join() !== edge.taken.join()) {
        found.push([...word, step].join(', '));
        continue;
      }
      const pair = `${edge.to} ${twin.to}`;
      if (reached.has(pair)) continue;
      reached.add(pair);
      places.push({ left: edge.to, right: twin.to, word: [...word, step] });
    }
  }
  return found;
}

const edgesIn = ({ vertices }: PathGraph): number =>
  [...vertices.values()].reduce((sum, { edges }) => sum + edges.length, 0);

/** Returns the differences between both explorations of an agent. */
function differencesOf(model: AgentModel, capabilities: readonly Capability[]): string[] {
  const bounds = Object.assign({ steps: 200_000 }, ...capabilities.map((each) => each.bounds));
  const exact = new Exploration(model, { bounds }, true).graph();
  const merged = new Exploration(model, { bounds }).graph();
  expect(exact.closer).toBeUndefined();
  expect(edgesIn(merged)).toBeLessThan(edgesIn(exact));
  return differences(exact, merged);
}

it.each(tried.map((each) => [each.flatMap(({ needs }) => needs || []).join(' and '), each] as const))(
  'equal keys have equal futures with %s',
  (_, capabilities) => {
    expect(differencesOf(modelOf(capabilities), capabilities)).toEqual([]);
  },
);

const judged = [
  [tool],
  [approval, oneCall],
  ...(proves ? [[tool, approval, closer], ...sampled(continuing, volume.capabilitiesOf)] : []),
];
it.each(judged.map((each) => [each.flatMap(({ needs }) => needs || []).join(' and '), each] as const))(
  'equal keys have equal futures with output and %s',
  (_, capabilities) => {
    expect(differencesOf(withOutput(modelOf(capabilities)), capabilities)).toEqual([]);
  },
);
