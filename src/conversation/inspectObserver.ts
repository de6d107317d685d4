/**
 * Whoever was given as `inspect`, for one conversation: a function, an observer with `next`, or an inspector that has one.
 * Rule: it sees everything and can stop nothing. An inspector of XState's is shown ids that differ between conversations,
 * and each root by the name of its conversation.
 */
import type { InspectObserver } from '../options.ts';

type Observe = (event: unknown) => void;

/** An actor as inspectors know it; `id` and `sessionId` are read when somebody looks. */
interface Ref {
  readonly id: string;
  readonly sessionId: string;
  readonly _parent?: Ref | undefined;
}

/** Hands on to what the inspector's own reader takes. */
function namedBy(id: string, next: Observe): Observe {
  const shown = new WeakMap<Ref, object>();
  const shownAs = (ref: Ref | undefined): object | undefined => {
    if (ref === undefined) return undefined;
    const known = shown.get(ref);
    if (known) return known;
    const named = Object.create(ref, {
      id: { get: () => (ref._parent ? ref.id : id) },
      sessionId: { get: () => `${id}/${ref.sessionId}` },
      _parent: { get: () => shownAs(ref._parent) },
    }) as object;
    shown.set(ref, named);
    return named;
  };
  return (event) => {
    const { type, actorRef, sourceRef, rootId } = event as { [field: string]: unknown };
    // Its reader warns of what it does not know.
    if (!String(type).startsWith('@xstate.')) return;
    const from = sourceRef ? { sourceRef: shownAs(sourceRef as Ref) } : {};
    const told = Object.getOwnPropertyDescriptors(event as object);
    const renamed = { actorRef: shownAs(actorRef as Ref), rootId: `${id}/${String(rootId)}`, ...from };
    next(Object.defineProperties({}, { ...told, ...Object.getOwnPropertyDescriptors(renamed) }));
  };
}

/** The observer of one conversation. It never throws. */
export function observerOf(given: InspectObserver, id: string): Observe {
  const observe = typeof given === 'function' ? given : namedBy(id, nextOf(given));
  return (event) => {
    try {
      observe(event);
    } catch {
      // What it throws is its own affair: it is called in the middle of a step.
    }
  };
}

function nextOf(given: Exclude<InspectObserver, (event: unknown) => void>): Observe {
  const observer = 'inspect' in given ? given.inspect : given;
  return (event) => observer.next?.(event);
}
