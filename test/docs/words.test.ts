/** The texts of the repository concern the project alone. */
import { expect, it } from 'vitest';
import { documents, examples, read } from './documents.ts';

const texts = [...documents, 'LICENSE', ...examples.map((name) => `docs/examples/${name}`)];

it('no document and no example holds a path or an address that only one machine has', () => {
  const places = [
    /(?<![\w.$~-])\/(?:home|root|tmp|work|Users|mnt|opt|var)\//,
    /file:\/\/|[A-Z]:\\|\blocalhost\b/,
    /\b(?:10|192\.168)\.\d+\.\d+/,
  ];
  expect(texts.filter((file) => places.some((place) => place.test(read(file))))).toEqual([]);
});
