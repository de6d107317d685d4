/**
 * A journal that records its deliveries. Invariant: the run is the same as without recording. A sink that throws ends
 * the recording, not the run. The lines until then can be replayed.
 */
import type { Completion, Delivery, EffectRequest, Failure, Journal, NewEntry } from '../../machines/internal.ts';
import { thrownMessage } from '../errors.ts';
import { type Redact, redactor } from '../log/redact.ts';
import type { RecordedDelivery, RecordingSink } from './recorded.ts';

type Write = (line: RecordedDelivery) => void;

class RecordingJournal implements Journal {
  readonly #inner: Journal;
  readonly #write: Write;
  #appends = 0;
  #delivered = false;
  readonly #numbers = new WeakMap<readonly NewEntry[], number>();

  constructor(inner: Journal, write: Write) {
    this.#inner = inner;
    this.#write = write;
  }

  start(request: EffectRequest): void {
    this.#inner.start(request);
  }

  drop(prefix: string): void {
    this.#inner.drop(prefix);
  }

  bell(ring: () => void): void {
    this.#inner.bell(ring);
  }

  put(completion: Completion): void {
    const append = completion.type === 'append.failed' ? this.#numbers.get(completion.lost) : undefined;
    if (append !== undefined) this.#write({ kind: 'overtaken', append });
    this.#inner.put(completion);
  }

  take(): Delivery | undefined {
    const delivery = this.#inner.take();
    if (!delivery) return undefined;
    this.#delivered = true;
    this.#write({ kind: 'delivery', ...delivery });
    return delivery;
  }

  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void> {
    const append = this.#appends;
    this.#appends += 1;
    this.#numbers.set(entries, append);
    if (carried) this.#write({ kind: 'carried', append: append - 1 });
    if (!this.#delivered) this.#write({ kind: 'opened', at });
    try {
      const pending = this.#inner.append(entries, at, carried);
      return pending && this.#recordOutcome(append, pending);
    } catch (error) {
      this.#write({ kind: 'failed', append, error: failureOf(error) });
      throw error;
    }
  }

  async #recordOutcome(append: number, pending: Promise<void>): Promise<void> {
    this.#write({ kind: 'waiting', append });
    try {
      await pending;
      this.#write({ kind: 'landed', append });
    } catch (error) {
      this.#write({ kind: 'failed', append, error: failureOf(error) });
      throw error;
    }
  }
}

/** The failure as the driver reports it to the charts. */
function failureOf(error: unknown): Failure {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'store';
  return { code, message: thrownMessage(error) };
}

function writer(sink: RecordingSink, redact: Redact, conversationId: string): Write {
  let open = true;
  return (line) => {
    if (!open) return;
    try {
      // This is a copy, because a delivered value may still change.
      sink(redact(JSON.parse(JSON.stringify(line)) as RecordedDelivery), conversationId);
    } catch {
      open = false;
    }
  };
}

/**
 * Makes a journal for `ports.journal` that records every conversation of an agent. `sink` receives each line before the line
 * has an effect. Lines are JSON. `secrets` are redacted as in the log.
 */
export function recordingJournal(
  sink: RecordingSink,
  options: { secrets?: readonly string[] } = {},
): (embedded: Journal, conversationId: string) => Journal {
  const redact = redactor(options.secrets ?? []);
  return (embedded, conversationId) => new RecordingJournal(embedded, writer(sink, redact, conversationId));
}
