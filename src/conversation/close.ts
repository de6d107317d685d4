/**
 * Closes a conversation. Invariant: earlier commands are answered first, and queued messages are returned. The close waits
 * as long as the store answers. If the store is silent, every promise still settles, and the caller receives an error.
 */

import { RunchartError } from '../errors.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { conversationEnded } from '../tools/tool.ts';
import type { Runs } from './runs.ts';

/** Rejects where the store is silent, or does not release its log. */
export async function closeConversation(runtime: Runtime, runs: Runs): Promise<void> {
  const { log, commands } = runtime;
  const timeout = new StoreTimeout(runtime.setTimer, log);
  let silence: unknown;
  runtime.giveUp('close');
  try {
    if (!runtime.isAtRest) await timeout.wait(settled(runtime, runs));
    const closing = runtime.closed();
    if (closing) await timeout.wait(closing);
  } catch (error) {
    silence = error;
    commands.close(error as Error);
    await runtime.subAgents?.close();
  }
  try {
    const isAtRest = silence === undefined && runtime.isAtRest;
    runtime.stop();
    if (silence === undefined && !isAtRest)
      await timeout.wait(runtime.settled()).catch((error: unknown) => (silence = error));
    await timeout.release(log.close());
  } finally {
    runs.close(silence);
    await conversationEnded(log.entries);
  }
  if (silence !== undefined) throw silence;
}

async function settled(runtime: Runtime, runs: Runs): Promise<void> {
  const { commands } = runtime;
  let isDone = false;
  while (!isDone && !commands.closed) {
    runtime.giveUp('close');
    // Acts that a slow store delayed are taken later, and may queue a message or start a run.
    const hasActs = !commands.isIdle;
    const outcome = await runs.closeCurrent();
    await commands.allAnswered();
    isDone = outcome === 'nothing' && !hasActs;
  }
  await runtime.subAgents?.close();
}

/** The longest silence of a store. */
const SILENCE_MS = 5000;

export interface AppendingStore {
  /** Whether an append is under way. */
  readonly hasPendingAppend: boolean;
  /** The number of appends that have ended. */
  readonly settledAppends: number;
}

export class StoreTimeout {
  readonly #setTimer: Ports['setTimer'];
  readonly #store: AppendingStore;

  constructor(setTimer: Ports['setTimer'], store: AppendingStore) {
    this.#setTimer = setTimer;
    this.#store = store;
  }

  /**
   * Waits for work that needs appends. Rejects with `store` where the store is silent; the work then continues without a
   * reader.
   */
  wait<T>(work: Promise<T>): Promise<T> {
    return this.#bounded(work, () => this.#store.hasPendingAppend);
  }

  /** Waits until the store has released its log. Rejects in the same way. */
  release(work: Promise<void>): Promise<void> {
    return this.#bounded(work, () => true);
  }

  async #bounded<T>(work: Promise<T>, hasPendingAppend: () => boolean): Promise<T> {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    work.then(over, over);
    // Finished work needs no timer.
    await undefined;
    if (isOver) return work;
    let stop: (() => void) | undefined;
    const silent = new Promise<never>((_, reject) => {
      const listen = (): void => {
        const { settledAppends } = this.#store;
        const owed = hasPendingAppend();
        stop = this.#setTimer(SILENCE_MS, () => {
          if (owed && hasPendingAppend() && this.#store.settledAppends === settledAppends) reject(silence());
          else listen();
        });
      };
      listen();
    });
    try {
      return await Promise.race([work, silent]);
    } finally {
      stop?.();
    }
  }
}

const silence = (): RunchartError =>
  new RunchartError(
    'store',
    `the store has not answered for ${SILENCE_MS / 1000} s while the conversation was closed: ` +
      'what it was given may be stored, the next opening shows it',
  );
