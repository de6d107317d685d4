/**
 * Reads a profile of `sandbox-exec` and returns its permissions. Invariant: written from the manual of the language
 * alone, with strings as its reader parses them. A badly quoted path ends the reading or becomes another path.
 */
type Form = string | Text | readonly Form[];
interface Text {
  text: string;
}

/** An act of a command: a file operation and its path, or another operation. */
export type Allows = (operation: string, path?: string) => boolean;

export function readProfile(profile: string): Allows {
  const forms = new Reader(profile).all();
  const rules = forms.flatMap((form) => (isList(form) && (form[0] === 'allow' || form[0] === 'deny') ? [form] : []));
  const rest = forms.filter((form) => !rules.includes(form as readonly Form[]));
  if (
    JSON.stringify(rest) !==
    JSON.stringify([
      ['version', '1'],
      ['import', { text: 'system.sb' }],
    ])
  )
    throw new Error(`unknown forms: ${JSON.stringify(rest)}`);
  const [first, ...allowing] = rules;
  if (JSON.stringify(first) !== '["deny","default"]' || allowing.some(([action]) => action !== 'allow'))
    throw new Error('only what is allowed may be allowed: (deny default) first, and nothing but (allow …) after it');
  return (operation, path) => allowing.some(([, ...words]) => fits(words, operation, path));
}

const isList = (form: Form | undefined): form is readonly Form[] => Array.isArray(form);

function fits(words: readonly Form[], operation: string, path: string | undefined): boolean {
  const operations = words.flatMap((word) => (typeof word === 'string' ? [word] : []));
  const filters = words.slice(operations.length);
  const isMeant = operations.some((name) =>
    name.endsWith('*') ? operation.startsWith(name.slice(0, -1)) : name === operation,
  );
  return isMeant && (filters.length === 0 || filters.some((filter) => holds(filter, path)));
}

function holds(filter: Form, path: string | undefined): boolean {
  if (!isList(filter)) throw new Error(`no filter: ${JSON.stringify(filter)}`);
  const [name, ...values] = filter;
  const [value] = values;
  const stringValue = typeof value === 'object' && !isList(value) ? value.text : undefined;
  switch (name) {
    case 'require-all':
      return values.every((each) => holds(each, path));
    case 'require-not':
      return values.length === 1 && !holds(values[0] ?? '', path);
    case 'subpath':
      return path !== undefined && (stringValue === '/' || path === stringValue || path.startsWith(`${stringValue}/`));
    case 'literal':
      return path === stringValue;
    case 'regex':
      return path !== undefined && new RegExp(stringValue ?? '(').test(path);
    case 'target':
    case 'remote':
    case 'local':
    case 'global-name':
      return path === undefined;
    default:
      throw new Error(`unknown filter: ${JSON.stringify(filter)}`);
  }
}

const ESCAPES: { readonly [letter: string]: string } = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' };

class Reader {
  #at = 0;
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  all(): Form[] {
    const forms: Form[] = [];
    for (this.#blanks(); this.#at < this.#source.length; this.#blanks()) forms.push(this.#form());
    return forms;
  }

  #blanks(): void {
    while (/\s/.test(this.#source[this.#at] ?? '')) this.#at += 1;
  }

  #form(): Form {
    const start = this.#source[this.#at];
    if (start === '(') return this.#list();
    if (start === '"') return this.#text();
    const word = /^[^\s()"]+/.exec(this.#source.slice(this.#at))?.[0];
    if (word === undefined)
      throw new Error(`unexpected at ${this.#at}: ${this.#source.slice(this.#at, this.#at + 20)}`);
    this.#at += word.length;
    return word;
  }

  #list(): Form[] {
    const forms: Form[] = [];
    this.#at += 1;
    for (this.#blanks(); this.#source[this.#at] !== ')'; this.#blanks()) {
      if (this.#at >= this.#source.length) throw new Error('a list has no end');
      forms.push(this.#form());
    }
    this.#at += 1;
    return forms;
  }

  #text(): Text {
    let text = '';
    for (this.#at += 1; this.#source[this.#at] !== '"'; this.#at += 1) {
      let letter = this.#source[this.#at];
      if (letter === '\\') {
        this.#at += 1;
        letter = ESCAPES[this.#source[this.#at] ?? ''];
      }
      if (letter === undefined) throw new Error('a string has no end, or an unknown escape');
      text += letter;
    }
    this.#at += 1;
    return { text };
  }
}
