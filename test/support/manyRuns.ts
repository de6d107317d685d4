/**
 * Many short runs and suspended conversations in one process, and the objects that remain after them. Invariant: this
 * class keeps no part of a conversation. Logs are deleted, and actors are referenced weakly.
 */
import { getEventListeners } from 'node:events';
import type { AnyActorRef } from 'xstate';
import { z } from 'zod';
import { type Agent, createAgent, defineTool, type Model, memoryStore } from '../../src/index.ts';

/** One round with a call to `name`, then text. */
const roundWith = (name: string): Model => ({
  id: 'rounds',
  async *stream({ messages }) {
    if (messages.at(-1)?.role === 'tool') {
      yield { type: 'text-delta', text: 'done' };
      return yield { type: 'finish', reason: 'stop' };
    }
    yield { type: 'tool-call', callId: 'c1', name, args: '{"m":"a"}' };
    yield { type: 'finish', reason: 'tool-calls' };
  },
});

export class ManyRuns {
  /** The caller's controller; every run receives its signal. */
  readonly caller = new AbortController();
  readonly #store = memoryStore();
  readonly #timers = new Set<object>();
  #actors = new Set<WeakRef<AnyActorRef>>();
  readonly #plain: Agent;
  readonly #asking: Agent;
  #ids = 0;

  constructor() {
    this.#plain = this.#agent('echo');
    this.#asking = this.#agent('ask');
  }

  /** One complete request in a conversation of its own, with subscribers, and read while it runs. */
  async finish(during: () => void = () => {}): Promise<void> {
    const conversation = await this.#plain.open(this.#id());
    const { live$, view$ } = conversation;
    const seen = [conversation.log$().subscribe(), live$.subscribe(), view$.subscribe()];
    const run = conversation.send('hi', { signal: this.caller.signal });
    for await (const item of run) if (item.type === 'tool-result') during();
    const { termination } = await run.result;
    if (termination !== 'NaturalEnd') throw new Error(`the run ended as ${termination}`);
    for (const subscription of seen) subscription.unsubscribe();
    await conversation.close();
    await this.#store.delete(conversation.id);
  }

  /** One request that is suspended, closed, opened again, and not continued. */
  async suspend(): Promise<void> {
    const conversation = await this.#asking.open(this.#id());
    const { termination } = await conversation.send('hi', { signal: this.caller.signal }).result;
    if (termination !== 'Suspended') throw new Error(`the run ended as ${termination}`);
    await conversation.close();
    const again = await this.#asking.open(conversation.id);
    if (again.pending.length !== 1) throw new Error('nothing waits');
    await again.close();
    await this.#store.delete(conversation.id);
  }

  get listeners(): number {
    return getEventListeners(this.caller.signal, 'abort').length;
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Actors that were not stopped. */
  get actors(): number {
    const living = [...this.#actors].filter((actor) => actor.deref());
    this.#actors = new Set(living);
    return living.filter((actor) => actor.deref()?.getSnapshot().status === 'active').length;
  }

  #id(): string {
    this.#ids += 1;
    return `c${this.#ids}`;
  }

  #agent(tool: 'echo' | 'ask'): Agent {
    const parameters = z.object({ m: z.string() });
    const execute = ({ m }: { m: string }): string => m;
    const setTimer = (ms: number, fire: () => void): (() => void) => {
      const timer = {};
      this.#timers.add(timer);
      const handle = setTimeout(() => {
        this.#timers.delete(timer);
        fire();
      }, ms);
      return () => {
        this.#timers.delete(timer);
        clearTimeout(handle);
      };
    };
    return createAgent({
      model: roundWith(tool),
      tools: [
        defineTool({ name: 'echo', description: 'Returns its text.', parameters, execute }),
        defineTool({ name: 'ask', description: 'Asks first.', parameters, needsApproval: true, execute }),
      ],
      store: this.#store,
      ports: { setTimer },
      inspect: (event) => {
        const { type, actorRef } = event as { type: string; actorRef: AnyActorRef };
        if (type === '@xstate.actor') this.#actors.add(new WeakRef(actorRef));
      },
    });
  }
}
