/** The lanes of the time line: their bars, and the text in and after them. */
import type { Bar, Lane } from '../model/timeLanes.ts';
import { cursor, last, open } from '../state/pageState.ts';
import { axis, LEFT, width, xOf } from '../state/timePositions.ts';

const BAR = 15;
/** The indent of lanes below a sub-agent. */
export const INDENT = 8;

/** Shortens a name to the width of its column. */
const shortName = (name: string, charactersMax: number): string =>
  name.length > charactersMax ? `${name.slice(0, charactersMax - 1)}…` : name;

export function LaneView({ lane: { name, bars, depth, agent }, y }: { lane: Lane; y: number }) {
  return (
    <g class="lane">
      {name !== '' && <path class="hairline" d={`M${LEFT} ${y + 0.5}H${width.value}`} />}
      <text class={agent ? 'lane-name is-agent' : 'lane-name'} x={(agent ? 18 : 12) + depth * INDENT} y={y + 15}>
        {shortName(name, 10 - depth)}
      </text>
      {inView(bars).map((bar) => (
        <BarView key={keyOf(bar)} bar={bar} y={y} />
      ))}
    </g>
  );
}

const keyOf = ({ kind, from, label }: Bar): string => `${kind} ${from} ${label}`;
const inView = (bars: readonly Bar[]): Bar[] => {
  const { from, to } = axis.value;
  return bars.filter((bar) => bar.from <= to && (bar.to ?? to) >= from);
};

const LETTER = 5.9;

/** Returns the start of the next bar. */
function nextOf(bars: readonly Bar[], bar: Bar): number {
  const [next] = bars.filter(({ from }) => from > bar.from).sort((a, b) => a.from - b.from);
  return next ? xOf(axis.value, Math.min(next.from, axis.value.to + 1)) : Number.POSITIVE_INFINITY;
}

/** Returns the end of the bars before this one. */
const endBefore = (bars: readonly Bar[], bar: Bar): number =>
  Math.max(LEFT, ...bars.filter(({ from }) => from < bar.from).map((other) => placeOf(other).right));

/** Returns the position of a bar, and whether its label fits into it. */
function placeOf(bar: Bar) {
  const left = xOf(axis.value, Math.max(bar.from, axis.value.from));
  const end = bar.to ?? last.value;
  const right =
    bar.to === undefined ? xOf(axis.value, last.value) + axis.value.now : xOf(axis.value, Math.min(end, axis.value.to));
  const wide = Math.max(5, right - left);
  const isLater = bar.from >= cursor.value && cursor.value !== last.value;
  const label =
    bar.kind === 'model' && bar.to === undefined && open.value?.inFlight?.text ? `${bar.label} · streaming` : bar.label;
  return { left, right, wide, isLater, label, fits: label.length * LETTER + 12 < wide };
}

function BarView({ bar, y }: { bar: Bar; y: number }) {
  const { left, right, wide, isLater, label, fits } = placeOf(bar);
  const isOpen = bar.to === undefined || (bar.to > cursor.value && bar.from < cursor.value);
  const looks = ['bar', `is-${bar.kind}`, isLater ? 'is-later' : '', isOpen && !isLater ? 'is-open' : ''];
  return (
    <g class={looks.join(' ')}>
      <rect x={left} y={y + 4} width={wide} height={BAR} rx="3.5" />
      {bar.kind === 'person' && <rect class="hatched" x={left} y={y + 4} width={wide} height={BAR} rx="3.5" />}
      {fits && (
        <text x={left + 7} y={y + 15}>
          {label}
        </text>
      )}
      {bar.note && bar.kind === 'person' && (
        <path class={bar.isDenied ? 'said-mark is-denied' : 'said-mark'} d={`M${right} ${y + 5.5}l6 6-6 6-6-6Z`} />
      )}
    </g>
  );
}

/**
 * The text after a bar: its label if that is wider than the bar, and its note. It may cross the cursor's line, so it is
 * drawn above it.
 */
export function TextAfterBar({ lane: { bars }, y }: { lane: Lane; y: number }) {
  return inView(bars).map((bar) => {
    const { left, right, isLater, label, fits } = placeOf(bar);
    const words = [fits ? '' : label, bar.note ?? ''].filter((part) => part !== '').join(' · ');
    const long = words.length * LETTER;
    const look = isLater ? 'behind is-later' : 'behind';
    if (words === '') return null;
    // At the edge of the window the text is drawn before its bar.
    const isBefore = right + 14 + long > width.value;
    if (isBefore ? left - 14 - long < endBefore(bars, bar) : !fits && right + 14 + long > nextOf(bars, bar))
      return null;
    return (
      <text
        key={keyOf(bar)}
        class={look}
        x={isBefore ? left - 6 : right + (bar.note ? 11 : 6)}
        y={y + 15}
        text-anchor={isBefore ? 'end' : 'start'}
      >
        {words}
      </text>
    );
  });
}
