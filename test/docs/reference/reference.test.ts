/** docs/reference is made from the sources, and every public name has a sentence. `npm run reference` writes the pages. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../documents.ts';
import { programPage } from './programPage.ts';
import { referencePages, withoutDefault } from './referencePages.ts';

/** One or more sentences: a capital, a digit or code at the beginning, and a full stop at the end. */
const SENTENCE = /^[A-Z0-9`].*[.…]$/;
/** Errors and defaults come after the meaning of a name. */
const OTHER = /^(?:Throws|Rejects|Default|Absent|Published|Called|For|The same|Returns the same)\b/;

const { names, pages } = referencePages();
pages.set('program.md', programPage());
const all = [...new Set([...names.byEntry.values()].flat()), ...names.hidden];

describe('docs/reference', () => {
  it('every public name has a sentence that begins with what it is', () => {
    const bare = all.filter(({ isPublic, sentence }) => isPublic && (!SENTENCE.test(sentence) || OTHER.test(sentence)));
    expect(bare.map(({ name, file }) => `${file}: ${name}`)).toEqual([]);
    expect(all.filter(({ isPublic }) => isPublic).length).toBeGreaterThan(300);
  });

  it('every member of a public type, and of the types that it uses, has a sentence', () => {
    const members = all.flatMap((declaration) => declaration.members.map((member) => ({ ...member, declaration })));
    // A default alone does not describe the member.
    const bare = members.filter(({ sentence }) => !SENTENCE.test(withoutDefault(sentence)[0]));
    expect(bare.map(({ name, declaration }) => `${declaration.file}: ${declaration.name}.${name}`)).toEqual([]);
    expect(members.length).toBeGreaterThan(800);
  });

  it('each page is current, and no other page is there', async () => {
    for (const [name, text] of pages) await expect(text).toMatchFileSnapshot(join(root, 'docs/reference', name));
    expect(readdirSync(join(root, 'docs/reference')).sort()).toEqual([...pages.keys()].sort());
  });
});
