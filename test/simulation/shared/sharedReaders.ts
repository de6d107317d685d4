/**
 * Clients that follow a conversation through any process, over server-sent events. Invariant: a reader sees each entry once and in order,
 * never before it is durable, and equal to the durable one.
 */
import type { SharedWorld } from './sharedWorld.ts';
import type { SimulatedProcess } from './simulatedProcess.ts';

const decoder = new TextDecoder();
const SILENT_MS = 20_000;

export class SharedReader {
  readonly conversation: string;
  /** The seq of the next entry. */
  next = 0;
  state: 'due' | 'asked' | 'reading' = 'due';
  readonly #shared: SharedWorld;
  /** An abandoned connection has an old number. */
  #connection = 0;
  #leave: (() => void) | undefined;
  #text = '';
  #since = 0;

  constructor(shared: SharedWorld, conversation: string) {
    this.#shared = shared;
    this.conversation = conversation;
  }

  get isComplete(): boolean {
    return this.next === (this.#shared.database.entries.get(this.conversation)?.length ?? 0);
  }

  /** Asks a process for the entries that it lacks. */
  connect(processes: readonly SimulatedProcess[]): void {
    const up = processes.filter(({ isUp }) => isUp);
    if (up.length === 0) return;
    const process = this.#shared.tape.pick(up);
    this.#connection += 1;
    const connection = this.#connection;
    const lost = (): void => {
      if (connection === this.#connection) this.#lose();
    };
    this.state = 'asked';
    process.receive({
      port: 'plugin',
      crash: lost,
      settle: () => {
        if (connection !== this.#connection) return;
        process.onCrash(lost);
        const headers = this.next === 0 ? {} : { 'last-event-id': String(this.next - 1) };
        const url = `http://here/conversations/${this.conversation}/events`;
        process.answer(new Request(url, { headers }))?.then((response) => this.#begin(response, connection));
      },
    });
  }

  /** A client whose connection has been silent for long opens another one. */
  comeAgain(): void {
    if (this.state === 'reading' && !this.isComplete && this.#shared.clock.elapsedMs > this.#since + SILENT_MS)
      this.leave();
  }

  /** Leaves the process, to continue with another one. */
  leave(): void {
    this.#leave?.();
    this.#lose();
  }

  #lose(): void {
    this.#connection += 1;
    this.#leave = undefined;
    this.#text = '';
    this.state = 'due';
  }

  #begin(response: Response, connection: number): void {
    if (connection !== this.#connection) return void response.body?.cancel().catch(() => {});
    if (!response.body || response.status !== 200) return this.#lose();
    const reader = response.body.getReader();
    this.state = 'reading';
    this.#since = this.#shared.clock.elapsedMs;
    this.#leave = () => void reader.cancel().catch(() => {});
    void this.#read(reader, connection);
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>, connection: number): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (connection !== this.#connection) return;
      if (done || !value) return this.#lose();
      this.#text += decoder.decode(value);
      const frames = this.#text.split('\n\n');
      this.#text = frames.pop() ?? '';
      for (const frame of frames) this.#receive(frame);
    }
  }

  #receive(frame: string): void {
    const shared = this.#shared;
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    if (data === undefined) return;
    if (!frame.includes('event: entry')) {
      // A process that has not noticed the end of its lease has fewer entries; the reader begins again and receives a reset.
      const signal = JSON.parse(data) as { type: string; runId?: string };
      if (signal.type !== 'reset' || signal.runId !== '') return;
      shared.count('reader-begins-again');
      this.next = 0;
      return;
    }
    const { conversation, next } = this;
    const stored = shared.database.entries.get(conversation)?.[next]?.text;
    const id = /^id: (\d+)$/m.exec(frame)?.[1];
    shared.check(Number(id) === next, 'FOLLOW', () => `a reader of ${conversation} got entry ${id}, not ${next}`);
    shared.check(stored !== undefined, 'FOLLOW', () => `entry ${next} of ${conversation} was shown and is not durable`);
    shared.check(stored === undefined || stored === data, 'FOLLOW', () => `entry ${next}: ${data}, stored: ${stored}`);
    this.next = Number(id) + 1;
  }
}
