/**
 * Marks show states, and icons show kinds. Invariant: every state has its own shape, so it is recognizable without
 * colour.
 */
import type { JSX } from 'preact';
import type { GroupName } from '../../machines/vocabulary.ts';
import type { MarkName } from '../model/treeRows.ts';
import { lettersAreOn } from '../state/preferences.ts';

export type Tone = 'run' | 'wait' | 'done' | 'fail' | 'stop' | 'none';

export const toneOf: Readonly<Record<MarkName, Tone>> = {
  running: 'run',
  waiting: 'wait',
  done: 'done',
  failed: 'fail',
  cancelled: 'stop',
  queued: 'none',
  idle: 'none',
};

const SHAPES: Readonly<Record<MarkName, JSX.Element>> = {
  running: (
    <>
      <circle cx="6" cy="6" r="4.6" class="mark-faint" />
      <path d="M6 1.4A4.6 4.6 0 0 1 10.6 6" class="mark-line mark-quarter" />
      <circle cx="6" cy="6" r="2" class="mark-fill" />
    </>
  ),
  waiting: (
    <>
      <path d="M6 .4 11.6 6 6 11.6.4 6Z" class="mark-fill" />
      <path d="M4.8 4.2v3.6M7.2 4.2v3.6" class="mark-cut" />
    </>
  ),
  done: <path d="M1.8 6.4 4.8 9.4 10.4 2.8" class="mark-line mark-check" />,
  failed: (
    <>
      <path d="M3.9.9h4.2l3 3v4.2l-3 3H3.9l-3-3V3.9Z" class="mark-fill" />
      <path d="m4.2 4.2 3.6 3.6m0-3.6L4.2 7.8" class="mark-cut" />
    </>
  ),
  cancelled: (
    <>
      <circle cx="6" cy="6" r="4.6" class="mark-line" />
      <path d="m9.2 2.8-6.4 6.4" class="mark-line" />
    </>
  ),
  // Seven dots, the first at the top.
  queued: <circle cx="6" cy="6" r="4.3" class="mark-dots" pathLength="7" transform="rotate(-90 6 6)" />,
  idle: <circle cx="6" cy="6" r="3.6" class="mark-ring" />,
};

const WORDS: Readonly<Record<MarkName, string>> = {
  running: 'running',
  waiting: 'waits',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  queued: 'queued',
  idle: 'idle',
};

export function Mark({ name, size = 12 }: { name: MarkName; size?: number }) {
  return (
    <svg
      class={`mark tone-${toneOf[name]}`}
      width={size}
      height={size}
      viewBox="0 0 12 12"
      role="img"
      aria-label={WORDS[name]}
    >
      {SHAPES[name]}
    </svg>
  );
}

/** A mark within another drawing, centred at a point. */
export function MarkAt({ name, x, y, size = 12 }: { name: MarkName; x: number; y: number; size?: number }) {
  return (
    <svg
      class={`mark tone-${toneOf[name]}`}
      x={x - size / 2}
      y={y - size / 2}
      width={size}
      height={size}
      viewBox="0 0 12 12"
      aria-hidden="true"
    >
      {SHAPES[name]}
    </svg>
  );
}

const PATHS = {
  none: '',
  person: 'M7 6.6a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM2.2 12.6c.5-2.6 2.3-4 4.8-4s4.3 1.4 4.8 4',
  model: 'M7 1.4v2.4M7 10.2v2.4M1.4 7h2.4M10.2 7h2.4M3 3l1.8 1.8M9.2 9.2 11 11M3 11l1.8-1.8M9.2 4.8 11 3',
  file: 'M3 1.6h5l3 3v7.8H3ZM5.2 6.4h3.6M5.2 9h3.6',
  pencil: 'm2 12 .7-3L9.4 2.3a1.4 1.4 0 0 1 2 2L4.7 11.3Z',
  prompt: 'M1.6 2.6h10.8v8.8H1.6ZM4 5.4 5.8 7 4 8.6M7.4 8.8h2.4',
  box: 'M7 1.6 12 4.3v5.4L7 12.4 2 9.7V4.3ZM2 4.3 7 7l5-2.7M7 7v5.4',
  flag: 'M3.2 12.8V1.6h7.2L8.8 4.2l1.6 2.6H3.2',
  checkpoint: 'M7 4.4 9.6 7 7 9.6 4.4 7Z',
  started: 'M7 12.6A5.6 5.6 0 1 0 7 1.4a5.6 5.6 0 0 0 0 11.2ZM5.8 4.8 9 7 5.8 9.2Z',
  branch:
    'M3.8 4.4v5.2M3.8 9.6c0-3.4 6.4-1.6 6.4-5.2M3.8 4.4a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8ZM3.8 12.4a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8ZM10.2 4.4a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8Z',
  flask: 'M5.2 1.6h3.6M5.8 1.6v3.6L2.4 11.2a.9.9 0 0 0 .8 1.4h7.6a.9.9 0 0 0 .8-1.4L8.2 5.2V1.6M4 9h6',
  search: 'M6.2 10.2a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM9.2 9.2l3 3',
  fit: 'M1.8 4.6V1.8h2.8M9.4 1.8h2.8v2.8M12.2 9.4v2.8H9.4M4.6 12.2H1.8V9.4',
  help: 'M7 12.6A5.6 5.6 0 1 0 7 1.4a5.6 5.6 0 0 0 0 11.2ZM5.4 5.5C5.5 4.5 6.2 4 7 4s1.6.5 1.6 1.5c0 1.2-1.6 1.2-1.6 2.5M7 9.9v.1',
  first: 'M2.8 2.4v9.2M11.2 2.4 5.6 7l5.6 4.6',
  previous: 'M9.2 2.4 4.8 7l4.4 4.6',
  next: 'M4.8 2.4 9.2 7l-4.4 4.6',
  last: 'M11.2 2.4v9.2M2.8 2.4 8.4 7l-5.6 4.6',
  play: 'M4 2.2 11.4 7 4 11.8Z',
  pause: 'M4.4 2.4v9.2M9.6 2.4v9.2',
  lock: 'M3.2 6.2h7.6v6H3.2ZM4.8 6.2V4.4a2.2 2.2 0 0 1 4.4 0v1.8',
  open: 'M2.4 5.2 7 9.8l4.6-4.6',
  closed: 'M5.2 2.4 9.8 7l-4.6 4.6',
  drop: 'M7 1.8v7M3.8 6 7 9.2 10.2 6M2.2 12.2h9.6',
  broken: 'm3 3 8 8m0-8-8 8',
} as const;

export type IconName = keyof typeof PATHS | 'waiting' | 'done' | 'failed' | 'cancelled';

export function Icon({ name, size = 14 }: { name: IconName; size?: number }) {
  if (name === 'waiting' || name === 'done' || name === 'failed' || name === 'cancelled') return <Mark name={name} />;
  const isSolid = name === 'play';
  return (
    <svg class={isSolid ? 'icon solid' : 'icon'} width={size} height={size} viewBox="0 0 14 14" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

const GROUP_ICONS: { readonly [Group in GroupName]: IconName } = {
  'read-group': 'file',
  'write-group': 'pencil',
  'bash-group': 'prompt',
  'other-group': 'box',
};
/** A group of a later version has the icon of other tools. */
export const groupIcon = (group: GroupName): IconName => GROUP_ICONS[group] ?? 'box';

/** Keys that are switched off are not shown. */
export const Key = ({ children }: { children: string }) =>
  lettersAreOn.value || children.replace('⇧', '').length > 1 ? <kbd>{children}</kbd> : null;
