/** docs/policies.md: its tables are made from the rows that declare the policies, and something reads each policy. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { policyRows } from '../../src/agentPolicies.ts';
import { read, root } from './documents.ts';
import type { Cells } from './markdownTable.ts';
import { commentsIn, expectTables } from './tables.ts';

interface Row {
  readonly default?: unknown;
  readonly check: { kind?: string; choices?: readonly string[]; least?: number; expected?: string };
  readonly unit?: string;
  readonly isOff?: true;
}
interface Group {
  readonly rows: Rows;
  readonly isOff?: true;
}
type Rows = { readonly [name: string]: Row | Group };

/** The table of each constant with rows, and the prefix of its policies' names. */
const CONSTANTS: { readonly [constant: string]: readonly [table: string, prefix: string] } = {
  messageRows: ['messages', ''],
  toolRows: ['tools', ''],
  toolRetryRows: ['tools', 'toolRetry.'],
  hostToolRows: ['tools', ''],
  modelRows: ['models', ''],
  hostModelRows: ['models', ''],
  lifeRows: ['life', ''],
  hostLifeRows: ['life', ''],
  limitRows: ['limits', 'limits.'],
};

interface Declared {
  readonly table: string;
  readonly name: string;
  readonly sentence: string;
}
const declared = ['machines/policyRows.ts', 'src/agentPolicies.ts'].flatMap((file) =>
  commentsIn(file).flatMap(({ path: [constant = '', ...keys], sentence }): Declared[] => {
    const place = CONSTANTS[constant];
    if (!place || keys.length === 0) return [];
    return [{ table: place[0], name: `${place[1]}${keys.filter((key) => key !== 'rows').join('.')}`, sentence }];
  }),
);

/** Policies by their paths, and groups that can be off. */
const flat = (rows: Rows, prefix = ''): [name: string, cell: Row | Group][] =>
  Object.entries(rows).flatMap(([key, cell]): [string, Row | Group][] => {
    if (!('rows' in cell)) return [[`${prefix}${key}`, cell]];
    return [
      ...(cell.isOff ? [[`${prefix}${key}`, cell] as [string, Group]] : []),
      ...flat(cell.rows, `${prefix}${key}.`),
    ];
  });
const policies = new Map(flat(policyRows as unknown as Rows));

/** A value as one writes it. */
function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const fields = Object.entries(value).map(([key, child]) => `${key}: ${literal(child)}`);
  return `{ ${fields.join(', ')} }`;
}
const code = (value: unknown): string => `\`${literal(value)}\``;

function valuesOf({ check: { kind, choices = [], least, expected = '' } }: Row): string {
  if (kind === 'choice') return choices.map(code).join(', ');
  if (kind === 'some') return `a list of ${choices.map(code).join(', ')}`;
  if (kind === 'flag') return '`true`, `false`';
  if (kind === undefined) return expected.replaceAll(/"(\w+)"/g, "`'$1'`");
  return `a ${kind === 'whole' ? 'whole number' : 'number'} of at least ${least}`;
}

function cellsOf({ name, sentence }: Declared): Cells {
  const cell = policies.get(name);
  if (!cell) throw new Error(`${name} has a comment and no row`);
  if ('rows' in cell) return [`\`${name}\``, '`false`', '`false`, or an object of the policies below', sentence];
  const unit = cell.unit === undefined || cell.default === false ? '' : ` ${cell.unit}`;
  const standard = cell.default === undefined ? 'none' : `${code(cell.default)}${unit}`;
  const values = `${cell.isOff ? '`false`, or ' : ''}${valuesOf(cell)}${cell.isOff && cell.unit ? `, in ${cell.unit}` : ''}`;
  return [`\`${name}\``, standard, values, sentence];
}

const HEAD: Cells = ['policy', 'default', 'values', 'meaning'];

describe('docs/policies.md', () => {
  /** A group that is never off has no row. */
  const places = [...policies.keys()];
  const rows = declared
    .filter(({ name }) => policies.has(name))
    .sort((a, b) => places.indexOf(a.name) - places.indexOf(b.name));

  it('has a row for each policy, with its default, its values and the comment of its declaration', async () => {
    expect(rows.map(({ name }) => name).sort()).toEqual([...policies.keys()].sort());
    const tables = [...new Set(rows.map(({ table }) => table))];
    await expectTables(
      'docs/policies.md',
      Object.fromEntries(
        tables.map((name) => [name, [HEAD, ...rows.filter(({ table }) => table === name).map(cellsOf)]]),
      ),
    );
  });

  it('has a sentence for each', () => {
    expect(rows.filter(({ sentence }) => !/^[A-Z0-9].*\.$/.test(sentence)).map(({ name }) => name)).toEqual([]);
  });

  /** The files that use policies, without their definition and the cases of generated tests. */
  const users = ['machines', 'src']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, String(name))))
    .filter((file) => file.endsWith('.ts') && !/\.(cases|inputs|surroundings)\.ts$/.test(file))
    .filter((file) => !/(policies|policyRows|options)\.ts$/.test(file))
    .map((file) => read(file).replace(/^\s*(\/\*\*|\*|\/\/).*$/gm, ''));

  /** Policies that a function beside their definition reads: each caller of the function uses them. */
  const readers = new Map([
    ['fallbackModels', 'modelsOf'],
    ...['baseMs', 'factor', 'capMs', 'jitter'].map((name) => [name, 'backoffMs'] as const),
  ]);

  it.each([...policies.keys()])('%s is in effect: something reads it', (name) => {
    const own = name.split('.').at(-1) ?? name;
    const key = readers.get(own) ?? own;
    expect(users.some((text) => new RegExp(`\\b${key}\\b`).test(text))).toBe(true);
  });
});
