/**
 * Settings of git on the line (`git -c key=value`) that make it run another command. Rule: deny and ask rules apply to
 * that command. If the line does not show the setting, it is a doubt.
 */
import { SHELLS, textOf, withoutGlobalOptions } from '../commandForms.ts';
import type { SimpleCommand } from '../shellSyntax.ts';
import type { ShellWord } from '../wordExpansion.ts';
import { baseName, readingsOf } from '../wrappers.ts';

/** The first group of each value that matches. */
export const groupsOf = (values: readonly string[], pattern: RegExp): string[] =>
  values.flatMap((value) => pattern.exec(value)?.[1] ?? []);

/**
 * The commands that settings on the line make git run: aliases, programs and addresses with `ext::`. Ends with the text
 * that exceeds this number of characters in all.
 */
export function gitTextsOf({ words }: SimpleCommand, charactersMax: number): string[] {
  const texts = new Set<string>();
  let characters = 0;
  for (const reading of readingsOf(words)) {
    if (baseName(reading[0]?.value ?? '') !== 'git') continue;
    for (const text of textsOf(reading)) {
      if (texts.has(text) || !/[a-z]/i.test(text) || SHELLS.test(baseName(text))) continue;
      texts.add(text);
      characters += text.length;
      if (characters > charactersMax) return [...texts];
    }
  }
  return [...texts];
}

function* textsOf(words: readonly ShellWord[]): Generator<string> {
  const values = words.map(({ value }) => value);
  const [, subcommand, ...args] = withoutGlobalOptions(words) ?? words;
  for (const text of groupsOf(values, /(?:^|[.=])ext::(.+)$/is))
    yield text.replace(/\.(pushI|i)nsteadOf=.*$/is, '').replaceAll('% ', ' ');
  const settings = gitSettings(values);
  const rest = settings.length > 0 ? textOf(args) : '';
  for (const [key, value] of settings) {
    const isShell = value.startsWith('!');
    const isAlias = /^alias\./i.test(key);
    const text = isAlias && !isShell ? `git ${value}` : value.replace(/^!/, '');
    yield text;
    if (isAlias) yield `${text} ${rest}`;
  }
  if (subcommand?.value === 'for-each-repo') yield `git ${textOf(args.filter(({ value }) => !value.startsWith('-')))}`;
}

/** The settings of `git -c key=value`. */
const gitSettings = (values: readonly string[]): [key: string, value: string][] =>
  values.flatMap((value, at): [string, string][] => {
    const setting = /^(?:-c|--config)$/.test(values[at - 1] ?? '') ? value : /^--config=(.*)$/s.exec(value)?.[1];
    const [, key, text] = /^([^=]*\.[^=]*)=(.*)$/s.exec(setting ?? '') ?? [];
    return key !== undefined && text !== undefined ? [[key, text]] : [];
  });

const HARMLESS_KEY = /^(safe\.directory|user\.\w+|init\.defaultbranch|(advice|color)\..*)$/i;

/** The word that makes git use settings which the line does not show. They may contain an alias for any command. */
export function unseenSetting({ words, assigned }: SimpleCommand): string | undefined {
  const variables = [...assigned.map(({ name, value }) => `${name}=${value}`), ...words.map(({ value }) => value)];
  const variable = variables.find((text) => {
    const [, name = '', value = ''] = /^(GIT_CONFIG\w*)=(.*)$/s.exec(text) ?? [];
    if (/^GIT_CONFIG_KEY_/.test(name)) return !HARMLESS_KEY.test(value);
    return /^GIT_CONFIG(_PARAMETERS|_GLOBAL|_SYSTEM)?$/.test(name) && value !== '/dev/null';
  });
  if (variable !== undefined) return variable.split('=')[0];
  for (const [program, ...args] of readingsOf(words)) {
    if (baseName(program?.value ?? '') !== 'git') continue;
    const values = args.map(({ value }) => value);
    const fromVariable = values.find(
      (value, at) =>
        /^--config-env(=|$)/.test(value) &&
        !HARMLESS_KEY.test((/^--config-env=(.*)=/s.exec(value)?.[1] ?? values[at + 1] ?? '').replace(/=[^=]*$/, '')),
    );
    const included = gitSettings(values).find(([key]) => /^include(if\..*)?\.path$/i.test(key))?.[0];
    if (fromVariable !== undefined || included !== undefined) return fromVariable ?? included;
  }
  return undefined;
}
