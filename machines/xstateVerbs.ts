/**
 * The seven verbs as XState implements them: `setup({ actions: verbs<Context, Event, Child, Sent>() })`. Invariant: the
 * compiled interpreter needs nothing from here, so an app that uses it has no XState in its bundle.
 */
import { assign, type EventObject, enqueueActions, type MachineContext, stopChild } from 'xstate';
import type { EffectRequest } from './ports.ts';
import type { Message, SpawnRequest } from './verbs.ts';
import type { NewEntry } from './vocabulary.ts';

export function verbs<
  Context extends MachineContext,
  Event extends EventObject,
  Child extends SpawnRequest = never,
  Sent extends Message = never,
>() {
  return {
    // A driver provides its own.
    ask: (_: unknown, _request: EffectRequest | undefined): void => {},
    drop: (_: unknown, _prefix: string): void => {},
    log: (_: unknown, _entries: readonly NewEntry[]): void => {},
    update: assign<Context, Event, Partial<Context>, Event, never>((_, patch) => patch),
    spawn: enqueueActions<Context, Event, readonly Child[], Event, never, never, never, never, never>(
      ({ enqueue }, children) => {
        for (const { src, id, input } of children) enqueue.spawnChild(src as never, { id, input } as never);
      },
    ),
    stop: stopChild<Context, Event, string, Event>((_, id) => id),
    tell: enqueueActions<Context, Event, Sent | undefined, Event, never, never, never, never, never>(
      ({ enqueue, self, event }, message) => {
        if (!message || (message.to === 'parent' && !self._parent && message.event.type === event.type)) return;
        enqueue.sendTo(message.to === 'parent' ? (self._parent ?? self) : message.to, message.event);
      },
    ),
  };
}
