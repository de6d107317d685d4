/**
 * Draws the replies of the simulated model from the tape. Invariant: every kind that providers send is possible, the
 * plainest first.
 */
import type { Json, Message } from '../../../../machines/internal.ts';
import type { ModelPart, ModelRequest, ToolSpec } from '../../../models/model.ts';
import { UNSUMMED } from '../profile.ts';
import { drawArguments, drawWrongArguments } from './drawArguments.ts';
import { usageOf } from './simulatedUsage.ts';
import type { SimulatedWorld } from './simulatedWorld.ts';

const REPLIES = {
  text: 4,
  calls: 7,
  thought: 1,
  again: 0.6,
  empty: 0.5,
  badArguments: 0.2,
  wrongArguments: 0.4,
  unknownTool: 0.4,
  repeatedId: 0.4,
  pause: 0.3,
  length: 0.3,
  filtered: 0.1,
} as const;
type Kind = keyof typeof REPLIES;

/** In larger windows a reply is cut more often, because a summary of earlier messages can free space for the rest. */
const LARGE = 2000;
const CUT_OFTEN = { ...REPLIES, length: 3 } as const;
/** Most replies to a request for a final answer contain one. */
const ANSWERING = { ...REPLIES, text: 12 } as const;
/** Replies to a request for a summary. */
const SUMMARIES = { summary: 8, long: 1, empty: 1, length: 1, call: 0.5, filtered: 0.3 } as const;
/** Each summary is this text, followed by its number. */
export const SUMMARY = 'Summary of the conversation so far:';

type Finish = Extract<ModelPart, { type: 'finish' }>['reason'];
/** The usage is added by number. */
const finish = (reason: Finish): ModelPart => ({ type: 'finish', reason });

export class SimulatedReplies {
  #last: readonly ModelPart[] = [];
  #ids = 0;
  readonly #world: SimulatedWorld;

  constructor(world: SimulatedWorld) {
    this.#world = world;
  }

  /** `number` makes the text of this reply different from all others. */
  next({ messages, tools, system }: ModelRequest, number: number): readonly ModelPart[] {
    const { faultFree } = this.#world;
    const kind = faultFree ? 'text' : this.#kind(system);
    const words = this.#words(number, system);
    this.#last =
      kind === 'again' && this.#last.length > 0
        ? this.#last.map((part) => this.#again(part, words))
        : this.#parts(kind, words, messages, tools);
    return this.#counted(this.#last, number);
  }

  /** Returns a summary of earlier messages, or a reply that is not a summary. */
  summary(number: number): readonly ModelPart[] {
    const { faultFree, tape, profile } = this.#world;
    const kind = faultFree ? 'summary' : tape.weighted<keyof typeof SUMMARIES>(SUMMARIES);
    const words: ModelPart = { type: 'text-delta', text: `${SUMMARY} ${number}.` };
    const long: ModelPart = { type: 'text-delta', text: 'and so on '.repeat(profile.window) };
    const parts: Record<typeof kind, ModelPart[]> = {
      summary: [words, finish('stop')],
      long: [words, long, finish('stop')],
      empty: [finish('stop')],
      length: [words, finish('length')],
      call: [words, this.#call('nobody_has_this', '{}'), finish('tool-calls')],
      filtered: [words, finish('content-filter')],
    };
    return this.#counted(parts[kind], number);
  }

  #counted(parts: readonly ModelPart[], number: number): readonly ModelPart[] {
    const usage = usageOf(number);
    return parts.map((part) => (part.type === 'finish' ? { ...part, usage } : part));
  }

  /** Some replies are long, to fill a small window. */
  #words(number: number, system: string): ModelPart {
    const { faultFree, profile } = this.#world;
    const more = profile.window > UNSUMMED && !faultFree ? ' and so on'.repeat((number % 5) * 10) : '';
    const words = `words ${number}${more}`;
    return { type: 'text-delta', text: this.#answer(words, system) };
  }

  /** Returns the text as the final answer of a run with a schema. */
  #answer(words: string, system: string): string {
    const { faultFree, tape, finalAnswers } = this.#world;
    if (finalAnswers) return finalAnswers.answer(words, system);
    const schema = schemaIn(system);
    return schema === undefined || (!faultFree && tape.chance(0.2))
      ? words
      : JSON.stringify(drawArguments(tape, schema));
  }

  /** A model that repeats itself returns the previous reply again. */
  #kind(system: string): Kind {
    const { tape, profile, finalAnswers } = this.#world;
    if (profile.repeats > 0 && this.#last.length > 0 && tape.chance(profile.repeats)) return 'again';
    if (finalAnswers?.isAsked(system)) return tape.weighted<Kind>(ANSWERING);
    return tape.weighted<Kind>(profile.window > LARGE ? CUT_OFTEN : REPLIES);
  }

  #parts(kind: Kind, words: ModelPart, messages: readonly Message[], tools: readonly ToolSpec[]): ModelPart[] {
    switch (kind) {
      case 'calls':
        return [...(this.#world.tape.chance(0.5) ? [words] : []), ...this.#calls(tools), finish('tool-calls')];
      case 'thought':
        return [{ type: 'reasoning-delta', text: 'hm' }, words, finish('stop')];
      case 'empty':
        return [finish('stop')];
      case 'badArguments':
        return [this.#call(tools[0]?.name ?? 'none', '{"text": 5'), finish('tool-calls')];
      case 'wrongArguments':
        return [this.#wrongCall(tools), finish('tool-calls')];
      case 'unknownTool':
        return [this.#call('nobody_has_this', '{}'), ...this.#calls(tools), finish('tool-calls')];
      case 'repeatedId':
        return [...this.#calls(tools), this.#repeated(messages, tools), finish('tool-calls')];
      case 'pause':
        return [words, finish('pause')];
      case 'length':
        return [words, ...(this.#world.tape.chance(0.5) ? this.#calls(tools) : []), finish('length')];
      case 'filtered':
        return [words, finish('content-filter')];
      default:
        return [words, finish('stop')];
    }
  }

  #calls(tools: readonly ToolSpec[]): ModelPart[] {
    const { tape } = this.#world;
    if (tools.length === 0) return [];
    const count = 1 + tape.next(4);
    return Array.from({ length: count }, () => {
      const { name } = tape.pick(tools);
      return this.#call(name, JSON.stringify(this.#world.argsFor(name)));
    });
  }

  #wrongCall(tools: readonly ToolSpec[]): ModelPart {
    const { tape } = this.#world;
    const { name, parameters } = tools.length > 0 ? tape.pick(tools) : { name: 'none', parameters: {} };
    return this.#call(name, JSON.stringify(drawWrongArguments(tape, parameters)));
  }

  /** Returns the same part again, a call under a new id. */
  #again(part: ModelPart, words: ModelPart): ModelPart {
    if (part.type === 'tool-call' && this.#world.profile.repeats > 0) return this.#call(part.name, part.args);
    return part.type === 'text-delta' ? words : part;
  }

  /** Returns a call with an id that an earlier call has used. */
  #repeated(messages: readonly Message[], tools: readonly ToolSpec[]): ModelPart {
    const earlier = messages.find((message) => message.role === 'tool');
    const callId = earlier?.callId ?? `c${this.#ids}`;
    return { type: 'tool-call', callId, name: tools[0]?.name ?? 'none', args: '{"text":"t0"}' };
  }

  #call(name: string, args: string): ModelPart {
    this.#ids += 1;
    return { type: 'tool-call', callId: `c${this.#ids}`, name, args };
  }
}

/** Returns the JSON Schema for final answers in the system text of an agent. */
function schemaIn(system: string): Json | undefined {
  const [, text] = /final answer as JSON that fits this JSON Schema[^\n]*\n(.*)/.exec(system) ?? [];
  return text === undefined ? undefined : JSON.parse(text);
}
