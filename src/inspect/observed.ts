/**
 * The conversations and apps that an inspector observes. Rule: one may come and go at any time; a sub-agent's conversation
 * follows its parent's; what is told of a run is told once, whichever way it was found.
 */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import type { Json, LogEntry } from '../../machines/vocabulary.ts';
import { type Conversation, runtimeOf } from '../conversation/conversation.ts';
import { RunchartError } from '../errors.ts';
import type { Live } from '../live.ts';
import { ActorSystem, ChartActor } from '../runtime/interpreter/chartActor.ts';
import { ofOpened } from '../runtime/interpreter/inspection.ts';
import { isOfConversation } from '../runtime/interpreter/xstate.ts';
import type { OpenedChild } from '../runtime/subAgentPort.ts';
import { decideCall, sendMessage, settleCall } from '../transports/acts.ts';
import { Actors, ChartCatalog, inspectedActors, livingActors, planObserver } from './actors.ts';
import { CONTEXT, excerpt } from './excerpt.ts';
import type { RecordLog } from './recordLog.ts';
import type { Control, ConversationState } from './wire.ts';

interface ObservedConversation {
  readonly conversation: Conversation;
  readonly actors: Actors;
  readonly redact: <T>(value: T) => T;
  readonly parent: string | undefined;
  /** Users of it that have not let go. */
  holders: number;
  stop(): void;
}

/** An app of XState's, by its actor system. */
interface ObservedApp {
  readonly actors: Actors;
  tell(event: InspectionEvent): void;
}

interface Follower {
  take: ((entry: LogEntry) => void) | undefined;
}

/** As much as is used of an actor of an app. */
interface AppActorRef {
  getSnapshot(): { context?: unknown; can?(event: { type: string }): boolean };
  send(event: { type: string }): void;
}

const asIs = (value: object): object => value;

/** Conversations that go on where they were when they are observed again. */
const TOLD_MAX = 5000;

export class Observed {
  readonly charts: ChartCatalog;
  readonly #records: RecordLog;
  readonly #open = new Map<Conversation, ObservedConversation>();
  readonly #apps = new WeakMap<object, ObservedApp>();
  /** For contexts that are asked for, and only those: an app that is gone is to be forgotten. */
  readonly #appActors = new Set<WeakRef<Actors>>();
  /** Of conversations that are no longer observed, the latest at the end: the seq of the next entry. */
  readonly #told = new Map<string, number>();
  /** A log has no way to let a listener go: each has one here, which is told what to do. */
  readonly #followers = new WeakMap<Conversation, Follower>();
  readonly #listeners = new Set<(conversation: Conversation) => void>();
  #actors = 0;
  #names = 0;

  constructor(records: RecordLog) {
    this.#records = records;
    this.charts = new ChartCatalog(records);
  }

  /** As `inspect` of `createAgent`, and of `createActor` of XState. */
  readonly observe = ofOpened((event: unknown): void => {
    const told = event as InspectionEvent | { type: '@runchart.open'; conversation: Conversation };
    if (told.type === '@runchart.open') {
      this.attach(told.conversation);
      return;
    }
    if (typeof told?.type !== 'string' || !told.type.startsWith('@xstate.')) return;
    const actor = told.actorRef as AnyActorRef & { logic?: unknown };
    // Of a conversation its own observer tells.
    const { system, logic } = actor;
    if (isObject(logic) && isOfConversation(logic)) return;
    if (isObject(system)) this.#app(system, actor)?.tell(told);
  });

  /** Until its conversation is closed, or what it answers is called as often as this was. */
  attach(conversation: Conversation): () => void {
    const known = this.#open.get(conversation);
    const observed = known ?? this.#begin(conversation);
    if (known) known.holders += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      observed.holders -= 1;
      if (observed.holders === 0) this.#end(observed);
    };
  }

  /** Those that are open; who listens is told of each that comes. */
  conversations(onOpened: (conversation: Conversation) => void): { now: Conversation[]; stop(): void } {
    this.#listeners.add(onOpened);
    return { now: [...this.#open.keys()], stop: () => void this.#listeners.delete(onOpened) };
  }

  nextActorId = (): string => `a${this.#actors++}`;

  /** A name for an app that has none of its own. */
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

  #appActor(actorId: string): AppActorRef | undefined {
    for (const ref of this.#appActors) {
      const actor = ref.deref()?.find(actorId) as AppActorRef | undefined;
      if (actor) return actor;
      if (!ref.deref()) this.#appActors.delete(ref);
    }
    return undefined;
  }

  /** What a conversation does comes from its log: actors of apps alone are sent events. */
  #sendToApp({ actor: id, event }: Extract<Control, { type: 'event' }>): Json {
    const actor = this.#appActor(id);
    if (!actor) throw new RunchartError('not_found', 'expected a living actor of an XState app of this process');
    const takes = !event.type.startsWith('xstate.') && (actor.getSnapshot().can?.(event) ?? true);
    if (!takes)
      throw new RunchartError('configuration', `expected an event that the actor takes now, got ${event.type}`);
    actor.send(event);
    return { sent: true };
  }

  /** Rejects with what the conversation says, and with RunchartError, code `not_found`. */
  async control(request: Control): Promise<Json> {
    if (request.type === 'event') return this.#sendToApp(request);
    const { conversation: id } = request;
    const asked = this.#find(id);
    // A decision on a sub-agent's call continues the conversation above it.
    let conversation = asked;
    for (let above = asked.parent; above !== undefined; above = conversation.parent) conversation = this.#find(above);
    const top = conversation.conversation;
    if (top !== asked.conversation && (request.type === 'cancel' || request.type === 'send'))
      throw new RunchartError('configuration', `${id} is a sub-agent of ${top.id}: act there`);
    switch (request.type) {
      case 'decide':
        return decideCall(top, { by: 'inspector', ...request.decision });
      case 'settle':
        return settleCall(top, { callId: request.callId, how: request.how });
      case 'resume':
        return { runId: top.resume().id };
      case 'cancel':
        await top.cancel();
        return { status: top.status };
      default: {
        const { content, kind } = request;
        return { ...(await sendMessage(asked.conversation, { content, ...(kind && { kind }) }, () => {})) };
      }
    }
  }

  close(): void {
    for (const observed of [...this.#open.values()]) this.#end(observed);
    this.#listeners.clear();
  }

  #find(id: string): ObservedConversation {
    for (const observed of this.#open.values()) if (observed.conversation.id === id) return observed;
    throw new RunchartError('not_found', 'no conversation of that name is open here');
  }

  #begin(conversation: Conversation): ObservedConversation {
    const runtime = runtimeOf(conversation);
    const { id } = conversation;
    const [first] = runtime.log.entries;
    const parent = first?.type === 'conversation' ? first.parent : undefined;
    const above = parent && { conversation: parent.conversationId, callId: parent.callId };
    // Not by way of the log: who keeps an event is not to keep its conversation.
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
    const opened = (child: OpenedChild): void => void this.attach(child.conversation as Conversation);
    const children = runtime.subAgents?.observeOpened(opened);
    for (const child of children?.now ?? []) opened(child);
    if (children) parts.push(children.stop);
    for (const listener of this.#listeners) listener(conversation);
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
    this.#records.add({ type: 'closed', conversation: observed.conversation.id });
  }

  #followActors({ conversation, actors }: ObservedConversation, moved: () => void): () => void {
    const { chart, log } = runtimeOf(conversation);
    const root: unknown = chart.root;
    if (root instanceof ChartActor) {
      const over = (): void => {
        if (log.hasPendingAppend || root.status !== 'stopped') this.#endWithLog(conversation);
        else this.#endOf(conversation);
      };
      const { observer, begun } = planObserver(actors, { moved, over });
      const stop = root.system.observe(observer);
      begun();
      return stop;
    }
    const actor = root as AnyActorRef;
    livingActors(actors, actor);
    const tell = inspectedActors(actors);
    const system = actor.system as unknown as { inspect(observer: (event: InspectionEvent) => void): unknown };
    const inspecting = system.inspect((event) => {
      tell(event);
      if (event.type === '@xstate.snapshot') moved();
    }) as { unsubscribe(): void };
    return () => inspecting.unsubscribe();
  }

  /** For where no stop of the chart tells it: a chart of XState's, one that broke, and one whose last entries are under way. */
  #endWithLog(conversation: Conversation): () => void {
    const ending = conversation.log$(Number.POSITIVE_INFINITY).subscribe({ complete: () => this.#endOf(conversation) });
    return () => ending.unsubscribe();
  }

  #endOf(conversation: Conversation): void {
    const observed = this.#open.get(conversation);
    if (observed) this.#end(observed);
  }

  /** By a listener of the log itself: a subscription of `log$` costs several times as much. */
  #followLog({ conversation }: ObservedConversation, status: () => void): () => void {
    const { id } = conversation;
    const { log } = runtimeOf(conversation);
    // One that was closed and opened again goes on where it was.
    let next = Math.min(this.#told.get(id) ?? 0, log.entries.length);
    const take = (entry: LogEntry): void => {
      // Who comes while an append is told has taken what it was told already.
      if (entry.seq < next) return;
      next = entry.seq + 1;
      this.#records.entry(id, entry);
      if (entry.type.startsWith('run-')) status();
    };
    for (const entry of log.entries.slice(next)) take(entry);
    let follower = this.#followers.get(conversation);
    if (follower) follower.take = take;
    else {
      const made: Follower = { take };
      follower = made;
      this.#followers.set(conversation, made);
      log.listen((entry) => made.take?.(entry));
    }
    const following = follower;
    return () => {
      following.take = undefined;
      this.#told.delete(id);
      this.#told.set(id, next);
      const [oldest] = this.#told.keys();
      if (this.#told.size > TOLD_MAX && oldest !== undefined) this.#told.delete(oldest);
    };
  }

  /** Tells the status where it is another than before, once what is under way has settled. */
  #statusOf(conversation: Conversation): () => void {
    let last: ConversationState | undefined;
    let isDue = false;
    const look = (): void => {
      isDue = false;
      const { status } = conversation;
      if (status === last || !this.#open.has(conversation)) return;
      last = status;
      this.#records.add({ type: 'status', conversation: conversation.id, status });
    };
    const due = (): void => {
      if (isDue) return;
      isDue = true;
      queueMicrotask(look);
    };
    due();
    return due;
  }

  #app(system: object, actor: AnyActorRef): ObservedApp | undefined {
    const known = this.#apps.get(system);
    if (known) return known;
    let root = actor;
    while (root._parent) root = root._parent;
    const { logic, id } = root as AnyActorRef & { logic?: { id?: unknown } };
    // A plan's own actors: their conversation says itself that it was opened.
    if (system instanceof ActorSystem) return undefined;
    const conversation = this.nextName(typeof logic?.id === 'string' ? logic.id : id);
    const { charts, nextActorId: nextId } = this;
    const actors = new Actors({ records: this.#records, charts, conversation, nextId, redact: asIs });
    this.#records.add({ type: 'conversation', conversation, of: 'xstate', takesEvents: true });
    const app: ObservedApp = { actors, tell: inspectedActors(actors) };
    this.#apps.set(system, app);
    this.#appActors.add(new WeakRef(actors));
    return app;
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Signals of the conversation itself; those of its sub-agents come by theirs. */
export function ownSignals(conversation: Conversation, show: (signal: Live) => void, over: () => void): () => void {
  const { inFlight } = conversation;
  // Who watched before has some of it, and is shown all of it now.
  if (inFlight) show({ type: 'reset', runId: inFlight.runId });
  const following = conversation.live$.subscribe({
    next: (signal) => {
      if (signal.path === undefined && signal.type !== 'status') show(signal);
    },
    complete: over,
  });
  return () => following.unsubscribe();
}
