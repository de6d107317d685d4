/**
 * All text of the page passes here before it is drawn, announced or shown as a tooltip. Invariant: `[redacted]` replaces text that looks
 * like a credential, and control characters are shown as escapes. No view calls this by itself.
 */
import { options } from 'preact';
import { withoutCredentials } from '../../src/inspect/excerpt.ts';
import { printable } from '../../src/printable.ts';

export const shownText = (text: string): string => printable(withoutCredentials(text));

/** Attributes that a person reads or a screen reader announces. */
const READ = ['title', 'placeholder', 'aria-label', 'aria-valuetext'];

/** Call it before the first render. */
export function drawTextsSafely(): void {
  const { vnode: before } = options;
  options.vnode = (node) => {
    const { type, props } = node as { type: unknown; props: unknown };
    if (type === null && typeof props === 'string') (node as { props: unknown }).props = shownText(props);
    if (typeof type === 'string') {
      const attributes = props as { [name: string]: unknown };
      for (const name of READ) {
        const text = attributes[name];
        if (typeof text === 'string') attributes[name] = shownText(text);
      }
    }
    before?.(node);
  };
}
