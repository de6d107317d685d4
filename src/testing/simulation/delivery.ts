/**
 * A journal that delivers what it was told more than once, as queues between processes do. Rule: order is kept, and
 * nothing comes of what was dropped; only the number of deliveries is the tape's.
 */
import type { Completion, Delivery, Journal } from '../../../machines/internal.ts';
import type { World } from './world.ts';

export function deliveredAgain(world: World, inner: Journal): Journal {
  let again: Delivery[] = [];
  return {
    start: (request) => inner.start(request),
    put: (completion) => inner.put(completion),
    append: (entries, at, carried) => inner.append(entries, at, carried),
    bell: (ring) => inner.bell(ring),
    drop(prefix) {
      again = again.filter(({ completion }) => !idOf(completion)?.startsWith(prefix));
      inner.drop(prefix);
    },
    take() {
      if (again.length > 0 && world.tape.chance(0.5)) return again.shift();
      const delivery = inner.take();
      if (delivery && idOf(delivery.completion) !== undefined && world.fault('delivered-twice', world.profile.again)) {
        again.push(delivery);
      }
      return delivery;
    },
  };
}

const idOf = (completion: Completion): string | undefined => ('id' in completion ? completion.id : undefined);
