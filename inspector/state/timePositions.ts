/**
 * The current positions of the open log's entries on the time line. Invariant: everything that is drawn on the time
 * line uses them.
 */
import { computed, signal } from '@preact/signals';
import { type Axis, axisOf, pixelsOf } from '../model/timeAxis.ts';
import { cursor, entries, isMoving, now, open } from './pageState.ts';

/** The width of the lane names. */
export const LEFT = 84;
/** The width of the whole time line. */
export const width = signal(1300);

export const room = computed(() => Math.max(200, width.value - LEFT - 24));
/** The entries of a file that come after unreadable lines. */
export const brokenBefore = computed(
  () => new Set((open.value?.broken ?? []).map(({ entriesBefore }) => entriesBefore)),
);
const tail = computed(() => (isMoving.value ? Math.max(0, now.value - (entries.value.at(-1)?.at ?? 0)) : 0));
export const axis = computed(() => axisOf(entries.value, room.value, cursor.value, tail.value, brokenBefore.value));

export const xOf = (one: Axis, place: number): number => {
  const pixels = pixelsOf(one, place);
  return pixels === undefined ? -20 : LEFT + pixels;
};
