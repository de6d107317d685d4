/** The canvas of the chart. It fits, pans and zooms, and never moves by itself. */
import { computed, signal } from '@preact/signals';
import { select } from 'd3-selection';
import { type ZoomBehavior, zoom, zoomIdentity } from 'd3-zoom';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ChartLayout } from '../../src/inspect/drawing/chartDrawing.ts';
import { drawnBox } from '../../src/inspect/drawing/labels.ts';
import { lineage } from '../../src/inspect/drawing/levels.ts';
import { type Drawing, drawingOf, shownFor } from '../model/chart/highlightedPath.ts';
import { covered } from '../state/chartCoverage.ts';
import { charts, layoutOf, toggleState } from '../state/chartLayouts.ts';
import { chartView, chosenState, coverage, entries } from '../state/pageState.ts';
import { activeMark, activeStates, outcomeOf, subject } from '../state/shownActor.ts';
import { ChartDrawing, nodeId } from './ChartDrawing.tsx';
import { StateCard } from './StateCard.tsx';

const LEAST = 0.85;
const MOST = 1.2;
const MARGIN = 14;

const hovered = signal<string | undefined>(undefined);
const focused = signal<string | undefined>(undefined);
/** The key `F` and the button change it. */
export const fitAsked = signal(0);
export const zoomAsked = signal<{ readonly by: number; readonly n: number }>({ by: 1, n: 0 });

export const shownChart = computed(() => subject.value?.chart ?? 'RUN');
export const drawing = computed((): Drawing | undefined => {
  const layout = layoutOf(shownChart.value);
  const loaded = charts.value.get(shownChart.value);
  return layout && loaded && drawingOf(layout, loaded.walker.tree);
});
/** The chart may have changed, and then the state may not exist in it. */
const shownOf = (id: string | undefined): string | undefined =>
  id !== undefined && drawing.value?.states.has(id) ? id : undefined;
const pointedAt = computed(() => shownOf(hovered.value));
const reached = computed(() => shownOf(focused.value));

/** Returns the state that stays in view if the chart does not fit. */
function activeBox(made: Drawing) {
  const leaf = activeStates.value?.leaf;
  return leaf === undefined ? undefined : shownFor(made, leaf);
}

function fitted(made: Drawing, width: number, height: number) {
  const box = drawnBox(made.layout);
  const fittingScale = Math.min((width - 2 * MARGIN) / box.width, (height - 2 * MARGIN) / box.height);
  const scaleMax = entries.value.length === 0 ? Math.min(MOST, fittingScale * 0.96) : MOST;
  const scale = Math.max(LEAST, Math.min(scaleMax, fittingScale));
  const fits = fittingScale >= LEAST;
  const at = fits ? undefined : activeBox(made);
  const along = (room: number, size: number, middle: number | undefined): number => {
    if (size * scale <= room - 2 * MARGIN || middle === undefined) {
      return Math.max(MARGIN, (room - size * scale) / 2);
    }
    return Math.min(MARGIN, Math.max(room - size * scale - MARGIN, room / 2 - middle * scale));
  };
  const x = along(width, box.width, at && at.x - box.x + at.width / 2) - box.x * scale;
  const y = along(height, box.height, at && at.y + at.height / 2);
  return zoomIdentity.translate(x, y).scale(scale);
}

function useZoom(layout: ChartLayout | undefined) {
  const svg = useRef<SVGSVGElement>(null);
  const inner = useRef<SVGGElement>(null);
  const behaviour = useRef<ZoomBehavior<SVGSVGElement, unknown> | null>(null);
  useLayoutEffect(() => {
    const element = svg.current;
    if (!element) return;
    const made = zoom<SVGSVGElement, unknown>()
      .scaleExtent([0.3, 3])
      .on('zoom', ({ transform }) => inner.current?.setAttribute('transform', `${transform}`))
      .on('end', ({ transform: { x, y, k } }) => {
        const { width, height } = element.getBoundingClientRect();
        chartView.value = { x, y, k, width, height };
      });
    behaviour.current = made;
    select(element).call(made).on('dblclick.zoom', null);
    const observer = new ResizeObserver(() => fitView());
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const fitView = (): void => {
    const element = svg.current;
    const made = drawing.peek();
    if (!element || !made || !behaviour.current) return;
    const { width, height } = element.getBoundingClientRect();
    if (width > 0) select(element).call(behaviour.current.transform, fitted(made, width, height));
  };
  useEffect(() => fitView(), [layout?.chart, fitAsked.value, layout === undefined]);
  useEffect(() => {
    if (svg.current && behaviour.current && zoomAsked.value.n > 0) {
      const selection = select(svg.current);
      if (zoomAsked.value.by === 0) selection.call(behaviour.current.scaleTo, 1);
      else selection.call(behaviour.current.scaleBy, zoomAsked.value.by);
    }
  }, [zoomAsked.value]);
  return { svg, inner };
}

/** Returns the state that an arrow key leads to: down forward, left back, right out, up to the previous one. */
function neighbour(made: Drawing, from: string, key: string): string | undefined {
  const { arrows } = made.layout;
  const named = (id: string | undefined) => (id === undefined ? undefined : made.states.get(id));
  if (key === 'ArrowDown') return arrows.filter((arrow) => arrow.from === from && !arrow.isBack).at(-1)?.to;
  if (key === 'ArrowLeft') return arrows.find((arrow) => arrow.from === from && arrow.isBack)?.to;
  if (key === 'ArrowUp') return arrows.filter((arrow) => arrow.to === from && !arrow.isBack).at(-1)?.from;
  const parent = named(from)?.parent;
  return arrows.find((arrow) => arrow.from === parent)?.to ?? arrows.find((arrow) => arrow.from === from)?.to;
}

const insideOf = (made: Drawing, id: string | undefined): string | undefined => {
  const state = id === undefined ? undefined : made.states.get(id);
  if (state?.shape !== 'open') return id;
  const first = made.layout.arrows.find(
    (arrow) => arrow.from === undefined && made.states.get(arrow.to)?.parent === id,
  );
  return insideOf(made, first?.to) ?? id;
};

/**
 * Returns the state that an arrow key reaches. Down enters an open compound. Up and left return to the compound that
 * contains the state if no arrow leads there.
 */
function reachedBy(made: Drawing, from: string, key: string): string | undefined {
  const state = made.states.get(from);
  const isOpen = state?.shape === 'open';
  if (isOpen && key === 'ArrowDown') return insideOf(made, from);
  const onward =
    isOpen && key === 'ArrowRight' ? made.layout.arrows.find((arrow) => arrow.from === from)?.to : undefined;
  const to = insideOf(made, onward ?? neighbour(made, from, key));
  const around = made.states.get(state?.parent ?? '')?.id;
  return to ?? (key === 'ArrowUp' || key === 'ArrowLeft' ? around : undefined);
}

function onKey(event: KeyboardEvent): void {
  const made = drawing.peek();
  if (!made) return;
  const from = reached.peek() ?? activeBox(made)?.id ?? insideOf(made, made.layout.states[0]?.id);
  if (event.key === 'Enter' && from !== undefined) {
    const shape = made.states.get(from)?.shape;
    if (shape === 'folded' || shape === 'open') toggleState(shownChart.peek(), from);
    else chosenState.value = from;
  } else if (event.key.startsWith('Arrow') && from !== undefined) {
    const to = reached.peek() === undefined ? from : reachedBy(made, from, event.key);
    if (to !== undefined) {
      focused.value = to;
      chosenState.value = to;
    }
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

export function ChartPanel() {
  const made = drawing.value;
  const { svg, inner } = useZoom(made?.layout);
  const at = coverage.value ? covered.value : activeStates.value;
  const one = subject.value;
  const outcome = one && !coverage.value ? outcomeOf(one) : undefined;
  const leaves = made && at ? [...at.leaves.keys()] : [];
  const active = new Set(leaves.flatMap((id) => (made ? lineage(made.tree, id) : [])));
  const name = one ? `${one.label}, chart` : 'RUN, chart';
  return (
    <section class="chart" id="chart" aria-label={name}>
      <svg
        ref={svg}
        class="canvas"
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: its states are items of a tree, drawn.
        role="tree"
        aria-label={name}
        aria-activedescendant={reached.value === undefined ? undefined : nodeId(reached.value)}
        tabIndex={0}
        onKeyDown={onKey}
        onBlur={() => {
          focused.value = undefined;
        }}
      >
        <defs>
          <pattern id="dots" width="20" height="20" patternUnits="userSpaceOnUse">
            <circle cx="1" cy="1" r=".8" class="dot" />
          </pattern>
        </defs>
        <rect width="100%" height="100%" fill="url(#dots)" />
        <g ref={inner}>
          {made && (
            <ChartDrawing
              drawing={made}
              activeStates={at}
              outcome={outcome}
              mark={outcome?.mark ?? (one ? activeMark(one) : 'idle')}
              active={active}
              hovered={pointedAt.value}
              focused={reached.value}
              selected={chosenState.value}
              stayed={coverage.value ? undefined : one?.actor?.stayed}
              onHover={(id) => {
                hovered.value = id;
              }}
              onSelect={(id) => {
                chosenState.value = chosenState.value === id ? undefined : id;
              }}
              onFold={(id) => {
                // The element under the pointer is replaced.
                hovered.value = undefined;
                toggleState(shownChart.value, id);
              }}
            />
          )}
        </g>
      </svg>
      {made && <StateCard drawing={made} />}
    </section>
  );
}
