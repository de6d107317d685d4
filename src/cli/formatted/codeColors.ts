/**
 * The colours of code, by language. Invariant: pure, and the text of the spans is the text of the line. A language that
 * is not known, and a very long line, stay plain.
 */
import * as languages from '@speed-highlight/core/languages';
import { type ShjLanguageData, type ShjToken, tokenizeWith } from '@speed-highlight/core/tokenize';
import type { Span, Style } from '../screen.ts';

const LINE_MAX = 500;
/** The lines before that decide the colours of a line, for comments and texts of several lines. */
const CONTEXT_LINES = 60;

const ALIASES: { readonly [name: string]: string } = {
  ...{ javascript: 'js', jsx: 'js', mjs: 'js', cjs: 'js', typescript: 'ts', tsx: 'ts', mts: 'ts', python: 'py' },
  ...{ sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', rust: 'rs', golang: 'go', perl: 'pl' },
  ...{ cpp: 'c', 'c++': 'c', cc: 'c', h: 'c', hpp: 'c', kotlin: 'java', csharp: 'java', cs: 'java', scala: 'java' },
  ...{ yml: 'yaml', jsonc: 'json', json5: 'json', scss: 'css', less: 'css', svg: 'xml', dockerfile: 'docker' },
  ...{ makefile: 'make', markdown: 'md', patch: 'diff', conf: 'ini', env: 'ini' },
};

const STYLES: { readonly [token in ShjToken]?: Style } = {
  ...{ kwd: 'magenta', str: 'green', cmnt: 'dim', num: 'yellow', bool: 'yellow', esc: 'yellow', type: 'yellow' },
  ...{ class: 'yellow', func: 'cyan', section: 'bold', insert: 'green', deleted: 'red' },
} as const;

const languagesByName = languages as unknown as { readonly [name: string]: ShjLanguageData };

function languageOf(info: string): ShjLanguageData | undefined {
  const name = info.toLowerCase();
  const language = Object.hasOwn(ALIASES, name) ? (ALIASES[name] ?? name) : name;
  return Object.hasOwn(languagesByName, language) ? languagesByName[language] : undefined;
}

/** The spans of one line of code. `before`: the lines before it. */
export function codeSpans(line: string, before: readonly string[], info: string): Span[] {
  const language = languageOf(info);
  const context = before.slice(-CONTEXT_LINES).filter((each) => each.length <= LINE_MAX);
  if (!language || line.length > LINE_MAX) return [['plain', line]];
  const head = context.map((each) => `${each}\n`).join('');
  const spans: Span[] = [];
  let at = 0;
  tokenizeWith(
    head + line,
    language,
    (text, token) => {
      const shown = text.slice(Math.max(0, head.length - at));
      at += text.length;
      if (shown !== '') spans.push([(token && STYLES[token]) ?? 'plain', shown]);
    },
    { languages: languagesByName },
  );
  return spans.map(([, text]) => text).join('') === line ? spans : [['plain', line]];
}
