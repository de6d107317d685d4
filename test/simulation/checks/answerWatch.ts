/**
 * Checks the final answers in a log whose runs have a schema. Invariant: the log contains an answer if and only if the
 * last reply fits. Otherwise the model is asked again, at most `limits.outputRepairs` times.
 */
import type { Json, LogEntry, Message } from '../../../machines/internal.ts';

import { type Answers, type Asker, answerIn } from '../agent/answerForms.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { sameJson } from './sameJson.ts';

/**
 * Returns the text of a message that is sent with a schema. The schema is lost when the conversation is opened again.
 */
export const askingText = (text: string, openings: number): string => `${text}, as a list ${openings}`;
const ASKING = /, as a list (\d+)$/;

/** The openings in which the messages of a request with a schema of their own were sent. */
export const openingsIn = (messages: readonly Message[]): number[] =>
  messages.flatMap(({ content }) =>
    content.flatMap((part) => {
      const opening = part.type === 'text' ? ASKING.exec(part.text)?.[1] : undefined;
      return opening === undefined ? [] : [Number(opening)];
    }),
  );

/** Learns which message of the active cycle has its own schema. A fork has no schema for the messages it copied. */
export function learnOwnSchema({ facts, processId }: CheckedWorld, entry: LogEntry): void {
  const { conversationId } = entry;
  if (entry.type === 'run-started') facts.ownSchemas.delete(conversationId);
  if (entry.type !== 'user-message') return;
  for (const opening of openingsIn([{ role: 'user', content: entry.content }])) {
    facts.ownSchemas.set(conversationId, { opening: facts.forks.has(conversationId) ? 0 : opening, processId });
  }
}

/** Returns the recorded answer in the entries of one run. */
export const answerOnRecord = (entries: readonly LogEntry[]): { value: Json } | undefined =>
  entries.flatMap((entry) =>
    entry.type === 'extension' && entry.name === 'output' ? [{ value: entry.value }] : [],
  )[0];

export class AnswerWatch {
  readonly #world: CheckedWorld;
  readonly #answers: Answers;
  /** The text of the current reply, and the last reply of the run with its schema. */
  #open = '';
  #last: { text: string; calls: number; asker: Asker | undefined } | undefined;
  #calls = 0;
  #repairs = 0;
  #hasAnswer = false;
  /** The facts about each run at its end. */
  readonly #ends = new Map<string, { misses: boolean; repairs: number }>();

  constructor(world: CheckedWorld, answers: Answers) {
    this.#world = world;
    this.#answers = answers;
  }

  learn(entry: LogEntry): void {
    switch (entry.type) {
      case 'run-started':
      case 'run-resumed':
        return this.#begin();
      case 'agent-output':
        if (entry.item.type === 'tool-call') this.#calls += 1;
        if (entry.item.type === 'assistant' && entry.item.flag !== 'interrupted') this.#open += entry.item.text;
        return;
      case 'model-reply':
        this.#last = { text: this.#open, calls: this.#calls, asker: this.#askerIn(entry.conversationId) };
        this.#open = '';
        this.#calls = 0;
        return;
      case 'continuation':
        if (entry.why === 'output') this.#askedAgain(entry.runId);
        return;
      case 'extension':
        if (entry.name === 'output') this.#answered(entry.runId, entry.value);
        return;
      case 'run-stop':
        return this.#stopped(entry);
    }
  }

  #begin(): void {
    this.#open = '';
    this.#calls = 0;
    this.#last = undefined;
    this.#repairs = 0;
    this.#hasAnswer = false;
  }

  /** The owner of the schema that applies now. Nobody after the schema of a message was lost. */
  #askerIn(conversationId: string): Asker | undefined {
    const { facts, processId } = this.#world;
    const own = facts.ownSchemas.get(conversationId);
    if (own) return own.opening === facts.openings && own.processId === processId ? 'message' : undefined;
    return this.#answers.askers.includes('agent') ? 'agent' : undefined;
  }

  /** The value of the last reply if it fits. */
  get #value(): Json | undefined {
    const { asker, text } = this.#last ?? {};
    return asker === undefined || text === undefined ? undefined : answerIn(asker, text);
  }

  #askedAgain(runId: string | null): void {
    const world = this.#world;
    this.#repairs += 1;
    const { repairs } = this.#answers;
    world.reach('answers', 'asked again');
    world.check(this.#last?.asker !== undefined, 'OUTPUT', () => `${runId} is held to no schema and asked again`);
    world.check(this.#last?.calls === 0, 'OUTPUT', () => `${runId} is asked for an answer while it calls tools`);
    world.check(
      this.#value === undefined,
      'OUTPUT',
      () => `${runId} is asked again for ${this.#last?.text}, which fits`,
    );
    world.check(
      this.#repairs <= repairs,
      'OUTPUT',
      () => `${runId} is asked again ${this.#repairs} times of ${repairs}`,
    );
  }

  #answered(runId: string | null, value: Json): void {
    const world = this.#world;
    const due = this.#value;
    world.reach('answers', this.#repairs > 0 ? 'mended' : 'fits');
    world.reach('answers', `of the ${this.#last?.asker}`);
    if (this.#last?.text.startsWith('```')) world.reach('answers', 'fenced');
    world.check(!this.#hasAnswer, 'OUTPUT', () => `${runId} has two answers`);
    this.#hasAnswer = true;
    const fits = due !== undefined && sameJson(due, value);
    world.check(
      fits,
      'OUTPUT',
      () => `${runId} answers ${JSON.stringify(value)}, and its last text was ${this.#last?.text}`,
    );
  }

  #stopped({ runId, cause }: Extract<LogEntry, { type: 'run-stop' }>): void {
    const isHeld = this.#last?.asker !== undefined;
    if (cause === 'end_turn' && isHeld)
      this.#world.check(this.#hasAnswer, 'OUTPUT', () => `${runId} ended by itself, without an answer that fits`);
    this.#ends.set(runId ?? '', { misses: isHeld && this.#value === undefined, repairs: this.#repairs });
    this.#begin();
  }

  /** The run failed with `output_invalid`. */
  gaveUp(runId: string): void {
    const { misses = false, repairs = 0 } = this.#ends.get(runId) ?? {};
    const world = this.#world;
    const { repairs: most } = this.#answers;
    world.reach('answers', 'given up');
    world.check(misses, 'OUTPUT', () => `${runId} fails for its answer, which fits`);
    world.check(
      repairs === most,
      'OUTPUT',
      () => `${runId} fails for its answer, asked again ${repairs} of ${most} times`,
    );
  }
}
