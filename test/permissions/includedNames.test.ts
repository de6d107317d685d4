/** Hidden files that ripgrep searches because an option or an ignore file includes them. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rgPath } from '@vscode/ripgrep';
import { beforeEach, describe, expect, it } from 'vitest';
import type { PermissionOptions } from '../../src/node.ts';
import { includesName } from '../../src/permissions/readings/includedNames.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const hiding: PermissionOptions = { deny: ['read(**/.env)'] };
let ws = '';
beforeEach(async () => {
  ws = await workspace();
});
const outcome = async (command: string, options = hiding): Promise<string> =>
  (await explain(options, 'Bash', { command }, ws)).outcome;

/** True if ripgrep shows a hidden file. The words of these lines have no blanks in quotes. */
function shows(command: string): boolean {
  const args = command.replaceAll("'", '').split(' ').slice(1);
  try {
    return execFileSync(rgPath, args, { cwd: ws, input: '', stdio: ['pipe', 'pipe', 'ignore'] }).includes('KEY=');
  } catch {
    return false;
  }
}

describe('under a rule that hides a file with a leading dot', () => {
  it.each([
    "rg KEY -g '*' .",
    "rg KEY -g '.e*' .",
    "rg -ng'.e*' KEY .",
    'rg --glob=.env KEY .',
    "rg --glob '**' KEY .",
    "rg -g '{a,.env}' KEY .",
    "rg -g='.[e]nv' KEY .",
    'rg --iglob=.ENV KEY .',
    "rg --glob-case-insensitive -g '.E*' KEY .",
    'rg -tsh KEY .',
    'rg -t all KEY .',
    'rg --type=all KEY .',
    'rg --type-add=x:.env -tx KEY .',
  ])('a search that includes the file is asked about: %s', async (command) => {
    expect(shows(command)).toBe(true);
    expect(await outcome(command)).not.toBe('allow');
  });

  it.each([
    'rg KEY',
    "rg -g '*.ts' KEY",
    "rg -g '*.{ts,tsx}' KEY",
    "rg --glob 'src/*.ts' KEY",
    "rg -g '!src' KEY",
    'rg --type ts KEY',
    'rg -nttypescript KEY',
    'rg -T sh KEY',
  ])('a search that leaves the file out runs without a question: %s', async (command) => {
    expect(shows(`${command} .`)).toBe(false);
    expect(await outcome(command)).toBe('allow');
  });

  it.each([
    ['.ignore', '!.env'],
    ['.rgignore', 'x\n!*\n'],
    ['.gitignore', '.env*\r\n!.env\r\n'],
    ['.git/info/exclude', '!/sub/.env '],
    ['sub/.ignore', '!.e?v'],
    ['../.ignore', '\uFEFF!.env'],
  ])('a search is asked about where %s includes the file', async (file, text) => {
    mkdirSync(join(ws, file, '..'), { recursive: true });
    writeFileSync(join(ws, file), text);
    expect(shows('rg KEY .')).toBe(true);
    expect(await outcome('rg KEY')).toBe('ask');
    expect(await outcome('npm test; rg KEY', { ...hiding, allow: ['bash(npm test)'] })).toBe('ask');
    expect(await outcome('rg KEY src')).toBe('allow');
  });

  it('an ignore file that includes other names makes no question', async () => {
    writeFileSync(join(ws, '.gitignore'), '.env*\n!.env.example\n!keep\n');
    expect(shows('rg KEY .')).toBe(false);
    expect(await outcome('rg KEY')).toBe('allow');
  });

  it('an ignore file that is no file, or too long, includes every name', async () => {
    execFileSync('mkfifo', [join(ws, '.ignore')]);
    expect(await outcome('rg KEY')).toBe('ask');
    expect(await outcome('rg KEY docs')).toBe('allow');
    writeFileSync(join(ws, 'sub/.gitignore'), '#'.repeat(300_000));
    expect(await outcome('rg KEY sub')).toBe('ask');
  });
});

it.each([
  ['*', true],
  ['a/**/', true],
  ['/', true],
  ['{a,{b,c}}', true],
  ['*a*b*c*d*e*f*', true],
  ['\\.env', true],
  ['?*.*', false],
  ['#env', false],
  ['.env/x', false],
])('the pattern %s includes the name .env: %s', (pattern, expected) => {
  expect(includesName([pattern], '.env')).toBe(expected);
});
