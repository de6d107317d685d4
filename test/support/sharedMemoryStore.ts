/**
 * A store in memory that several agents of one test share as if each were a process. Rule: it has the parts of a shared store: one holder
 * of each conversation, followers, and acts that the holder takes once. Processes do not die in it.
 */
import { type Observable, Subject } from 'rxjs';
import type { Json, LogEntry, LogStore } from '../../src/index.ts';
import { memoryStore, RunchartError } from '../../src/index.ts';
import type { Live } from '../../src/live.ts';
import type { Act, ActAnswer, EffectOfAct, LogHandle, StoreOpening } from '../../src/stores/logStore.ts';

interface Shared {
  entries: LogEntry[];
  changed$: Subject<void>;
  signals$: Subject<Live>;
  /** The live signals that the current holder shares. */
  live$: Observable<Live> | undefined;
  take: ((act: Act) => void) | undefined;
  answers: Map<string, Promise<Json>>;
  settle: Map<string, (answer: ActAnswer) => void>;
  effects: Map<string, EffectOfAct>;
  isDeleted: boolean;
}

const LAG_MS = 5;

export function sharedMemoryStore(): Required<Pick<LogStore, 'follow' | 'act' | 'stateOf'>> & LogStore {
  const store = memoryStore();
  const all = new Map<string, Shared>();
  const sharedOf = (id: string): Shared => {
    const existing = all.get(id);
    if (existing) return existing;
    const made: Shared = {
      ...{ entries: [], changed$: new Subject(), signals$: new Subject(), live$: undefined, take: undefined },
      ...{ answers: new Map(), settle: new Map(), effects: new Map(), isDeleted: false },
    };
    all.set(id, made);
    return made;
  };

  function held(handle: LogHandle, shared: Shared): LogHandle {
    const acts$ = new Subject<Act>();
    const answer = (actId: string, value: ActAnswer): void => {
      shared.effects.delete(actId);
      shared.settle.get(actId)?.(value);
      shared.settle.delete(actId);
    };
    shared.take = (act) => acts$.next(act);
    const { appendNow: _, ...rest } = handle;
    return {
      ...rest,
      acts$,
      read: (from) => handle.read(from),
      append: async (entries, expectedSeq) => {
        await handle.append(entries, expectedSeq);
        shared.entries.push(...structuredClone(entries));
        for (const [actId, effect] of [...shared.effects])
          for (const entry of entries) {
            const value = effect(entry);
            if (value !== undefined) answer(actId, { value });
          }
        shared.changed$.next();
      },
      putBlob: (bytes, mediaType) => handle.putBlob?.(bytes, mediaType) as Promise<string>,
      getBlob: (reference) => handle.getBlob?.(reference) as Promise<Uint8Array>,
      expectEffect: (actId, effect) => void shared.effects.set(actId, effect),
      answerAct: async (actId, value) => answer(actId, value),
      shareLive: (live$) => {
        shared.live$ = live$;
        live$.subscribe((signal) => shared.signals$.next(signal));
      },
      close: async () => {
        shared.take = undefined;
        shared.live$ = undefined;
        await handle.close();
        acts$.complete();
      },
    };
  }

  async function* follow(id: string, from: number, reader: { isGone: boolean }): AsyncGenerator<LogEntry | Live> {
    const shared = all.get(id);
    if (!shared || shared.entries.length === 0) throw new RunchartError('not_found', 'there is no such conversation');
    const waiting: { next: number; signal: Live }[] = [];
    let wake = (): void => {};
    let hasReset = false;
    const add = (signal: Live): void => {
      waiting.push({ next: shared.entries.length, signal });
      wake();
    };
    // A follower that comes during a reply receives a reset first.
    shared.live$
      ?.subscribe((signal) => {
        if (!hasReset && 'runId' in signal) add({ type: 'reset', runId: signal.runId });
        hasReset = true;
        add(signal);
      })
      .unsubscribe();
    const stops = [shared.signals$.subscribe(add), shared.changed$.subscribe(() => wake())];
    try {
      for (let next = from; !shared.isDeleted && !reader.isGone; ) {
        const entry = shared.entries[next];
        const [first] = waiting;
        if (first && first.next <= next) {
          waiting.shift();
          if (first.next === next) yield first.signal;
        } else if (entry) {
          next += 1;
          yield structuredClone(entry);
        } else
          await new Promise<void>((resolve) => {
            // Another process has an entry a little later.
            wake = () => setTimeout(resolve, LAG_MS);
          });
      }
    } finally {
      for (const stop of stops) stop.unsubscribe();
    }
  }

  async function act(id: string, asked: Act): Promise<Json> {
    const shared = sharedOf(id);
    if (!shared.take) throw new RunchartError('unavailable', 'nobody holds the conversation');
    const existing = shared.answers.get(asked.actId);
    if (existing) return existing;
    const answered = new Promise<ActAnswer>((settle) => shared.settle.set(asked.actId, settle)).then((answer) => {
      if ('error' in answer) throw new RunchartError(answer.error.code, answer.error.message);
      return answer.value;
    });
    shared.answers.set(asked.actId, answered);
    shared.take(JSON.parse(JSON.stringify(asked)) as Act);
    return answered;
  }

  return Object.assign(store, {
    open: (
      (open) =>
      async (id: string, opening?: StoreOpening): Promise<LogHandle> =>
        held(await open(id, opening), sharedOf(id))
    )(store.open.bind(store)),
    delete: (
      (remove) =>
      async (id: string): Promise<void> => {
        await remove(id);
        const shared = all.get(id);
        all.delete(id);
        if (shared) shared.isDeleted = true;
        shared?.changed$.next();
      }
    )(store.delete.bind(store)),
    follow: (id: string, from?: number) => {
      const reader = { isGone: false };
      const items = follow(id, from ?? 0, reader);
      return {
        [Symbol.asyncIterator]: () => ({
          next: () => items.next(),
          return: () => {
            // A generator would wait for the next item.
            reader.isGone = true;
            void items.return(undefined);
            all.get(id)?.changed$.next();
            return Promise.resolve({ done: true as const, value: undefined });
          },
        }),
      };
    },
    act,
    stateOf: async (id: string) => ({
      length: all.get(id)?.entries.length ?? 0,
      isHeld: all.get(id)?.take !== undefined,
    }),
  });
}
