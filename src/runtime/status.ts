/**
 * The status of a conversation, and its live signals. Invariant: the status follows the chart and the commands that the chart
 * has not taken. A cancel counts from its call. A subscriber that joins during a reply receives all text of it so far first.
 */
import { Observable, Subject } from 'rxjs';
import type { SnapshotFrom } from 'xstate';
import {
  type conversationMachine,
  defaultPolicies,
  type QueuedMessage,
  runOf,
  type Standing,
  standingOf,
} from '../../machines/internal.ts';
import type { ConversationStatus, InFlight, Live } from '../live.ts';
import type { ChartState, CommandQueue } from './commands.ts';
import type { ChartRef } from './interpreter/interpreter.ts';

const noRun: Standing = { status: 'idle', undecided: [], queued: 0, policies: defaultPolicies };

/** The contents of a conversation's chart. Before its start nothing runs. */
export class ChartStatus implements ChartState {
  /** The chart of the conversation, above all others. */
  root: ChartRef | undefined;

  get standing(): Standing {
    const snapshot = this.#snapshot;
    return snapshot ? standingOf(snapshot) : noRun;
  }

  get status(): ConversationStatus {
    return this.standing.status;
  }

  get isOpenEnded(): boolean {
    return this.status === 'active' && this.#snapshot?.children.run?.getSnapshot().tags.has('active') === true;
  }

  /** Also where the run only waits for the stop before it. */
  get runId(): string | undefined {
    const { children, context } = this.#snapshot ?? {};
    if (context?.next) return runOf(context.next.messageId);
    return children?.run ? context?.runId : undefined;
  }

  /** Messages that were accepted and are not delivered. */
  get queue(): readonly QueuedMessage[] {
    return this.#snapshot?.context.queue ?? [];
  }

  get #snapshot(): SnapshotFrom<typeof conversationMachine> | undefined {
    return this.root?.getSnapshot();
  }
}

/** The status as a host sees it: a command counts from its call. */
export class HostStatus {
  readonly #chart: ChartStatus;
  readonly #commands: CommandQueue;
  #signalled: ConversationStatus = 'idle';

  constructor(chart: ChartStatus, commands: CommandQueue) {
    this.#chart = chart;
    this.#commands = commands;
  }

  get status(): ConversationStatus {
    return this.#commands.standing.status;
  }

  /** The status for live signals, where it differs from the last call. It follows the chart, and a cancel from its call on. */
  changed(): ConversationStatus | undefined {
    const { status: now } = this.#chart;
    const isCancelled = (now === 'active' || now === 'waiting') && this.#commands.hasCancel;
    const status = isCancelled ? 'cancelling' : now;
    if (status === this.#signalled) return undefined;
    this.#signalled = status;
    return status;
  }
}

/** One delta a kind. */
export function deltasOf({ runId, text, reasoning, toolInputs }: InFlight): Live[] {
  const deltas: Live[] = toolInputs.map((input) => ({ type: 'tool-input-delta', runId, ...input }));
  if (text !== '') deltas.unshift({ type: 'text-delta', runId, text });
  if (reasoning !== '') deltas.unshift({ type: 'reasoning-delta', runId, text: reasoning });
  return deltas;
}

const from = (callId: string, signal: Live): Live => ({ ...signal, path: [callId, ...(signal.path ?? [])] });

/** The signals of one conversation, and those of the sub-agents within it. */
export class LiveFeed {
  readonly #inFlight: () => InFlight | null;
  readonly #signals = new Subject<Live>();
  /** For each sub-agent whose log is open: the call that it belongs to. */
  readonly #within = new Map<LiveFeed, string>();
  #above: LiveFeed | undefined;

  constructor(inFlight: () => InFlight | null) {
    this.#inFlight = inFlight;
  }

  /** The text streamed so far, then every signal: no gap, no repeat. */
  readonly signals$ = new Observable<Live>((subscriber) => {
    // A subscriber may act during the replay. The signals of that act are buffered until the replay ends.
    let held: Live[] | undefined = this.#begun();
    const following = this.#signals.subscribe({
      next: (signal) => (held ? void held.push(signal) : subscriber.next(signal)),
      complete: () => subscriber.complete(),
    });
    for (const signal of held) subscriber.next(signal);
    held = undefined;
    return following;
  });

  /** True if this feed, or one that contains it, has a subscriber. Without a subscriber no signal is made. */
  get observed(): boolean {
    return this.#signals.observed || this.#above?.observed === true;
  }

  next(signal: Live): void {
    this.#signals.next(signal);
    const above = this.#above;
    if (!above?.observed) return;
    const callId = above.#within.get(this);
    if (callId !== undefined) above.next(from(callId, signal));
  }

  /** Adds the signals of a sub-agent of the call, until the sub-agent ends. */
  join(feed: LiveFeed, callId: string): void {
    this.#within.set(feed, callId);
    feed.#above = this;
  }

  complete(): void {
    const above = this.#above;
    if (above) above.#within.delete(this);
    this.#above = undefined;
    this.#signals.complete();
  }

  #begun(): Live[] {
    const own = this.#inFlight();
    const within = [...this.#within].flatMap(([feed, callId]) => feed.#begun().map((signal) => from(callId, signal)));
    return [...(own ? deltasOf(own) : []), ...within];
  }
}
