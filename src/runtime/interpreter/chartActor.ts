/**
 * A living chart: one actor of the lean interpreter, run by its plan. Invariant: an event runs to completion before the next
 * begins. Acts on the world happen at once; acts on other actors happen when the new state is reached. Order and outcome are
 * those of XState's own interpreter, which is the reference.
 */
import type { EffectRequest, NewEntry } from '../../../machines/internal.ts';
import type { Message, SpawnRequest } from '../../../machines/verbs.ts';
import type { InterpreterOptions, RootChart, World } from './interpreter.ts';
import type { Act, ChartEvent, Context, Plan, PlanState, StateValue, Step, Transition } from './plan.ts';
import { planOf } from './plan.ts';

/** Shared by the actors of one conversation. */
export class ActorSystem {
  readonly world: World;
  /** Receives errors that no chart handles. */
  readonly onError: (error: unknown) => void;
  /** Replaced whenever an observer joins or leaves, because an observer may leave during its call. */
  observers: readonly Observer[] = [];
  #actors = 0;

  constructor(world: World, onError: (error: unknown) => void) {
    this.world = world;
    this.onError = onError;
  }

  nextSessionId(): string {
    this.#actors += 1;
    return `x:${this.#actors - 1}`;
  }

  /** The root of the actors. */
  root: ChartActor | undefined;

  /** Observes everything from now on, after a report of each existing actor, parents before children. */
  observe(observer: Observer): () => void {
    if (this.root) for (const actor of livingUnder(this.root)) observer.actor(actor);
    this.observers = [...this.observers, observer];
    return () => {
      this.observers = this.observers.filter((each) => each !== observer);
    };
  }
}

function* livingUnder(actor: ChartActor): Generator<ChartActor> {
  yield actor;
  for (const child of actor.children.values()) yield* livingUnder(child);
}

export interface ChartSnapshot {
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  readonly value: StateValue;
  readonly tags: ReadonlySet<string>;
  readonly context: unknown;
  readonly children: Readonly<Record<string, ChartActor>>;
  readonly output: unknown;
  readonly error: unknown;
  readonly machine: Plan['machine'];
}

const STOP: ChartEvent = { type: 'xstate.stop' };

/** Actors without children share this map. An actor gets a map of its own with its first child. */
const CHILDLESS: Map<string, ChartActor> = new Map();

export class ChartActor {
  readonly id: string;
  readonly sessionId: string;
  readonly system: ActorSystem;
  readonly plan: Plan;
  readonly parent: ChartActor | undefined;
  children = CHILDLESS;
  status: ChartSnapshot['status'] = 'active';
  context: Context;
  output: unknown = undefined;
  error: unknown = undefined;
  #leaf: PlanState;
  #phase: 'created' | 'running' | 'stopped' = 'created';
  /** Acts that wait until their state is reached. */
  #deferred: (() => void)[] = [];
  #mailbox: ChartEvent[] = [];
  #accepts = false;
  #processing = false;
  #snapshot: ChartSnapshot | undefined;
  readonly #initEvent: ChartEvent;

  /** `origin`: an input, or the actor at rest that this one copies. */
  constructor(plan: Plan, system: ActorSystem, id: string | undefined, origin: unknown, parent?: ChartActor) {
    this.plan = plan;
    this.system = system;
    this.parent = parent;
    this.sessionId = system.nextSessionId();
    this.id = id ?? this.sessionId;
    this.#leaf = plan.initial.leaf;
    const from = origin instanceof ChartActor ? origin : undefined;
    // A copy is started already and shares nothing with its original.
    this.#initEvent = { type: 'xstate.init', input: from ? undefined : origin } as ChartEvent;
    this.context = {};
    if (!parent) system.root = this;
    for (const observer of system.observers) observer.actor(this);
    if (from) {
      this.#copy(from);
      return;
    }
    try {
      this.context = plan.contextOf(origin);
      this.#take(plan.initial, this.#initEvent);
      this.#settle(this.#initEvent);
    } catch (error) {
      this.status = 'error';
      this.error = error;
    }
  }

  /** A copy with its children in another system. Contexts are values, so both may continue on their own. */
  fork(system: ActorSystem, parent?: ChartActor): ChartActor {
    return new ChartActor(this.plan, system, this.id, this, parent);
  }

  #copy(from: ChartActor): void {
    [this.#leaf, this.#phase, this.#accepts] = [from.#leaf, from.#phase, from.#accepts];
    [this.status, this.context] = [from.status, from.context];
    [this.output, this.error] = [from.output, from.error];
    if (from.children.size > 0)
      this.children = new Map([...from.children].map(([id, child]) => [id, child.fork(this.system, this)]));
  }

  get value(): StateValue {
    return this.#leaf.value;
  }

  getSnapshot(): ChartSnapshot {
    this.#snapshot ??= {
      status: this.status,
      value: this.value,
      tags: this.#leaf.tags,
      context: this.context,
      children: Object.fromEntries(this.children),
      output: this.output,
      error: this.error,
      machine: this.plan.machine,
    };
    return this.#snapshot;
  }

  start(): void {
    if (this.#phase === 'running') return;
    this.#phase = 'running';
    this.#tellEvent(this.#initEvent, this.parent);
    if (this.status === 'error') return this.#fail(this.error);
    if (this.status === 'active') {
      for (const child of [...this.children.values()]) if (child.status === 'active') child.start();
    }
    this.#settled(this.#initEvent);
    // The chart may have ended with that.
    if (this.#phase !== 'running') return;
    this.#accepts = true;
    this.#flush();
  }

  send(event: ChartEvent, sender?: ChartActor): void {
    this.#tellEvent(event, sender);
    if (this.#phase === 'stopped') return;
    this.#enqueue(event);
  }

  stop(): void {
    if (this.#phase === 'stopped') return;
    this.#mailbox = [];
    if (this.#phase === 'created') {
      this.#phase = 'stopped';
      return;
    }
    this.#enqueue(STOP);
  }

  #enqueue(event: ChartEvent): void {
    this.#mailbox.push(event);
    if (this.#accepts) this.#flush();
  }

  #flush(): void {
    if (this.#processing) return;
    this.#processing = true;
    for (let event = this.#mailbox.shift(); event; event = this.#mailbox.shift()) this.#process(event);
    this.#processing = false;
  }

  #process(event: ChartEvent): void {
    try {
      this.#transition(event);
    } catch (error) {
      this.status = 'error';
      this.error = error;
      this.#snapshot = undefined;
      return this.#fail(error);
    }
    this.#settled(event);
    if (event === STOP) this.#close();
  }

  /** One event, and the eventless transitions after it. */
  #transition(event: ChartEvent): void {
    this.#snapshot = undefined;
    if (event === STOP) {
      this.#stopChildren();
      this.children.clear();
      this.status = 'stopped';
      return;
    }
    const transition = this.#choose(this.#leaf.transitionsFor(event.type), event);
    if (transition) this.#follow(transition, event);
    else this.#tellTransition(event, undefined);
    if (transition) return this.#settle(event);
    if (event.type.startsWith('xstate.error.actor')) {
      this.#stopChildren();
      this.children.clear();
      this.status = 'error';
      this.error = (event as { error?: unknown }).error;
      return;
    }
    this.#settle(event);
  }

  #settle(event: ChartEvent): void {
    while (this.status === 'active') {
      const transition = this.#choose(this.#leaf.eventless, event);
      if (!transition) break;
      this.#follow(transition, event);
    }
    if (this.status !== 'active') this.#stopChildren();
  }

  #choose(transitions: readonly Transition[], event: ChartEvent): Transition | undefined {
    const { context } = this;
    for (const transition of transitions) {
      const { guard } = transition;
      if (!guard || guard({ context, event })) return transition;
    }
    return undefined;
  }

  #follow(transition: Transition, event: ChartEvent): void {
    this.#take(transition.stepFrom(this.#leaf), event);
    this.#tellTransition(event, transition);
  }

  #take({ acts, leaf }: Step, event: ChartEvent): void {
    for (const act of acts) this.#act(act, event);
    this.#leaf = leaf;
    this.#snapshot = undefined;
    if (!leaf.isFinal) return;
    this.status = 'done';
    this.output = this.plan.outputOf(leaf, this.context, event);
    for (const act of leaf.exit) this.#act(act, event);
    for (const act of this.plan.root.exit) this.#act(act, event);
  }

  #act({ verb, params }: Act, event: ChartEvent): void {
    const resolved: unknown = typeof params === 'function' ? params({ context: this.context, event }) : params;
    switch (verb) {
      case 'update':
        this.context = { ...this.context, ...(resolved as object) };
        return;
      case 'ask':
      case 'log':
      case 'drop':
        if (this.#phase === 'running') this.#touch(verb, resolved);
        else this.#deferred.push(() => this.#touch(verb, resolved));
        return;
      case 'spawn':
        for (const request of resolved as readonly SpawnRequest[]) this.#spawn(request);
        return;
      case 'stop':
        return this.#stopChild(resolved as string);
      case 'tell':
        if (resolved) this.#tell(resolved as Message, event);
    }
  }

  /** The effect of an act on the world. */
  #touch(verb: 'ask' | 'log' | 'drop', params: unknown): void {
    const { world } = this.system;
    if (verb === 'drop') world.drop(params as string);
    else if (verb === 'log' && (params as unknown[]).length > 0) world.log(params as NewEntry[]);
    else if (verb === 'ask' && params) world.ask(this, params as EffectRequest);
  }

  /** Runs at once if the actor runs, otherwise when it starts. */
  #now(run: () => void): void {
    if (this.#phase === 'running') run();
    else this.#deferred.push(run);
  }

  #spawn({ src, id, input }: SpawnRequest): void {
    const child = new ChartActor(this.plan.childPlan(src), this.system, id, input, this);
    if (this.children === CHILDLESS) this.children = new Map();
    this.children.set(id, child);
    this.#now(() => this.#deferred.push(() => child.#phase === 'stopped' || child.start()));
  }

  #stopChild(id: string): void {
    const child = this.children.get(id);
    if (!child) return;
    this.children.delete(id);
    this.#endChild(child);
  }

  /** A child that never started is stopped at once, so it does not start. Another child first receives its events. */
  #endChild(child: ChartActor): void {
    this.#now(() => {
      if (child.#phase !== 'running') child.stop();
      else this.#deferred.push(() => child.stop());
    });
  }

  /** Children of a finished chart stay listed. */
  #stopChildren(): void {
    for (const child of this.children.values()) this.#endChild(child);
  }

  /** A chart without a parent sends to itself, but never the event that it is handling. */
  #tell({ to, event }: Message, taken: ChartEvent): void {
    if (to === 'parent' && !this.parent && event.type === taken.type) return;
    const receiver = to === 'parent' ? (this.parent ?? this) : this.children.get(to);
    if (!receiver) throw new Error(`${this.plan.id} tells ${to} of ${event.type}, which is no child of it`);
    this.#now(() => this.#deferred.push(() => receiver.send(event, this)));
  }

  /** The state is reached: carries out waiting acts, then notifies observers and callers that wait for the end. */
  #settled(event: ChartEvent): void {
    for (let run = this.#deferred.shift(); run; run = this.#deferred.shift()) {
      try {
        run();
      } catch (error) {
        this.#deferred = [];
        this.status = 'error';
        this.error = error;
      }
    }
    if (this.status === 'done') {
      this.#close();
      const { id, output } = this;
      this.parent?.send({ type: `xstate.done.actor.${id}`, output, actorId: id } as ChartEvent, this);
    } else if (this.status === 'error') this.#fail(this.error);
    for (const observer of this.system.observers) observer.settled(this, event);
  }

  #fail(error: unknown): void {
    this.#close();
    const { id, parent } = this;
    if (parent) parent.send({ type: `xstate.error.actor.${id}`, error, actorId: id } as ChartEvent, this);
    else this.system.onError(error);
  }

  #close(): void {
    if (this.#phase !== 'running') return;
    this.#mailbox = [];
    this.#accepts = false;
    this.#phase = 'stopped';
    for (const observer of this.system.observers) observer.stopped(this);
  }

  #tellTransition(event: ChartEvent, transition: Transition | undefined): void {
    for (const observer of this.system.observers) observer.transition(this, event, transition);
  }

  #tellEvent(event: ChartEvent, sender: ChartActor | undefined): void {
    for (const observer of this.system.observers) observer.event(this, event, sender);
  }
}

/** An observer. It is called during a step, and no object is made for it. */
export interface Observer {
  /** Called once for each actor: when it was made, or when the observer joined. */
  actor(actor: ChartActor): void;
  event(actor: ChartActor, event: ChartEvent, sender: ChartActor | undefined): void;
  /** One microstep; the actor has its new state and context. Without a transition, nothing took the event. */
  transition(actor: ChartActor, event: ChartEvent, transition: Transition | undefined): void;
  settled(actor: ChartActor, event: ChartEvent): void;
  stopped(actor: ChartActor): void;
}

/** Runs the charts by plans compiled from their configuration. */
export const compiled = ({ machine, input, world, onError }: InterpreterOptions, observer?: Observer): RootChart => {
  const system = new ActorSystem(world, onError);
  if (observer) system.observe(observer);
  return new ChartActor(planOf(machine), system, undefined, input);
};
