import { describe, expect, it } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import { resumeToolCallMachine, runMachine, toolCallMachine } from '../../machines/index.ts';
import { nodesOf } from '../../src/diagrams/chartNodes.ts';
import { chartEdges } from '../support/chartEdges.ts';
import { documentEdges, type Edge, extraEdges, superstateEdges } from '../support/documentEdges.ts';

type Chart = keyof typeof documentEdges;
const charts: readonly [Chart, AnyStateMachine][] = [
  ['RUN', runMachine],
  ['RESUME_TOOL_CALL', resumeToolCallMachine],
  ['TOOL_CALL', toolCallMachine],
];
const arrowsOf = (edges: readonly Edge[]): string[] =>
  [...new Set(edges.map(([from, to]) => `${from} --> ${to}`))].sort();
const statesOf = (chart: Chart): Set<string> => new Set(documentEdges[chart].flat().filter((name) => name !== '[*]'));

describe.each(charts)('RUN-1 the chart %s is the diagram of its document', (name, machine) => {
  const documented = statesOf(name);
  const edges = chartEdges(machine, documented);
  const general = superstateEdges[name];

  it('has every state of the diagram, letter for letter', () => {
    const keys = new Set([...nodesOf(machine.root)].map(({ key }) => key));
    expect([...documented].filter((state) => !keys.has(state))).toEqual([]);
  });

  it('has the arrows of the diagram and the listed extra ones, no more and no less', () => {
    const own = edges.filter(({ superstate }) => !superstate).map(({ edge }) => edge);
    const drawnOnce = general.flatMap(({ standsFor }) => standsFor);
    const extra = extraEdges[name].map(({ edge }) => edge);
    expect(arrowsOf(own).filter((edge) => arrowsOf(drawnOnce).includes(edge))).toEqual([]);
    expect(arrowsOf([...own, ...drawnOnce])).toEqual(arrowsOf([...documentEdges[name], ...extra]));
  });

  it('has the listed exits of its superstates, no more and no less', () => {
    const exits = edges.filter(({ superstate }) => superstate).map(({ edge }) => edge);
    expect(arrowsOf(exits)).toEqual(arrowsOf(general.map(({ edge }) => edge)));
  });
});

const extras = charts.flatMap(([name]) => extraEdges[name].map(({ edge, clause }) => [name, edge, clause] as const));
describe('the extra arrows', () => {
  it.each(extras)('of %s: %s is no arrow of the diagram, and names its clause', (name, edge, clause) => {
    expect(arrowsOf(documentEdges[name])).not.toContain(arrowsOf([edge])[0]);
    expect(clause).toMatch(/^docs\/internals\/\w+\.md, [^:]+: /);
  });
});
