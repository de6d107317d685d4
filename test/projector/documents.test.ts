/** Claims of docs/request-cycles.md and docs/rendering.md about the projector that no example shows. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { read, regionOf, root } from '../docs/documents.ts';

it('the renderer of the guide has at most 40 lines', () => {
  expect(regionOf('rendering.ts', 'render').trimEnd().split('\n').length).toBeLessThanOrEqual(40);
});

it('every code of the projector has its row in the table of diagnostics, and the table has no other', () => {
  const [, table = ''] = read('docs/request-cycles.md').split('## Diagnostics');
  const documentedCodes = [...table.replace(/\n## .*/s, '').matchAll(/^\| (`[^|]*`) +\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([\w-]+)`/g)].map(([, code]) => code),
  );
  const sources = readdirSync(join(root, 'src/projector')).map((name) => read(`src/projector/${name}`));
  const quoted = new Set(
    sources.flatMap((source) => [...source.matchAll(/'([a-z]+(?:[-_][a-z]+)*)'/g)].map(([, word]) => word)),
  );
  expect(documentedCodes.filter((code) => !quoted.has(code))).toEqual([]);
  const listed = /Codes: (.*?)\n \* Diagnostics that/s.exec(read('src/projector/records.ts'))?.[1] ?? '';
  const header = [...listed.matchAll(/`([\w-]+)`/g)].map(([, code]) => code).filter((code) => code !== undefined);
  expect([...documentedCodes].sort()).toEqual(header.sort());
});
