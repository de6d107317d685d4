/** Where the entries of the open log stand on the time line now. Rule: all that is drawn there asks here. */
import { computed, signal } from '@preact/signals';
import { type Axis, axisOf, pixelsOf } from '../model/timeAxis.ts';
import { cursor, entries, isMoving, now, open } from './store.ts';

/** Of the names of the lanes. */
export const LEFT = 84;
/** Of the whole time line. */
export const width = signal(1300);

export const room = computed(() => Math.max(200, width.value - LEFT - 24));
/** Of a file: the entries before which lines could not be read. */
export const brokenBefore = computed(() => new Set((open.value?.broken ?? []).map(({ behind }) => behind)));
const tail = computed(() => (isMoving.value ? Math.max(0, now.value - (entries.value.at(-1)?.at ?? 0)) : 0));
export const axis = computed(() => axisOf(entries.value, room.value, cursor.value, tail.value, brokenBefore.value));

export const xOf = (one: Axis, place: number): number => {
  const pixels = pixelsOf(one, place);
  return pixels === undefined ? -20 : LEFT + pixels;
};
