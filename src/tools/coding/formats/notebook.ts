/**
 * A Jupyter notebook as text: its cells in their order, with their output. Rule: the file is untrusted, so a text that is no notebook
 * gives undefined and is shown as text. The result is bounded.
 */
import { beginning } from '../../../printable.ts';
import { isObject } from '../../../validation.ts';
import { plainText } from '../shell.ts';

const OUTPUT_CHARACTERS_MAX = 4_000;

/** `bytesMax` limits the result. Undefined if the text is no notebook. */
export function notebookText(source: string, bytesMax: number): string | undefined {
  const notebook = parsed(source);
  const cells = notebook && cellsOf(notebook);
  if (!cells) return undefined;
  const language = languageOf(notebook);
  const shown: string[] = [];
  let bytes = 0;
  for (const [index, cell] of cells.entries()) {
    const text = cellText(cell, index + 1, language);
    bytes += Buffer.byteLength(text) + 2;
    if (bytes > bytesMax) {
      const rest = `[cells ${index + 1} to ${cells.length} are not shown; with offset the lines of the file are given]`;
      return [...shown, rest].join('\n\n');
    }
    shown.push(text);
  }
  return shown.length === 0 ? '[a notebook without cells]' : shown.join('\n\n');
}

type Fields = { readonly [key: string]: unknown };

function parsed(source: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(source);
    return isObject(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function cellsOf(notebook: Fields): Fields[] | undefined {
  if (typeof notebook.nbformat !== 'number' || !Array.isArray(notebook.cells)) return undefined;
  return notebook.cells.every((cell) => isObject(cell)) ? (notebook.cells as Fields[]) : undefined;
}

function languageOf({ metadata }: Fields): string {
  const about = isObject(metadata) ? (metadata as Fields).language_info : undefined;
  const name = isObject(about) ? (about as Fields).name : undefined;
  return typeof name === 'string' && /^[\w+#.-]{1,30}$/.test(name) ? name : '';
}

function cellText(cell: Fields, number: number, language: string): string {
  const type = typeof cell.cell_type === 'string' ? printed(cell.cell_type).slice(0, 30) : 'unknown';
  const isCode = type === 'code';
  const heading = `[cell ${number}: ${type}${isCode && language !== '' ? `, ${language}` : ''}]`;
  const outputs = isCode && Array.isArray(cell.outputs) ? cell.outputs.filter((each) => isObject(each)) : [];
  const texts = outputs.map((each) => outputText(each as Fields)).filter((text) => text !== '');
  return [heading, printed(joined(cell.source)), ...texts.map((text) => `[output]\n${text}`)].join('\n');
}

function outputText(output: Fields): string {
  if (output.output_type === 'stream') return cut(printed(joined(output.text)));
  if (output.output_type === 'error')
    return cut(
      printed([`${textOf(output.ename)}: ${textOf(output.evalue)}`, joined(output.traceback, '\n')].join('\n')),
    );
  const forms = isObject(output.data) ? (output.data as Fields) : {};
  const text = joined(forms['text/plain'] ?? forms['text/markdown']);
  const others = Object.keys(forms).filter((type) => /^(?:image|application|video|audio)\//.test(type));
  return [cut(printed(text)), ...others.map((type) => `[${printed(type).slice(0, 100)} is not shown]`)]
    .filter((each) => each !== '')
    .join('\n');
}

/** Texts of a notebook are a string or a list of lines. */
const joined = (value: unknown, between = ''): string =>
  Array.isArray(value) ? value.map(textOf).join(between) : typeof value === 'string' ? value : '';

/** An object of the file may have a `toString` that is no function. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined'));

const printed = (text: string): string => plainText(Buffer.from(text, 'utf8')).trimEnd();

function cut(text: string): string {
  if (text.length <= OUTPUT_CHARACTERS_MAX) return text;
  const kept = beginning(text, OUTPUT_CHARACTERS_MAX);
  return `${kept}\n[${text.length - kept.length} characters left out]`;
}
