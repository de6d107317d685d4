/**
 * Runs before each test file of `runTestMutants.mjs`: the mistake with the provided number is made. With `REACHED`,
 * the numbers of all places that the file reached are written there, a line for each test file.
 */
import { appendFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, inject } from 'vitest';

const on = inject('mistake' as never) as number;
const folder = process.env.REACHED;
const scope = globalThis as {
  __m?(id: number): boolean;
  __any?(first: number, last: number): boolean;
  __reached?: true[];
};

if (folder === undefined) {
  scope.__m = (id) => id === on;
  scope.__any = (first, last) => on >= first && on <= last;
} else {
  // Not a set: a test counts the calls of `Set.prototype.add`.
  scope.__reached ??= [];
  const { __reached: reached } = scope;
  scope.__m = (id) => {
    reached[id] = true;
    return false;
  };
  scope.__any = (first) => {
    reached[first] = true;
    return false;
  };
  beforeAll(() => {
    reached.length = 0;
  });
  afterAll(() => {
    const line = { file: expect.getState().testPath, reached: Object.keys(reached).map(Number) };
    appendFileSync(`${folder}/reached.jsonl`, `${JSON.stringify(line)}\n`);
  });
}
