/**
 * A simulated model: replies and failures of every kind that providers send. Invariant: a reply is drawn from the tape
 * when the model is called. Each request is checked against the rules of providers.
 */
import {
  type Model,
  ModelError,
  type ModelPart,
  type ModelRequest,
  type Prices,
  type StreamContext,
} from '../../../models/model.ts';
import { pairingFaults } from '../../pairingFaults.ts';
import { SimulatedReplies } from './simulatedReply.ts';
import { PRICES } from './simulatedUsage.ts';
import type { SimulatedWorld, Stream } from './simulatedWorld.ts';

/** A secret in the model's errors, which no log may contain. */
export const SECRET = 'sk-simulated-secret-0123456789';

const FAULTS = ['server', 'rate-limit', 'network', 'cut', 'malformed', 'talks-on', 'hang', 'deaf', 'auth'] as const;
type Fault = (typeof FAULTS)[number];
/** The tokens of the window that are reserved for a reply. */
export const REPLY_TOKENS = 100;

export class SimulatedModel implements Model {
  readonly id = 'simulated';
  readonly secrets = [SECRET];
  readonly maxOutputTokens = REPLY_TOKENS;
  readonly contextWindow?: number;
  readonly prices?: Prices;
  /** The number of requests so far, in all processes. */
  requests = 0;
  readonly #replies: SimulatedReplies;
  readonly #world: SimulatedWorld;

  constructor(world: SimulatedWorld) {
    this.#world = world;
    this.#replies = new SimulatedReplies(world);
    if (world.profile.window > 0) this.contextWindow = world.profile.window;
    if (world.profile.priced) this.prices = PRICES;
  }

  stream(request: ModelRequest, context: StreamContext): AsyncIterable<ModelPart> {
    const world = this.#world;
    this.requests += 1;
    const sumsUp = request.system.startsWith('You sum up');
    if (sumsUp) world.count('summary');
    else this.#receive(request);
    const fault = world.fault('model', world.profile.model) ? world.tape.pick(FAULTS) : undefined;
    if (fault) world.count(`model-${fault}`);
    const parts = sumsUp ? this.#replies.summary(this.requests) : this.#replies.next(request, this.requests);
    world.checks.called?.({ request, context, parts, sumsUp });
    return this.#speak(parts, fault, context.signal, sumsUp);
  }

  /** Checks the provider rules that a request must satisfy. */
  #receive({ messages, tools }: ModelRequest): void {
    for (const { name, parameters } of tools) this.#world.schemas.set(name, parameters);
    for (const fault of pairingFaults(messages)) this.#world.violate('I13', fault);
  }

  async *#speak(
    parts: readonly ModelPart[],
    fault: Fault | undefined,
    signal: AbortSignal,
    sumsUp: boolean,
  ): AsyncGenerator<ModelPart> {
    const world = this.#world;
    const stream: Stream = { signal, processId: world.processId, isOver: false, sumsUp };
    world.streams.push(stream);
    try {
      yield* this.#says(parts, fault, signal);
    } finally {
      stream.isOver = true;
      if (sumsUp && signal.aborted) world.reach('summaries', 'cut');
    }
  }

  async *#says(parts: readonly ModelPart[], fault: Fault | undefined, signal: AbortSignal): AsyncGenerator<ModelPart> {
    const world = this.#world;
    const breaksAt = fault ? world.tape.next(parts.length + 1) : parts.length;
    const slowly = world.tape.chance(0.2);
    await this.#wait(signal, fault);
    const sentParts = parts.slice(0, breaksAt);
    for (const part of sentParts) {
      if (slowly) await this.#wait(signal, fault);
      world.checks.streamed?.(part);
      // The reader stops after it.
      if (part.type === 'finish') world.checks.replied?.(sentParts);
      yield part;
    }
    switch (fault) {
      case undefined:
      case 'cut':
        return;
      case 'malformed':
        return void (yield { type: 'nonsense', text: 7 } as unknown as ModelPart);
      case 'talks-on':
        // A reader that continues after the finish would append this text.
        if (sentParts.at(-1)?.type === 'finish') yield { type: 'text-delta', text: 'words after the end' };
        return;
      case 'hang':
      case 'deaf':
        return void (await this.#never(signal, fault));
      case 'network':
        throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
      case 'rate-limit':
        throw new ModelError({ code: fault, status: 429, retryable: true, retryAfterMs: 50 });
      case 'server':
        throw new ModelError({ code: fault, status: 503, retryable: true });
      default:
        throw new ModelError({ code: fault, status: 401, retryable: false, message: `no key ${SECRET}` });
    }
  }

  /** Waits for the simulation loop or, unless the model ignores its signal, for an abort. */
  #wait(signal: AbortSignal, fault: Fault | undefined): Promise<void> {
    const settled = this.#world.wait('model');
    return fault === 'deaf' ? settled : Promise.race([settled, aborted(signal)]);
  }

  #never(signal: AbortSignal, fault: Fault): Promise<void> {
    return fault === 'deaf' ? new Promise(() => undefined) : aborted(signal);
  }
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
