/** The drawing of charts: runchart's own with prepared layouts, and as separate images. */
import { describe, expect, it } from 'vitest';
import * as machines from '../../machines/index.ts';
import { chartPicture } from '../../src/cli/chartsCommand.ts';
import { chartOf } from '../../src/inspect/chart.ts';
import type { ChartLayout } from '../../src/inspect/drawing/chartDrawing.ts';
import { drawnBox, placedLabels, pointedLabels } from '../../src/inspect/drawing/labels.ts';
import { laidOutCharts } from '../../src/inspect/drawing/layouts.ts';
import { chartSvg } from '../../src/inspect/drawing/svg.ts';

describe('drawn charts', () => {
  it('they have exactly the states and transitions of the machines', () => {
    const ids = new Map(
      Object.values(machines).flatMap((one) => ('root' in Object(one) ? [[(one as { id: string }).id, one]] : [])) as [
        string,
        never,
      ][],
    );
    for (const { chart } of laidOutCharts()) {
      const machine = ids.get(chart.name);
      expect(machine, chart.name).toBeDefined();
      if (machine) expect(chart, 'run `npm run layouts`').toEqual(JSON.parse(JSON.stringify(chartOf(machine))));
    }
  });

  const through = (layout: ChartLayout): string[] =>
    layout.arrows.flatMap(({ from, to, points }) =>
      layout.states.flatMap((state) => {
        if (state.shape === 'open' || state.id === from || state.id === to) return [];
        const crosses = points.some(([x, y], index) => {
          const [px, py] = points[index - 1] ?? [x, y];
          const inX = Math.max(x, px) > state.x + 1 && Math.min(x, px) < state.x + state.width - 1;
          const inY = Math.max(y, py) > state.y + 1 && Math.min(y, py) < state.y + state.height - 1;
          return inX && inY;
        });
        return crosses ? [`${layout.chart}: ${from} -> ${to} runs through ${state.id}`] : [];
      }),
    );
  const overlapping = ({ states }: ChartLayout): string[] =>
    states.flatMap((a, index) =>
      states.slice(index + 1).flatMap((b) => {
        const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        return apart || a.parent !== b.parent ? [] : [`${a.id} lies on ${b.id}`];
      }),
    );

  it('no state covers another, and no arrow crosses one', () => {
    const faults = laidOutCharts().flatMap(({ layout }) => [...overlapping(layout), ...through(layout)]);
    expect(faults).toEqual([]);
  });

  it('no line crosses another, except in CONVERSATION, where all ways back to a state share a lane', () => {
    type Leg = readonly [from: readonly [number, number], to: readonly [number, number]];
    const legsOf = ({ points }: ChartLayout['arrows'][number]): Leg[] =>
      points.slice(1).map((to, index) => [points[index] ?? to, to]);
    const isWithin = (at: number, a: number, b: number): boolean => at > Math.min(a, b) && at < Math.max(a, b);
    const cross = ([a, b]: Leg, [c, d]: Leg): boolean =>
      a[0] === b[0] && c[1] === d[1] && isWithin(a[0], c[0], d[0]) && isWithin(c[1], a[1], b[1]);
    const crossed = laidOutCharts().flatMap(({ layout }) => {
      const legs = layout.arrows.flatMap(legsOf);
      const places = legs.flatMap((down) =>
        legs.filter((across) => cross(down, across)).map((across) => `${layout.chart} ${down[0][0]} ${across[0][1]}`),
      );
      return [...new Set(places)].map((place) => place.split(' ')[0]);
    });
    expect(new Set(crossed)).toEqual(new Set(['CONVERSATION']));
    expect(crossed.length).toBeLessThanOrEqual(5);
    const back = laidOutCharts()
      .filter(({ layout }) => layout.chart === 'CONVERSATION')
      .flatMap(({ layout }) => layout.arrows.filter(({ isBack }) => isBack));
    const lanes = new Set(back.map(({ points }) => Math.min(...points.map(([x]) => x))));
    expect([lanes.size, new Set(back.map(({ to }) => to)).size]).toEqual([3, 3]);
  });

  it('labels distinguish all arrows with a choice, none covers a state, an arrow or another label, and no exits are drawn while nothing runs', () => {
    const faults = laidOutCharts().flatMap(({ chart, layout }) => {
      const svg = chartSvg(chart, layout);
      const labels = [...svg.matchAll(/<text class="label" x="([^"]+)" y="([^"]+)">([^<]+)</g)].map(
        ([, x, y, text]) => {
          return {
            text,
            left: Number(x),
            right: Number(x) + 5.8 * `${text}`.length,
            top: Number(y) - 8,
            bottom: Number(y) + 2,
          };
        },
      );
      const boxes = layout.states.filter(({ shape }) => shape !== 'open');
      const covered = [
        ...boxes.map(({ key, x, y, width, height }) => [key, x, y, x + width, y + height] as const),
        ...layout.arrows.flatMap(({ from, to, points }) =>
          points.slice(1).map(([x, y], index) => {
            const [px, py] = points[index] ?? [x, y];
            return [`${from} -> ${to}`, Math.min(x, px), Math.min(y, py), Math.max(x, px), Math.max(y, py)] as const;
          }),
        ),
        ...labels.map(({ text, left, top, right, bottom }) => [`${text}`, left, top, right, bottom] as const),
      ];
      return labels.flatMap(({ text, left, top, right, bottom }) =>
        covered
          .filter(([what, x, y, x2, y2]) => what !== text && x < right && left < x2 && y < bottom && top < y2)
          .map(([what]) => `${chart.name}: ${text} lies on ${what}`),
      );
    });
    expect(faults).toEqual([]);
    const untold = laidOutCharts().flatMap(({ layout }) => {
      const labels = placedLabels(layout);
      return layout.arrows
        .filter((arrow) => arrow.isChoice && !labels.has(arrow))
        .map(({ from, to }) => `${from} ${to}`);
    });
    expect(untold).toEqual([]);
    const [run] = laidOutCharts();
    expect(run && chartSvg(run.chart, run.layout)).toContain('>hasToolCalls</text>');
    expect(run && chartSvg(run.chart, run.layout)).not.toContain('h9"');
  });

  it("the labels of a hovered state's arrows cover no state and no other label", () => {
    for (const { layout } of laidOutCharts()) {
      const boxes = [...pointedLabels(layout).values()].map(({ x, y, lines }) => {
        const right = x + 5.8 * Math.max(...lines.map(({ length }) => length));
        return { what: lines.join(''), x, y: y - 8, right, bottom: y - 8 + 10 * lines.length };
      });
      expect(boxes).toHaveLength(layout.arrows.filter(({ label }) => label).length);
      const states = layout.states
        .filter(({ shape }) => shape !== 'open')
        .map(({ id, x, y, width, height }) => ({ what: id, x, y, right: x + width, bottom: y + height }));
      const faults = boxes.flatMap((one, index) =>
        [...boxes.slice(index + 1), ...states]
          .filter(({ x, y, right, bottom }) => x < one.right && one.x < right && y < one.bottom && one.y < bottom)
          .map(({ what }) => `${layout.chart}: ${one.what} lies on ${what}`),
      );
      expect(faults).toEqual([]);
      const { x, width } = drawnBox(layout);
      for (const { lines, x: left } of placedLabels(layout).values()) {
        expect(left).toBeGreaterThanOrEqual(x);
        expect(left + 5.8 * Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(x + width + 0.01);
      }
    }
  });

  it('RUN fits into a window of 1440 by 900 at nine tenths or more', () => {
    const layout = laidOutCharts().find(({ chart }) => chart.name === 'RUN')?.layout;
    expect(Math.min(790 / (layout?.width ?? 1), 640 / (layout?.height ?? 1))).toBeGreaterThan(0.9);
  });
});

describe('runchart charts --svg', () => {
  it('it draws every chart with its states, in the places of the page, and refuses an unknown name', async () => {
    for (const { chart, layout } of laidOutCharts()) {
      const written: string[] = [];
      await chartPicture(chart.name.toLowerCase(), (text) => void written.push(text));
      const svg = written.join('');
      expect(svg).toMatch(/^<svg [^>]*viewBox="-\d+ -12 /);
      for (const { key, shape } of layout.states) if (shape !== 'end') expect(svg).toContain(`>${key}</text>`);
      expect(svg.match(/class="line"/g)?.length).toBeGreaterThanOrEqual(layout.arrows.length);
    }
    await expect(chartPicture('NONE', () => undefined)).rejects.toThrow(/there is no chart "NONE"/);
  });
});
