/**
 * Counts the resources that a piece of work holds: timers, listeners on abort signals, streams and iterators,
 * subscriptions, open files, processes. Invariant: it only counts. A test creates its resources through the census, ends them, and reads
 * the remaining counts.
 */
import { getEventListeners } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import type { Observable } from 'rxjs';
import { expect } from 'vitest';
import { VirtualClock } from './virtualClock.ts';

export interface Left {
  timers: number;
  listeners: number;
  iterators: number;
  streams: number;
  subscriptions: number;
  files: number;
  processes: number;
}
export const NOTHING: Left = {
  timers: 0,
  listeners: 0,
  iterators: 0,
  streams: 0,
  subscriptions: 0,
  files: 0,
  processes: 0,
};

export class Census {
  readonly clock = new VirtualClock();
  readonly #signals = new Map<AbortSignal, number>();
  readonly #groups = new Set<number>();
  readonly #directories: string[] = [];
  #iterators = 0;
  #streams = 0;
  #subscriptions = 0;

  /** Counts the listeners that are added from now on. */
  signal(signal: AbortSignal): void {
    this.#signals.set(signal, listenersOn(signal));
  }

  /** Counts the files in this folder that this process has open. */
  directory(path: string): string {
    this.#directories.push(path);
    return path;
  }

  /** Counts the group while one of its processes is alive. */
  group(pid: number): void {
    this.#groups.add(pid);
  }

  /**
   * Yields the values, then hangs forever if `hangs` is set. The iterable is counted until it ends or `return()` is
   * called.
   */
  iterable<T>(values: readonly T[], hangs = false): AsyncIterable<T> {
    return {
      [Symbol.asyncIterator]: () => {
        let at = 0;
        let isOpen = true;
        this.#iterators += 1;
        const end = (): void => {
          if (isOpen) this.#iterators -= 1;
          isOpen = false;
        };
        return {
          next: async () => {
            const value = values[at];
            at += 1;
            if (value !== undefined) return { done: false, value };
            if (hangs) return new Promise<never>(() => undefined);
            end();
            return { done: true, value: undefined };
          },
          return: async () => {
            end();
            return { done: true, value: undefined };
          },
        };
      },
    };
  }

  /** Returns the same as a stream, which is counted until it was read to its end or cancelled. */
  stream<T>(values: readonly T[], hangs = false): ReadableStream<T> {
    let at = 0;
    this.#streams += 1;
    return new ReadableStream<T>({
      pull: (controller) => {
        const value = values[at];
        at += 1;
        if (value !== undefined) return controller.enqueue(value);
        if (hangs) return new Promise<void>(() => undefined);
        this.#streams -= 1;
        controller.close();
      },
      cancel: () => {
        this.#streams -= 1;
      },
    });
  }

  /** Subscribes, and counts the subscription until it completes. */
  subscribe(observable: Observable<unknown>): void {
    this.#subscriptions += 1;
    const over = (): void => {
      this.#subscriptions -= 1;
    };
    observable.subscribe({ complete: over, error: over });
  }

  left(): Left {
    const listeners = [...this.#signals].reduce((sum, [signal, before]) => sum + listenersOn(signal) - before, 0);
    return {
      timers: this.clock.waiting,
      listeners,
      iterators: this.#iterators,
      streams: this.#streams,
      subscriptions: this.#subscriptions,
      files: this.#directories.reduce((sum, path) => sum + openBelow(path), 0),
      processes: [...this.#groups].filter(isAlive).length,
    };
  }

  /** Processes, files and streams end a moment after the call that ends them. */
  async nothingIsLeft(): Promise<void> {
    await expect.poll(() => this.left(), { timeout: 5_000 }).toEqual(NOTHING);
  }
}

const listenersOn = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

function openBelow(directory: string): number {
  const links = readdirSync('/proc/self/fd').map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      // The file was closed while the list was read.
      return '';
    }
  });
  return links.filter((link) => link.startsWith(`${directory}/`)).length;
}

function isAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}
