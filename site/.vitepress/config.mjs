/** The site: the sidebar is made from the tables of docs/README.md and docs/reference/README.md. A dead link fails the build. */
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { defineConfig } from 'vitepress';

const root = join(import.meta.dirname, '../..');
const read = (file) => readFileSync(join(root, file), 'utf8');

const titleOf = (file) => /^# (.+)$/m.exec(read(file))?.[1].replaceAll('`', '') ?? file;
const linkOf = (file) => `/${file.replace(/(?:README)?\.md$/, '')}`;

/** The pages that a list names under one of its headings, each once. */
function itemsOf(list, section, known) {
  const targets = [...section.matchAll(/\]\(([^)#]+\.md)\)/g)].map(([, target]) =>
    normalize(join(dirname(list), target)),
  );
  return targets
    .filter((file) => !known.has(file) && known.add(file))
    .map((file) => ({ text: titleOf(file), link: linkOf(file) }));
}

/** The first line of a section is its heading. */
const headingOf = (section) => section.split('\n')[0];

/** A section with smaller headings becomes a group of groups. */
function groupOf(section, known) {
  const [text, parts] = [headingOf(section), section.split(/^### /m)];
  if (parts.length === 1) return { text, items: itemsOf('docs/README.md', section, known) };
  const items = parts.slice(1).map((part) => ({
    text: headingOf(part),
    collapsed: true,
    items: itemsOf('docs/README.md', part, known),
  }));
  return { text, items };
}

function sidebar() {
  const known = new Set(['docs/reference/README.md', 'README.md']);
  const list = 'docs/reference/README.md';
  const groups = read('docs/README.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => groupOf(section, known));
  const group = (text) => groups.find((found) => found.text === text);
  group('Start').items.unshift({ text: 'runchart', link: '/' }, { text: 'All pages', link: '/docs/' });
  group('Reference').items.unshift(
    { text: 'All entries', link: '/docs/reference/' },
    { text: 'Entries', collapsed: true, items: itemsOf(list, read(list), known) },
  );
  return groups;
}

/** The anchors of headings are those that the repository has, so that links to them hold in both. */
const slugify = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/** On a busy machine the default limit of 500 ms a line would leave lines in the wrong colours. */
const withoutTimeLimit = {
  preprocess(_, options) {
    options.tokenizeTimeLimit = 0;
  },
};

export default defineConfig({
  title: 'runchart',
  description: 'LLM agent runs as XState statecharts',
  srcDir: 'pages',
  srcExclude: ['public/**'],
  cleanUrls: true,
  lastUpdated: false,
  themeConfig: {
    nav: [
      { text: 'Tutorial', link: '/docs/tutorial' },
      { text: 'Guides', link: '/docs/' },
      { text: 'Concepts', link: '/docs/concepts/log' },
      { text: 'Reference', link: '/docs/reference/' },
      { text: 'Changes', link: '/CHANGELOG' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  markdown: {
    anchor: { slugify },
    codeTransformers: [withoutTimeLimit],
    config(md) {
      const { fence } = md.renderer.rules;
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const { info, content } = tokens[index];
        if (info.trim() !== 'mermaid') return fence(tokens, index, ...rest);
        return `<MermaidChart code="${encodeURIComponent(content)}" />`;
      };
    },
  },
});
