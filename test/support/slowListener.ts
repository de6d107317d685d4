/** A plugin whose hook never returns. Invariant: tests wait for `begun`, never for a time. */
import type { Plugin } from '../../src/index.ts';

type Heard = Parameters<NonNullable<Plugin['afterToolExecute']>>[0];

/**
 * Hangs in the hook of every call that `heeds` accepts, except the first `atOnce`. `begun` resolves after `wanted`
 * calls.
 */
export function slowListener(wanted: number, atOnce = 0, heeds: (heard: Heard) => boolean = () => true) {
  let callCount = 0;
  let tell = (): void => {};
  const begun = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const plugin: Plugin = {
    name: 'slow',
    afterToolExecute(context) {
      if (!heeds(context)) return undefined;
      callCount += 1;
      if (callCount === wanted) tell();
      return callCount > atOnce ? new Promise<never>(() => undefined) : undefined;
    },
  };
  return { plugin, begun };
}
