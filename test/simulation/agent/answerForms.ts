/**
 * Final answers under two schemas: the values that fit, and the replies of a simulated model. Invariant: this file
 * checks the text itself, without the library.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Tape } from '../../../src/testing/simulation/choiceTape.ts';
import { isObject } from '../../../src/validation.ts';

/** The owner of the schema: the agent, for every run, or a message, for the runs that it starts or steers. */
export type Asker = 'agent' | 'message';

/** The schemas of a simulated run, and the probability that its model follows them. */
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
  /** Returns an answer with these words that fits, or one that does not. */
  right(words: string): Json;
  wrong(words: string): Json;
}
const FORMS: Readonly<Record<Asker, Form>> = {
  agent: {
    json: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    takes: (value) => isObject(value) && 'text' in value && typeof value.text === 'string',
    right: (words) => ({ text: words }),
    wrong: (words) => ({ text: [words] }),
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

/** Returns the owner of the schema in the system text of a request. */
export const askedIn = (system: string): Asker | undefined =>
  (['message', 'agent'] as const).find((asker) => system.includes(JSON.stringify(FORMS[asker].json)));

const FENCE = '```';

/** Returns the value of a text that fits, with or without a code fence. Undefined if it does not fit. */
export function answerIn(asker: Asker, text: string): Json | undefined {
  const bare = text.startsWith(`${FENCE}json\n`) ? text.slice(FENCE.length + 5, -FENCE.length - 1) : text;
  try {
    const value: Json = JSON.parse(bare);
    return FORMS[asker].takes(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Draws a final answer, or a text that does not fit. */
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
