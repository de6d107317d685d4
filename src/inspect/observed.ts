/**
 * The conversations and apps that an inspector observes. Invariant: they may come and go at any time. The
 * conversation of a sub-agent is observed with its parent's. Each fact of a run is recorded once, however the run was
 * discovered.
 */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { Json, LogEntry } from '../../machines/vocabulary.ts';
import { Conversation, runtimeOf } from '../conversation/conversation.ts';
import { RunchartError } from '../errors.ts';
import type { Live } from '../live.ts';
import { ActorSystem, ChartActor } from '../runtime/interpreter/chartActor.ts';
import { ofOpened } from '../runtime/interpreter/inspection.ts';
import { isOfConversation } from '../runtime/interpreter/xstate.ts';
import type { OpenedChild } from '../runtime/subAgentPort.ts';
import { decideCall, sendMessage, settleCall } from '../transports/clientActs.ts';
import { Actors, ChartCatalog, inspectedActors, planObserver, recordRunningActors } from './actors.ts';
import { CONTEXT, excerpt } from './excerpt.ts';
import type { RecordLog } from './recordLog.ts';
import type { ActorState, Control, ConversationState } from './wire.ts';

interface ObservedConversation {
  readonly conversation: Conversation;
  readonly actors: Actors;
  readonly redact: <T>(value: T) => T;
  readonly parent: string | undefined;
  /** The number of attachments that were not released. */
  holders: number;
  stop(): void;
}

/** Records the events of an XState app. */
type AppRecorder = (event: InspectionEvent) => void;

/** Receives conversations when their observation begins and ends. */
interface ConversationListener {
  begun(conversation: Conversation): void;
  ended(conversation: Conversation): void;
}

interface Follower {
  take: ((entry: LogEntry) => void) | undefined;
}

/** The part of an app's actor that is used. */
interface AppActorRef {
  getSnapshot(): { context?: unknown; can?(event: { type: string }): boolean };
  send(event: { type: string }): void;
}

const asIs = (value: object): object => value;

/**
 * The number of closed conversations whose positions are remembered. A conversation that is observed again continues
 * after its last recorded entry.
 */
const POSITIONS_MAX = 5000;

export class Observed {
  readonly charts: ChartCatalog;
  readonly #records: RecordLog;
  readonly #open = new Map<Conversation, ObservedConversation>();
  /** By the actor system of the app. */
  readonly #apps = new WeakMap<object, AppRecorder>();
  /** Used only for requests of contexts. Weak references allow an ended app to be collected. */
  readonly #appActors = new Set<WeakRef<Actors>>();
  /**
   * For each conversation that is no longer observed: the seq of the next entry, and the start time of the log. The
   * latest come last.
   */
  readonly #positions = new Map<string, { next: number; began: number | undefined }>();
  /** A log cannot remove a listener. Therefore each log has one listener, whose target changes. */
  readonly #followers = new WeakMap<Conversation, Follower>();
  readonly #listeners = new Set<ConversationListener>();
  #actors = 0;
  #names = 0;
  #isClosed = false;

  constructor(records: RecordLog) {
    this.#records = records;
    this.charts = new ChartCatalog(records);
  }

  /** Pass it as `inspect` to `createAgent` or to XState's `createActor`. */
  readonly observe = ofOpened((event: unknown): void => {
    // Observation must never break an app, so an unreadable event is ignored.
    try {
      if (isObject(event) && !this.#isClosed) this.#observe(event);
    } catch {}
  });

  #observe(event: object): void {
    const inspected = event as InspectionEvent | { type: '@runchart.open'; conversation: Conversation };
    if (inspected.type === '@runchart.open') return void this.attach(inspected.conversation);
    if (!isWhole(inspected)) return;
    const actor = inspected.actorRef as AnyActorRef & { logic?: unknown };
    // A conversation's actors are recorded by its own observer.
    const { system, logic } = actor;
    if (isObject(logic) && isOfConversation(logic)) return;
    this.#app(system, actor)?.(inspected);
  }

  /** Observes a conversation until it is closed, or until each returned function was called. */
  attach(conversation: Conversation): () => void {
    if (this.#isClosed) return () => {};
    const existing = this.#open.get(conversation);
    const observed = existing ?? this.#begin(conversation);
    if (existing) existing.holders += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      observed.holders -= 1;
      if (observed.holders === 0) this.#end(observed);
    };
  }

  /** Returns the observed conversations. The listener receives each new one, and each one that is no longer observed. */
  conversations(listener: ConversationListener): { now: Conversation[]; stop(): void } {
    this.#listeners.add(listener);
    return { now: [...this.#open.keys()], stop: () => void this.#listeners.delete(listener) };
  }

  nextActorId = (): string => `a${this.#actors++}`;

  /** Returns a unique name for an app. */
  nextName(name: string): string {
    this.#names += 1;
    return `${name || 'app'}-${this.#names}`;
  }

  contextOf(actorId: string): Json {
    for (const { actors, redact } of this.#open.values()) {
      const actor = actors.find(actorId) as { getSnapshot(): { context?: unknown } } | undefined;
      if (actor) return excerpt(redact(actor.getSnapshot().context), CONTEXT);
    }
    const actor = this.#appActor(actorId);
    return actor ? excerpt(actor.getSnapshot().context, CONTEXT) : null;
  }

  /** Yields the states of all running actors. */
  *states(): Generator<ActorState> {
    for (const { actors } of this.#open.values()) yield* actors.states();
    for (const ref of this.#appActors) yield* ref.deref()?.states() ?? [];
  }

  #appActor(actorId: string): AppActorRef | undefined {
    for (const ref of this.#appActors) {
      const actor = ref.deref()?.find(actorId) as AppActorRef | undefined;
      if (actor) return actor;
      if (!ref.deref()) this.#appActors.delete(ref);
    }
    return undefined;
  }

  /** Only actors of apps accept events: a conversation must only do what its log contains. */
  #sendToApp({ actor: id, event }: Extract<Control, { type: 'event' }>): Json {
    const actor = this.#appActor(id);
    if (!actor) throw new RunchartError('not_found', 'expected a living actor of an XState app of this process');
    const takes = !event.type.startsWith('xstate.') && (actor.getSnapshot().can?.(event) ?? true);
    if (!takes)
      throw new RunchartError('configuration', `expected an event that the actor takes now, got ${event.type}`);
    actor.send(event);
    return { sent: true };
  }

  /**
   * `by`: the person who acts, if the host of the server names them. Rejects with the conversation's error, or with
   * RunchartError `not_found`.
   */
  async control(request: Control, by?: string): Promise<Json> {
    if (request.type === 'event') return this.#sendToApp(request);
    const { conversation: id } = request;
    const target = this.#openConversation(id);
    // A decision about a sub-agent's call resumes the top conversation.
    let conversation = target;
    for (let above = target.parent; above !== undefined; above = conversation.parent)
      conversation = this.#openConversation(above);
    const top = conversation.conversation;
    if (top !== target.conversation && (request.type === 'cancel' || request.type === 'send'))
      throw new RunchartError('configuration', `${id} is a sub-agent of ${top.id}: act there`);
    switch (request.type) {
      case 'decide':
        return decideCall(top, { by: 'inspector', ...request.decision }, by);
      case 'settle':
        return settleCall(top, { callId: request.callId, how: request.how });
      case 'resume':
        return { runId: top.resume().id };
      case 'cancel':
        await top.cancel();
        return { status: top.status };
      default: {
        const { content, kind } = request;
        const fields = { content, ...(kind && { kind }) };
        return { ...(await sendMessage(target.conversation, fields, by === undefined ? {} : { by }, () => {})) };
      }
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const observed of [...this.#open.values()]) this.#end(observed);
    this.#listeners.clear();
  }

  #openConversation(id: string): ObservedConversation {
    for (const observed of this.#open.values()) if (observed.conversation.id === id) return observed;
    throw new RunchartError('not_found', 'no conversation of that name is open here');
  }

  #begin(conversation: Conversation): ObservedConversation {
    const runtime = runtimeOf(conversation);
    const { id } = conversation;
    const [first] = runtime.log.entries;
    const parent = first?.type === 'conversation' ? first.parent : undefined;
    const above = parent && { conversation: parent.conversationId, callId: parent.callId };
    // Only `redact` is kept: a reference to the log would keep the conversation alive.
    const { redact } = runtime.log;
    const { charts, nextActorId: nextId } = this;
    const actors = new Actors({ records: this.#records, charts, conversation: id, nextId, redact });
    this.#records.add({ type: 'conversation', conversation: id, of: 'runchart', ...(above && { parent: above }) });
    const parts: (() => void)[] = [];
    const stop = (): void => {
      for (const part of parts.splice(0)) part();
    };
    const parentId = this.#isOpen(parent?.conversationId) ? parent?.conversationId : undefined;
    const observed: ObservedConversation = { conversation, actors, redact, parent: parentId, holders: 1, stop };
    this.#open.set(conversation, observed);
    const status = this.#statusOf(conversation);
    parts.push(this.#followActors(observed, status), this.#followLog(observed, status));
    const opened = ({ conversation: here }: OpenedChild) => void (here instanceof Conversation && this.attach(here));
    const children = runtime.subAgents?.observeOpened(opened);
    for (const child of children?.now ?? []) opened(child);
    if (children) parts.push(children.stop);
    for (const { begun } of this.#listeners) begun(conversation);
    const { root } = runtime.chart;
    if (!(root instanceof ChartActor) || root.status !== 'active') parts.push(this.#endWithLog(conversation));
    return observed;
  }

  #isOpen(id: string | undefined): boolean {
    return id !== undefined && [...this.#open.keys()].some((conversation) => conversation.id === id);
  }

  #end(observed: ObservedConversation): void {
    if (!this.#open.delete(observed.conversation)) return;
    observed.stop();
    for (const { ended } of this.#listeners) ended(observed.conversation);
    this.#records.add({ type: 'closed', conversation: observed.conversation.id });
  }

  #followActors({ conversation, actors }: ObservedConversation, moved: () => void): () => void {
    const { chart, log } = runtimeOf(conversation);
    const root: unknown = chart.root;
    if (root instanceof ChartActor) {
      const parts: (() => void)[] = [];
      const endObservation = (): void => {
        if (log.hasPendingAppend || root.status !== 'stopped') parts.push(this.#endWithLog(conversation));
        else this.#endOf(conversation);
      };
      const { observer, begun } = planObserver(actors, { moved, over: endObservation });
      parts.push(root.system.observe(observer));
      begun();
      return () => {
        for (const part of parts.splice(0)) part();
      };
    }
    const actor = root as AnyActorRef;
    recordRunningActors(actors, actor);
    const record = inspectedActors(actors);
    const system = actor.system as unknown as { inspect(observer: (event: InspectionEvent) => void): unknown };
    const inspecting = system.inspect((event) => {
      record(event);
      if (event.type === '@xstate.snapshot') moved();
    }) as { unsubscribe(): void };
    return () => inspecting.unsubscribe();
  }

  /**
   * Ends the observation with the log, if the chart does not report a stop: an XState chart, a chart that failed, or
   * one with pending appends.
   */
  #endWithLog(conversation: Conversation): () => void {
    const ending = conversation.log$(Number.POSITIVE_INFINITY).subscribe({ complete: () => this.#endOf(conversation) });
    return () => ending.unsubscribe();
  }

  #endOf(conversation: Conversation): void {
    const observed = this.#open.get(conversation);
    if (observed) this.#end(observed);
  }

  /** Listens to the log itself: a subscription of `log$` costs several times as much. */
  #followLog({ conversation }: ObservedConversation, status: () => void): () => void {
    const { id } = conversation;
    const { log } = runtimeOf(conversation);
    // A conversation that was closed and opened again continues at its position.
    const began = log.entries[0]?.at;
    const position = this.#positions.get(id);
    // Another log with the same id is recorded from its beginning.
    let next = position && position.began === began ? Math.min(position.next, log.entries.length) : 0;
    const recordEntry = (entry: LogEntry): void => {
      // If the observer starts during the notification of an append, it has already recorded this entry.
      if (entry.seq < next) return;
      next = entry.seq + 1;
      this.#records.entry(id, entry);
      if (entry.type.startsWith('run-')) status();
    };
    for (const entry of log.entries.slice(next)) recordEntry(entry);
    let follower = this.#followers.get(conversation);
    if (follower) follower.take = recordEntry;
    else {
      const newFollower: Follower = { take: recordEntry };
      follower = newFollower;
      this.#followers.set(conversation, newFollower);
      log.listen((entry) => newFollower.take?.(entry));
    }
    const following = follower;
    return () => {
      following.take = undefined;
      this.#positions.delete(id);
      this.#positions.set(id, { next, began: log.entries[0]?.at });
      const [oldest] = this.#positions.keys();
      if (this.#positions.size > POSITIONS_MAX && oldest !== undefined) this.#positions.delete(oldest);
    };
  }

  /** Records the status when it has changed, after the current step has settled. */
  #statusOf(conversation: Conversation): () => void {
    let last: ConversationState | undefined;
    let isDue = false;
    const recordStatus = (): void => {
      isDue = false;
      const { status } = conversation;
      if (status === last || !this.#open.has(conversation)) return;
      last = status;
      this.#records.add({ type: 'status', conversation: conversation.id, status });
    };
    const scheduleStatus = (): void => {
      if (isDue) return;
      isDue = true;
      queueMicrotask(recordStatus);
    };
    scheduleStatus();
    return scheduleStatus;
  }

  #app(system: object, actor: AnyActorRef): AppRecorder | undefined {
    const existing = this.#apps.get(system);
    if (existing) return existing;
    let root = actor;
    while (root._parent) root = root._parent;
    const { logic, id } = root as AnyActorRef & { logic?: { id?: unknown } };
    // A conversation reports its own actors, so actors of a plan are not recorded as an app's.
    if (system instanceof ActorSystem) return undefined;
    const conversation = this.nextName(typeof logic?.id === 'string' ? logic.id : id);
    const { charts, nextActorId: nextId } = this;
    const actors = new Actors({ records: this.#records, charts, conversation, nextId, redact: asIs });
    this.#records.add({ type: 'conversation', conversation, of: 'xstate', takesEvents: true });
    const recordEvent = inspectedActors(actors);
    const ref = new WeakRef(actors);
    const record = (event: InspectionEvent): void => {
      recordEvent(event);
      // A server may start an app for each request.
      if (actors.isEmpty && this.#appActors.delete(ref)) this.#records.add({ type: 'closed', conversation });
    };
    this.#apps.set(system, record);
    this.#appActors.add(ref);
    return record;
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isNamed = (event: unknown): boolean => isObject(event) && typeof (event as { type?: unknown }).type === 'string';

/** Returns true if an inspection event has all fields that are read. */
function isWhole(inspected: InspectionEvent): boolean {
  const { type, actorRef, event, snapshot } = inspected as {
    [field in 'type' | 'actorRef' | 'event' | 'snapshot']?: unknown;
  };
  const { id, system } = Object(actorRef) as { id?: unknown; system?: unknown };
  if (typeof id !== 'string' || !isObject(system)) return false;
  if (type === '@xstate.actor') return true;
  if (type === '@xstate.event') return isNamed(event);
  return (type === '@xstate.microstep' || type === '@xstate.snapshot') && isNamed(event) && isObject(snapshot);
}

/** Passes on the signals of the conversation itself. The signals of sub-agents come from their own conversations. */
export function ownSignals(conversation: Conversation, show: (signal: Live) => void, over: () => void): () => void {
  const { inFlight } = conversation;
  // An earlier observer may have shown a part of the reply, so it is shown again as a whole.
  if (inFlight) show({ type: 'reset', runId: inFlight.runId });
  const following = conversation.live$.subscribe({
    next: (signal) => {
      if (signal.path === undefined && signal.type !== 'status') show(signal);
    },
    complete: over,
  });
  return () => following.unsubscribe();
}
