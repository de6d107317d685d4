/**
 * The clients of a simulated address: their requests reach any process and are repeated when the answer is lost; an answer follows its
 * durable effect. Invariant: an answer is compared with the durable log at the moment at which it arrives.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { SharedChecks } from './sharedChecks.ts';
import type { SharedWorld } from './sharedWorld.ts';
import type { SimulatedProcess } from './simulatedProcess.ts';

export type AskKind = 'create' | 'show' | 'send' | 'steer' | 'followUp' | 'decide' | 'settle' | 'cancel' | 'resume';
type Fields = { readonly [key: string]: unknown };

/** The maximum number of attempts of a request that was lost or refused for now; the pauses grow. */
const TRIES_MOST = 15;
const PAUSE_MS = 400;
/** The owner of the clients' timers. */
export const CLIENTS = 'clients';
/** Refusals after which the same request may succeed elsewhere or later. */
const FOR_NOW: ReadonlySet<unknown> = new Set([
  'unavailable',
  'session_busy',
  'store',
  'store_conflict',
  'closed',
  'cancellation_in_progress',
]);

export interface Ask {
  readonly kind: AskKind;
  readonly conversation: string;
  /** The `by` of the request. Each request has its own. */
  readonly by: string;
  readonly body: Fields;
  /** The same request can be sent again. */
  readonly isRepeatable: boolean;
  state: 'due' | 'asked' | 'waiting' | 'over';
  tries: number;
  /** The runs that were open when it was sent first. */
  openRuns: readonly string[];
  /** The last answer. */
  status: number | undefined;
  answer: Fields;
}

const PATHS: Readonly<Record<Exclude<AskKind, 'create' | 'show'>, string>> = {
  ...{ send: 'messages', steer: 'messages', followUp: 'messages', decide: 'decisions', settle: 'settlements' },
  ...{ cancel: 'cancel', resume: 'resume' },
};

function requestOf({ kind, conversation, by, body }: Ask): Request {
  const headers = { 'content-type': 'application/json', 'x-by': by };
  const base = 'http://here/conversations';
  if (kind === 'create')
    return new Request(base, { method: 'POST', headers, body: JSON.stringify({ id: conversation }) });
  if (kind === 'show') return new Request(`${base}/${conversation}`, { headers });
  return new Request(`${base}/${conversation}/${PATHS[kind]}`, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** The runs of a log that have begun and not stopped. */
export function openRunsIn(log: readonly LogEntry[]): string[] {
  const open = new Set<string>();
  for (const { type, runId } of log) {
    if (runId === null) continue;
    if (type === 'run-started' || type === 'run-resumed') open.add(runId);
    if (type === 'run-stop' || type === 'run-suspended') open.delete(runId);
  }
  return [...open];
}

export class SharedClients {
  readonly asks: Ask[] = [];
  readonly #shared: SharedWorld;
  readonly #processes: readonly SimulatedProcess[];
  readonly #checks: SharedChecks;
  /** Requests that have no answer yet. One that was sent twice may act after its first answer. */
  #underWay = 0;

  constructor(shared: SharedWorld, processes: readonly SimulatedProcess[], checks: SharedChecks) {
    this.#shared = shared;
    this.#processes = processes;
    this.#checks = checks;
  }

  get due(): Ask[] {
    return this.asks.filter(({ state }) => state === 'due');
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** Sends a new request. */
  ask(kind: AskKind, conversation: string, body: Fields, isRepeatable = true): Ask {
    const by = `client ${this.asks.length}`;
    const ask: Ask = {
      ...{ kind, conversation, by, body, isRepeatable, state: 'due', tries: 0, openRuns: [], status: undefined },
      answer: {},
    };
    this.asks.push(ask);
    this.#shared.count(`ask-${kind}`);
    this.send(ask);
    return ask;
  }

  /** Sends the request to any process, once more where it was sent before. */
  send(ask: Ask): void {
    const { tape } = this.#shared;
    const up = this.#processes.filter(({ isUp }) => isUp);
    if (up.length === 0) return;
    const process = tape.pick(up);
    if (ask.tries === 0) ask.openRuns = openRunsIn(this.#checks.logOf(ask.conversation));
    ask.tries += 1;
    ask.state = 'asked';
    let isOver = false;
    this.#underWay += 1;
    const end = (): boolean => {
      if (isOver) return false;
      isOver = true;
      this.#underWay -= 1;
      return true;
    };
    const lost = (): void => {
      if (end()) this.#lost(ask);
    };
    process.receive({
      port: 'plugin',
      crash: lost,
      settle: () => {
        const answering = process.answer(requestOf(ask));
        if (!answering) return lost();
        const { name } = process;
        this.#shared.trace?.(`${name} receives ${ask.kind} of ${ask.by}`);
        process.onCrash(lost);
        answering.then(
          async (response) => {
            const { status } = response;
            const answer = (await response.json()) as Fields;
            if (end())
              this.#answered(ask, status, answer, process.isBehind && this.#checks.isStale(name, ask.conversation));
          },
          (error: unknown) => this.#shared.violate('uncaught', `a request failed with ${String(error)}`),
        );
      },
    });
  }

  /** A client that has waited for long sends its request to another process, while the first may still answer. */
  sendAgain(): void {
    const waiting = this.asks.filter(
      ({ state, isRepeatable, tries }) => state === 'asked' && isRepeatable && tries < 4,
    );
    if (waiting.length === 0) return;
    this.#shared.count('asked-twice');
    this.send(this.#shared.tape.pick(waiting));
  }

  #lost(ask: Ask): void {
    if (ask.state === 'over') return;
    ask.state = ask.isRepeatable && ask.tries < TRIES_MOST ? 'waiting' : 'over';
    if (ask.state === 'over') return;
    const { clock } = this.#shared;
    clock.as(CLIENTS, () =>
      clock.setTimer(PAUSE_MS * ask.tries, () => {
        if (ask.state === 'waiting') ask.state = 'due';
      }),
    );
  }

  #answered(ask: Ask, status: number, answer: Fields, isStale: boolean): void {
    this.#shared.trace?.(`${ask.by} ${ask.kind} ${status} ${JSON.stringify(answer).slice(0, 120)}`);
    this.#judge(ask, status, answer, isStale);
    if (this.#shared.fault('reply-lost', this.#shared.profile.answer)) return this.#lost(ask);
    this.#shared.count(`answer-${ask.kind}-${status}${status >= 400 ? ` ${String(answer.code)}` : ''}`);
    if (ask.state === 'over') return;
    // A message that waited in the queue may have begun its run after a cancel.
    const isBusy = this.#shared.faultFree && answer.code === 'agent_busy';
    // The store did not take the cancel: the cycle still waits, which the status reports.
    const isRefused = this.#shared.faultFree && ask.kind === 'cancel' && (answer.status === 'waiting' || isStale);
    if (isBusy || isRefused || (status >= 400 && FOR_NOW.has(answer.code))) return this.#lost(ask);
    ask.state = 'over';
    ask.status = status;
    ask.answer = answer;
  }

  /**
   * An answer must be durable. `isStale`: the process has lost the conversation while its clock stood still. Until its next renewal it
   * answers from its own data if nothing is to be stored.
   */
  #judge(ask: Ask, status: number, answer: Fields, isStale: boolean): void {
    const { kind, conversation, by, body, openRuns } = ask;
    const log = this.#checks.logOf(conversation);
    const check = (holds: boolean, what: string): void =>
      this.#shared.check(
        holds,
        'I22',
        () => `${kind} of ${by} was answered ${status} ${JSON.stringify(answer)}, but ${what}`,
      );
    if (status === 500) return check(answer.code !== 'internal', 'an error came from outside the library');
    if (status >= 300) return;
    switch (kind) {
      case 'send':
      case 'steer':
      case 'followUp':
        return check(
          log.some((entry) => 'messageId' in entry && entry.messageId === answer.messageId),
          'the message is not durable',
        );
      case 'decide': {
        const isOwn = log.some(
          (entry) => entry.type === 'decision' && entry.decision.by === by && entry.callId === body.callId,
        );
        const isTaken = answer.receipt === 'applied' || answer.receipt === 'held';
        if (isTaken) return check(isOwn, 'the decision is not durable');
        // A request that was sent twice may find its own effect.
        return check(isStale || !isOwn || ask.tries > 1 || answer.receipt === 'stale', 'the decision is its own');
      }
      case 'settle':
        if (answer.receipt !== 'applied') return;
        return check(
          log.some((entry) => entry.type === 'call-settled' && entry.callId === body.callId),
          'the settlement is not durable',
        );
      case 'cancel': {
        // A cancel does not wait for a slow store: then the status reports that the end of the run is not stored.
        if (answer.status !== 'idle' && answer.status !== 'waiting') return;
        if (isStale) return;
        const open = new Set(openRunsIn(log));
        return check(!openRuns.some((runId) => open.has(runId)), `these are open: ${[...open]}`);
      }
      case 'show':
        return check(Number(answer.entries) <= log.length, `only ${log.length} entries are durable`);
    }
  }
}
