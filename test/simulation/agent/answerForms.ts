/**
 * Final answers that are held to a schema: what the two schemas take, and what a simulated model says under one. Rule: what
 * fits is read off the text here, without the library.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Tape } from '../../../src/testing/simulation/choiceTape.ts';
import { isObject } from '../../../src/validation.ts';

/** Whose schema it is: the agent's, for every run, or that of a message, for runs that it begins or steers. */
export type Asker = 'agent' | 'message';

/** How a simulated run is held to a schema, and how well its model keeps to it. */
export interface Answers {
  askers: readonly Asker[];
  model: 'fits' | 'misses' | 'neverFits';
  /** As limits.outputRepairs. */
  repairs: number;
}

const ASKERS: readonly (readonly Asker[])[] = [['agent'], ['message'], ['agent', 'message']];
export const drawAnswers = (tape: Tape): Answers => ({
  askers: tape.pick(ASKERS),
  model: tape.pick(['misses', 'misses', 'misses', 'fits', 'neverFits'] as const),
  repairs: tape.pick([2, 1, 0, 3]),
});

interface Form {
  json: Json;
  takes(value: unknown): boolean;
  /** An answer with these words that fits, and one that does not. */
  right(words: string): Json;
  wrong(words: string): Json;
}
const FORMS: Readonly<Record<Asker, Form>> = {
  agent: {
    json: { type: 'object', properties: { said: { type: 'string' } }, required: ['said'] },
    takes: (value) => isObject(value) && 'said' in value && typeof value.said === 'string',
    right: (words) => ({ said: words }),
    wrong: (words) => ({ said: [words] }),
  },
  message: {
    json: { type: 'array', items: { type: 'string' } },
    takes: (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
    right: (words) => [words],
    wrong: (words) => [words, 5],
  },
};

export function answerSchema(asker: Asker) {
  const { json, takes } = FORMS[asker];
  return {
    '~standard': {
      version: 1 as const,
      vendor: 'runchart-simulation',
      jsonSchema: { input: () => json, output: () => json },
      validate: (value: unknown) => (takes(value) ? { value } : { issues: [{ message: `not for the ${asker}` }] }),
    },
  };
}

/** Which of the two schemas the system text of a request names. */
export const askedIn = (system: string): Asker | undefined =>
  (['message', 'agent'] as const).find((asker) => system.includes(JSON.stringify(FORMS[asker].json)));

const FENCE = '```';

/** The value of a text that fits, in a code fence or without one; undefined where it does not. */
export function answerIn(asker: Asker, text: string): Json | undefined {
  const bare = text.startsWith(`${FENCE}json\n`) ? text.slice(FENCE.length + 5, -FENCE.length - 1) : text;
  try {
    const value: Json = JSON.parse(bare);
    return FORMS[asker].takes(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A final answer, or a text in its place that does not fit. */
export function drawAnswer(tape: Tape, asker: Asker, model: Answers['model'], words: string): string {
  const { right, wrong } = FORMS[asker];
  const fits = JSON.stringify(right(words));
  const fenced = `${FENCE}json\n${fits}\n${FENCE}`;
  const misses = [words, JSON.stringify(wrong(words)), `${fits} and more`];
  switch (model) {
    case 'fits':
      return tape.pick([fits, fenced]);
    case 'misses':
      return tape.pick([fits, ...misses, fenced, fits]);
    case 'neverFits':
      return tape.pick(misses);
  }
}
