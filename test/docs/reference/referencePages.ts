/**
 * The pages of docs/reference, as text. Invariant: a name is on one page, that of the first entry that exports it; other pages link to
 * it. Everything comes from declarations, their comments and the table of entries in the README.
 */
import { entries, read } from '../documents.ts';
import { type Cells, tableOf } from '../markdownTable.ts';
import { type Declaration, type Member, type PublicNames, readPublicNames } from './declarations.ts';

/** The page of an entry, as a name in docs/reference. */
export const pageOf = (entry: string): string => `${entry.replace(/^runchart\//, '')}.md`;

const NOTE = '<!-- Made from the sources by `npm run reference`. Change the comments there. -->';

/** The cell of the README about an entry, and the pages that it links to. */
function aboutEntry(entry: string): { what: string; guides: string[] } {
  const row = read('README.md')
    .split('\n')
    .find((line) => line.startsWith(`| \`${entry}\` `));
  const cell = row?.split('|')[2]?.trim() ?? '';
  const guides = [...cell.matchAll(/\[([^\]]+)\]\(docs\/([^)]+)\)/g)].map(([, text, page]) => `[${text}](../${page})`);
  const what = cell.replaceAll(/[:,]? \[[^\]]+\]\([^)]+\)/g, '').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
  return { what, guides };
}

/** Pages that a comment names become links. */
const linked = (sentence: string): string =>
  sentence
    .replaceAll(/`?docs\/([\w-]+)\.md`?/g, '[$1](../$1.md)')
    .replaceAll('<', '\\<')
    .replaceAll(/`[^`]*`/g, (code) => code.replaceAll('\\<', '<'));

/** The default that a comment states, and the rest of the comment. */
export function withoutDefault(sentence: string): [rest: string, standard: string] {
  const match = /(?:^|(?<=[.;] ))[Dd]efault: (.+?)[.](?= [A-Z`]|$)/.exec(sentence);
  if (!match) return [sentence, ''];
  const rest = `${sentence.slice(0, match.index)}${sentence.slice(match.index + match[0].length)}`;
  return [rest.replaceAll(/; *$/g, '.').replaceAll(/ {2,}/g, ' ').trim(), match[1] ?? ''];
}

const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``);

const OPTIONAL =
  /Options$|Settings$|Limits$|Definition$|Settings$|^(ImageLimits|Model|Plugin|Ports|Prices|LogStore|LogHandle)$/;

/** True for a type that users write values of: its table has a column of defaults. */
export const isWritten = ({ name }: Declaration): boolean => OPTIONAL.test(name);

function tableOfMembers(declaration: Declaration): string {
  const { members } = declaration;
  const cellsOf = ({ name, type, isOptional, sentence }: Member): Cells => {
    const shown = code(`${name}${isOptional && !isWritten(declaration) ? '?' : ''}`);
    if (!isWritten(declaration)) return [shown, code(type), linked(sentence)];
    const [rest, standard] = withoutDefault(sentence);
    return [shown, code(type), linked(standard) || (isOptional ? '' : 'required'), linked(rest)];
  };
  const head = isWritten(declaration) ? ['option', 'type', 'default', 'meaning'] : ['member', 'type', 'meaning'];
  return tableOf([head, ...members.map(cellsOf)]);
}

const slugOf = (heading: string): string => heading.toLowerCase().replace(/[^\p{L}\p{N}_-]/gu, '');

/** Where each declaration is described: a page and an anchor. Two headings of a page that differ in case alone get a number. */
function placesOf(pages: ReadonlyMap<string, readonly Declaration[]>): Map<Declaration, string> {
  const places = new Map<Declaration, string>();
  for (const [page, declarations] of pages) {
    const counts = new Map<string, number>();
    for (const declaration of declarations) {
      const slug = slugOf(declaration.name);
      const count = counts.get(slug) ?? 0;
      counts.set(slug, count + 1);
      places.set(declaration, `${page}#${slug}${count === 0 ? '' : `-${count}`}`);
    }
  }
  return places;
}

function sectionOf(declaration: Declaration, linkTo: (name: string) => string | undefined): string {
  const { name, sentence, text, members, mentions, isPublic } = declaration;
  const links = [...mentions].filter((other) => other !== name).flatMap((other) => linkTo(other) ?? []);
  const fence = text === '' || members.length > 0 ? [] : ['```typescript', text, '```'];
  const parts = [
    `### ${name}`,
    linked(sentence),
    ...(isPublic ? [] : ['The type has no public name: write its value where it is used.']),
    fence.join('\n'),
    members.length > 0 ? tableOfMembers(declaration) : '',
    links.length > 0 ? `See also: ${links.join(', ')}.` : '',
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

const KINDS: readonly (readonly [heading: string, kinds: readonly Declaration['kind'][]])[] = [
  ['Functions and values', ['function', 'constant']],
  ['Classes', ['class']],
  ['Types', ['type']],
];
const orderOf = ({ kind, isPublic }: Declaration): number =>
  KINDS.findIndex(([, kinds]) => kinds.includes(kind)) + (isPublic ? 0 : KINDS.length);

/** Each declaration on one page: that of its first entry, or of the first declaration that names it. */
function declarationsByPage({ byEntry, hidden }: PublicNames): Map<string, Declaration[]> {
  const placed = new Set<Declaration>();
  const pages = new Map<string, Declaration[]>();
  for (const [entry, declarations] of byEntry) {
    const own = declarations.filter((declaration) => !placed.has(declaration));
    for (const declaration of own) placed.add(declaration);
    pages.set(pageOf(entry), own);
  }
  for (const declaration of hidden) {
    const home = [...pages].find(([, list]) => list.some(({ mentions }) => mentions.has(declaration.name)));
    home?.[1].push(declaration);
  }
  for (const list of pages.values())
    list.sort((a, b) => orderOf(a) - orderOf(b) || (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  return pages;
}

function pageText(
  entry: string,
  list: readonly Declaration[],
  names: PublicNames,
  places: Map<Declaration, string>,
): string {
  const { what, guides } = aboutEntry(entry);
  const page = pageOf(entry);
  const hrefOf = (declaration: Declaration): string =>
    (places.get(declaration) ?? '').replace(new RegExp(`^${page}(?=#)`), '');
  const all = [...places.keys()];
  const linkTo = (name: string): string | undefined => {
    const other = list.find((each) => each.name === name) ?? all.find((each) => each.name === name);
    return other && `[\`${name}\`](${hrefOf(other)})`;
  };
  const groups: typeof KINDS = [...KINDS, ['Types without a public name', []]];
  const sections = groups.flatMap(([heading, kinds]) => {
    const own = list.filter(({ isPublic, kind }) => (kinds.length > 0 ? isPublic && kinds.includes(kind) : !isPublic));
    return own.length === 0 ? [] : [`## ${heading}`, ...own.map((declaration) => sectionOf(declaration, linkTo))];
  });
  const elsewhere = (names.byEntry.get(entry) ?? []).filter((declaration) => !list.includes(declaration));
  const others = elsewhere.map((declaration) => `[\`${declaration.name}\`](${hrefOf(declaration)})`);
  return `${[
    `# ${entry}`,
    NOTE,
    `This page lists every public name of \`${entry}\`.`,
    `The entry contains ${what}.`,
    ...(guides.length > 0 ? [`Guides: ${guides.join(', ')}.`] : []),
    ...(others.length > 0 ? [`It also exports these names: ${others.join(', ')}.`] : []),
    ...sections,
  ].join('\n\n')}\n`;
}

function indexText(pages: ReadonlyMap<string, readonly Declaration[]>): string {
  const rows = [...entries.keys()].map((entry): Cells => {
    const count = (pages.get(pageOf(entry)) ?? []).filter(({ isPublic }) => isPublic).length;
    return [`[\`${entry}\`](${pageOf(entry)})`, String(count), aboutEntry(entry).what];
  });
  return `${[
    '# Reference',
    NOTE,
    'Look up a public name by its entry. Each page is made from the comments in the sources, which editors show too.',
    tableOf([['import', 'names', 'what it is'], ...rows]),
    'These tables are made from declarations too:',
    tableOf([
      ['table', 'page'],
      ['options of the program', '[program](program.md)'],
      ['policies and limits', '[policies](../policies.md)'],
      ['errors, causes of ends, results, diagnostics', '[errors](../errors.md)'],
      ['kinds of log entries', '[vocabulary](../VOCABULARY.md#entries)'],
    ]),
  ].join('\n\n')}\n`;
}

/** The pages by their names in docs/reference, without that of the program. */
export function referencePages(): { names: PublicNames; pages: Map<string, string> } {
  const names = readPublicNames();
  const byPage = declarationsByPage(names);
  const places = placesOf(byPage);
  const pages = new Map([['README.md', indexText(byPage)]]);
  for (const entry of entries.keys())
    pages.set(pageOf(entry), pageText(entry, byPage.get(pageOf(entry)) ?? [], names, places));
  return { names, pages };
}
