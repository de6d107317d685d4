/**
 * The text of an HTML page: headings, lists, links, code and paragraphs as Markdown. Rule: a page is read once from its
 * beginning to its end, so that no page takes long. Scripts, styles and hidden elements are left out.
 */

const LEFT_OUT: ReadonlySet<string> = new Set('script style noscript template svg math iframe object'.split(' '));
const BLOCKS: ReadonlySet<string> = new Set(
  `address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4
   h5 h6 header hr li main nav ol p pre section summary table tbody thead tr ul`.split(/\s+/),
);
const PARAGRAPHS: ReadonlySet<string> = new Set('p h1 h2 h3 h4 h5 h6 pre ul ol table blockquote dl'.split(' '));
/** Elements that a slash at the end of their tag closes. In HTML it closes no other. */
const SELF_CLOSING: ReadonlySet<string> = new Set(['svg', 'math']);
const TAG = /^<(\/?)([a-zA-Z][a-zA-Z0-9-]*)/;
const ADDRESS_MAX = 500;

export interface PageText {
  title: string;
  text: string;
}

/** `base`: the address that links of the page are relative to. */
export function htmlText(html: string, base: string): PageText {
  const writer = new PageWriter(base);
  for (let at = 0; at < html.length; ) {
    const open = html.indexOf('<', at);
    writer.text(html.slice(at, open === -1 ? html.length : open));
    if (open === -1) break;
    at = afterMarkup(html, open, writer);
  }
  return writer.end();
}

/** Handles the markup at `open`, and returns the position after it. */
function afterMarkup(html: string, open: number, writer: PageWriter): number {
  // `<!-->` is a comment too.
  if (html.startsWith('<!--', open)) return after(html, '-->', open + 2);
  const match = TAG.exec(html.slice(open, open + 64));
  if (!match) {
    const isMarkup = /^<[!?/]/.test(html.slice(open, open + 2));
    if (!isMarkup) writer.text('<');
    return isMarkup ? after(html, '>', open) : open + 1;
  }
  const [whole, slash, written = ''] = match;
  const name = written.toLowerCase();
  const end = endOfTag(html, open + whole.length);
  if (slash === '/') writer.close(name);
  else writer.open(name, html.slice(open + whole.length, Math.max(open + whole.length, end - 1)));
  const isEmpty = SELF_CLOSING.has(name) && html.startsWith('/>', end - 2);
  if (slash === '/' || isEmpty || !LEFT_OUT.has(name)) return end;
  return endOfElement(html, name, end);
}

const after = (html: string, text: string, from: number): number => {
  const at = html.indexOf(text, from);
  return at === -1 ? html.length : at + text.length;
};

/** The position after the `>` of a tag; quoted values may hold one. Blanks may follow the equals sign. */
function endOfTag(html: string, from: number): number {
  let quote = '';
  let isValue = false;
  for (let at = from; at < html.length; at += 1) {
    const character = html[at] ?? '';
    if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === '>') return at + 1;
    else if ((character === '"' || character === "'") && isValue) quote = character;
    if (!/\s/.test(character)) isValue = character === '=' && quote === '';
  }
  return html.length;
}

function endOfElement(html: string, name: string, from: number): number {
  for (let at = html.indexOf('</', from); at !== -1; at = html.indexOf('</', at + 2))
    if (html.slice(at + 2, at + 2 + name.length).toLowerCase() === name) return after(html, '>', at);
  return html.length;
}

class PageWriter {
  readonly #base: string;
  readonly #pieces: string[] = [];
  #title = '';
  #isTitle = false;
  /** The depth of `pre` elements. */
  #verbatim = 0;
  /** Line breaks that are due before the next text. */
  #breaks = 0;
  #hasSpace = false;
  #link: { address: string; from: number } | undefined;

  constructor(base: string) {
    this.#base = base;
  }

  text(raw: string): void {
    if (raw !== '') this.#words(decoded(raw));
  }

  #words(text: string): void {
    if (this.#isTitle) {
      this.#title += text;
    } else if (this.#verbatim > 0) this.#write(text);
    else {
      const words = text.replace(/\s+/g, ' ');
      if (words.startsWith(' ')) this.#hasSpace = true;
      if (words.trim() === '') return;
      this.#write(`${this.#hasSpace && this.#breaks === 0 ? ' ' : ''}${words.trim()}`);
      this.#hasSpace = words.endsWith(' ');
    }
  }

  open(name: string, attributes: string): void {
    if (name === 'title') this.#isTitle = true;
    if (name === 'br') this.#break(1);
    if (BLOCKS.has(name)) this.#break(PARAGRAPHS.has(name) ? 2 : 1);
    if (/^h[1-6]$/.test(name)) this.#mark(`${'#'.repeat(Number(name[1]))} `);
    if (name === 'li') this.#mark('- ');
    if (name === 'td' || name === 'th') this.#cell();
    if (name === 'hr') {
      this.#write('---');
      this.#break(1);
    }
    if (name === 'pre') {
      this.#mark('```\n');
      this.#verbatim += 1;
    }
    if (name === 'img') this.#words(attributeOf(attributes, 'alt') ?? '');
    if (name === 'a') this.#openLink(attributeOf(attributes, 'href'));
  }

  close(name: string): void {
    if (name === 'title' || name === 'head') this.#isTitle = false;
    if (name === 'a') this.#closeLink();
    if (name === 'pre' && this.#verbatim > 0) {
      this.#verbatim -= 1;
      this.#write('\n```');
    }
    if (BLOCKS.has(name)) this.#break(PARAGRAPHS.has(name) ? 2 : 1);
  }

  end(): PageText {
    const lines = this.#pieces.join('').split('\n');
    const trimmed = lines.map((line) => line.trimEnd()).join('\n');
    const text = trimmed.replace(/\n{3,}/g, '\n\n');
    return { title: this.#title.replace(/\s+/g, ' ').trim(), text: text.trim() };
  }

  #cell(): void {
    this.#hasSpace = true;
    this.#mark('| ');
  }

  #mark(text: string): void {
    if (this.#hasSpace && this.#breaks === 0) this.#pieces.push(' ');
    this.#hasSpace = false;
    this.#write(text);
  }

  #write(text: string): void {
    if (this.#pieces.length > 0) this.#pieces.push('\n'.repeat(this.#breaks));
    this.#breaks = 0;
    this.#pieces.push(text);
  }

  #break(count: number): void {
    this.#breaks = Math.max(this.#breaks, count);
    this.#hasSpace = false;
  }

  #openLink(href: string | undefined): void {
    const address = href === undefined || !URL.canParse(href, this.#base) ? '' : new URL(href, this.#base).href;
    const isShown = /^https?:/.test(address) && address.length <= ADDRESS_MAX && !href?.startsWith('#');
    this.#link = isShown ? { address, from: this.#pieces.length } : undefined;
  }

  /** The address follows the text of its link. */
  #closeLink(): void {
    const link = this.#link;
    this.#link = undefined;
    if (!link || this.#pieces.slice(link.from).join('').trim() === '') return;
    this.#pieces.push(` (${link.address})`);
  }
}

function attributeOf(attributes: string, name: string): string | undefined {
  const pattern = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, 'i');
  const match = pattern.exec(attributes.slice(0, ATTRIBUTES_MAX));
  const value = match?.[1] ?? match?.[2] ?? match?.[3];
  return value === undefined ? undefined : decoded(value).trim();
}
const ATTRIBUTES_MAX = 4_096;

const ENTITIES: { readonly [name: string]: string } = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', copy: '©', reg: '®', trade: '™', hellip: '…' },
  ...{ mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', bull: '•', middot: '·', laquo: '«' },
  ...{ raquo: '»', times: '×', larr: '←', rarr: '→', deg: '°', euro: '€', pound: '£', sect: '§', para: '¶' },
  ...{ auml: 'ä', ouml: 'ö', uuml: 'ü', Auml: 'Ä', Ouml: 'Ö', Uuml: 'Ü', szlig: 'ß', eacute: 'é', egrave: 'è' },
};

const decoded = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/g, (written, decimal, hex, name) => {
    if (name !== undefined) return (Object.hasOwn(ENTITIES, name) && ENTITIES[name]) || written;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '\uFFFD';
  });
