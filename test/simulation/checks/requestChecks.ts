/**
 * Compares each request to the model with the durable entries and with the requests before it. Invariant: a reply counts
 * once it was read.
 */
import { type ModelPart, WRITTEN } from '../../../src/models/model.ts';
import type { SimulatedCall } from '../../../src/testing/simulation/lifeChecks.ts';
import { REPLY_TOKENS, type SimulatedModel } from '../../../src/testing/simulation/world/simulatedModel.ts';
import { SUMMARY } from '../../../src/testing/simulation/world/simulatedReply.ts';
import { askedIn } from '../agent/answerForms.ts';
import { openingsIn } from './answerWatch.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { RequestHistory, type Sent, summariesIn } from './requestHistory.ts';

export class RequestChecks {
  readonly #world: CheckedWorld;
  readonly #model: SimulatedModel;
  readonly #history = new RequestHistory();

  constructor(world: CheckedWorld, model: SimulatedModel) {
    this.#world = world;
    this.#model = model;
  }

  check(call: SimulatedCall): void {
    if (call.sumsUp) return;
    this.#checkSize(call);
    this.#checkMoment(call);
    this.#history.answered(this.#checkHistory(call), textIn(call.parts));
  }

  streamed(part: ModelPart): void {
    if (part.type === 'text-delta') this.#world.facts.begun.add(part.text);
  }

  /** A reply counts if it has a finish reason other than content-filter. */
  replied(parts: readonly ModelPart[]): void {
    const last = parts.at(-1);
    if (last?.type !== 'finish' || last.reason === 'content-filter') return;
    for (const part of parts) if (part.type === 'text-delta') this.#world.facts.completeTexts.add(part.text);
  }

  #checkSize({ request: { messages, system } }: SimulatedCall): void {
    const world = this.#world;
    const parts = messages.flatMap(({ content }) => content);
    for (const part of parts) {
      const shown = part.type !== 'image' || !part.data.startsWith('blob:');
      world.check(shown, 'IMAGE', () => 'a model is shown the name of an image in place of its bytes');
    }
    const characters = parts.reduce((sum, part) => sum + ('text' in part ? part.text.length : 0), system.length);
    const { contextWindow } = this.#model;
    const fits = !contextWindow || characters / 4 + REPLY_TOKENS <= contextWindow;
    world.check(fits, 'I4', () => `${characters} characters are sent into a window of ${contextWindow}`);
    const { openings, ownSchemas, forks } = world.facts;
    const own = [...ownSchemas.values()];
    // The newest message with a schema of its own was sent in an earlier opening, which alone had the schema, or before a fork. It
    // may belong to an earlier cycle: the log may already be further than the request.
    const isOfEarlier = openingsIn(messages)
      .slice(-1)
      .some((opening) => opening !== openings || forks.size > 0);
    const isLost = isOfEarlier || own.some((each) => each.opening !== openings || each.processId !== world.processId);
    const isSchemaDue = world.answers?.askers.includes('agent') && !world.profile.spawns && !isLost;
    const detail = (): string => 'a model does not receive the schema of its answer';
    world.check(!isSchemaDue || askedIn(system) !== undefined, 'OUTPUT', detail);
    world.check(!system.includes('tool said'), 'I15', () => 'a tool speaks in the system text');
  }

  /** Checks that a model is called during a run, as often as the policies allow, and not too early. */
  #checkMoment({ context: { signal, attempt } }: SimulatedCall): void {
    const world = this.#world;
    const { running } = world.facts;
    world.check(running.size > 0, 'I2', () => 'a model is called while no run is under way');
    world.check(!signal.aborted, 'I28', () => 'a model is called for a run that was cancelled');
    const models = world.profile.fallback ? 2 : 1;
    const most = models * (world.policies?.modelRetry?.attempts ?? attempt);
    world.check(attempt <= most, 'I4', () => `attempt ${attempt} where ${most} are allowed`);
    const [due = 0] = running.values();
    const early = attempt > 1 && running.size === 1 && world.elapsedMs < due;
    world.check(!early, 'I4', () => `attempt ${attempt} begins ${due - world.elapsedMs} ms early`);
  }

  #checkHistory({ request: { messages }, context: { [WRITTEN]: conversation } }: SimulatedCall): Sent {
    const world = this.#world;
    const { facts, processId } = world;
    const [summary] = summariesIn(messages);
    const durable = summary === undefined || facts.summaries.has(summary);
    world.check(durable, 'SUMMARY', () => `the model is shown a summary that no log has: ${summary}`);
    const ids = summary?.startsWith(SUMMARY) ? [facts.summaries.get(summary)] : facts.running.keys();
    const [only, ...others] = ids;
    const sent: Sent = { messages, process: processId, conversation, id: others.length === 0 ? only : undefined };
    const rewritten = this.#history.learn(sent, facts.forks.size > 0);
    if (rewritten !== undefined) world.violate('I14', rewritten);
    return sent;
  }
}

const textIn = (parts: readonly ModelPart[]): string =>
  parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');
