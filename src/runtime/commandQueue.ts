/**
 * Commands of a host on their way: until their images are stored, until their delivery, and from there until what they logged
 * is durable. Rule: commands keep their order, each is answered exactly once, and the answer is true by then.
 */
import type { Knowledge } from '../../machines/internal.ts';
import { RunchartError, thrownText } from '../errors.ts';
import { type Admission, type ChartState, type Command, type StartingCommand, startsRun } from './commands.ts';

interface PendingCommand {
  answered: Promise<unknown>;
  answer?: unknown;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

/** An image of a message could not be stored: the message was not accepted. */
export class NotStored extends RunchartError {
  constructor(cause: unknown) {
    super('store', `an image could not be stored (${thrownText(cause)})`, { cause });
  }
}

export class CommandQueue {
  /** Decisions and settlements, by call. */
  readonly decisions = new KeyedQueue();
  readonly #put: (command: Command) => void;
  readonly #report: (message: string) => void;
  readonly #chart: ChartState;
  readonly #log: Knowledge;
  #closed = false;
  /** Not put yet: one whose images are being stored, or that must wait, comes first. */
  readonly #queue = new Set<Command>();
  readonly #waiting = new Map<object, PendingCommand>();
  readonly #delivered = new Map<object, PendingCommand>();

  /** `report`: hears of what could not be stored. */
  constructor(
    { chart, log }: { chart: ChartState; log: Knowledge },
    put: (command: Command) => void,
    report: (message: string) => void,
  ) {
    this.#chart = chart;
    this.#log = log;
    this.#put = put;
    this.#report = report;
  }

  /** Puts a command when its turn has come. */
  send(command: Command): Promise<unknown> {
    const answered = this.open(command);
    if (this.#closed) return answered;
    // What is given back was delivered before all of these.
    if (command.type === 'message.returned') this.#put(command);
    else {
      this.#queue.add(command);
      if (command.type === 'message.sent' && command.kept) {
        command.kept.then(
          (content) => {
            command.content = content;
            delete command.kept;
            this.flush();
          },
          (error) => {
            const failure = new NotStored(error);
            if (this.#remove(command, (pending) => pending.reject(failure))) this.#report(failure.message);
          },
        );
      }
      this.flush();
    }
    return answered;
  }

  open(command: Command): Promise<unknown> {
    if (this.#closed) {
      return Promise.reject(new RunchartError('closed', `the conversation is closed: ${command.type} came too late`));
    }
    let pending: Omit<PendingCommand, 'answered'> | undefined;
    const answered = new Promise((resolve, reject) => {
      pending = { resolve, reject };
    });
    if (pending) this.#waiting.set(command, { ...pending, answered });
    return answered;
  }

  /** Resolves when everything that is on its way now is answered. */
  async allAnswered(): Promise<void> {
    const pending = [...this.#waiting.values(), ...this.#delivered.values()];
    await Promise.allSettled(pending.map(({ answered }) => answered));
  }

  /** Gives up what a command would start; one that is not put yet, or starts nothing, is answered as returned at once. */
  withdraw(command: StartingCommand, starts: boolean): void {
    command.aborted = true;
    if (this.#remove(command, (pending) => pending.resolve('returned')) || starts) return;
    this.#waiting.get(command)?.resolve('returned');
    this.#waiting.delete(command);
  }

  /** A cancel, or what was given up, has still to be delivered. */
  get cancelling(): boolean {
    for (const command of this.waiting)
      if (command.type === 'cancel.requested' || ('aborted' in command && command.aborted)) return true;
    return false;
  }

  /** Gives up every message that waits for its images. */
  withdrawHeld(): void {
    for (const command of this.#queue)
      if (command.type === 'message.sent' && command.kept) this.withdraw(command, true);
  }

  /** Whether a command has not been delivered yet. */
  waits(command: Command): boolean {
    return this.#waiting.has(command);
  }

  /** Commands that have not been delivered yet. */
  get waiting(): Iterable<Command> {
    return this.#waiting.keys() as Iterable<Command>;
  }

  /** Whether a command has not been delivered yet, and starts a run when it is. */
  starts(command: Command): boolean {
    return this.#waiting.has(command) && startsRun(command, this.#chart, this.#log, this.#queue.has(command));
  }

  /** A command that has not been delivered yet starts a run. */
  get hasStartingCommand(): boolean {
    for (const command of this.waiting) if (this.starts(command)) return true;
    return false;
  }

  /** How many messages are on their way to the queue of the conversation: all but the one that starts a run. */
  get queueing(): number {
    let count = 0;
    let starter: Command | undefined;
    for (const command of this.waiting) {
      if (!starter && this.starts(command)) starter = command;
      else if (command.type === 'message.sent') count += 1;
    }
    return count;
  }

  /** How many commands of this type have no answer yet. */
  countOf(type: Command['type']): number {
    return [...this.#waiting.keys(), ...this.#delivered.keys()].filter((command) => (command as Command).type === type)
      .length;
  }

  delivered(command: object, { answer, refused }: Admission): void {
    const pending = this.#waiting.get(command);
    this.#waiting.delete(command);
    if (refused) pending?.reject(refused);
    else if (pending) this.#delivered.set(command, { ...pending, answer });
  }

  /** What these commands logged is durable. */
  settle(commands: readonly object[]): void {
    for (const command of commands) {
      const pending = this.#delivered.get(command);
      this.#delivered.delete(command);
      pending?.resolve(pending.answer);
    }
  }

  /** What these commands logged could not be stored. */
  refuse(commands: readonly object[], error: unknown): void {
    for (const command of commands) {
      this.#delivered.get(command)?.reject(error);
      this.#delivered.delete(command);
    }
  }

  /** Nothing is put any more: what has no answer yet is refused for this reason, and whatever comes as closed. */
  close(why: Error): void {
    this.#closed = true;
    this.#queue.clear();
    for (const open of [this.#waiting, this.#delivered]) {
      for (const { reject } of open.values()) reject(why);
      open.clear();
    }
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Puts what need not wait any more, in order. */
  flush(): void {
    for (const command of this.#queue) {
      if (this.#isBlocked(command)) return;
      this.#queue.delete(command);
      this.#put(command);
    }
  }

  /**
   * Whether a command may not go now: its images are being stored, or it starts a run and the chart has still to hear of the
   * end of the one before.
   */
  #isBlocked(command: Command): boolean {
    if ('kept' in command) return true;
    return this.#chart.settledStatus(this.#log) !== undefined && this.starts(command);
  }

  /** False where it was put before. */
  #remove(command: Command, answer: (pending: PendingCommand) => void): boolean {
    if (!this.#queue.delete(command)) return false;
    const pending = this.#waiting.get(command);
    this.#waiting.delete(command);
    if (pending) answer(pending);
    this.flush();
    return true;
  }
}

/** Runs work of the same key one after the other; work of other keys does not wait for it. */
class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const done = this.#last.get(key)?.then(work, work) ?? work();
    this.#last.set(key, done);
    const forget = (): void => {
      if (this.#last.get(key) === done) this.#last.delete(key);
    };
    done.then(forget, forget);
    return done;
  }
}
