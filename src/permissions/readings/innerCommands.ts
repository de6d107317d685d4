/**
 * Commands in texts that a command hands to a shell: `bash -c "…"`, `eval`, `trap`, `env -S`. Rule: what is denied, asked about or
 * protected is so in such a text too; nothing is allowed because of what stands in it.
 */
import { baseName, innerScripts, strictForms } from '../commandForms.ts';
import { readShellLine, type ShellLine, type ShellRedirect, type SimpleCommand } from '../shellSyntax.ts';

const NESTED_MAX = 4;

/** The lines in the texts of a command, and in those of the commands in them. */
export function innerLines(command: SimpleCommand, depth = 0): ShellLine[] {
  if (depth > NESTED_MAX) return [];
  return innerScripts(command).flatMap((text) => {
    const line = readShellLine(text);
    return [line, ...line.commands.flatMap((inner) => innerLines(inner, depth + 1))];
  });
}

export const redirectsOf = ({ redirects, commands }: ShellLine): ShellRedirect[] => [
  ...redirects,
  ...commands.flatMap((command) => command.redirects),
];

/** A shell that reads what it runs from a pipe or from another process. */
export function readsCommands({ words, input, redirects }: SimpleCommand): boolean {
  const [name, ...options] = words;
  const isShell = /^(ba|z|da|k|a)?sh$/.test(baseName(name?.value ?? ''));
  const takesInput = options.every(({ value }) => /^-s?$/.test(value));
  const takesFile = redirects.some(({ operator, target }) => operator === '<' && target?.isProcess !== true);
  return isShell && takesInput && input.length === 0 && !takesFile;
}

/** Of a text that could not be read as a line of the shell: what may be commands between its separators. */
export function piecesOf(text: string): string[] {
  const pieces = text.split(/[\n;&|(){}`"'$<>]+/).map((piece) => piece.trim());
  const forms = (piece: string): string[] => [piece, ...readShellLine(piece).commands.flatMap(strictForms)];
  return [...new Set(pieces)].filter((piece) => piece !== '').flatMap(forms);
}
