/**
 * The sub-agents of a held conversation. Each runs in an object of its own; this is what its parent has of it. Invariant: a log is read
 * only at the place that the chain records, and nothing else happens until its sub-agent is open. So each attempt opens the same ones in
 * the same order.
 */
import { type LogEntry, type LogState, usageOf } from '../../../machines/internal.ts';
import { parentIdOf } from '../../conversation/open.ts';
import type { AgentProfile, ChildRequest, OpenChild, OpenedChild } from '../../runtime/subAgentPort.ts';
import type { Act } from '../../stores/logStore.ts';
import { nextTurn } from '../../timeLimit.ts';
import type { ContinuedAttempt } from './continuedAttempt.ts';
import type { SubAgentNews, SubAgentPlace } from './engineAttempt.ts';
import { type FollowLive, RemoteSubAgent } from './remoteSubAgent.ts';

interface Opening {
  readonly id: string;
  /** An error for the log of another conversation. */
  refusalOf(entries: readonly LogEntry[]): Error | undefined;
  /** Opens it. `entries`: of its log, if it was read now. */
  begin(entries: readonly LogEntry[], sub: RemoteSubAgent): void;
  refuse(error: unknown): void;
}

interface Parent {
  followLive: FollowLive;
  attempt: Pick<ContinuedAttempt, 'readLog' | 'tell'>;
  /** Called when a sub-agent waits for its log. */
  tell(): void;
  log: readonly LogEntry[];
  logState(): LogState | undefined;
  /** Of the ids of acts, which are the same in each attempt. */
  prefix(): string;
  /** Tokens or cost are limited. */
  hasBudget: boolean;
}

function refusalOf(entries: readonly LogEntry[], request: ChildRequest): Error | undefined {
  try {
    parentIdOf(entries, request);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** A sub-agent avoids the ids of so many other calls by itself. */
const TAKEN_MOST = 200;

export class HeldSubAgents {
  /** Also those that have ended: answers of them may be on their way. */
  readonly #open = new Map<string, RemoteSubAgent>();
  readonly #parent: Parent;
  /** Sub-agents whose logs nobody has read yet. */
  #openings: Opening[] = [];
  #isOpening = false;
  /** Acts for sub-agents that are not recorded yet. */
  #asked: { sub: RemoteSubAgent; request: ChildRequest; act: Act }[] = [];
  #requested: () => void = () => {};

  constructor(parent: Parent) {
    this.#parent = parent;
  }

  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Some of them work. */
  get isWorking(): boolean {
    return [...this.#open.values()].some((each) => each.isWorking);
  }

  /** A log is being read: the time is that of the record. */
  get isOpening(): boolean {
    return this.#isOpening;
  }

  /** The sub-agent that waits for its log. */
  get next(): string | undefined {
    return this.#openings[0]?.id;
  }

  /** Resolves when a sub-agent waits for its log. */
  async requested(): Promise<void> {
    if (this.#openings.length > 0) return;
    await new Promise<void>((resolve) => {
      this.#requested = resolve;
    });
  }

  /** Opens sub-agents for the conversation that is open now, until it is left. Its run may request one while it ends. */
  belowNow(): OpenChild {
    const opening = this.#openings;
    return (request, profile) =>
      opening === this.#openings ? this.#below(request, profile) : Promise.reject(new Error('the attempt is over'));
  }

  #below(request: ChildRequest, profile: AgentProfile): Promise<OpenedChild> {
    const { id } = request;
    return new Promise((resolve, reject) => {
      const begin = (entries: readonly LogEntry[], sub: RemoteSubAgent): void => {
        const surroundings = {
          request,
          followLive: this.#parent.followLive,
          asked: new Set(request.asked),
          prefix: this.#parent.prefix(),
          ask: (act: Act) => {
            this.#asked.push({ sub, request, act });
            this.#parent.tell();
          },
        };
        resolve(sub.opened(surroundings, profile, entries));
      };
      this.#openings.push({ id, refusalOf: (entries) => refusalOf(entries, request), begin, refuse: reject });
      this.#requested();
      this.#parent.tell();
    });
  }

  /** Reads the log of the sub-agent that waits for it, and opens it. One that this attempt has opened before has its log. */
  async read(id: string): Promise<void> {
    const index = this.#openings.findIndex((opening) => opening.id === id);
    const [opening] = index < 0 ? [] : this.#openings.splice(index, 1);
    this.#isOpening = true;
    try {
      const before = this.#open.get(id);
      const { entries, isUnderWay = false } = before ? { entries: [] } : await this.#parent.attempt.readLog(id);
      const refusal = opening?.refusalOf(entries);
      if (opening && refusal) opening.refuse(refusal);
      else {
        const sub = before ?? new RemoteSubAgent(isUnderWay);
        this.#open.set(id, sub);
        opening?.begin(entries, sub);
      }
      await nextTurn();
    } finally {
      this.#isOpening = false;
    }
  }

  take(id: string, news: SubAgentNews): void {
    this.#open.get(id)?.take(news);
    if (!this.#parent.hasBudget || news.kind !== 'entries' || !news.entries.some(usageOf)) return;
    for (const [other, each] of this.#open) if (other !== id) each.tellSpent();
  }

  leave(): void {
    const openings = this.#openings;
    this.#openings = [];
    for (const { sub, act } of this.#asked.splice(0)) sub.withdraw(act.actId);
    for (const sub of this.#open.values()) sub.left();
    for (const { refuse } of openings) refuse(new Error('the attempt is over'));
  }

  /** The ids of acts that are not recorded yet. */
  get asked(): string[] {
    return this.#asked.map(({ act }) => act.actId);
  }

  /** Sends these acts in this order. */
  ask(ids: readonly string[]): void {
    for (const id of ids) {
      const index = this.#asked.findIndex(({ act }) => act.actId === id);
      const [asked] = index < 0 ? [] : this.#asked.splice(index, 1);
      if (asked) this.#ask(asked.sub, asked.request, asked.act);
    }
  }

  #ask(sub: RemoteSubAgent, request: ChildRequest, act: Act): void {
    const { attempt, log, hasBudget } = this.#parent;
    const [first] = log;
    const { cwd = '/', owner = undefined } = first?.type === 'conversation' ? first : {};
    const { id, parent } = request;
    const place: SubAgentPlace = {
      parent,
      tool: this.#parent.logState()?.calls.get(parent.callId)?.name ?? '',
      cwd,
      ...(owner !== undefined && { owner }),
      request: request.above(),
      ...(hasBudget && { spent: request.spent() }),
      upTo: sub.length,
      taken: this.#takenBeside(sub),
    };
    attempt.tell(id, { act, to: act.actId, place });
  }

  #takenBeside(sub: RemoteSubAgent): string[] {
    const others = [...this.#open.values()].filter((each) => each !== sub && !each.isClosed);
    const ids = [...(this.#parent.logState()?.calls.keys() ?? [])];
    return [...ids, ...others.flatMap(({ callIds }) => [...callIds])].slice(-TAKEN_MOST);
  }
}
