/**
 * The commands of a host, the event that each becomes at its delivery, and the queue that carries out the life of acts. Invariant: a
 * command is judged at its delivery, against the entries that are durable then. It is answered once, when its entries are durable.
 */
import {
  type ActEvent,
  type ActTask,
  type ChartPolicies,
  type Completion,
  type Continued,
  type ConversationEvent,
  countersOf,
  type Decision,
  type EffectRequest,
  type Failure,
  type GivenUpBy,
  goesOn,
  type HostAct,
  hasCancel,
  isCancelling,
  type Json,
  judgeDecision,
  type LogEntry,
  type LogState,
  type NewEntry,
  nextActs,
  nextRunOf,
  openCalls,
  overtakes,
  type PendingAct,
  placeBefore,
  placeOfRun,
  type QueuedMessage,
  type RequestChoices,
  type RunPlace,
  rerunOf,
  runOf,
  type Settlement,
  type Standing,
  type StoredPart,
  type SubAgentChange,
  standingAfterActs,
} from '../../machines/internal.ts';
import { NotStored } from '../content/content.ts';
import { ConfigurationError, InvalidDecisionError, RunchartError } from '../errors.ts';

export type Command = HostAct & {
  /** The caller received the message back. The chart does not receive it. */
  returned?: true;
} & HostCommand;
type HostCommand =
  | ({
      type: 'message.sent';
      messageId: string;
      content: StoredPart[];
      kind: 'direct' | 'steer' | 'followUp';
      /** In place of the policy. */
      whileSuspended?: ChartPolicies['whileSuspended'];
    } & RequestChoices)
  | { type: 'resume.requested'; runId: string; continuation?: string }
  | { type: 'promotion.requested'; messageId: string }
  | { type: 'message.returned'; messageId: string; why: string }
  | { type: 'cancel.requested' | 'close.requested'; partial?: string }
  | { type: 'decision.proposed'; decision: Decision }
  | { type: 'settlement.proposed'; callId: string; how: Settlement }
  | SubAgentChange
  | { type: 'rename.requested'; title: string }
  | { type: 'rewind.requested'; messageId: string }
  /** Keys of the state that a page writes. */
  | { type: 'state.written'; writes: { [key: string]: Json } }
  /** A subscriber threw, and the policy does not ignore that. */
  | { type: 'observer.failed'; error: Failure };

export type MessageCommand = Extract<Command, { type: 'message.sent' }>;
/** Commands that start a run when their turn comes. */
export type StartingCommand = Extract<Command, { type: 'message.sent' | 'resume.requested' | 'promotion.requested' }>;

/** The run that the command starts, if it starts one. */
function runIdOf(command: Command): string | undefined {
  switch (command.type) {
    case 'resume.requested':
      return command.runId;
    case 'message.sent':
    case 'promotion.requested':
      return runOf(command.messageId);
    default:
      return undefined;
  }
}

export interface Admission {
  /** The event for the chart, with the facts of the log. */
  event?: ConversationEvent;
  /** The command is refused; nothing changes. */
  refused?: Error;
  /** Entries that are logged without an event for the chart. */
  note?: readonly NewEntry[];
}

/** The state of the chart that commands are judged by. */
export interface ChartState {
  readonly standing: Standing;
  /** A run is under way that can still end otherwise. */
  readonly isOpenEnded: boolean;
  /** The run under way. */
  readonly runId: string | undefined;
  /** Messages that were accepted and are not delivered. */
  readonly queue: readonly QueuedMessage[];
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

function cannotRewind(place: 'unknown' | 'steer' | 'history', messageId: string): Error {
  if (place === 'unknown') return new RunchartError('not_found', `there is no message ${messageId} that counts`);
  const why = place === 'steer' ? 'is a steer' : 'came with open()';
  return new ConfigurationError(`cannot rewind to the message ${messageId}, which ${why}`);
}

/**
 * The facts of the log that the next run continues from. `isLogged`: the log has all that the chart has done. `leavesAll`: also calls
 * whose retry lost its end.
 */
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
  { logState, entries }: { logState: LogState; entries: readonly LogEntry[] },
  chart: Pick<ChartState, 'isOpenEnded'>,
  isLogged: boolean,
): Admission {
  const hostCommand = command as Command;
  const act: HostAct = hostCommand.actId === undefined ? {} : { actId: hostCommand.actId };
  switch (hostCommand.type) {
    case 'decision.proposed':
      return admitDecision(logState, hostCommand.decision, act);
    case 'settlement.proposed':
      return admitSettlement(logState, hostCommand.callId, hostCommand.how, act);
    case 'message.sent':
    case 'resume.requested':
    case 'promotion.requested':
      return { event: { ...hostCommand, of: logged(logState, isLogged, hostCommand.type !== 'resume.requested') } };
    case 'rewind.requested': {
      const place = placeBefore(entries, hostCommand.messageId);
      if (typeof place === 'string') return { refused: cannotRewind(place, hostCommand.messageId) };
      return { event: { ...act, type: hostCommand.type, ...place, of: logged(logState, isLogged, true) } };
    }
    case 'state.written':
      return { note: [{ runId: null, type: 'state-changed', writes: hostCommand.writes }] };
    case 'rename.requested':
      return { note: [{ runId: null, type: 'renamed', title: hostCommand.title }] };
    case 'observer.failed': {
      const { error } = hostCommand;
      if (chart.isOpenEnded) return { event: { type: 'effect.failed', id: '', cause: 'internal', error } };
      return { note: [diagnostic(logState.runId, 'observer_error', { message: error.message })] };
    }
    default:
      return { event: hostCommand };
  }
}

/** A diagnostic, which is logged without a chart. */
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

/** The outcome of a command, as the chart reports it. */
export type Answer = Pick<Extract<EffectRequest, { kind: 'answer' }>, 'outcome' | 'suspension'>;

interface OpenCommand {
  command: Command;
  answered: Promise<Answer>;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

export class CommandQueue {
  /** Decisions and settlements, by call. */
  readonly decisions = new KeyedQueue();
  readonly #put: (command: Command, isUrgent: boolean) => void;
  readonly #report: (lost: NotStored) => void;
  readonly #chart: ChartState;
  #acts: readonly PendingAct[] = [];
  /** The commands of pending acts, in the order of their calls. */
  readonly #open = new Map<string, OpenCommand>();
  #opened = 0;
  closed = false;

  /** `put`: passes a command to the journal. `report`: receives the error where an image or a file could not be stored. */
  constructor(
    chart: ChartState,
    put: (command: Command, isUrgent: boolean) => void,
    report: (lost: NotStored) => void,
  ) {
    this.#chart = chart;
    this.#put = put;
    this.#report = report;
  }

  /** Sends a command when its turn has come. `attachments`: its content, if images and files of it are being stored. */
  send(command: Command, attachments?: Promise<StoredPart[]>): Promise<Answer> {
    if (this.closed) {
      return Promise.reject(new RunchartError('closed', `the conversation is closed: ${command.type} came too late`));
    }
    this.#opened += 1;
    // This id is not below that of a run, because the end of a run drops everything below its id.
    const id = `act/${this.#opened}`;
    command.actId = id;
    const open: Partial<OpenCommand> = { command };
    open.answered = new Promise((resolve, reject) => Object.assign(open, { resolve, reject }));
    this.#open.set(id, open as OpenCommand);
    this.#step({ type: 'called', id, act: command, runId: runIdOf(command), hasImages: attachments !== undefined });
    attachments?.then(
      (content) => {
        Object.assign(command, { content });
        this.#step({ type: 'imagesStored', id });
      },
      (error) => this.#step({ type: 'imagesLost', id }, error),
    );
    return open.answered;
  }

  get isIdle(): boolean {
    return this.#acts.length === 0;
  }

  /** Resolves when every command sent so far is answered. */
  async allAnswered(): Promise<void> {
    await Promise.allSettled([...this.#open.values()].map(({ answered }) => answered));
  }

  /** Gives up acts that the chart has not taken: for a cancel, for a close, or the act of one run. */
  giveUp(by: GivenUpBy): void {
    this.#step({ type: 'giveUp', by, standing: this.#chart.standing });
  }

  /** A cancel has not been delivered. */
  get hasCancel(): boolean {
    return hasCancel(this.#chart.standing, this.#acts);
  }

  /** A cancel, or a command that was withdrawn, has not been delivered. */
  get cancelling(): boolean {
    return isCancelling(this.#chart.standing, this.#acts);
  }

  /** The state by which the next act is judged: that of the chart, then the acts that the chart has not taken. */
  get standing(): Standing {
    return standingAfterActs(this.#chart.standing, this.#acts);
  }

  /** The run that starts next. */
  get nextRunId(): string | undefined {
    return nextRunOf(this.#chart.standing, this.#acts);
  }

  placeOf(runId: string): RunPlace {
    return placeOfRun(this.#chart, this.#acts, runId);
  }

  /** The number of commands of this type without an answer. */
  countOf(type: Command['type']): number {
    return this.#acts.filter(({ act }) => act.type === type).length;
  }

  /** The command is delivered now. */
  take({ actId = '' }: HostAct): void {
    this.#step({ type: 'deliver', id: actId });
  }

  /** The entries of the command are durable. */
  answer({ id, ...answer }: Answer & { id: string }): void {
    this.#step({ type: 'durable', id }, answer);
  }

  /** The command is not accepted, or its entries could not be stored. */
  refuse({ actId = '' }: HostAct, error: unknown): void {
    this.#step({ type: 'lost', id: actId }, error);
  }

  /** The chart broke, and answers nothing that it has taken. */
  refuseTaken(error: unknown): void {
    this.#step({ type: 'break' }, error);
  }

  /** Refuses each command without an answer for this reason, and later ones as closed. */
  close(why?: Error): void {
    this.closed = true;
    this.#step({ type: 'close' }, why);
  }

  /** `end`: the answer, or the error, that the event brings. */
  #step(event: ActEvent, end?: unknown): void {
    this.#take(event, end);
    // Acts are sent one by one, because a subscriber may act while one is delivered.
    while (this.#take({ type: 'send' }));
  }

  /** Returns whether there was something to do. */
  #take(event: ActEvent, end?: unknown): boolean {
    const { acts, tasks } = nextActs(this.#acts, event);
    this.#acts = acts;
    for (const task of tasks) this.#do(task, end);
    return tasks.length > 0;
  }

  #do(task: ActTask, end: unknown): void {
    const open = this.#open.get(task.id);
    if (!open) return;
    const { command } = open;
    switch (task.do) {
      case 'send':
        return this.#put(command, overtakes(command));
      case 'withdraw':
        command.withdrawn = true;
        return;
      case 'return':
        command.returned = true;
        this.#open.delete(task.id);
        return open.resolve({ outcome: 'returned' });
      case 'answer':
        this.#open.delete(task.id);
        return open.resolve(end as Answer);
      case 'refuse':
        this.#open.delete(task.id);
        open.reject(end);
        if (end instanceof NotStored) this.#report(end);
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
