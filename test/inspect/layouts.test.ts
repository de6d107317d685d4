/**
 * The layouts and drawings of charts with ELK: the library's own charts again, and one of every kind of state. Invariant: a
 * drawing shows each state once and each transition by one arrow of its level.
 */
import ELK from 'elkjs/lib/elk.bundled.js';
import { describe, expect, it } from 'vitest';
import { createMachine } from 'xstate';
import { type Chart, type ChartState, chartOf } from '../../src/inspect/chart.ts';
import type { ChartLayout } from '../../src/inspect/drawing/chartDrawing.ts';
import { crossings, type Elk } from '../../src/inspect/drawing/elkLevel.ts';
import { drawnBox, placedLabels } from '../../src/inspect/drawing/labels.ts';
import { initiallyOpen, layoutChart } from '../../src/inspect/drawing/layout.ts';
import { laidOutCharts } from '../../src/inspect/drawing/layouts.ts';
import {
  innermostActive,
  innermostInitial,
  levelsOf,
  lift,
  lineage,
  stateTree,
} from '../../src/inspect/drawing/levels.ts';
import { chartSvg } from '../../src/inspect/drawing/svg.ts';
import { proves } from '../support/tier.ts';

const elk = new (ELK as unknown as new () => Elk)();

/** One of every kind: a folded and an open compound, regions, a final state, an end, ways back, and exits from inside. */
const every = createMachine({
  id: 'EVERY',
  initial: 'begin',
  states: {
    begin: { on: { GO: [{ guard: () => true, target: 'work' }, { target: 'done' }], SKIP: 'regions' } },
    work: {
      initial: 'one',
      states: {
        one: { on: { NEXT: 'two', GIVE_UP: '#EVERY.failed' } },
        two: { initial: 'deep', states: { deep: { on: { BACK: '#EVERY.work.one' } }, deeper: {} } },
        done: { type: 'final' },
      },
      on: { AGAIN: 'begin', SELF: 'work' },
    },
    regions: {
      type: 'parallel',
      states: { left: { initial: 'a', states: { a: { on: { TO: 'b' } }, b: {} } }, right: {} },
      on: { END: 'failed' },
    },
    failed: { type: 'final' },
    done: { type: 'final' },
  },
});

describe('the layout of a chart', () => {
  // ELK needs a second for RUN alone.
  const made = laidOutCharts().filter(({ chart: { name } }) => proves || name !== 'RUN');
  it.each(made.map(({ chart, layout }) => [chart.name, chart, layout] as const))(
    'of %s is the one that the library contains',
    async (_, chart, layout) => {
      expect(JSON.parse(JSON.stringify(await layoutChart(chart, elk))), 'run `npm run layouts`').toEqual(layout);
    },
  );

  const laidOut = async (): Promise<{ chart: Chart; layout: ChartLayout }> => {
    const chart = chartOf(every);
    return { chart, layout: await layoutChart(chart, elk) };
  };
  const stateOf = ({ states }: ChartLayout, id: string) => states.find((state) => state.id === `EVERY.${id}`);

  it('has each shown state once, with its shape, its parent, its exits and its regions', async () => {
    const { layout } = await laidOut();
    const facts = layout.states.map(({ id, shape, parent, leaves, isParallel }) =>
      [
        id.replace('EVERY.', ''),
        shape,
        parent.replace('EVERY.', ''),
        ...(leaves ? ['leaves'] : []),
        ...(isParallel ? ['parallel'] : []),
      ].join(' '),
    );
    expect(facts.sort()).toEqual(
      [
        'begin leaf EVERY',
        'work open EVERY',
        'work.one leaf work leaves',
        'work.two folded work',
        'work.done end work',
        'regions open EVERY parallel',
        'regions.left open regions',
        'regions.left.a leaf regions.left',
        'regions.left.b leaf regions.left',
        'regions.right leaf regions',
        'failed final EVERY',
        'done end EVERY',
      ].sort(),
    );
  });

  it('puts each state into its parent, beside its siblings, and no arrow through a state', async () => {
    const { layout } = await laidOut();
    const faults: string[] = [];
    for (const state of layout.states) {
      const parent = layout.states.find(({ id }) => id === state.parent) ?? { x: 0, y: 0, ...layout };
      const isInside =
        state.x >= parent.x &&
        state.y >= parent.y &&
        state.x + state.width <= parent.x + parent.width &&
        state.y + state.height <= parent.y + parent.height;
      if (!isInside) faults.push(`${state.id} leaves its parent`);
      for (const other of layout.states) {
        if (other === state || other.parent !== state.parent) continue;
        const isApart =
          state.x + state.width <= other.x ||
          other.x + other.width <= state.x ||
          state.y + state.height <= other.y ||
          other.y + other.height <= state.y;
        if (!isApart) faults.push(`${state.id} lies on ${other.id}`);
      }
    }
    const points = layout.arrows.flatMap((arrow) => arrow.points);
    for (const [x, y] of points) if (x < 0 || y < 0 || x > layout.width || y > layout.height) faults.push(`${x} ${y}`);
    expect(faults).toEqual([]);
    const [left, right] = ['regions.left', 'regions.right'].map((id) => stateOf(layout, id));
    expect([left?.y, left?.height, (left?.x ?? 0) < (right?.x ?? 0)]).toEqual([right?.y, right?.height, true]);
    expect([stateOf(layout, 'done')?.width, stateOf(layout, 'failed')?.width]).toEqual([
      17,
      stateOf(layout, 'begin')?.width,
    ]);
  });

  it('has an arrow for each pair of siblings with its transitions, its label, and its way back', async () => {
    const { layout } = await laidOut();
    const facts = layout.arrows.map(({ from, to, isBack, isChoice, label, transitions }) =>
      [
        `${from ?? 'dot'} -> ${to}${label === undefined ? '' : ` ${label}`}`,
        ...(isBack ? ['back'] : []),
        ...(isChoice ? ['choice'] : []),
        transitions.join(),
      ]
        .join(' | ')
        .replaceAll('EVERY.', ''),
    );
    expect(facts.sort()).toEqual(
      [
        'dot -> begin | ',
        'begin -> work guard | choice | begin|GO|0',
        'begin -> done GO | choice | begin|GO|1',
        'begin -> regions SKIP | choice | begin|SKIP|0',
        'work -> begin AGAIN | back | work|AGAIN|0',
        'work -> failed GIVE_UP | work.one|GIVE_UP|0',
        'regions -> failed END | regions|END|0',
        'dot -> work.one | ',
        'work.one -> work.two NEXT | work.one|NEXT|0',
        'work.two -> work.one BACK | back | work.two.deep|BACK|0',
        'dot -> regions.left.a | ',
        'regions.left.a -> regions.left.b TO | regions.left.a|TO|0',
      ].sort(),
    );
  });

  it('opens the children of the root, unless there are more than eighty boxes, and regions of what is open', () => {
    const wide = (count: number): Chart => {
      const leaf = (id: string): ChartState => ({ id, key: id, type: 'atomic', states: [], transitions: [] });
      const group = (index: number): ChartState => ({
        ...{ id: `g${index}`, key: `g${index}`, type: 'compound', transitions: [] },
        states: [leaf(`g${index}.a`)],
      });
      const root = {
        ...leaf('W'),
        type: 'compound' as const,
        states: Array.from({ length: count }, (_, at) => group(at)),
      };
      return { name: 'W', root };
    };
    expect(initiallyOpen(chartOf(every))).toEqual(['EVERY', 'EVERY.work', 'EVERY.regions', 'EVERY.regions.left']);
    expect([initiallyOpen(wide(40)).length, initiallyOpen(wide(41)).length]).toEqual([41, 1]);
    const parallel = createMachine({
      id: 'P',
      type: 'parallel',
      states: { a: { initial: 'b', states: { b: {} } }, c: {} },
    });
    expect(initiallyOpen(chartOf(parallel))).toEqual(['P', 'P.a']);
  });

  it.each<[string, [number, number][][], number]>([
    [
      'a line that crosses another',
      [
        [
          [0, 5],
          [10, 5],
        ],
        [
          [5, 0],
          [5, 10],
        ],
      ],
      1,
    ],
    [
      'lines that touch',
      [
        [
          [0, 5],
          [5, 5],
        ],
        [
          [5, 0],
          [5, 10],
        ],
      ],
      0,
    ],
    [
      'lines that are beside one another',
      [
        [
          [0, 5],
          [10, 5],
        ],
        [
          [0, 6],
          [10, 6],
        ],
      ],
      0,
    ],
    [
      'the legs of one line',
      [
        [
          [0, 5],
          [10, 5],
          [10, 0],
          [5, 0],
          [5, 10],
        ],
      ],
      0,
    ],
    [
      'a line that crosses two',
      [
        [
          [5, 0],
          [5, 10],
        ],
        [
          [0, 3],
          [9, 3],
        ],
        [
          [9, 6],
          [0, 6],
        ],
      ],
      2,
    ],
  ])('counts the crossings of %s', (_, routes, count) => expect(crossings(routes)).toBe(count));
});

describe('the levels of a chart', () => {
  const chart = chartOf(every);
  const tree = stateTree(chart);
  const full = (id: string): string => (id === '' ? 'EVERY' : `EVERY.${id}`);

  it.each<[string, string, string | undefined]>([
    ['begin', 'work', 'EVERY: EVERY.begin -> EVERY.work'],
    ['work.one', 'failed', 'EVERY: EVERY.work -> EVERY.failed'],
    ['work.two.deep', 'work.one', 'EVERY.work: EVERY.work.two -> EVERY.work.one'],
    ['work.two.deep', 'work.two.deeper', 'EVERY.work.two: EVERY.work.two.deep -> EVERY.work.two.deeper'],
    ['work', 'work.two', 'EVERY.work: EVERY.work.one -> EVERY.work.two'],
    ['work', 'work.one', undefined],
    ['work.one', 'work', undefined],
    ['begin', 'begin', undefined],
    ['', 'done', 'EVERY: EVERY.begin -> EVERY.done'],
  ])('draw the transition from %j to %j between %s', (source, target, wanted) => {
    const lifted = lift(tree, full(source), full(target));
    expect(lifted && `${lifted.parent}: ${lifted.from} -> ${lifted.to}`).toBe(wanted);
  });

  it('know the way up, and the innermost states that are entered', () => {
    expect(lineage(tree, 'EVERY.work.two.deep')).toEqual([
      'EVERY.work.two.deep',
      'EVERY.work.two',
      'EVERY.work',
      'EVERY',
    ]);
    const [root, regions] = [chart.root, tree.states.get('EVERY.regions')].filter((state) => state !== undefined);
    expect(root && innermostInitial(root).id).toBe('EVERY.begin');
    expect(regions && innermostActive(regions).map(({ id }) => id)).toEqual([
      'EVERY.regions.left.a',
      'EVERY.regions.right',
    ]);
    expect(root && innermostActive(root).map(({ id }) => id)).toEqual(['EVERY.begin']);
  });

  it('have the main path by the last way forward, and ways back by the first visit', () => {
    const arrows = levelsOf(chart).get('EVERY')?.arrows ?? [];
    const of = (isWanted: (arrow: (typeof arrows)[number]) => boolean) =>
      arrows.filter(isWanted).map(({ from, to }) => `${from} ${to}`.replaceAll('EVERY.', ''));
    expect(of(({ isSpine }) => isSpine)).toEqual(['begin regions', 'regions failed']);
    expect(of(({ isBack }) => isBack)).toEqual(['work begin']);
    expect(of(() => true)).toEqual([
      'begin work',
      'begin regions',
      'begin done',
      'work begin',
      'work failed',
      'regions failed',
    ]);
  });
});

describe('the picture of a chart', () => {
  const state = (id: string, more: object = {}) => ({
    ...{ id, key: id, shape: 'leaf', parent: 'R', x: 10, y: 20, width: 100, height: 40 },
    ...more,
  });
  const chart = (inner: number): Chart => {
    const leaf = (id: string): ChartState => ({ id, key: id, type: 'atomic', states: [], transitions: [] });
    const folded = { ...leaf('f'), states: Array.from({ length: inner }, (_, at) => leaf(`f${at}`)) };
    return { name: '<A & "B">\u0000😀', root: { ...leaf('R'), states: [folded] } };
  };
  const svgOf = (layout: object, inner = 0): string =>
    chartSvg(chart(inner), {
      chart: 'A',
      width: 200,
      height: 100,
      states: [],
      arrows: [],
      ...layout,
    } as unknown as ChartLayout);

  it.each([
    [0, 0],
    [1, 1],
    [8, 8],
    [9, 8],
  ])('has a square for each of the %i states in a folded one, at most eight: %i', (inner, squares) => {
    const svg = svgOf({ states: [state('f', { shape: 'folded' })] }, inner);
    const found = [...svg.matchAll(/class="pip" x="([\d.]+)" y="([\d.]+)"/g)].map(([, x, y]) => [Number(x), Number(y)]);
    expect(found).toEqual(Array.from({ length: squares }, (_, at) => [20.5 + 9.5 * at, 44.5]));
    expect(svgOf({ states: [state('f')] }, inner)).not.toContain('class="pip"');
  });

  it('escapes every name, and leaves out what XML has no place for', () => {
    const svg = svgOf({
      states: [state('s', { key: `<b a="1">&'` }), state('o', { key: '<o>', shape: 'open' })],
      arrows: [
        {
          from: 's',
          to: 'o',
          points: [
            [0, 50],
            [0, 90],
          ],
          transitions: [],
          label: '<x>',
          isChoice: true,
        },
      ],
    });
    expect(svg).toContain('<title>&#60;A &#38; &#34;B&#34;&#62;😀</title>');
    expect(svg).toContain('>&#60;b a=&#34;1&#34;&#62;&#38;&#39;</text>');
    expect(svg).toContain('>&#60;o&#62;</text>');
    expect(svg).toContain('>&#60;x&#62;</text>');
  });

  it('draws an end as a ring without its name, and the dot of an initial state', () => {
    const svg = svgOf({
      states: [state('end', { shape: 'end', x: 0, y: 0, width: 17, height: 17 })],
      arrows: [
        {
          from: undefined,
          to: 'end',
          points: [
            [8, 40],
            [8, 17],
          ],
          transitions: [],
        },
      ],
    });
    expect(svg.match(/<circle [^>]*>/g)).toEqual([
      '<circle class="head" cx="8" cy="40" r="4.2"/>',
      '<circle class="box" cx="8.5" cy="8.5" r="7.6"/>',
      '<circle class="head" cx="8.5" cy="8.5" r="3.4"/>',
    ]);
    expect(svg).not.toContain('>end<');
  });

  it.each<[string, [number, number][], [number, number], [number, number]]>([
    [
      'down',
      [
        [50, 0],
        [50, 40],
      ],
      [0, -1],
      [50, 40],
    ],
    [
      'up',
      [
        [50, 40],
        [50, 0],
      ],
      [0, 1],
      [50, 0],
    ],
    [
      'right',
      [
        [0, 0],
        [0, 9],
        [40, 9],
      ],
      [-1, 0],
      [40, 9],
    ],
    [
      'left',
      [
        [40, 9],
        [0, 9],
        [0, 9],
      ],
      [1, 0],
      [0, 9],
    ],
  ])('has the head of an arrow at its end, back from where it points: %s', (_, points, [dx, dy], [x, y]) => {
    const svg = svgOf({ arrows: [{ from: 'a', to: 'b', points, transitions: [] }] });
    const [, d = ''] = /class="head" d="([^"]+)"/.exec(svg) ?? [];
    const [tip, one, other] = [...d.matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map(
      ([, a, b]) => [Number(a), Number(b)] as const,
    );
    expect(tip).toEqual([x, y]);
    const back = [((one?.[0] ?? 0) + (other?.[0] ?? 0)) / 2 - x, ((one?.[1] ?? 0) + (other?.[1] ?? 0)) / 2 - y];
    expect(back.map((each) => Math.round(each * 10) / 10 + 0)).toEqual([5.5 * dx + 0, 5.5 * dy + 0]);
  });

  it('is as large as the chart with its labels and a margin, and follows the colours of its reader', async () => {
    const layout = await layoutChart(chartOf(every), elk);
    const svg = chartSvg(chartOf(every), layout);
    const { x, width, height } = drawnBox(layout);
    expect(svg).toContain(
      `viewBox="${x - 12} -12 ${width + 24} ${height + 24}" width="${width + 24}" height="${height + 24}"`,
    );
    expect(svg).toContain('prefers-color-scheme:dark');
    const labels = [...placedLabels(layout).values()].flatMap(({ lines }) => lines);
    expect([...svg.matchAll(/class="label"[^>]*>([^<]*)</g)].map(([, text]) => text)).toEqual(labels);
    expect(labels.sort()).toEqual(['GO', 'SKIP', 'guard']);
  });
});

describe('a chart without states', () => {
  it('is one box, with a size that the page can fit', async () => {
    const counter = createMachine({ id: 'counter', on: { ADD: {} } });
    const layout = await layoutChart(chartOf(counter), elk);
    expect(layout.states).toMatchObject([{ id: 'counter', key: 'counter', shape: 'leaf' }]);
    const { x, y, width, height } = drawnBox(layout);
    const [box] = layout.states;
    expect([x, y, width, height].every(Number.isFinite)).toBe(true);
    expect(box && [box.x + box.width <= width, box.y + box.height <= height, box.width > 60]).toEqual([
      true,
      true,
      true,
    ]);
    expect(chartSvg(chartOf(counter), layout)).toContain('counter');
  });
});
