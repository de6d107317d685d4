/** Follows every link of the built site, with its anchor. Invariant: a page of the site links to no missing page, file or heading. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const dist = join(import.meta.dirname, '.vitepress/dist');
const pages = readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.html'));
const textOf = (page) => readFileSync(join(dist, page), 'utf8');
const decode = (text) => decodeURIComponent(text.replaceAll('&amp;', '&'));

const idsOf = new Map();
function hasId(file, id) {
  if (!idsOf.has(file)) {
    const ids = readFileSync(file, 'utf8').matchAll(/\sid="([^"]+)"/g);
    idsOf.set(file, new Set([...ids].map(([, found]) => found.replaceAll('&amp;', '&'))));
  }
  return idsOf.get(file).has(id);
}

/** A server of static files answers a path with the page of that name, or with the index of that folder. */
const fileOf = (path) =>
  [path, `${path}.html`, join(path, 'index.html')].find((file) => existsSync(file) && statSync(file).isFile());

function isAlive(page, link) {
  const [path, anchor] = link.split('#');
  const place = path === '' ? page : path.startsWith('/') ? path : join(dirname(page), path);
  const file = fileOf(join(dist, decode(place)));
  return file !== undefined && (!anchor || !file.endsWith('.html') || hasId(file, decode(anchor)));
}

let count = 0;
const dead = pages.flatMap((page) => {
  const links = [...textOf(page).matchAll(/<(?:a|img|link|script)\s[^>]*?(?:href|src)="([^"]+)"/g)]
    .map(([, link]) => link)
    .filter((link) => !/^(?:https?|data|mailto):/.test(link));
  count += links.length;
  return links.filter((link) => !isAlive(page, link)).map((link) => `${page}: ${link}`);
});
console.log(`${pages.length} pages, ${count} links, ${dead.length} dead`);
for (const line of new Set(dead)) console.log(line);
process.exitCode = dead.length > 0 ? 1 : 0;
