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

function sidebar() {
  const known = new Set(['docs/reference/README.md', 'README.md']);
  const groups = read('docs/README.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      text: section.split('\n')[0],
      collapsed: false,
      items: itemsOf('docs/README.md', section, known),
    }));
  const list = 'docs/reference/README.md';
  const reference = { text: 'Reference', collapsed: true, items: itemsOf(list, read(list), known) };
  reference.items.unshift({ text: 'All entries', link: '/docs/reference/' });
  return [
    {
      text: 'Start',
      items: [
        { text: 'runchart', link: '/' },
        { text: 'All pages', link: '/docs/' },
      ],
    },
    ...groups,
    reference,
  ];
}

export default defineConfig({
  title: 'runchart',
  description: 'LLM agent runs as XState statecharts',
  srcDir: 'pages',
  srcExclude: ['public/**'],
  rewrites: {
    'README.md': 'index.md',
    'docs/README.md': 'docs/index.md',
    'docs/reference/README.md': 'docs/reference/index.md',
  },
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
