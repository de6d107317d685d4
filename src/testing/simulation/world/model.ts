/**
 * A simulated model: replies and failures of every kind that providers send. Rule: a reply is drawn from the tape when the
 * model is called; each request is checked by what providers accept.
 */
import {
  type Model,
  ModelError,
  type ModelPart,
  type ModelRequest,
  type Prices,
  type StreamContext,
  WRITTEN,
} from '../../../models/model.ts';
import { RequestHistory, type Sent, summariesIn } from '../requestHistory.ts';
import type { Stream } from '../watch/facts.ts';
import { pairingFaults } from '../watch/pairing.ts';
import { PRICES } from '../watch/spending.ts';
import { askedIn } from './finalAnswer.ts';
import { SECRET } from './secret.ts';
import { SimulatedReplies, SUMMARY } from './simulatedReply.ts';
import type { World } from './world.ts';

const FAULTS = ['server', 'rate-limit', 'network', 'cut', 'malformed', 'talks-on', 'hang', 'deaf', 'auth'] as const;
type Fault = (typeof FAULTS)[number];
/** Tokens of the window that are reserved for a reply. */
const REPLY_TOKENS = 100;
export class SimulatedModel implements Model {
  readonly id = 'simulated';
  readonly secrets = [SECRET];
  readonly maxOutputTokens = REPLY_TOKENS;
  readonly contextWindow?: number;
  readonly prices?: Prices;
  /** Requests so far, over all processes. */
  requests = 0;
  readonly #replies: SimulatedReplies;
  readonly #past = new RequestHistory();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    this.#replies = new SimulatedReplies(world);
    if (world.profile.window > 0) this.contextWindow = world.profile.window;
    if (world.profile.priced) this.prices = PRICES;
  }

  /** The same model under another name, for an agent to fall back to. */
  fallback(): Model {
    const { secrets, prices } = this;
    const stream = (request: ModelRequest, call: StreamContext) => this.stream(request, call);
    return { id: 'simulated-fallback', secrets, stream, ...(prices && { prices }) };
  }

  stream(request: ModelRequest, call: StreamContext): AsyncIterable<ModelPart> {
    const world = this.#world;
    this.requests += 1;
    const sumsUp = request.system.startsWith('You sum up');
    if (sumsUp) world.count('summary');
    const sent = sumsUp ? undefined : this.#check(request, call);
    const fault = world.fault('model', world.profile.model) ? world.tape.pick(FAULTS) : undefined;
    if (fault) world.count(`model-${fault}`);
    const parts = sumsUp ? this.#replies.summary(this.requests) : this.#replies.next(request, this.requests);
    if (sent) this.#past.answered(sent, textIn(parts));
    return this.#speak(parts, fault, call.signal, sumsUp);
  }

  #check({ messages, system, tools }: ModelRequest, { signal, attempt, [WRITTEN]: conversation }: StreamContext): Sent {
    const world = this.#world;
    for (const { name, parameters } of tools) world.schemas.set(name, parameters);
    for (const part of messages.flatMap(({ content }) => content)) {
      const shown = part.type !== 'image' || !part.data.startsWith('blob:');
      world.check(shown, 'IMAGE', () => 'a model is shown the name of an image in place of its bytes');
    }
    const { running } = world.facts;
    for (const fault of pairingFaults(messages)) world.violate('I13', fault);
    const [summary] = summariesIn(messages);
    const durable = summary === undefined || world.facts.summaries.has(summary);
    world.check(durable, 'SUMMARY', () => `the model is shown a summary that no log has: ${summary}`);
    const characters = messages
      .flatMap(({ content }) => content)
      .reduce((sum, part) => sum + ('text' in part ? part.text.length : 0), system.length);
    const fits = !this.contextWindow || characters / 4 + REPLY_TOKENS <= this.contextWindow;
    world.check(fits, 'I4', () => `${characters} characters are sent into a window of ${this.contextWindow}`);
    const [only, ...others] = summary?.startsWith(SUMMARY) ? [world.facts.summaries.get(summary)] : running.keys();
    const sent: Sent = { messages, process: world.processId, conversation, id: others.length === 0 ? only : undefined };
    const rewritten = this.#past.learn(sent, world.facts.forks.size > 0);
    if (rewritten !== undefined) world.violate('I14', rewritten);
    const isTold = world.answers?.askers.includes('agent') && !world.profile.spawns;
    world.check(
      !isTold || askedIn(system) !== undefined,
      'OUTPUT',
      () => 'a model is not told what its answer has to look like',
    );
    world.check(!system.includes('tool said'), 'I15', () => 'a tool speaks in the system text');
    world.check(running.size > 0, 'I2', () => 'a model is called while no run is under way');
    world.check(!signal.aborted, 'I28', () => 'a model is called for a run that was cancelled');
    const models = world.profile.fallback ? 2 : 1;
    const most = models * (world.policies?.modelRetry?.attempts ?? attempt);
    world.check(attempt <= most, 'I4', () => `attempt ${attempt} where ${most} are allowed`);
    const [due = 0] = running.values();
    const early = attempt > 1 && running.size === 1 && world.elapsedMs < due;
    world.check(!early, 'I4', () => `attempt ${attempt} begins ${due - world.elapsedMs} ms early`);
    return sent;
  }

  async *#speak(
    parts: readonly ModelPart[],
    fault: Fault | undefined,
    signal: AbortSignal,
    sumsUp: boolean,
  ): AsyncGenerator<ModelPart> {
    const world = this.#world;
    const stream: Stream = { signal, processId: world.processId, isOver: false, sumsUp };
    world.facts.streams.push(stream);
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
    const said = parts.slice(0, breaksAt);
    for (const part of said) {
      if (slowly) await this.#wait(signal, fault);
      if (part.type === 'text-delta') world.facts.begun.add(part.text);
      // Nothing is read after it, so a reply counts here at the latest.
      if (part.type === 'finish') this.#countAsSaid(said);
      yield part;
    }
    switch (fault) {
      case undefined:
      case 'cut':
        return;
      case 'malformed':
        return void (yield { type: 'nonsense', text: 7 } as unknown as ModelPart);
      case 'talks-on':
        // A reader that goes on after the finish would take this for text.
        if (said.at(-1)?.type === 'finish') yield { type: 'text-delta', text: 'words after the end' };
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

  /** A reply counts where it has a finish reason other than content-filter. */
  #countAsSaid(parts: readonly ModelPart[]): void {
    const last = parts.at(-1);
    if (last?.type !== 'finish' || last.reason === 'content-filter') return;
    for (const part of parts) if (part.type === 'text-delta') this.#world.facts.said.add(part.text);
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

const textIn = (parts: readonly ModelPart[]): string =>
  parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
