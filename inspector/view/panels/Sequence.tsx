/** One request as a sequence diagram. */
import { effect, signal } from '@preact/signals';
import { oneLine } from '../../../src/words/formats.ts';
import { LIFE_LINES, type LifeLine, mermaidOf, type SequenceRow, sequenceOf } from '../../model/sequence.ts';
import { copy } from '../../state/logFiles.ts';
import { cursor, entries, facts, lastRun, moveTo, openId } from '../../state/pageState.ts';

const APART = 88;
const ROW = 20;
const TOP = 44;
const LEFT = 44;
const WIDTH = LEFT * 2 + APART * 3;
const LETTER = 5.6;
const x = (line: LifeLine): number => LEFT + LIFE_LINES.indexOf(line) * APART;

/** The chosen cycle of the open conversation. Undefined selects the last one. */
export const pickedCycle = signal<number | undefined>(undefined);
effect(() => {
  void openId.value;
  pickedCycle.value = undefined;
});
const pick = (number: number): void => {
  pickedCycle.value = number;
};

export function Sequence() {
  const number = pickedCycle.value ?? lastRun.value?.number ?? 1;
  const most = Math.max(1, ...facts.value.runs.map((run) => run.number));
  const rows = sequenceOf(entries.value, facts.value, number, cursor.value);
  const height = TOP + (rows.length + 1) * ROW;
  return (
    <div class="sequence" id="sequence">
      <div class="sequence-head">
        <button type="button" class="quiet-button" disabled={number <= 1} onClick={() => pick(number - 1)}>
          ‹<span class="spoken">earlier cycle</span>
        </button>
        <span>cycle {number}</span>
        <button type="button" class="quiet-button" disabled={number >= most} onClick={() => pick(number + 1)}>
          ›<span class="spoken">later cycle</span>
        </button>
        <button type="button" class="quiet-button right" onClick={() => void copy(mermaidOf(rows), 'sequence diagram')}>
          Copy as mermaid
        </button>
      </div>
      <svg width={WIDTH} height={height} role="img" aria-label={`Sequence diagram of cycle ${number}`}>
        <defs>
          <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <path d="M0 0v6" class="hatch" />
          </pattern>
        </defs>
        {LIFE_LINES.map((line) => (
          <g key={line}>
            <text class="life" x={x(line)} y="20" text-anchor="middle">
              {line}
            </text>
            <path class="life-line" d={`M${x(line)} 30V${height - 8}`} />
          </g>
        ))}
        {rows.map((row, index) => (
          <Row key={`${row.at} ${row.kind} ${index}`} row={row} y={TOP + index * ROW} />
        ))}
      </svg>
    </div>
  );
}

function Row({ row, y }: { row: SequenceRow; y: number }) {
  if (row.kind === 'round') {
    return (
      <g>
        <path class="hairline" d={`M0 ${y + 1.5}H${WIDTH - 44}`} />
        <text class="round-word" x={WIDTH} y={y + 5} text-anchor="end">
          {row.words}
        </text>
      </g>
    );
  }
  if (row.kind === 'wait') {
    return (
      <g>
        <rect class="wait-bar" x={x('you') - 5} y={y - 13} width="10" height="18" rx="2" />
        <rect x={x('you') - 5} y={y - 13} width="10" height="18" rx="2" fill="url(#hatch)" />
        <text class="wait-word" x={x('you') + 10} y={y}>
          {row.words}
        </text>
      </g>
    );
  }
  const [from, to] = [x(row.from), x(row.to)];
  const way = to > from ? 1 : -1;
  const middle = Math.min(from, to) + 7;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the events list offers the same by keyboard.
    <g class={`message is-${row.look}`} onClick={() => moveTo(row.at)}>
      <path d={`M${from} ${y}H${to - way * 5}`} />
      <path class="head" d={`M${to} ${y}l${-way * 6} -3.2v6.4Z`} />
      <text x={middle} y={y - 4}>
        {oneLine(row.words, Math.floor((WIDTH - middle) / LETTER))}
      </text>
    </g>
  );
}
