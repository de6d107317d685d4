/** The border between two panels. You can drag it, move it with arrows, and reset it with a double click or Enter. */

import { windowSize } from '../state/pageState.ts';
import { resize, type SplitName, sizes } from '../state/preferences.ts';

const STEP = 16;
const NAMES: Readonly<Record<SplitName, string>> = {
  tree: 'Width of the tree',
  right: 'Width of the panel at the right',
  events: 'Width of the events',
  dock: 'Height of the time line',
};

/** Returns the default size for the width of the window. */
export function usualSize(name: Exclude<SplitName, 'dock'>): number {
  const isWide = windowSize.value.width >= 1760;
  return { tree: isWide ? 240 : 224, right: isWide ? 424 : 408, events: 348 }[name];
}
export const sizeOf = (name: Exclude<SplitName, 'dock'>): number => sizes.value[name] ?? usualSize(name);

/** `size` is the current size. `grows` is the direction in which dragging makes the panel larger. */
export function Split(props: { name: SplitName; size: number; others: number; grows: 1 | -1; place?: string }) {
  const { name, size, others, grows, place } = props;
  const isFlat = name === 'dock';
  const by = (pixels: number): void => resize(name, size + pixels * grows, others);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a border that is moved is no rule of a text.
    <div
      class={`split ${isFlat ? 'is-flat' : ''}`}
      style={place === undefined ? {} : { left: place }}
      role="separator"
      aria-orientation={isFlat ? 'horizontal' : 'vertical'}
      aria-label={NAMES[name]}
      aria-valuenow={size}
      tabIndex={0}
      onDblClick={() => resize(name, undefined, others)}
      onPointerDown={(event) => {
        event.preventDefault();
        const target = event.currentTarget;
        target.setPointerCapture(event.pointerId);
        const from = isFlat ? event.clientY : event.clientX;
        const move = ({ clientX, clientY }: PointerEvent): void =>
          resize(name, size + ((isFlat ? clientY : clientX) - from) * grows, others);
        target.addEventListener('pointermove', move);
        const end = (): void => target.removeEventListener('pointermove', move);
        target.addEventListener('lostpointercapture', end, { once: true });
      }}
      onKeyDown={(event) => {
        const [less, more] = isFlat ? ['ArrowUp', 'ArrowDown'] : ['ArrowLeft', 'ArrowRight'];
        if (event.key === less) by(-STEP);
        else if (event.key === more) by(STEP);
        else if (event.key === 'Enter') resize(name, undefined, others);
        else return;
        event.preventDefault();
      }}
    />
  );
}
