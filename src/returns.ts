/**
 * Messages that come to nothing: given back, or never stored. Rule: its receipt and its run are told the same, and no
 * more than the store has said; a message that the log may still hold is not called returned.
 */
import { type RunOutput, runOf } from '../machines/internal.ts';
import { RunchartError } from './errors.ts';
import type { Receipts } from './receipts.ts';
import type { RunHandle } from './run.ts';
import { givenBack, notBegun } from './runResult.ts';
import { GIVE_UP_MS } from './runtime/appendQueue.ts';
import type { Runtime } from './runtime/runtime.ts';
import { thrownText } from './thrown.ts';

/** Ends the run of a message, where somebody holds it. */
type Finish = (output: RunOutput) => void;

export class Returns {
  readonly #runtime: Pick<Runtime, 'act' | 'settled' | 'setTimer' | 'queue' | 'runId' | 'known'>;
  readonly #receipts: Receipts;
  readonly #finish: Finish;

  constructor(
    runtime: Pick<Runtime, 'act' | 'settled' | 'setTimer' | 'queue' | 'runId' | 'known'>,
    receipts: Receipts,
    finish: Finish,
  ) {
    this.#runtime = runtime;
    this.#receipts = receipts;
    this.#finish = finish;
  }

  /** The message was taken off the queue, or was never on it. */
  returned(messageId: string, output: RunOutput = givenBack(runOf(messageId))): void {
    this.#receipts.settle(messageId, 'returned');
    this.#finish(output);
  }

  /** Takes a message off the queue again; resolves when the log says so, or cannot. */
  async takeOff(messageId: string, why: string): Promise<void> {
    await this.#runtime
      .act({ type: 'message.returned', messageId, why })
      .catch((error: unknown) => this.#leave(messageId, error));
  }

  /** The same for a cancel, which waits for no store. */
  async takeBack(messageId: string, why: string): Promise<void> {
    const { setTimer } = this.#runtime;
    let stop: (() => void) | undefined;
    const late = new Promise<void>((resolve) => {
      stop = setTimer(GIVE_UP_MS, () => {
        this.#leave(messageId, new RunchartError('store', 'the store did not answer in time'));
        resolve();
      });
    });
    await Promise.race([this.takeOff(messageId, why), late]);
    stop?.();
  }

  /** A message that could not be stored was not accepted; one that was given up may still land. */
  async lose(handle: RunHandle, messageId: string, error: unknown): Promise<void> {
    void this.#receipts.lose(messageId, error, handle, this.#runtime);
    if (this.#holds(messageId)) await this.#runtime.settled();
    if (handle.ended || this.#runtime.runId === handle.id || this.#holds(messageId)) return;
    this.returned(messageId, notBegun(handle.id, 'store', `the message is not stored: ${thrownText(error)}`));
  }

  #holds(messageId: string): boolean {
    return this.#runtime.queue.some((message) => message.messageId === messageId);
  }

  /** Nothing is told any more. `silence`: the store did not say what became of what it was given. */
  close(handles: Iterable<RunHandle>, silence?: unknown): void {
    const { queue } = this.#runtime.known;
    const kept = new Set(queue.map(({ messageId }) => messageId));
    for (const messageId of this.#receipts.messageIds) {
      if (silence !== undefined || kept.has(messageId)) this.#leave(messageId, silence);
      else this.returned(messageId);
    }
    const runs = new Set([...kept].map(runOf));
    for (const { id } of handles) {
      if (silence === undefined && !runs.has(id)) this.#finish(givenBack(id));
      else this.#finish(notBegun(id, 'store', said('the run may have an end', silence)));
    }
  }

  /** The log may still hold it: the next opening knows. */
  #leave(messageId: string, error: unknown): void {
    const failure = new RunchartError('store', said('the message may still be queued', error), { cause: error });
    this.#receipts.refuse(messageId, failure);
    this.#finish(notBegun(runOf(messageId), 'store', failure.message));
  }
}

const said = (what: string, error: unknown = new Error('it was not given back')): string =>
  `${what}, the next opening shows it (${thrownText(error)})`;
