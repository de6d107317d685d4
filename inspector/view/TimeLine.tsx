/** The player and the time line: ruler, lanes and the line of the cursor. */
import { computed } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { count, duration } from '../../src/words/formats.ts';
import { runStateAt } from '../model/logFacts.ts';
import { type Lane, lanesOf } from '../model/timeLanes.ts';
import { markOfRun } from '../model/treeRows.ts';
import { exportTest, forkHere } from '../state/logExports.ts';
import {
  conversationNamed,
  cursor,
  dockIsOpen,
  entries,
  facts,
  factsOf,
  folds,
  follow,
  isFollowing,
  isMoving,
  isNarrow,
  isPast,
  last,
  moveTo,
  now,
  open,
  playing,
  seqOf,
  setFold,
  speed,
  step,
  windowSize,
} from '../state/pageState.ts';
import { sizes } from '../state/preferences.ts';
import { axis, brokenBefore, LEFT, room, width, xOf } from '../state/timePositions.ts';
import { INDENT, LaneView, TextAfterBar } from './Lanes.tsx';
import { latestWords } from './panels/Events.tsx';
import { Icon, Key, MarkAt } from './stateMarks.tsx';

const LANE = 22;
const PLAYER = 34;
const RULER = 34;
const hasAgents = computed(() => [...facts.value.calls.values()].some(({ children }) => children.length > 0));
const lanes = computed(() => {
  if (!hasAgents.value) return lanesOf(entries.value, facts.value);
  return lanesOf(entries.value, facts.value, {
    now: now.value,
    logOf(child) {
      const list = conversationNamed(child)?.entries;
      return list && { entries: list, facts: factsOf(list) };
    },
    isOpen: (child) => folds.value.get(laneFold(child)) ?? false,
  });
});
const laneFold = (child: string): string => `lane ${child}`;

const headX = (): number => xOf(axis.value, cursor.value) + (isMoving.value ? axis.value.now : 0);

export function Player() {
  const index = cursor.value;
  const isFile = open.value?.source === 'file';
  return (
    <div class="player">
      <span class="buttons">
        <button type="button" aria-label="First entry" onClick={() => moveTo(0)}>
          <Icon name="first" />
        </button>
        <button type="button" aria-label="Previous entry" onClick={() => step(-1)}>
          <Icon name="previous" />
        </button>
        <button
          type="button"
          aria-label={playing.value ? 'Pause' : 'Play'}
          onClick={() => {
            if (!playing.value && !isPast.value) moveTo(0);
            playing.value = !playing.value;
          }}
        >
          <Icon name={playing.value ? 'pause' : 'play'} />
        </button>
        <button type="button" aria-label="Next entry" onClick={() => step(1)}>
          <Icon name="next" />
        </button>
        <button type="button" aria-label="Last entry" onClick={() => moveTo(last.value)}>
          <Icon name="last" />
        </button>
        {playing.value && (
          <button
            type="button"
            class="speed"
            aria-label="Speed"
            onClick={() => {
              speed.value = speed.value >= 8 ? 1 : speed.value * 2;
            }}
          >
            {speed.value}×
          </button>
        )}
      </span>
      <span class="place">
        <b>entry {count(seqOf(index))}</b> of {count(seqOf(last.value))} · {latestWords()}
      </span>
      <span class="right">
        <button type="button" class={isPast.value ? 'button' : 'quiet-button'} onClick={forkHere}>
          <Icon name="branch" /> {isPast.value ? 'Fork here' : 'Fork'}
        </button>
        <button type="button" class={isPast.value ? 'button' : 'quiet-button'} onClick={() => void exportTest()}>
          <Icon name="flask" /> Make a test
        </button>
        {isPast.value ? (
          <button type="button" class="button primary" onClick={follow}>
            {isFile ? 'Back to the end' : 'Back to live'} <Key>L</Key>
          </button>
        ) : (
          <span class={isFollowing.value && !isFile ? 'live is-on' : 'live'}>
            <i /> {isFile ? 'End' : 'Live'}
          </span>
        )}
      </span>
    </div>
  );
}

/** The height of its lanes, up to a maximum. */
export const timeLineHeight = computed(
  () => sizes.value.dock ?? Math.round(Math.max(70, windowSize.value.height * 0.3 - PLAYER)),
);

function seek(event: PointerEvent): void {
  const target = event.currentTarget as SVGSVGElement;
  const at = event.clientX - target.getBoundingClientRect().left - LEFT;
  const { x, from } = axis.value;
  let nearest = 0;
  for (const [index, left] of x.entries()) if (Math.abs(left - at) < Math.abs((x[nearest] ?? 0) - at)) nearest = index;
  moveTo(from + nearest);
}

export function TimeLine() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      width.value = element.clientWidth;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const rows = lanes.value;
  const isShort =
    !isNarrow.value && (dockIsOpen.value === undefined ? windowSize.value.height < 840 : !dockIsOpen.value);
  const overview = axis.value.isWindow ? 12 : 0;
  const height = overview + RULER + (isShort ? 2 : rows.length * LANE + 6);
  const entry = entries.value[cursor.value];
  return (
    <div
      class="time-line"
      id="time"
      ref={box}
      style={{ maxHeight: isNarrow.value ? 'none' : `${timeLineHeight.value}px` }}
    >
      <div
        class="scrubber"
        role="slider"
        aria-label="Time line"
        aria-valuemin={0}
        aria-valuemax={last.value}
        aria-valuenow={cursor.value}
        aria-valuetext={entry ? `entry ${entry.seq}, ${latestWords()}` : 'empty'}
        tabIndex={0}
      >
        <svg
          width={width.value}
          height={height}
          aria-hidden="true"
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            seek(event);
          }}
          onPointerMove={(event) => {
            if (event.buttons === 1) seek(event);
          }}
        >
          <defs>
            <pattern id="bar-hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <path d="M0 0v7" class="hatch" />
            </pattern>
          </defs>
          {axis.value.isWindow && <Overview />}
          <g transform={`translate(0 ${overview})`}>
            <Ruler />
            {!isShort && rows.map((lane, index) => <LaneView key={lane.key} lane={lane} y={RULER + index * LANE} />)}
            <Head height={height - overview} />
            {!isShort &&
              rows.map((lane, index) => <TextAfterBar key={lane.key} lane={lane} y={RULER + index * LANE} />)}
          </g>
        </svg>
      </div>
      {!isShort &&
        rows.map(
          (lane, index) => lane.agent && <LaneFold key={lane.key} lane={lane} top={overview + RULER + index * LANE} />,
        )}
    </div>
  );
}

/** Unfolds the lanes of a sub-agent below its own. */
function LaneFold({ lane: { name, agent, depth }, top }: { lane: Lane; top: number }) {
  if (!agent) return null;
  const { id, isOpen } = agent;
  return (
    <button
      type="button"
      class="lane-fold"
      style={{ top: `${top}px`, left: `${depth * INDENT}px` }}
      aria-expanded={isOpen}
      aria-label={`${isOpen ? 'Fold' : 'Unfold'} the lanes of ${name}, ${id}`}
      onClick={() => setFold(laneFold(id), !isOpen)}
    >
      <Icon name={isOpen ? 'open' : 'closed'} size={10} />
    </button>
  );
}

/** The whole log in 10 pixels, with a frame around the part that the ruler shows. */
function Overview() {
  const { from, to } = axis.value;
  const scale = room.value / Math.max(1, last.value);
  return (
    <g class="overview">
      <rect x={LEFT} y="3" width={room.value} height="6" rx="3" class="whole" />
      <rect x={LEFT + from * scale} y="2" width={Math.max(6, (to - from) * scale)} height="8" rx="4" class="window" />
      <circle cx={LEFT + cursor.value * scale} cy="6" r="3" class="at" />
    </g>
  );
}

/** Returns the middle of the gap before an entry. Next to the first and the last one it is beside the entry. */
function crossX(index: number): number {
  const [before, after] = [xOf(axis.value, index - 1), xOf(axis.value, index)];
  if (index <= axis.value.from) return after - 12;
  return index > axis.value.to ? before + 12 : (before + after) / 2;
}

function Ruler() {
  const { from, to, gaps } = axis.value;
  const ticks: number[] = [];
  for (let index = from; index <= to; index++) ticks.push(index);
  return (
    <g class="ruler">
      {facts.value.runs
        .filter((run) => run.to >= from && run.from <= to)
        .map((run) => {
          const left = Math.max(LEFT - 2, xOf(axis.value, run.from));
          const isOpen = run.stop === undefined;
          const right =
            isOpen && isMoving.value
              ? xOf(axis.value, Math.min(run.to, to)) + axis.value.now
              : xOf(axis.value, Math.min(run.to, to));
          const mark = markOfRun(runStateAt(run, cursor.value));
          const isLater = run.from > cursor.value;
          return (
            <g key={run.from} class={isLater ? 'is-later' : ''}>
              <path class="bracket" d={`M${left} 12V4H${Math.max(left + 8, right)}`} />
              <text class="run-name" x={left + 5} y="14">
                run {run.number}
                {run.isResumed ? ' · resumed' : ''}
              </text>
              {run.stop && run.stop.at <= cursor.value && (
                <MarkAt name={mark} x={Math.max(left + 52, right - 5)} y={10} size={10} />
              )}
            </g>
          );
        })}
      {gaps.map(({ x, ms, isClipped }) => (
        <text key={x} class="gap" x={LEFT + x} y="29" text-anchor="middle">
          {isClipped ? '⌇ ' : ''}
          {duration(ms)}
        </text>
      ))}
      {[...brokenBefore.value]
        .filter((index) => index >= from && index <= to + 1)
        .map((index) => (
          <path key={`broken ${index}`} class="cross" d={`M${crossX(index) - 4} 21l8 8m0-8-8 8`} />
        ))}
      {ticks.map((index) => {
        const x = xOf(axis.value, index);
        const isLater = index > cursor.value ? ' is-later' : '';
        if (entries.value[index]?.type === 'checkpoint') {
          return <path key={index} class={`diamond${isLater}`} d={`M${x} 22.4l2.6 2.6-2.6 2.6-2.6-2.6Z`} />;
        }
        return <path key={index} class={`tick${isLater}`} d={`M${x} 22.5v5`} />;
      })}
    </g>
  );
}

function Head({ height }: { height: number }) {
  const x = headX();
  return (
    <g class="time-head">
      <path class="head-line" d={`M${x} 2V${height}`} />
      <path class="head-top" d={`M${x - 4.5} 1h9v6l-4.5 4-4.5-4Z`} />
    </g>
  );
}
