/**
 * One opening of the conversation that an attempt holds: its log, its journal and its ids. An attempt that lost a tool opens it again.
 * Invariant: after it was left, it writes nothing.
 */
import type { EffectRequest, LogEntry } from '../../../machines/internal.ts';
import type { EnginePlace } from '../../agent.ts';
import type { OpenConversation } from '../../conversation/open.ts';
import { platformPorts } from '../../runtime/hostPorts.ts';
import { spawnOf } from '../../runtime/subAgentPort.ts';
import { checkMediaType } from '../../stores/blobReference.ts';
import type { LogHandle } from '../../stores/logStore.ts';
import { nextTurn } from '../../timeLimit.ts';
import type { ContinuedAttempt } from './continuedAttempt.ts';
import { EngineJournal } from './engineJournal.ts';

/** The longest time in which a call that spawns sub-agents begins. */
const BEGIN_MS = 10_000;

export interface MemberSurroundings {
  attempt: Pick<ContinuedAttempt, 'blobs' | 'charactersMost' | 'startTimer'>;
  append(entries: readonly LogEntry[]): void;
  /** The time of the last item, or of the clock. */
  now(): number;
  /** No recorded item follows. */
  isLive(): boolean;
  /** The next model call may wait for another invocation. */
  mayWait(): boolean;
  /** Called when something has arrived. */
  tell(): void;
}

export class MemberConversation {
  readonly log: LogEntry[];
  /** Present from its opening on. */
  journal: EngineJournal | undefined;
  readonly #with: MemberSurroundings;
  #open: OpenConversation | undefined;
  #isLeft = false;

  constructor(surroundings: MemberSurroundings, log: LogEntry[]) {
    this.#with = surroundings;
    this.log = log;
  }

  get conversation(): OpenConversation['conversation'] | undefined {
    return this.#open?.conversation;
  }

  get runtime(): OpenConversation['runtime'] | undefined {
    return this.#open?.runtime;
  }

  opened(open: OpenConversation): void {
    this.#open = open;
  }

  /** `prefix`: of the ids that it makes, which are the same in each attempt. */
  place(prefix: string): Pick<EnginePlace, 'store' | 'ports'> {
    let ids = 0;
    return {
      store: { open: async () => this.#handle(), list: async () => [] },
      ports: {
        now: () => this.#with.now(),
        newId: () => {
          ids += 1;
          return `${prefix}-${ids}`;
        },
        journal: (embedded) => {
          this.journal = new EngineJournal(embedded, {
            now: platformPorts.now,
            mayRepeat: (request) => request.kind !== 'tool' || this.#isIdempotent(request.callId),
            isLocal: (request) => this.#spawns(request),
            hasBegun: (request) =>
              request.kind === 'tool' && this.runtime?.subAgents?.isRunning(request.callId) === true,
            mayWait: () => this.#with.mayWait(),
            startTimer: (id, until) => this.#with.attempt.startTimer({ id, until }),
            cycleMs: () => this.runtime?.logState.cycleMs ?? 0,
            charactersMost: this.#with.attempt.charactersMost,
            wake: () => this.#with.tell(),
            isLive: this.#with.isLive(),
          });
          return this.journal;
        },
      },
    };
  }

  /**
   * Resolves when the calls that spawn sub-agents have begun. What they do follows from the next items, so they begin before these in each
   * attempt.
   */
  async begun(): Promise<void> {
    const end = platformPorts.now() + BEGIN_MS;
    while (this.journal?.hasUnbegun && platformPorts.now() < end) await nextTurn();
    if (this.journal?.hasLocal) await nextTurn();
  }

  /** No effect and no command is under way. */
  get isQuiet(): boolean {
    const { runtime } = this;
    if (!runtime || this.journal?.isQuiet !== true) return false;
    const { status, commands, subAgents } = runtime;
    const isSettled = status !== 'active' && status !== 'cancelling' && commands.isIdle && !runtime.isCancelling;
    return isSettled && subAgents?.isIdle !== false;
  }

  /** Abandons the conversation without writing anything. */
  async leave(): Promise<void> {
    this.#isLeft = true;
    const { runtime } = this;
    this.#open = undefined;
    runtime?.stop();
    await runtime?.closed();
  }

  #nameOf(callId: string): string | undefined {
    return this.runtime?.logState.calls.get(callId)?.name;
  }

  #isIdempotent(callId: string): boolean {
    const name = this.#nameOf(callId);
    return name !== undefined && this.runtime?.toolbox.isIdempotent(name) === true;
  }

  #spawns(request: EffectRequest): boolean {
    if (request.kind !== 'tool') return false;
    const tool = this.runtime?.toolbox.find(this.#nameOf(request.callId) ?? '');
    return tool !== undefined && spawnOf(tool) !== undefined;
  }

  #handle(): LogHandle {
    const { blobs } = this.#with.attempt;
    const entries = this.log.slice();
    const appendNow = (appended: readonly LogEntry[]): void => {
      if (this.#isLeft) return;
      this.log.push(...appended);
      this.#with.append(appended);
    };
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
