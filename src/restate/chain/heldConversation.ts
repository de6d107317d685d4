/**
 * A conversation in an attempt of an engine: it takes acts, gives the items of the chain, and applies them after they are recorded. A
 * tool that an earlier attempt may have started, and that must not be repeated, is found as after the end of a process: its outcome
 * is unknown, and the run is resumed.
 */
import type { Delivery, LogEntry } from '../../../machines/internal.ts';
import type { EngineAgent } from '../../agent.ts';
import { type Conversation, resumeAs } from '../../conversation/conversation.ts';
import type { OpenConversation } from '../../conversation/open.ts';
import { carryOutHere } from '../../conversation/served/remoteActs.ts';
import { RunchartError, thrownMessage } from '../../errors.ts';
import { platformPorts } from '../../runtime/hostPorts.ts';
import { checkMediaType } from '../../stores/blobReference.ts';
import { type Act, type ActAnswer, type LogHandle, refuseOtherOwner } from '../../stores/logStore.ts';
import { nextTurn } from '../../timeLimit.ts';
import type { ContinuedAttempt } from './continuedAttempt.ts';
import type { ChainItem, WaitingAct } from './engineAttempt.ts';
import { EngineJournal } from './engineJournal.ts';

const BEAT_MS = 20_000;
/** How long a repeated act may take to be sent. */
const REPEAT_TURNS = 2000;

interface HeldOptions {
  agent: EngineAgent;
  attempt: ContinuedAttempt;
  opened: ((conversation: Conversation) => void) | undefined;
  /** The model replies of a run after which another invocation continues it. */
  repliesMost: number;
}

const beginsRun = ({ type }: LogEntry): boolean => type === 'run-started' || type === 'run-resumed';
const lastRunOf = (log: readonly LogEntry[]): string => log.filter(beginsRun).at(-1)?.runId ?? '';

/** What is larger than the engine can record becomes a failure. */
function withinLimit(delivery: Delivery, most: number): Delivery {
  const { completion } = delivery;
  if (completion.type !== 'effect.done' || most === Number.POSITIVE_INFINITY) return delivery;
  const { length } = JSON.stringify(completion.value);
  if (length <= most) return delivery;
  const message = `the engine records at most ${most} characters, got ${length}: give serveAgent the option store`;
  const error = { code: 'too_large', message };
  return { ...delivery, completion: { type: 'effect.failed', id: completion.id, cause: 'executor', error } };
}

export class HeldConversation {
  readonly #options: HeldOptions;
  readonly #log: LogEntry[];
  readonly #acts: WaitingAct[] = [];
  readonly #answered = new Set<string>();
  #answers: { to: string; answer: ActAnswer }[] = [];
  /** How many acts the conversation has been given, and how many of them have not ended. */
  #given = 0;
  #underWay = 0;
  #at: number;
  #isLive = false;
  /** An item is being recorded; acts wait until it is applied, so that they meet the same state in each attempt. */
  #isRecording = false;
  /** How often the conversation was opened. */
  #openings = 0;
  /** The model replies that this invocation recorded. */
  #replies = 0;
  #open: OpenConversation | undefined;
  #journal: EngineJournal | undefined;
  #wake: () => void = () => {};
  /** Runs that had lost a tool, and what continues them. */
  readonly #continued = new Map<string, string>();
  /** Something has come since it was last looked. */
  #hasNews = false;

  constructor(options: HeldOptions, log: LogEntry[], at: number) {
    this.#options = options;
    this.#log = log;
    this.#at = at;
  }

  /** `left`: acts without an answer, of a run whose chain this version cannot repeat. It is found as after the end of a process. */
  async open(opening?: Act, left?: readonly WaitingAct[]): Promise<void> {
    const lost = lastRunOf(this.#log);
    await this.#openLog(opening);
    if (!left) return;
    this.#acts.push(...left);
    this.#given = left.length;
    this.#resume(lost, left);
  }

  async #openLog(opening?: Act): Promise<void> {
    const { agent, attempt, opened } = this.#options;
    const owner = opening?.owner;
    const cwd = opening?.cwd;
    this.#openings += 1;
    const { length } = this.#log;
    let ids = 0;
    this.#open = await agent.openIn({
      id: attempt.conversationId,
      store: { open: async () => this.#handle(), list: async () => [] },
      ports: {
        now: () => (this.#isLive ? Math.max(platformPorts.now(), this.#at) : this.#at),
        // The same in each attempt.
        newId: () => {
          ids += 1;
          return `opened-${length}-${this.#openings}-${ids}`;
        },
        journal: (embedded) => {
          this.#journal = new EngineJournal(embedded, {
            now: platformPorts.now,
            mayRepeat: (request) => request.kind !== 'tool' || this.#isIdempotent(request.callId),
            mayWait: () => this.#replies >= this.#options.repliesMost,
            wake: () => this.#tell(),
            isLive: this.#isLive,
          });
          return this.#journal;
        },
      },
      ...(this.#log.length === 0 && typeof owner === 'string' && { owner }),
      ...(typeof cwd === 'string' && { cwd }),
    });
    opened?.(this.#open.conversation);
  }

  /** Acts that the engine has recorded. */
  add(acts: readonly WaitingAct[]): void {
    this.#acts.push(...acts);
    this.#tell();
  }

  /** Acts that the conversation has not been given. */
  get hasWaitingActs(): boolean {
    return this.#given < this.#acts.length;
  }

  /** What comes next, in the first attempt that asks. */
  async next(): Promise<ChainItem> {
    this.#isLive = true;
    this.#isRecording = false;
    this.#journal?.goLive();
    for (;;) {
      this.#options.attempt.signal.throwIfAborted();
      this.#hasNews = false;
      this.#give(this.#acts.length);
      const item = this.#due() ?? (await this.#atRest());
      if (item) {
        this.#isRecording = true;
        return item;
      }
      if (this.#journal?.isHeldBack) return this.#item({ kind: 'continued' });
      if (this.#hasNews || (await this.#woken())) continue;
      return this.#item({ kind: 'beat' });
    }
  }

  /** The item is recorded. */
  async apply(item: ChainItem): Promise<void> {
    const { attempt } = this.#options;
    if (!this.#isLive) await this.#repeatActs(item);
    this.#at = Math.max(this.#at, item.at);
    switch (item.kind) {
      case 'delivery':
        if (attempt.isOwn && this.#journal?.isReply(item.delivery)) this.#replies += 1;
        this.#journal?.deliver(item.delivery);
        break;
      case 'answers':
        for (const { to, answer } of item.answers) {
          this.#answered.add(to);
          attempt.answer(to, answer);
        }
        break;
      case 'lost':
        await this.#reopen();
        break;
      default:
    }
    if (!this.#isLive) await nextTurn();
    await this.#journal?.ready();
    if (!this.#journal?.hasUnintended) return;
    const { by } = await attempt.step('intent', () => ({ by: attempt.attempt }));
    this.#journal.intend(by === attempt.attempt);
  }

  /** Lets go of the conversation, and writes nothing. */
  async leave(): Promise<void> {
    const runtime = this.#open?.runtime;
    this.#open = undefined;
    runtime?.stop();
    await runtime?.closed();
  }

  #item<Item>(item: Item): Item & { acts: number; at: number } {
    return { ...item, acts: this.#given, at: Math.max(platformPorts.now(), this.#at) };
  }

  #due(): ChainItem | undefined {
    if (this.#journal?.isLost) return this.#item({ kind: 'lost' });
    const answers = this.#answers.splice(0).filter(({ to }) => !this.#answered.has(to));
    if (answers.length > 0) return this.#item({ kind: 'answers', answers });
    const arrived = this.#journal?.arrived();
    const delivery = arrived && withinLimit(arrived, this.#options.attempt.charactersMost);
    return delivery && { ...this.#item({ kind: 'delivery', delivery }), at: delivery.at };
  }

  async #atRest(): Promise<ChainItem | undefined> {
    for (let turn = 0; turn < 3; turn += 1) {
      if (!this.#isQuiet()) return undefined;
      await nextTurn();
      this.#give(this.#acts.length);
      const due = this.#due();
      if (due) return due;
    }
    return this.#isQuiet() ? this.#item({ kind: 'rest' }) : undefined;
  }

  #isQuiet(): boolean {
    const { runtime } = this.#open ?? {};
    if (!runtime || this.#underWay > 0 || this.hasWaitingActs || !this.#journal?.isQuiet) return false;
    const { status, commands } = runtime;
    return status !== 'active' && status !== 'cancelling' && commands.isIdle && !runtime.isCancelling;
  }

  #tell(): void {
    this.#hasNews = true;
    this.#wake();
  }

  /** False when nothing has happened for a while. */
  #woken(): Promise<boolean> {
    const { signal } = this.#options.attempt;
    return new Promise((resolve) => {
      const stop = platformPorts.setTimer(BEAT_MS, () => done(false));
      const woken = (): void => done(true);
      const done = (isWoken: boolean): void => {
        stop();
        signal.removeEventListener('abort', woken);
        this.#wake = () => {};
        resolve(isWoken);
      };
      this.#wake = woken;
      signal.addEventListener('abort', woken);
    });
  }

  /** Gives the conversation the acts that it had before this item, and waits until the repeated one is sent again. */
  async #repeatActs(item: ChainItem): Promise<void> {
    this.#give(item.acts);
    if (item.kind !== 'delivery' || item.delivery.completion.type !== 'act') return;
    const { completion } = item.delivery;
    for (let turn = 0; turn < REPEAT_TURNS && !this.#journal?.hasEarly(completion); turn += 1) await nextTurn();
  }

  #give(upTo: number): void {
    if (this.#isRecording) return;
    while (this.#given < upTo) {
      const waiting = this.#acts[this.#given];
      this.#given += 1;
      if (waiting) void this.#carryOut(waiting);
    }
  }

  async #carryOut({ act, to }: WaitingAct): Promise<void> {
    const { conversation } = this.#open ?? {};
    if (!conversation) return;
    const opening = this.#openings;
    this.#underWay += 1;
    const answer = await this.#answerTo(conversation, act);
    if (opening !== this.#openings) return;
    this.#underWay -= 1;
    this.#answers.push({ to, answer });
    this.#tell();
  }

  async #answerTo(conversation: Conversation, act: Act): Promise<ActAnswer> {
    try {
      // Nothing is held once nothing is under way.
      if (act.type === 'close') return { value: {} };
      if (act.type === 'open') {
        if (typeof act.owner === 'string') refuseOtherOwner(this.#log[0], act.owner);
        return { value: { entries: this.#log.length } };
      }
      return { value: await carryOutHere(conversation, this.#ofContinued(act)) };
    } catch (error) {
      const code = RunchartError.isRunchartError(error) ? error.code : 'internal';
      return { error: { code, message: thrownMessage(error) } };
    }
  }

  /**
   * As after the end of a process: the log is repaired, acts without an answer are carried out again, and the run continues unless
   * one of them cancels it.
   */
  async #reopen(): Promise<void> {
    const lost = lastRunOf(this.#log);
    await this.leave();
    const isLive = this.#isLive;
    this.#underWay = 0;
    this.#answers = [];
    // The repair has the time of the record in each attempt.
    this.#isLive = false;
    await this.#openLog();
    this.#isLive = isLive;
    if (isLive) this.#journal?.goLive();
    this.#resume(
      lost,
      this.#acts.slice(0, this.#given).filter(({ to }) => !this.#answered.has(to)),
    );
  }

  #resume(lost: string, unanswered: readonly WaitingAct[]): void {
    const isCancelled = unanswered.some(
      ({ act }) => act.type === 'cancel' && (this.#ofContinued(act).runId ?? lost) === lost,
    );
    const { conversation, runtime } = this.#open ?? {};
    // It may have been resumed by its opening already.
    if (conversation && !(isCancelled && runtime?.commands.isIdle))
      this.#continued.set(lost, resumeAs(conversation, `resumed-${this.#log.length}`).id);
    for (const waiting of unanswered) void this.#carryOut(waiting);
  }

  /** Who cancels a run that had lost a tool means what continues it. */
  #ofContinued(act: Act): Act {
    const next = act.type === 'cancel' ? this.#continued.get(String(act.runId)) : undefined;
    return next === undefined ? act : this.#ofContinued({ ...act, runId: next });
  }

  #isIdempotent(callId: string): boolean {
    const { runtime } = this.#open ?? {};
    const name = runtime?.logState.calls.get(callId)?.name;
    return name !== undefined && runtime?.toolbox.isIdempotent(name) === true;
  }

  #handle(): LogHandle {
    const entries = this.#log.slice();
    const appendNow = (appended: readonly LogEntry[]): void => {
      this.#log.push(...appended);
      this.#options.attempt.append(appended);
    };
    const { blobs } = this.#options.attempt;
    return {
      async *read() {
        yield* entries;
      },
      appendNow,
      append: async (appended) => appendNow(appended),
      ...(blobs && {
        putBlob: async (bytes: Uint8Array, mediaType: string) => {
          checkMediaType(mediaType);
          return blobs.put(new Uint8Array(bytes), mediaType);
        },
        getBlob: (reference: string) => blobs.get(reference),
      }),
      close: async () => {},
    };
  }
}
