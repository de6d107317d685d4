import purify from 'dompurify';
import mermaid from 'mermaid';
import { describe, expect, it } from 'vitest';
import { type AnyStateMachine, assign, createMachine } from 'xstate';
import {
  compactionMachine,
  conversationMachine,
  modelCallMachine,
  responseStateMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { ACT_LIFE } from '../../machines/internal.ts';
import { promptMachine } from '../../src/cli/interactive/prompt.machine.ts';
import { nodesOf } from '../../src/diagrams/chartNodes.ts';
import { drawChart } from '../../src/diagrams/drawChart.ts';
import { read } from './documents.ts';

/** The table of the life of an act, as a chart. */
const actMachine = createMachine({
  id: 'ACT',
  initial: 'called',
  states: {
    ...Object.fromEntries(Object.entries(ACT_LIFE).map(([stage, on]) => [stage, { on }])),
    answered: { type: 'final' },
    refused: { type: 'final' },
  },
});

const charts: readonly [string, AnyStateMachine][] = [
  ['conversation', conversationMachine],
  ['run', runMachine],
  ['toolRound', toolRoundMachine],
  ['toolCall', toolCallMachine],
  ['resumeToolCall', resumeToolCallMachine],
  ['modelCall', modelCallMachine],
  ['responseState', responseStateMachine],
  ['compaction', compactionMachine],
  ['prompt', promptMachine],
  ['act', actMachine],
];

describe('the diagrams are drawn from the charts', () => {
  it.each(charts)('docs/diagrams/%s.mmd shows the chart as it is built', async (name, machine) => {
    const message = 'the chart has changed; `npm run record` draws it anew';
    await expect(drawChart(machine), message).toMatchFileSnapshot(`../../docs/diagrams/${name}.mmd`);
  });

  it.each(charts)('the drawing of %s names every state but the root and the end', (_, machine) => {
    const drawing = drawChart(machine);
    const states = [...nodesOf(machine.root)].filter(({ parent, key }) => parent && key !== 'Done');
    expect(states.map(({ key }) => key).filter((key) => !drawing.includes(key))).toEqual([]);
  });
});

describe('docs/internals/lifecycle.md', () => {
  const documented = charts.filter(([name]) => !['toolRound', 'responseState', 'prompt'].includes(name));

  it.each(documented)('it describes each outer state of %s', (_, machine) => {
    const outer = [...nodesOf(machine.root)].filter(({ key, parent }) => {
      const isOuter = parent === machine.root || (parent?.key === 'active' && parent.parent === machine.root);
      return isOuter && !['active', 'Done'].includes(key);
    });
    const page = read('docs/internals/lifecycle.md');
    const missing = outer.map(({ key }) => key).filter((key) => !page.includes(`\`${key}\``));
    expect(missing, 'add a row for each to the table of the chart').toEqual([]);
  });
});

describe('a drawing names the actions of a chart', () => {
  it('an arrow has its event, its guard and its actions, in the order in which they are executed', () => {
    const lines = drawChart(conversationMachine).split('\n');
    const arrow =
      'active --> active: message.sent [steers] / queueMessage, log queuedEntries, tellRun, ask answer steered';
    expect(lines).toContain(`        ${arrow}`);
  });

  it('a state has its actions on entry and exit, and the actors that it runs', () => {
    const lines = drawChart(runMachine).split('\n');
    expect(lines).toContain('        RunStart: entry / log openingEntries, askDeadline, askStartPhase');
    expect(lines).toContain('    state "active<br/>exit / drop effectsOfRun, stop gate" as active');
    expect(lines).toContain('            compacting: do / compaction');
  });

  it.each(charts.filter(([, machine]) => machine !== promptMachine))('every action of %s has a name', (_, machine) => {
    const parts =
      drawChart(machine)
        .match(/(?<=\/ ).*/g)
        ?.flatMap((actions) => actions.split(', ')) ?? [];
    expect(parts.filter((part) => /^(ask|log|drop|update|spawn|stop|tell|inline)$/.test(part))).toEqual([]);
  });

  it('an action of another chart has its type or the name of its function', () => {
    const ring = () => undefined;
    const machine = createMachine({
      id: 'DOOR',
      initial: 'open',
      context: { count: 0 },
      states: {
        open: { on: { CLOSE: { target: 'closed', actions: [ring, 'lock', () => undefined, assign({ count: 1 })] } } },
        closed: {},
      },
    });
    expect(drawChart(machine)).toContain('open --> closed: CLOSE / ring, lock, inline, assign');
  });
});

it('a state whose name mermaid cannot read has another one, with its own as the title', () => {
  const machine = createMachine({
    id: 'DOOR',
    initial: 'not open',
    states: { 'not open': { on: { OPEN: 'half-open' } }, 'half-open': {} },
  });
  const drawing = drawChart(machine);
  expect(drawing).toContain('[*] --> not_open');
  expect(drawing).toContain('not_open --> half_open: OPEN');
  expect(drawing).toContain('state "half-open" as half_open');
});

// Mermaid cleans texts with the document of a browser; nothing is shown here.
Object.assign(purify, { addHook: () => undefined, removeHook: () => undefined, sanitize: (text: string) => text });

type Drawn = { db: { getData(): { nodes: readonly { id: string; parentId?: string; isGroup: boolean }[] } } };

/** The states that mermaid reads from a drawing, each with the state it draws it in. */
async function nestingIn(drawing: string): Promise<Map<string, string | undefined>> {
  // Reads it, and gets ready for drawings of its type.
  await mermaid.parse(drawing);
  const { db } = (await mermaid.mermaidAPI.getDiagramFromText(drawing)) as unknown as Drawn;
  return new Map(db.getData().nodes.map(({ id, parentId }) => [id, parentId]));
}

describe('mermaid draws each state within its parent', () => {
  const deep = createMachine({
    id: 'DEEP',
    initial: 'a',
    on: { ANY: '.b.c.d' },
    states: {
      a: { on: { GO: 'b.c', LEAP: '#e', END: 'Done' } },
      b: {
        initial: 'c',
        states: {
          c: {
            initial: 'd',
            states: { d: { on: { UP: '#e', OUT: '#DEEP.a', END: '#DEEP.Done' } }, a: {}, Done: { type: 'final' } },
            on: { IN: '.a', DONE: '.Done' },
          },
          e: { id: 'e', on: { BACK: 'c', AGAIN: 'e', END: '#DEEP.b.c.Done' } },
          alone: {},
        },
        on: { SELF: 'b' },
      },
      Done: { type: 'final' },
    },
  });

  it.each([...charts, ['of a deep chart', deep] as const])('%s', async (_, machine) => {
    const nesting = await nestingIn(drawChart(machine));
    const nodes = [...nodesOf(machine.root)].filter(({ parent }) => parent);
    const isEnd = (key: string, depth: number) => key === 'Done' && depth === 1;
    const named = (key: string) => nodes.filter((node) => node.key === key).length === 1;
    const idOf = (node: (typeof nodes)[number] | undefined) =>
      node?.parent && (named(node.key) ? node.key : node.path.join('_'));
    const shown = nodes.filter(({ key, path }) => !isEnd(key, path.length));
    const expected = shown.map((node) => [idOf(node), idOf(node.parent)]);
    expect(shown.map((node) => [idOf(node), nesting.get(idOf(node) ?? '')])).toEqual(expected);
    const made = /^(\w+_start|\w+_end)$/;
    const others = [...nesting.keys()].filter((id) => !made.test(id) && !shown.some((node) => idOf(node) === id));
    expect(others.filter((id) => id !== machine.id)).toEqual([]);
  });
});
