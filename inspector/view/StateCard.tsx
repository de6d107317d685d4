/** The inset of the chart: the events that a state accepts now, or the progress of a round's calls. */
import { Fragment, type Ref } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ChartState } from '../../src/inspect/chart.ts';
import { lineage } from '../../src/inspect/drawing/levels.ts';
import { duration, telling } from '../../src/words/formats.ts';
import { argsAt, callAt, roundState } from '../model/callStates.ts';
import { type Drawing, highlightedLeg, shownFor } from '../model/chart/highlightedPath.ts';
import type { CallFacts } from '../model/logFacts.ts';
import { callMs } from '../model/stepRows.ts';
import { type MarkName, markOfCall } from '../model/treeRows.ts';
import { charts, OWN_CHARTS } from '../state/chartLayouts.ts';
import { maySend, sendEvent, sending } from '../state/decisionCards.ts';
import {
  chartView,
  chosenState,
  coverage,
  cursor,
  facts,
  isPast,
  lastRun,
  moment,
  now,
  open,
  seqOf,
} from '../state/pageState.ts';
import {
  activeMark,
  activeStates,
  activeStatesOf,
  crumbs,
  outcomeOf,
  type Subject,
  subject,
} from '../state/shownActor.ts';
import { type Box, type Corner, cornerFor, type Drawn } from './insetCorner.ts';
import { Mark } from './stateMarks.tsx';

interface Accepted {
  readonly key: string;
  /** The event's type, as it is sent. */
  readonly type: string;
  readonly event: string;
  readonly guard: string;
  readonly target: string;
}

/** Returns own transitions first, then those of the parents. Eventless transitions are omitted. */
export function acceptedBy(chart: string, id: string): Accepted[] {
  const tree = charts.value.get(chart)?.walker.tree;
  if (!tree) return [];
  return lineage(tree, id).flatMap((source) =>
    (tree.states.get(source)?.transitions ?? [])
      // In runchart's own charts a parent's transition that stays is not specific to this state. An app's may be its only one.
      .filter(({ event, targets }) => event !== '' && (!OWN_CHARTS.has(chart) || source === id || targets.length > 0))
      .map(({ event, index, guard = '', targets }) => ({
        key: `${source} ${event} ${index}`,
        type: event,
        event: event.replace(/^xstate\.done\.(actor|state)\./, 'done: '),
        guard,
        target: targets.map((target) => tree.states.get(target)?.key ?? target).join(', '),
      })),
  );
}

interface Shown {
  readonly one: Subject;
  /** One state, or the active state of each parallel region. */
  readonly states: readonly ChartState[];
  readonly isActive: boolean;
}

/**
 * Returns the chosen state. Otherwise the conversation's, if the run has ended and it waits. Otherwise the active
 * states.
 */
function shown(): Shown | undefined {
  const one = subject.value;
  const tree = one && charts.value.get(one.chart)?.walker.tree;
  if (!one || !tree) return undefined;
  const selected = chosenState.value === undefined ? undefined : tree.states.get(chosenState.value);
  const leavesOf = (each: Subject): string[] => [...(activeStatesOf(each)?.leaves.keys() ?? [])];
  const isIn = (id: string): boolean => leavesOf(one).some((leaf) => lineage(tree, leaf).includes(id));
  if (selected) return { one, states: [selected], isActive: isIn(selected.id) };
  const outer = outcomeOf(one) ? crumbs.value[0] : one;
  const all = outer && charts.value.get(outer.chart)?.walker.tree.states;
  const states = outer && all ? leavesOf(outer).flatMap((id) => all.get(id) ?? []) : [];
  return outer && states.length > 0 ? { one: outer, states, isActive: true } : undefined;
}

/** Returns the events that each state accepts. A transition of a common parent is listed only with the first state. */
function acceptedByAll(chart: string, states: readonly ChartState[]): { id: string; name: string; rows: Accepted[] }[] {
  const tree = charts.value.get(chart)?.walker.tree;
  const listed = new Set<string>();
  return states.map((state) => {
    const rows = acceptedBy(chart, state.id).filter(({ key }) => !listed.has(key));
    for (const { key } of rows) listed.add(key);
    // In a region with child states, the region's name is shown.
    const region = tree?.states.get(tree.parents.get(state.id) ?? '');
    return { id: state.id, name: region && region.type !== 'parallel' ? region.key : state.key, rows };
  });
}

const isRound = (): boolean => {
  const one = subject.value;
  const leaf = one && activeStatesOf(one)?.leaf;
  if (one?.chart === 'TOOL_ROUND' || chosenState.value === 'RUN.active.ToolRound') return true;
  return chosenState.value === undefined && (leaf?.startsWith('RUN.active.ToolRound') ?? false);
};

/** Returns the screen boxes of everything drawn. The last path and the states at its ends are lit. */
function drawnOn({ layout, states, ...rest }: Drawing): Drawn[] {
  const { x, y, k } = chartView.value;
  const at = activeStates.value;
  const drawing = { layout, states, ...rest };
  const legs = (at?.lastStep ?? []).flatMap((leg) => highlightedLeg(drawing, leg) ?? []);
  const ends = [...(at?.leaves.keys() ?? []), ...legs.map(({ target }) => target)].flatMap(
    (id) => shownFor(drawing, id)?.id ?? [],
  );
  const placed = (box: Box, isLit: boolean): Drawn => ({
    ...{ x: box.x * k + x, y: box.y * k + y, width: box.width * k, height: box.height * k },
    isLit,
  });
  const lines = legs.flatMap(({ points }) =>
    points.slice(1).map(([right, bottom], index) => {
      const [left, top] = points[index] ?? [right, bottom];
      const [width, height] = [Math.abs(right - left), Math.abs(bottom - top)];
      return placed({ x: Math.min(left, right), y: Math.min(top, bottom), width, height }, true);
    }),
  );
  const boxes = layout.states.filter(({ shape }) => shape !== 'open');
  return [...boxes.map((state) => placed(state, ends.includes(state.id))), ...lines];
}

/** Keeps the corner during the run, unless it would cover something lit. */
function useCorner(drawing: Drawing, kind: string) {
  const card = useRef<HTMLElement>(null);
  const [chosenFold, fold] = useState<boolean>();
  const [{ corner, isCovering }, place] = useState<{ corner: Corner; isCovering: boolean }>({
    corner: 'bottom right',
    isCovering: false,
  });
  const remembered = useRef({ height: 0, view: chartView.value });
  const isFolded = chosenFold ?? isCovering;
  useLayoutEffect(() => {
    const element = card.current;
    const view = chartView.value;
    if (!element || view.width === 0) return;
    if (!isFolded) remembered.current.height = element.offsetHeight;
    const size = { width: element.offsetWidth, height: remembered.current.height };
    const isSameView = remembered.current.view === view;
    remembered.current.view = view;
    const next = cornerFor({ drawn: drawnOn(drawing), card: size, room: view, ...(isSameView && { now: corner }) });
    if (next.corner !== corner || next.isCovering !== isCovering) place(next);
  }, [drawing, kind, chartView.value, [...(activeStates.value?.leaves.keys() ?? [])].join(), isFolded]);
  return { card, corner, isFolded, fold: () => fold(!isFolded) };
}

export function StateCard({ drawing }: { drawing: Drawing }) {
  const isOfRound = isRound() && roundCalls().length > 0;
  const content = isOfRound ? undefined : shown();
  const { card, corner, isFolded, fold } = useCorner(
    drawing,
    isOfRound ? 'round' : (content?.states.map(({ id }) => id).join() ?? ''),
  );
  if (coverage.value || !open.value) return null;
  if (isOfRound) return <RoundInset card={card} corner={corner} isFolded={isFolded} fold={fold} />;
  if (!content) return null;
  const { one, states, isActive } = content;
  const [state] = states;
  if (!state) return null;
  const isParallel = states.length > 1;
  const at = activeStatesOf(one);
  const isOuter = one !== subject.value;
  const path = charts.value.get(one.chart)?.walker.tree.parents.get(state.id);
  const parent = path === undefined ? undefined : charts.value.get(one.chart)?.walker.tree.states.get(path);
  const isInner =
    parent !== undefined &&
    !isParallel &&
    !isOuter &&
    !/\.active$/.test(parent.id) &&
    charts.value.get(one.chart)?.walker.tree.parents.has(parent.id);
  const since = at?.leaves.get(state.id) ?? [...(at?.leaves.values() ?? [])][0] ?? now.value;
  const ms = isParallel ? 0 : isActive ? now.value - since : (at?.spent.get(state.id) ?? 0);
  const count = isParallel ? 1 : (at?.entered.get(state.id) ?? 0);
  const mark: MarkName = isActive ? (outcomeOf(one)?.mark ?? activeMark(one)) : count > 0 ? 'queued' : 'idle';
  const numbers = isPast.value
    ? [isActive ? `at entry ${seqOf(cursor.value)}` : count > 0 ? `×${count}` : 'never entered']
    : [
        isOuter ? one.label : '',
        ms > 0 ? duration(ms) : '',
        count > 1 ? `×${count}` : count === 0 ? 'never entered' : '',
      ];
  const accepted = acceptedByAll(one.chart, states);
  return (
    <aside ref={card} class="inset state-card" data-corner={corner} aria-label="State">
      <button type="button" class="inset-head" aria-expanded={!isFolded} onClick={fold}>
        <Mark name={mark} />
        <b>{isInner && parent ? parent.key : states.map(({ key }) => key).join(' · ')}</b>
        {isInner && <span class={`mono tone-text-${isActive && mark !== 'idle' ? 'run' : 'none'}`}>{state.key}</span>}
        <span class="numbers">{numbers.filter((part) => part !== '').join(' · ')}</span>
      </button>
      {!isFolded && (
        <div class="accepts">
          <p>{isPast.value ? 'Accepted here' : isActive ? 'Accepts now' : 'Would accept'}</p>
          {accepted.every(({ rows }) => rows.length === 0) && (
            <p class="quiet">nothing: it is left at once, or for good</p>
          )}
          {accepted.map(({ id, name, rows }) => (
            <Fragment key={id}>
              {isParallel && rows.length > 0 && <p class="region mono">{name}</p>}
              {rows.map((row) => (
                <AcceptedRow key={row.key} row={row} one={one} isActive={isActive} />
              ))}
            </Fragment>
          ))}
        </div>
      )}
    </aside>
  );
}

/** A click prepares the event, a second one sends it. */
function AcceptedRow({ row, one, isActive }: { row: Accepted; one: Subject; isActive: boolean }) {
  const { key, event, guard, target, type } = row;
  const actor = one.actor?.id;
  const words = (
    <>
      <span class="what">{event}</span>
      <span class="guard">{guard}</span>
      <span class={target === '' ? 'target stays' : 'target'}>{target === '' ? 'stays' : `→ ${target}`}</span>
    </>
  );
  if (!isActive || !maySend(type, one.chart, actor)) return <div class="accepted">{words}</div>;
  const armed = sending.value?.key === `${one.key} ${key}` ? sending.value : undefined;
  const arm = (refused = ''): void => {
    sending.value = { key: `${one.key} ${key}`, refused };
  };
  return (
    <>
      <button
        type="button"
        class="accepted is-sendable"
        aria-expanded={armed !== undefined}
        onClick={() => {
          if (armed) sending.value = undefined;
          else arm();
        }}
      >
        {words}
      </button>
      {armed && (
        <form
          class="send"
          onSubmit={async (submitted) => {
            submitted.preventDefault();
            const fields = new FormData(submitted.currentTarget).get('fields');
            const refused = await sendEvent(type, actor, typeof fields === 'string' ? fields : '');
            if (refused === undefined) sending.value = undefined;
            else arm(refused);
          }}
        >
          {one.actor && open.value?.of === 'xstate' && (
            <input name="fields" class="mono" aria-label={`Fields of ${type} as JSON`} placeholder={'{ "field": … }'} />
          )}
          <button type="submit" class="button">
            Send {event}
          </button>
          {armed.refused !== '' && <p class="refused">{armed.refused}</p>}
        </form>
      )}
    </>
  );
}

/** Returns the calls of the last round of the shown run. */
function roundCalls(): CallFacts[] {
  const run = lastRun.value;
  const at = cursor.value;
  if (!run) return [];
  const turn = run.turns.filter(({ reply = -1 }) => reply >= 0 && reply <= at).at(-1);
  const from = turn?.from ?? run.from;
  return [...facts.value.calls.values()].filter(
    ({ requestedAt }) => requestedAt >= from && requestedAt <= Math.min(run.to, at),
  );
}

const STOPS = ['gate', 'execute', 'outcome', 'after'] as const;

/** Returns the progress of a call: the stop it has reached, and its mark there. */
function trackOf(call: CallFacts, at: number): { stop: number; isOver: boolean; jumped: boolean } {
  const state = callAt(call, at);
  const ran = call.starts.some((start) => start.at <= at);
  if (state === 'queued') return { stop: -1, isOver: false, jumped: false };
  if (state === 'running') return { stop: 1, isOver: false, jumped: false };
  if (state === 'waiting') return { stop: 2, isOver: false, jumped: !ran };
  if (state === 'decided') return { stop: 0, isOver: false, jumped: false };
  if (state === 'denied') return { stop: 2, isOver: call.result !== undefined && call.result.at <= at, jumped: !ran };
  return { stop: 2, isOver: true, jumped: !ran };
}

interface Placed {
  readonly card: Ref<HTMLElement>;
  readonly corner: Corner;
  readonly isFolded: boolean;
  fold(): void;
}

function RoundInset({ card, corner, isFolded, fold }: Placed) {
  const calls = roundCalls();
  const at = cursor.value;
  const settled = calls.filter((call) => call.result && call.result.at <= at).length;
  const round = crumbs.value.find(({ chart }) => chart === 'TOOL_ROUND');
  const word = round ? (activeStatesOf(round)?.leaf?.split('.').at(-1) ?? '') : '';
  const isParallel = calls.filter((call) => callAt(call, at) === 'running').length > 1 || overlaps(calls);
  return (
    <aside ref={card} class="inset round-inset" data-corner={corner} aria-label="Round">
      <button type="button" class="inset-head" aria-expanded={!isFolded} onClick={fold}>
        <Mark name={markOfCall(roundState(calls.map((call) => callAt(call, at))))} />
        <b class="mono">TOOL_ROUND</b>
        <span>{word}</span>
        <span class="numbers sans">
          {settled} of {calls.length} settled{isParallel ? ' · parallel' : ''}
        </span>
      </button>
      {!isFolded && (
        <div class="tracks">
          <div class="track head">
            <span class="mono quiet">TOOL_CALL</span>
            <svg width="168" height="14" aria-hidden="true">
              {STOPS.map((name, index) => (
                <text key={name} x={20 + index * 44} y="10">
                  {name}
                </text>
              ))}
            </svg>
          </div>
          {calls.map((call) => (
            <Track key={call.callId} call={call} at={at} />
          ))}
        </div>
      )}
    </aside>
  );
}

const overlaps = (calls: readonly CallFacts[]): boolean =>
  calls.some((one) =>
    calls.some((other) => {
      const [a, b] = [one.starts[0]?.at, other.starts[0]?.at];
      return (
        one !== other && a !== undefined && b !== undefined && a < b && (one.result?.at ?? Number.MAX_SAFE_INTEGER) > b
      );
    }),
  );

function Track({ call, at }: { call: CallFacts; at: number }) {
  const { stop, isOver, jumped } = trackOf(call, at);
  const mark = markOfCall(callAt(call, at));
  const ms = callMs(call, moment.value);
  const x = (index: number): number => 20 + index * 44;
  return (
    <div class="track">
      <span class="what">
        <b>{call.name}</b> <span class="mono">{telling(argsAt(call, at), 40)}</span>
      </span>
      <svg width="168" height="26" role="img" aria-label={`${STOPS[stop] ?? 'queued'}, ${mark}`}>
        {[0, 1, 2].map((index) => {
          const passed = isOver ? true : index < stop;
          return (
            <path key={index} class={passed ? 'way' : 'way ahead'} d={`M${x(index) + 5} 13H${x(index + 1) - 5}`} />
          );
        })}
        {STOPS.map((name, index) => {
          const isAt = index === stop;
          const passed = isOver || index < stop;
          if (isAt) return <Mark12 key={name} name={mark} x={x(index)} />;
          if (jumped && index === 1)
            return <path key={name} class={passed ? 'way' : 'way ahead'} d={`M${x(1) - 5} 13H${x(1) + 5}`} />;
          return <circle key={name} cx={x(index)} cy="13" r="3.4" class={passed ? 'stop passed' : 'stop'} />;
        })}
      </svg>
      <span class="time">{ms > 0 ? duration(ms) : ''}</span>
    </div>
  );
}

const Mark12 = ({ name, x }: { name: MarkName; x: number }) => (
  <g transform={`translate(${x - 6} 7)`}>
    <Mark name={name} />
  </g>
);
