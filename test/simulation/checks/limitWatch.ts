/**
 * Checks limits over one entry or several runs: bytes of results, held decisions, and the time of a cycle. Invariant:
 * only entries are read. If a crash or the store cuts off a run, its time is between two bounds.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { WatchedCall } from './callWatch.ts';
import type { CheckedWorld } from './checkedWorld.ts';

/** A note with the old arguments follows the result of a call whose arguments a person changed. */
const EDIT_NOTE = 'The user changed the arguments of this call before it ran: ';
/** The time that a run may need for its last entries after its deadline. */
const TAIL_MS = 200;
/** The entries that only an active run writes. */
const OF_WORK: ReadonlySet<string> = new Set(['agent-output', 'model-reply', 'tool-started', 'tool-suspended']);

/** The start and the last entry of the active run, with the offset of the wall clock at that time. */
interface RunTime {
  begunAt: number;
  workedUntil: number;
  seenUntil: number;
  readonly processId: number;
  readonly offsetMs: number;
}

export class LimitWatch {
  readonly #world: CheckedWorld;
  readonly #calls: ReadonlyMap<string, WatchedCall>;
  /** The least and the most time of the cycle's earlier runs. Undefined if it is unknown. */
  #earlier: { atLeast: number; atMost: number } | undefined;
  #run: RunTime | undefined;
  #isResumed = false;

  constructor(world: CheckedWorld, calls: ReadonlyMap<string, WatchedCall>) {
    this.#world = world;
    this.#calls = calls;
  }

  learn(entry: LogEntry): void {
    if (entry.type === 'tool-result') this.#checkBytes(entry);
    if (entry.type === 'decision') this.#checkHeld(entry);
    if (typeof this.#world.policies?.limits?.runMs === 'number') this.#learnTime(entry);
  }

  #checkBytes({ callId, content }: Extract<LogEntry, { type: 'tool-result' }>): void {
    const most = this.#world.policies?.limits?.resultBytes;
    if (most === undefined) return;
    const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
    const last = texts.at(-1);
    const note = last?.startsWith(EDIT_NOTE) ? texts.pop() : undefined;
    if (note !== undefined) this.#most(callId, bytesOf(note) - bytesOf(EDIT_NOTE), most);
    this.#most(callId, bytesOf(texts.join('\n')), most);
  }

  #most(callId: string, bytes: number, most: number): void {
    if (bytes > most / 2) this.#world.reach('limits', 'resultBytes');
    this.#world.check(bytes <= most, 'I4', () => `the result of ${callId} has ${bytes} bytes, and may have ${most}`);
  }

  /**
   * A call consumes a decision when it starts or ends. A call with an end consumes none, unless it runs again. A
   * decision about a sub-agent's call wakes the spawning call with a decision that nobody gave. A refused decision may
   * be stored later, with the end of its run. Until then it leaves space for another one.
   */
  #checkHeld({ callId }: Extract<LogEntry, { type: 'decision' }>): void {
    const most = this.#world.policies?.limits?.decisions;
    if (most === undefined) return;
    let held = 0;
    for (const [id, { name, status, retry, decided, consumed, keyOf }] of this.#calls) {
      if (name === 'spawn_agents' || (status === 'ended' && !retry)) continue;
      const waits = [...decided].filter((suspension) => !consumed.has(suspension) && !keyOf.has(suspension));
      held += waits.filter((suspension) => !this.#wasLost(id, suspension)).length;
    }
    if (held === most) this.#world.reach('limits', 'decisions');
    this.#world.check(
      held <= most,
      'I4',
      () => `with that of ${callId} ${held} decisions are held, and ${most} may be`,
    );
  }

  #wasLost(callId: string, suspension: number): boolean {
    const isIt = (entry: LogEntry): boolean =>
      entry.type === 'decision' && entry.callId === callId && entry.suspension === suspension;
    return this.#world.facts.hasLost(isIt, 'ever');
  }

  #learnTime(entry: LogEntry): void {
    const { processId } = this.#world;
    const { offsetMs } = this.#world.clock;
    // The clock was changed during a run.
    if (this.#run?.processId === processId && this.#run.offsetMs !== offsetMs) this.#earlier = undefined;
    switch (entry.type) {
      case 'user-message':
        if (entry.kind !== 'steer') this.#freshCycle(entry.conversationId);
        return;
      case 'run-started':
      case 'run-resumed': {
        this.#endRun();
        this.#isResumed = entry.type === 'run-resumed';
        const { at } = entry;
        this.#run = { begunAt: at, workedUntil: at, seenUntil: at, processId, offsetMs };
        return;
      }
      case 'run-stop':
        if (entry.cause === 'timeout') this.#checkTimeout(entry);
        break;
      case 'tool-started':
      case 'model-reply':
        this.#checkInTime(entry);
        break;
    }
    this.#seen(entry);
  }

  #freshCycle(id: string): void {
    const { facts, profile } = this.#world;
    // If appends are slow, an entry may be older than the change of the clock. The time of copied entries is unknown.
    const isSlow = !profile.appendsAtOnce || profile.store > 0;
    const isUnknown = facts.forks.has(id) || (isSlow && profile.clockJump > 0);
    this.#earlier = isUnknown ? undefined : { atLeast: 0, atMost: 0 };
    const run = this.#run;
    if (!run) return;
    // Its start precedes its message.
    run.seenUntil = run.begunAt;
    run.workedUntil = run.begunAt;
  }

  /** Only entries of the run's own process determine its time. */
  #seen(entry: LogEntry): void {
    const run = this.#run;
    if (!run || run.processId !== this.#world.processId) return;
    run.seenUntil = Math.max(run.seenUntil, entry.at);
    if (OF_WORK.has(entry.type)) run.workedUntil = Math.max(run.workedUntil, entry.at);
    if (entry.type === 'checkpoint' && entry.boundary === 'RunFinished') this.#endRun();
  }

  #endRun(): void {
    const run = this.#run;
    this.#run = undefined;
    if (!run || !this.#earlier) return;
    this.#earlier.atLeast += run.workedUntil - run.begunAt;
    this.#earlier.atMost += run.seenUntil - run.begunAt;
  }

  /** The time between two processes does not count as time of the cycle. */
  #checkTimeout({ at, runId }: Extract<LogEntry, { type: 'run-stop' }>): void {
    const most = this.#world.policies?.limits?.runMs;
    if (!this.#earlier || !this.#run || typeof most !== 'number') return;
    const took = this.#earlier.atMost + at - this.#run.begunAt;
    if (this.#isResumed) this.#world.reach('limits', 'runMs of a resumed cycle');
    this.#world.check(took >= most, 'I4', () => `${runId} timed out, and its cycle took ${took} ms at most`);
  }

  #checkInTime({ at, runId, type }: LogEntry): void {
    const { policies, profile } = this.#world;
    const most = policies?.limits?.runMs;
    if (!this.#earlier || !this.#run || typeof most !== 'number') return;
    if (!profile.appendsAtOnce || profile.store > 0) return;
    const took = this.#earlier.atLeast + at - this.#run.begunAt;
    const detail = (): string => `${type} of ${runId} when its cycle has taken ${took} ms, and may take ${most}`;
    this.#world.check(took <= most + TAIL_MS, 'I4', detail);
  }
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
