/**
 * Copies the Markdown of the repository to `site/pages`, in the same folders, so that relative links hold. Invariant: the pages
 * have no other source. A chart becomes a page of its own; a file without an ending becomes a page too.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
/** Another folder can be given, for tests. */
const pages = process.argv[2] ?? join(import.meta.dirname, 'pages');

const read = (file) => readFileSync(join(root, file), 'utf8');
const filesIn = (folder, ending) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules') && !name.startsWith('docs/examples/'));

function write(file, text) {
  mkdirSync(dirname(join(pages, file)), { recursive: true });
  writeFileSync(join(pages, file), text);
}

/** Fences, code in a line and tables keep their text; a `<` of prose must not begin a tag. */
const withoutTags = (text) =>
  text.replaceAll(/(^`{3,}[\s\S]*?^`{3,}$|`+[^`]*`+|<!--[\s\S]*?-->)|<(?=[\w/])/gm, (_, kept) => kept ?? '&lt;');

/** A reader of the site needs the language of a fence, not the file that it quotes. */
const withoutExampleNames = (text) => text.replaceAll(/^(`{3,})(\w+) [\w./-]+(?:#[\w-]+)?$/gm, '$1$2');

const pageText = (text) =>
  withoutExampleNames(withoutTags(text))
    .replaceAll(/\]\(([^)\s]*)\.mmd\)/g, ']($1.md)')
    .replaceAll(/\]\(([^)\s]*)LICENSE\)/g, ']($1LICENSE.md)')
    .replaceAll(/\]\(((?!https?:)[^)\s]*)README\.md/g, ']($1index.md');

/** The page of a folder is its index. */
const pageOf = (file) => file.replace(/README\.md$/, 'index.md');

rmSync(pages, { recursive: true, force: true });
const sources = ['README.md', 'CHANGELOG.md', 'SECURITY.md', ...filesIn('docs', '.md')];
for (const file of sources) write(pageOf(file), pageText(read(file)));
for (const file of filesIn('docs/diagrams', '.mmd')) {
  const name = basename(file, '.mmd');
  write(file.replace(/\.mmd$/, '.md'), `# Chart ${name}\n\n\`\`\`mermaid\n${read(file).trim()}\n\`\`\`\n`);
}
// Tools read the sources of pages, and llms-full.txt: all of them in the order of llms.txt.
for (const file of sources) write(`public/${file}`, read(file));
const listed = [...read('llms.txt').matchAll(/\]\(([^)]+\.md)\)/g)].map(([, file]) => file);
write('public/llms.txt', read('llms.txt'));
write('public/llms-full.txt', listed.map((file) => `<!-- ${file} -->\n\n${read(file)}`).join('\n\n'));

write('LICENSE.md', `# Licence\n\n${read('LICENSE')}`);
cpSync(join(root, 'docs/pictures'), join(pages, 'docs/pictures'), { recursive: true });
