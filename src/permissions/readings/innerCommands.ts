/**
 * Commands in texts that a command passes to a shell: `bash -c "…"`, `eval`, `trap`, `env -S`. Rule: deny rules, ask
 * rules and protected places apply inside such a text. The text never allows anything.
 */
import { baseName, innerScripts, strictForms } from '../commandForms.ts';
import { readShellLine, type ShellLine, type ShellRedirect, type SimpleCommand } from '../shellSyntax.ts';

const NESTED_MAX = 4;

/** The shell lines in the texts of a command, including nested ones. */
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

/** True for a shell that reads its commands from a pipe or from another process. */
export function readsCommands({ words, input, redirects }: SimpleCommand): boolean {
  const [name, ...options] = words;
  const isShell = /^(ba|z|da|k|a)?sh$/.test(baseName(name?.value ?? ''));
  const takesInput = options.every(({ value }) => /^-s?$/.test(value));
  const takesFile = redirects.some(({ operator, target }) => operator === '<' && target?.isProcess !== true);
  return isShell && takesInput && input.length === 0 && !takesFile;
}

/** Splits a text that is no valid shell line into the pieces that may be commands. */
export function piecesOf(text: string): string[] {
  const pieces = text.split(/[\n;&|(){}`"'$<>]+/).map((piece) => piece.trim());
  const forms = (piece: string): string[] => [piece, ...readShellLine(piece).commands.flatMap(strictForms)];
  return [...new Set(pieces)].filter((piece) => piece !== '').flatMap(forms);
}
