/**
 * Aliases that a line defines for its own later commands. Rule: deny and ask rules apply to the command with the alias
 * expanded, whether or not bash would expand it.
 */
import { textOf } from '../commandForms.ts';
import type { SimpleCommand } from '../shellSyntax.ts';
import type { ShellWord } from '../wordExpansion.ts';
import { baseName, unwrapped } from '../wrappers.ts';

export type Aliases = ReadonlyMap<string, string>;

/** The text of each alias, by its name. `hash -p file name` counts as an alias too. */
export function aliasesIn(commands: readonly SimpleCommand[]): Aliases {
  const aliases = new Map<string, string>();
  for (const { words } of commands) {
    const [name, ...args] = unwrapped(words);
    if (baseName(name?.value ?? '') === 'alias')
      for (const { value, source, isLiteral } of args) {
        const [, alias, text] = /^([^=]+)=(.*)$/s.exec(isLiteral ? value : source) ?? [];
        if (alias !== undefined && text !== undefined) aliases.set(alias, text);
      }
    const [option, file, ...hashed] = args;
    if (name?.value === 'hash' && option?.value === '-p' && file)
      for (const { value } of hashed) aliases.set(value, textOf([file]));
  }
  return aliases;
}

/** The command with its alias in place of its name. If the alias ends with a blank, the next word may be one too. */
export function expandedAlias(command: readonly ShellWord[], aliases: Aliases): string | undefined {
  const words = unwrapped(command);
  let text = '';
  let at = 0;
  for (let alias = aliases.get(words[at]?.value ?? ''); alias !== undefined; ) {
    text += `${alias} `;
    at += 1;
    alias = /\s$/.test(alias) ? aliases.get(words[at]?.value ?? '') : undefined;
  }
  return at === 0 ? undefined : text + textOf(words.slice(at));
}

/** True for a command that defines aliases which the rules cannot read. */
export const definesUnknownAlias = ({ words, assigned }: SimpleCommand): boolean =>
  assigned.some(({ name }) => BASH_LISTS.test(name)) ||
  words.some(({ value }) => BASH_LISTS.test(value)) ||
  (baseName(words[0]?.value ?? '') === 'alias' &&
    words.some(({ isLiteral, source }) => !isLiteral && !/^[\w.-]+=/.test(source)));

/** Bash stores aliases and remembered places of commands in these. */
const BASH_LISTS = /^(BASH_ALIASES|BASH_CMDS)\b/;
