/**
 * The commands of a host, what each comes to at its delivery, and the queue of those on their way. Rule: a command is judged at
 * its delivery, against what is durable then. Commands keep their order, wait for their images, and are answered exactly once, when what they logged is durable.
 */
import {
  type Act,
  type ChartPolicies,
  type Completion,
  type Continued,
  type ConversationEvent,
  countersOf,
  type Decision,
  type EffectRequest,
  type Failure,
  fatesOf,
  goesOn,
  type HostAct,
  type Json,
  judgeDecision,
  judgePending,
  type LogState,
  type NewEntry,
  openCalls,
  rerunOf,
  runOf,
  type Settlement,
  type Standing,
  type StoredPart,
  type SubAgentChange,
} from '../../machines/internal.ts';
import { InvalidDecisionError, RunchartError, thrownText } from '../errors.ts';

export type Command = HostAct & HostCommand;
type HostCommand =
  | {
      type: 'message.sent';
      messageId: string;
      content: StoredPart[];
      kind: 'direct' | 'steer' | 'followUp';
      /** In place of the policy. */
      whileSuspended?: ChartPolicies['whileSuspended'];
      /** The content, while its images are being stored; the command is put when they are. */
      kept?: Promise<StoredPart[]>;
    }
  | { type: 'resume.requested'; runId: string; continuation?: string }
  | { type: 'promotion.requested'; messageId: string }
  | { type: 'message.returned'; messageId: string; why: string }
  | { type: 'cancel.requested'; partial?: string }
  | { type: 'decision.proposed'; decision: Decision }
  | { type: 'settlement.proposed'; callId: string; how: Settlement }
  | SubAgentChange
  /** Somebody who watches threw, and is not to be ignored. */
  | { type: 'observer.failed'; error: Failure };

export type MessageCommand = Extract<Command, { type: 'message.sent' }>;
/** Commands that start a run when their turn comes. */
export type StartingCommand = Extract<Command, { type: 'message.sent' | 'resume.requested' | 'promotion.requested' }>;

/** The run that the command starts, if it starts one. */
const runIdOf = (command: StartingCommand): string =>
  command.type === 'resume.requested' ? command.runId : runOf(command.messageId);

export interface Admission {
  /** The event for the chart, with the facts of the log. */
  event?: ConversationEvent;
  /** The command is refused; nothing changes. */
  refused?: Error;
  /** What is only put on record. */
  note?: readonly NewEntry[];
}

/** The state of the chart that commands are judged by. */
export interface ChartState {
  readonly standing: Standing;
  /** A run is under way that can still end otherwise. */
  readonly isOpenEnded: boolean;
  /** The run under way. */
  readonly runId: string | undefined;
}

/** A call that waits for a permission is allowed, denied or changed. Returns the error for an answer to it. */
export function wrongAnswer(
  { callId, reason, ...waiting }: { callId: string; reason?: string; suspension: number },
  { action, suspension = waiting.suspension }: Decision,
): InvalidDecisionError | undefined {
  if (action !== 'answer' || reason !== 'permission' || suspension !== waiting.suspension) return undefined;
  return new InvalidDecisionError(`the call ${callId} waits for approval: it takes approve, deny or edit, not answer`);
}

function admitDecision(logState: LogState, decision: Decision, act: HostAct): Admission {
  const record = logState.calls.get(decision.callId);
  const refused = record?.status === 'suspended' ? wrongAnswer(record, decision) : undefined;
  if (refused) return { refused };
  const { receipt, suspension } = judgeDecision(record, decision);
  return {
    event: { ...act, type: 'decision.arrived', held: { callId: decision.callId, suspension, decision }, receipt },
  };
}

function admitSettlement(logState: LogState, callId: string, how: Settlement, act: HostAct): Admission {
  const record = logState.calls.get(callId);
  const isUnsettled = record !== undefined && logState.unsettled.has(callId);
  const retry = isUnsettled && 'retry' in how ? { retry: rerunOf(record) } : {};
  const receipt = isUnsettled ? 'applied' : 'unknown';
  return { event: { ...act, type: 'outcome.settled', callId, how, receipt, ...retry } };
}

const ACTS: ReadonlySet<string> = new Set<Act['type']>([
  'message.sent',
  'resume.requested',
  'promotion.requested',
  'cancel.requested',
]);
const isStarting = (command: Command): command is StartingCommand =>
  command.type !== 'cancel.requested' && ACTS.has(command.type);
const isAct = (command: Command): command is Extract<Command, Act> => ACTS.has(command.type);

/** What a run follows. `isLogged`: the log has all that the chart has done. `leavesAll`: also calls whose retry lost its end. */
function logged(logState: LogState, isLogged: boolean, leavesAll: boolean): Continued {
  const of = { runId: logState.runId, counters: countersOf(logState), ended: !goesOn(logState) };
  if (!isLogged) return of;
  const { cycle, queue } = logState;
  const open = openCalls(logState);
  // Of a cycle that has lost its end, calls get their results where the next run begins.
  const kept = cycle === 'suspended' ? open.kept : [];
  const all = cycle === 'running' ? [] : open.reruns;
  const reruns = all.filter(({ call }) => leavesAll || !logState.calls.get(call.callId)?.late);
  return { ...of, waits: { ...open, kept, reruns, queue } };
}

export function admitCommand(
  command: { type: string },
  logState: LogState,
  chart: Pick<ChartState, 'isOpenEnded'>,
  isLogged: boolean,
): Admission {
  const given = command as Command;
  const act: HostAct = given.actId === undefined ? {} : { actId: given.actId };
  switch (given.type) {
    case 'decision.proposed':
      return admitDecision(logState, given.decision, act);
    case 'settlement.proposed':
      return admitSettlement(logState, given.callId, given.how, act);
    case 'message.sent':
    case 'resume.requested':
    case 'promotion.requested':
      return { event: { ...given, of: logged(logState, isLogged, given.type !== 'resume.requested') } };
    case 'observer.failed': {
      const { error } = given;
      if (chart.isOpenEnded) return { event: { type: 'effect.failed', id: '', cause: 'internal', error } };
      return { note: [diagnostic(logState.runId, 'observer_error', { message: error.message })] };
    }
    default:
      return { event: given };
  }
}

/** An entry that no chart has a say in. */
export function diagnostic(runId: string, code: string, detail?: Json): NewEntry {
  const entry: NewEntry = { runId: runId === '' ? null : runId, type: 'diagnostic', code };
  return detail === undefined ? entry : { ...entry, detail };
}

/** An abandoned tool returned a result after all. A diagnostic records this; nothing else changes. */
export function lateResult(request: EffectRequest, completion: Completion): NewEntry[] {
  const value = completion.type === 'effect.done' ? completion.value : undefined;
  if (request.kind !== 'tool' || value?.kind !== 'succeeded') return [];
  return [diagnostic(request.runId, 'late_result', { callId: request.callId })];
}

/** What the chart says that a command came to. */
export type Answer = Pick<Extract<EffectRequest, { kind: 'answer' }>, 'outcome' | 'suspension'>;

interface PendingCommand {
  command: Command;
  /** The chart has taken it. */
  isTaken: boolean;
  answered: Promise<Answer>;
  resolve(answer: Answer): void;
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
  #closed = false;
  /** Not put yet: one whose images are being stored comes first. */
  readonly #queue = new Set<Command>();
  /** Without an answer, in the order of their calls. */
  readonly #pending = new Map<string, PendingCommand>();
  #opened = 0;

  /** `report`: hears of what could not be stored. */
  constructor(chart: ChartState, put: (command: Command) => void, report: (message: string) => void) {
    this.#chart = chart;
    this.#put = put;
    this.#report = report;
  }

  /** Puts a command when its turn has come. */
  send(command: Command): Promise<Answer> {
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
            if (!this.#queue.delete(command)) return;
            this.refuse(command, failure);
            this.#report(failure.message);
            this.flush();
          },
        );
      }
      this.flush();
    }
    return answered;
  }

  open(command: Command): Promise<Answer> {
    if (this.#closed) {
      return Promise.reject(new RunchartError('closed', `the conversation is closed: ${command.type} came too late`));
    }
    this.#opened += 1;
    // Not below the id of a run, whose end drops everything under it.
    command.actId = `act/${this.#opened}`;
    const pending: Partial<PendingCommand> = { command, isTaken: false };
    pending.answered = new Promise((resolve, reject) => Object.assign(pending, { resolve, reject }));
    this.#pending.set(command.actId, pending as PendingCommand);
    return pending.answered;
  }

  get isIdle(): boolean {
    return this.#pending.size === 0;
  }

  /** Resolves when every command sent so far is answered. */
  async allAnswered(): Promise<void> {
    await Promise.allSettled([...this.#pending.values()].map(({ answered }) => answered));
  }

  /** Gives up what the chart has not taken: for a cancel, for a close, or the command of one run, which is returned. */
  giveUp(by: 'cancel' | 'close' | { runId: string }): StartingCommand | undefined {
    const acts = this.#acts;
    const index = typeof by === 'string' ? by : acts.findIndex((act) => isStarting(act) && runIdOf(act) === by.runId);
    const pending = acts.map((act) => ({ act, isHeld: this.#queue.has(act), isStoring: 'kept' in act }));
    for (const [at, fate] of fatesOf(this.#chart.standing, pending, index).entries()) {
      const command = acts[at];
      if (!command || fate === 'kept') continue;
      command.withdrawn = true;
      if (fate === 'cancelled') continue;
      this.#queue.delete(command);
      this.answer({ id: command.actId ?? '', outcome: 'returned' });
    }
    this.flush();
    const command = typeof index === 'number' ? acts[index] : undefined;
    return command && isStarting(command) ? command : undefined;
  }

  /** A cancel has not been delivered. */
  get hasCancel(): boolean {
    for (const { type } of this.#waiting) if (type === 'cancel.requested') return true;
    return false;
  }

  /** A cancel, or a command that was taken back, has not been delivered. */
  get cancelling(): boolean {
    for (const { withdrawn } of this.#waiting) if (withdrawn) return true;
    return this.hasCancel;
  }

  /** Whether a command has not been delivered yet. */
  waits({ actId = '' }: HostAct): boolean {
    return this.#pending.get(actId)?.isTaken === false;
  }

  /** Commands that have not been delivered yet. */
  get #waiting(): Command[] {
    return [...this.#pending.values()].flatMap(({ command, isTaken }) => (isTaken ? [] : [command]));
  }

  get #acts(): Extract<Command, Act>[] {
    return this.#waiting.filter(isAct);
  }

  /** What the next act is judged by: the chart, and after it the acts that the chart has not taken. */
  get standing(): Standing {
    return judgePending(this.#chart.standing, this.#acts).standing;
  }

  /** The run that starts next. */
  get nextRunId(): string | undefined {
    const acts = this.#acts;
    const { starts } = judgePending(this.#chart.standing, acts);
    const next = acts[starts.indexOf(true)];
    return next && isStarting(next) ? runIdOf(next) : undefined;
  }

  /** How many commands of this type have no answer yet. */
  countOf(type: Command['type']): number {
    return [...this.#pending.values()].filter(({ command }) => command.type === type).length;
  }

  /** The command is delivered now. */
  take({ actId = '' }: HostAct): void {
    const pending = this.#pending.get(actId);
    if (pending) pending.isTaken = true;
  }

  /** What the command logged is durable. */
  answer({ id, ...answer }: Answer & { id: string }): void {
    this.#pending.get(id)?.resolve(answer);
    this.#pending.delete(id);
  }

  /** The command is not accepted, or what it logged could not be stored. */
  refuse({ actId = '' }: HostAct, error: unknown): void {
    this.#pending.get(actId)?.reject(error);
    this.#pending.delete(actId);
  }

  /** The chart broke, and answers nothing that it has taken. */
  refuseTaken(error: unknown): void {
    for (const { command, isTaken } of this.#pending.values()) if (isTaken) this.refuse(command, error);
  }

  /** Nothing is put any more: what has no answer yet is refused for this reason, and whatever comes as closed. */
  close(why?: Error): void {
    this.#closed = true;
    this.#queue.clear();
    for (const { reject } of this.#pending.values()) reject(why);
    this.#pending.clear();
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Puts what need not wait any more, in order. */
  flush(): void {
    for (const command of this.#queue) {
      // Its images are being stored.
      if ('kept' in command) return;
      this.#queue.delete(command);
      this.#put(command);
    }
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
