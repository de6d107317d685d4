/**
 * Runs before each test file of `runTestMutants.mjs`: the mistake with the provided number is made. With `REACHED`,
 * the numbers of all places that the file reached are written there, a line for each test file. Places that were reached
 * while its modules were loaded are listed apart: a module is loaded once for all files.
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
  scope.__reached.length = 0;
  const { __reached: reached } = scope;
  scope.__m = (id) => {
    reached[id] = true;
    return false;
  };
  scope.__any = (first) => {
    reached[first] = true;
    return false;
  };
  const numbers = (): number[] => Object.keys(reached).map(Number);
  let loaded: number[] = [];
  beforeAll(() => {
    loaded = numbers();
    reached.length = 0;
  });
  afterAll(() => {
    const line = { file: expect.getState().testPath, reached: numbers(), loaded };
    appendFileSync(`${folder}/reached.jsonl`, `${JSON.stringify(line)}\n`);
  });
}
