/**
 * Reads a Markdown file with front matter: YAML between two lines `---`, then the text. Rule: the file is untrusted, so
 * YAML is read without aliases and tags. Front matter that is no YAML but lines of `key: text` is read as such, because
 * other programs write descriptions with colons and without quotes.
 */
import { ConfigurationError, thrownMessage } from '../../errors.ts';
import { isObject } from '../../validation.ts';

export interface MarkdownParts {
  readonly fields: { readonly [name: string]: unknown };
  /** The text after the front matter. */
  readonly body: string;
}

const FRONT = /^---[ \t]*\n(?:([\s\S]*?)\n)?---[ \t]*(?:\n|$)/;
const LINE = /^([A-Za-z][\w-]*):[ \t]*(.*)$/;

/** Rejects with a ConfigurationError if the front matter cannot be read. */
export async function markdownParts(source: string): Promise<MarkdownParts> {
  const text = source.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
  if (!/^---[ \t]*\n/.test(text)) return { fields: {}, body: text.trim() };
  const match = FRONT.exec(text);
  if (!match) throw new ConfigurationError('its front matter has no end: a second line --- is missing');
  return { fields: await fieldsOf(match[1] ?? ''), body: text.slice(match[0].length).trim() };
}

/** The parser is loaded only when there is such a file. */
async function fieldsOf(yaml: string): Promise<MarkdownParts['fields']> {
  const { parse } = await import('yaml');
  try {
    // The first line of the file is the mark, so positions in errors are those of the file.
    const value: unknown = parse(`\n${yaml}`, { schema: 'core', maxAliasCount: 0, logLevel: 'error' });
    if (value === null) return {};
    if (isObject(value)) return value;
  } catch (error) {
    const lines = lineFields(yaml);
    if (lines) return lines;
    const [why] = thrownMessage(error).split(/:?\n/, 1);
    throw new ConfigurationError(`its front matter is no YAML: ${why}`, { cause: error });
  }
  throw new ConfigurationError('its front matter must be names and values, like "description: Reviews changes"');
}

/** Undefined if one of the lines has another form. */
function lineFields(yaml: string): { [name: string]: string } | undefined {
  const fields: { [name: string]: string } = Object.create(null);
  for (const line of yaml.split('\n')) {
    if (line.trim() === '') continue;
    const [, name, value = ''] = LINE.exec(line) ?? [];
    if (name === undefined || /^[[{&*|>"']/.test(value)) return undefined;
    fields[name] = value.trim();
  }
  return fields;
}

/** A field that must be a text, on one line; undefined if it is absent or empty. Throws a ConfigurationError. */
export function textField({ fields }: MarkdownParts, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return value.replaceAll(/\s+/g, ' ').trim();
  throw new ConfigurationError(`${name} must be a text`);
}

/** A field that lists names, in YAML or separated by commas; undefined if it is absent. Throws a ConfigurationError. */
export function listField({ fields }: MarkdownParts, name: string): string[] | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  const parts = typeof value === 'string' ? value.split(',') : value;
  if (Array.isArray(parts) && parts.every((part) => typeof part === 'string'))
    return parts.map((part: string) => part.trim()).filter((part) => part !== '');
  throw new ConfigurationError(`${name} must be a list of names, like "Read, Grep"`);
}
