/** The states and arrows of a chart. Invariant: a run changes classes and marks here, never positions. */

import type { ChartState } from '../../src/inspect/chart.ts';
import type { DrawnArrow, DrawnState } from '../../src/inspect/drawing/chartDrawing.ts';
import { HEIGHT, type LabelPlace, placedLabels, pointedLabels } from '../../src/inspect/drawing/labels.ts';
import { lineage } from '../../src/inspect/drawing/levels.ts';
import { plural } from '../../src/words/formats.ts';
import type { ActiveStates } from '../model/chart/activeStates.ts';
import {
  type Drawing,
  type HighlightedLeg,
  headPath,
  highlightedLeg,
  initialsOf,
  middleOf,
  roundedPath,
  shownFor,
} from '../model/chart/highlightedPath.ts';
import type { MarkName } from '../model/treeRows.ts';
import { MarkAt, type Tone, toneOf } from './stateMarks.tsx';

export interface ChartLook {
  readonly drawing: Drawing;
  readonly activeStates: ActiveStates | undefined;
  /** The state that determines the outcome. */
  readonly outcome: { readonly id: string; readonly mark: MarkName } | undefined;
  /** The mark of the active state, until the actor ends. */
  readonly mark: MarkName;
  readonly active: ReadonlySet<string>;
  readonly hovered: string | undefined;
  readonly focused: string | undefined;
  readonly selected: string | undefined;
  /** The last transition stayed in this state, so the state's border flashes once. */
  readonly stayed: { readonly state: string; readonly at: number } | undefined;
  onHover(id: string | undefined): void;
  onSelect(id: string): void;
  onFold(id: string): void;
}

export function ChartDrawing(look: ChartLook) {
  const { drawing, activeStates, outcome } = look;
  const { layout } = drawing;
  const taken = activeStates?.taken ?? new Set<string>();
  const initials = initialsOf(drawing, activeStates?.entered ?? new Map());
  const highlighted = (activeStates?.lastStep ?? [])
    .map((leg) => highlightedLeg(drawing, leg))
    .filter((leg) => leg !== undefined);
  const tone: Tone = outcome ? toneOf[outcome.mark] : toneOf[look.mark] === 'none' ? 'run' : toneOf[look.mark];
  const hovered = look.hovered ?? look.focused;
  const places = placedLabels(layout);
  return (
    <g>
      {layout.states
        .filter(({ shape }) => shape === 'open')
        .map((state) => (
          <Compound key={state.id} state={state} look={look} />
        ))}
      {layout.arrows.map((arrow) => (
        <ArrowLine
          key={`${arrow.from} ${arrow.to}`}
          arrow={arrow}
          isTaken={initials.has(arrow) || arrow.transitions.some((key) => taken.has(key))}
          isNear={hovered !== undefined && (arrow.from === hovered || arrow.to === hovered)}
        />
      ))}
      {layout.states
        .filter(({ leaves, shape }) => leaves && shape !== 'open' && activeStates)
        .map((state) => (
          <WayOut
            key={state.id}
            state={state}
            isTaken={highlighted.some(({ leg, points }) => isFrom(drawing, state, leg.source, points))}
          />
        ))}
      <HighlightedPath lastStep={highlighted} tone={tone} isOver={outcome !== undefined} />
      {layout.states
        .filter(({ shape }) => shape !== 'open')
        .map((state) => (
          <StateBox key={state.id} state={state} look={look} />
        ))}
      {layout.arrows.map((arrow) => {
        const isShown = (arrow.isChoice && activeStates && places.has(arrow)) || isShownOnHover(arrow, hovered);
        const place = isShown ? (places.get(arrow) ?? pointedLabels(layout).get(arrow)) : undefined;
        return (
          place && (
            <ArrowLabel
              key={`${arrow.from} ${arrow.to}`}
              place={place}
              tone={highlighted.some((one) => one.arrow === arrow) && !outcome ? tone : undefined}
            />
          )
        );
      })}
    </g>
  );
}

const isShownOnHover = (arrow: DrawnArrow, hovered: string | undefined): boolean =>
  hovered !== undefined && (arrow.from === hovered || arrow.to === hovered);

const isFrom = (drawing: Drawing, state: DrawnState, source: string, points: HighlightedLeg['points']): boolean =>
  shownFor(drawing, source)?.id === state.id && Math.abs((points[0]?.[0] ?? 0) - (state.x + state.width)) < 1;

function Compound({ state, look }: { state: DrawnState; look: ChartLook }) {
  const isActive = look.active.has(state.id) && !look.outcome;
  const isEntered = (look.activeStates?.entered.get(state.id) ?? 0) > 0;
  const shade = toneOf[look.mark];
  const tone = isActive && shade !== 'none' ? `is-parent tone-${shade}` : isEntered ? 'is-entered' : '';
  const { x, y, width, height } = state;
  return (
    <g
      class={`compound ${tone}`}
      role="treeitem"
      id={nodeId(state.id)}
      aria-label={`${state.key}${isActive ? ', active' : ''}`}
      aria-level={levelOf(look, state.id)}
      aria-expanded="true"
      aria-selected={look.selected === state.id}
      tabIndex={-1}
      onDblClick={() => look.onFold(state.id)}
    >
      {look.focused === state.id && <FocusRing state={state} radius={12} />}
      <rect x={x} y={y} width={width} height={height} rx="9" />
      <text x={x + 11} y={y + 16.5}>
        {state.key}
      </text>
    </g>
  );
}

function FocusRing({ state: { x, y, width, height }, radius }: { state: DrawnState; radius: number }) {
  return <rect class="focus-ring" x={x - 3} y={y - 3} width={width + 6} height={height + 6} rx={radius} />;
}

function ArrowLine({ arrow, isTaken, isNear }: { arrow: DrawnArrow; isTaken: boolean; isNear: boolean }) {
  const [start] = arrow.points;
  const look = `arrow${isTaken ? ' is-taken' : ''}${isNear ? ' is-near' : ''}`;
  return (
    <g class={look}>
      <path class="shaft" d={roundedPath(arrow.points)} />
      <path class="head" d={headPath(arrow.points)} />
      {arrow.from === undefined && start && <circle class="head" cx={start[0]} cy={start[1]} r="4.2" />}
    </g>
  );
}

function WayOut({ state, isTaken }: { state: DrawnState; isTaken: boolean }) {
  const x = state.x + state.width;
  const y = state.y + state.height / 2;
  return (
    <g class={isTaken ? 'way-out is-taken' : 'way-out'}>
      <path d={`M${x} ${y}h8`} />
      <circle cx={x + 10} cy={y} r="2" />
    </g>
  );
}

function HighlightedPath({
  lastStep: highlighted,
  tone,
  isOver,
}: {
  lastStep: readonly HighlightedLeg[];
  tone: Tone;
  isOver: boolean;
}) {
  const last = highlighted.at(-1);
  if (!last) return null;
  const key = highlighted.map(({ leg }) => `${leg.key} ${leg.target}`).join();
  const [x, y] = middleOf(last.points);
  return (
    <g class={`lit tone-${tone}`} key={key}>
      {highlighted.map(({ leg, points }) => (
        <g key={`${leg.key} ${leg.target}`}>
          <path class="shaft" d={roundedPath(points)} pathLength={1} />
          <path class="head" d={headPath(points, 7)} />
        </g>
      ))}
      {!isOver && <circle class="pulse-halo" cx={x} cy={y} r="6.5" />}
      {!isOver && <circle class="pulse" cx={x} cy={y} r="3.4" />}
    </g>
  );
}

/** `tone` is set for a step that was just taken. */
function ArrowLabel({ place: { x, y, lines }, tone }: { place: LabelPlace; tone: Tone | undefined }) {
  return lines.map((line, index) => (
    <text
      key={line}
      class={tone ? `arrow-label is-lit tone-${tone}` : 'arrow-label'}
      x={tone ? x + 6 : x}
      y={y + index * HEIGHT}
    >
      {line}
    </text>
  ));
}

/** Returns the element id of a state. The canvas refers to it for the keyboard focus. */
export const nodeId = (id: string): string => `node ${id}`.replaceAll(/\s/g, '-');

const levelOf = ({ drawing: { tree } }: ChartLook, id: string): number => Math.max(1, lineage(tree, id).length - 1);

/** Returns the attributes that make a drawn state a focusable tree item. */
const itemOf = (look: ChartLook, { id, shape }: DrawnState, label: string) => ({
  role: 'treeitem' as const,
  id: nodeId(id),
  'aria-label': label,
  'aria-level': levelOf(look, id),
  'aria-selected': look.selected === id,
  ...(shape === 'folded' && { 'aria-expanded': false }),
  'data-state': id,
  tabIndex: -1,
  onMouseEnter: () => look.onHover(id),
  onMouseLeave: () => look.onHover(undefined),
  onClick: () => look.onSelect(id),
  onDblClick: () => shape === 'folded' && look.onFold(id),
});

const times = (count: number): string =>
  ['never entered', 'entered once', 'entered twice'][count] ?? `entered ${count} times`;

function StateBox({ state, look }: { state: DrawnState; look: ChartLook }) {
  const { x, y, width, height, shape } = state;
  const count = look.activeStates?.entered.get(state.id) ?? 0;
  const isOutcome = look.outcome?.id === state.id;
  const isActive = look.active.has(state.id) && !look.outcome;
  const mark: MarkName | undefined = isOutcome ? look.outcome?.mark : isActive ? look.mark : undefined;
  const classes = [
    'state',
    isOutcome ? `is-outcome tone-${toneOf[mark ?? 'idle']}` : '',
    isActive ? `is-active tone-${toneOf[look.mark]}` : '',
    count > 0 ? 'is-entered' : '',
    look.selected === state.id ? 'is-selected' : '',
    isFar(look, state.id) ? 'is-far' : '',
  ];
  const children = look.drawing.tree.states.get(state.id)?.states ?? [];
  const inner = isActive ? children.filter(({ id }) => look.active.has(id)) : [];
  const status = isActive ? 'active' : isOutcome ? 'the outcome' : '';
  const ways = look.drawing.layout.arrows.filter(({ from }) => from === state.id).length + (state.leaves ? 1 : 0);
  const label = [state.key, status, inner.map(({ key }) => key).join(', '), times(count), `${plural(ways, 'way')} on`]
    .filter((part) => part !== '')
    .join(', ');
  const stayed = hasStayed(look, state.id) ? look.stayed : undefined;
  if (shape === 'end') return <EndRing state={state} look={look} isReached={count > 0} />;
  return (
    <g class={classes.join(' ')} {...itemOf(look, state, label)}>
      {look.focused === state.id && <FocusRing state={state} radius={8.5} />}
      {isActive && <rect class="halo" x={x - 2} y={y - 2} width={width + 4} height={height + 4} rx="7.5" />}
      <rect class="box" x={x} y={y} width={width} height={height} rx="5.5" />
      {stayed && <rect key={stayed.at} class="flash" x={x} y={y} width={width} height={height} rx="5.5" />}
      {shape === 'final' && (
        <rect class="inner" x={x + 2.5} y={y + 2.5} width={width - 5} height={height - 5} rx="3.5" />
      )}
      {mark && <MarkAt name={mark} x={x + 16} y={y + (shape === 'folded' ? 12 : height / 2)} size={11} />}
      <text class="name" x={x + (mark ? 26 : 10)} y={y + (shape === 'folded' ? 16 : height / 2 + 4)}>
        {state.key}
      </text>
      {count > 1 && hasRoom(state, mark !== undefined) && (
        <text class="count" x={x + width - 8} y={y + (shape === 'folded' ? 15.5 : height / 2 + 3.5)}>
          ×{count}
        </text>
      )}
      {shape === 'folded' && <Folded state={state} look={look} active={inner} />}
    </g>
  );
}

const FLASH_MS = 1000;
/** True only for a short time, so that later renders do not flash again. */
const hasStayed = ({ drawing, stayed }: ChartLook, id: string): boolean =>
  stayed !== undefined && Date.now() - stayed.at < FLASH_MS && shownFor(drawing, stayed.state)?.id === id;

/** Returns true if the name and the count fit. */
const hasRoom = ({ key, width }: DrawnState, isMarked: boolean): boolean =>
  key.length * 6.4 + (isMarked ? 26 : 10) + 26 < width;

/** Returns true if no arrow connects the state with the one under the pointer. */
function isFar({ drawing, hovered, focused }: ChartLook, id: string): boolean {
  const at = hovered ?? focused;
  const joins = ({ from, to }: DrawnArrow): boolean => (from === at && to === id) || (to === at && from === id);
  return at !== undefined && at !== id && !drawing.layout.arrows.some(joins);
}

/** `active` lists its active children: one, or all regions of a parallel state. */
function Folded({ state, look, active }: { state: DrawnState; look: ChartLook; active: readonly ChartState[] }) {
  const name = active.length === 1 ? active[0]?.key : undefined;
  const children = look.drawing.tree.states.get(state.id)?.states ?? [];
  const { x, y, width } = state;
  const shown = children.slice(0, 8);
  return (
    <>
      {shown.map(({ id }, index) => {
        const isEntered = (look.activeStates?.entered.get(id) ?? 0) > 0;
        const kind = active.some((one) => one.id === id) ? 'pip is-active' : isEntered ? 'pip is-entered' : 'pip';
        return <rect key={id} class={kind} x={x + 10.5 + index * 9.5} y={y + 24.5} width="6" height="6" rx="1.2" />;
      })}
      {name !== undefined && (
        <text class="inner-name" x={x + 13 + shown.length * 9.5} y={y + 31}>
          {name}
        </text>
      )}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the same by keyboard is Enter on the state. */}
      <g
        class="fold"
        onClick={(event) => {
          event.stopPropagation();
          look.onFold(state.id);
        }}
      >
        <rect x={x + width - 24} y={y + 17} width="22" height="20" class="fold-room" />
        <path d={`m${x + width - 16} ${y + 26} 3.2 3.2 3.2-3.2`} />
      </g>
    </>
  );
}

function EndRing({ state, look, isReached }: { state: DrawnState; look: ChartLook; isReached: boolean }) {
  const x = state.x + state.width / 2;
  const y = state.y + state.height / 2;
  const tone = isReached && look.outcome ? `tone-${toneOf[look.outcome.mark]} is-reached` : '';
  return (
    <g
      class={`end ${tone}`}
      {...itemOf(look, state, `${state.key}, the end, ${isReached ? 'reached' : 'not reached'}`)}
    >
      {look.focused === state.id && <circle class="focus-ring" cx={x} cy={y} r="11" />}
      <circle class="ring" cx={x} cy={y} r="7.6" />
      {isReached && look.outcome ? (
        <MarkAt name={look.outcome.mark} x={x} y={y} size={9} />
      ) : (
        <circle class="head" cx={x} cy={y} r="3.4" />
      )}
    </g>
  );
}
