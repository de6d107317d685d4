/**
 * The agents, commands and skills of the user and the project, from Markdown files. Rule: a file that cannot be used is
 * named with the reason, and the others work. If two have the same name, the one nearer to the working directory is used.
 */
import { ConfigurationError, thrownMessage } from '../../errors.ts';
import { beginning } from '../../printable.ts';
import {
  BYTES_MAX,
  type DefinitionFile,
  type DefinitionFolder,
  type DefinitionPlace,
  definitionFiles,
} from './definitionFiles.ts';
import { listField, type MarkdownParts, markdownParts, textField } from './frontMatter.ts';

interface Definition {
  readonly name: string;
  readonly description: string;
  readonly path: string;
}

export interface AgentDefinition extends Definition {
  /** Names of tools, with `*` for any text; undefined for all. */
  readonly tools: readonly string[] | undefined;
  readonly withoutTools: readonly string[];
  /** Undefined for the model of the session. */
  readonly model: string | undefined;
  readonly instructions: string;
}

/** A message that a person sends by its name. */
export interface CommandDefinition extends Definition {
  /** A placeholder for the arguments in the menu, for example `[file]`. */
  readonly hint: string;
  readonly body: string;
}

export interface SkillDefinition extends Definition {
  readonly body: string;
}

export interface Definitions {
  readonly agents: readonly AgentDefinition[];
  readonly commands: readonly CommandDefinition[];
  readonly skills: readonly SkillDefinition[];
  /** Files that cannot be used, with the reason. */
  readonly problems: readonly string[];
  /** Files of the project that do not count until the user trusts them. */
  readonly untrusted: readonly string[];
}

const NAMES: { readonly [kind in DefinitionFolder]: { rule: RegExp; words: string } } = {
  agents: { rule: /^[a-z0-9][\w-]{0,47}$/i, words: 'at most 48 letters, digits, dashes and underscores' },
  commands: { rule: /^[a-z0-9][\w:-]{0,63}$/i, words: 'at most 64 letters, digits, dashes, underscores and colons' },
  skills: { rule: /^[a-z0-9][\w-]{0,63}$/i, words: 'at most 64 letters, digits, dashes and underscores' },
};
const DESCRIPTION_MAX = 1_024;
/** Values with which other programs name the model of the session. */
const INHERITS = new Set(['inherit', 'default']);

/** Reads all of them. Rejects only if the working directory or the user's record of trust cannot be used. */
export async function loadDefinitions(place: DefinitionPlace): Promise<Definitions> {
  const [agents, commands, skills] = await Promise.all([
    loaded('agents', place, agentOf),
    loaded('commands', place, commandOf),
    loaded('skills', place, skillOf),
  ]);
  const all = [agents, commands, skills];
  return {
    agents: agents.found,
    commands: commands.found,
    skills: skills.found,
    problems: all.flatMap(({ problems }) => problems),
    untrusted: all.flatMap(({ untrusted }) => untrusted),
  };
}

async function loaded<T extends Definition>(
  kind: DefinitionFolder,
  place: DefinitionPlace,
  read: (parts: MarkdownParts, file: DefinitionFile) => T,
): Promise<{ found: T[]; problems: string[]; untrusted: string[] }> {
  const found = new Map<string, T>();
  const problems: string[] = [];
  const untrusted: string[] = [];
  for (const file of await definitionFiles(kind, place)) {
    if (!file.isTrusted) {
      untrusted.push(file.path);
      continue;
    }
    try {
      if (file.cut) throw new ConfigurationError(`it is larger than ${BYTES_MAX} bytes`);
      const definition = read(await markdownParts(file.text), file);
      const { rule, words } = NAMES[kind];
      if (!rule.test(definition.name))
        throw new ConfigurationError(`its name must be ${words}, not ${definition.name}`);
      found.set(definition.name, definition);
    } catch (error) {
      problems.push(`${file.path} is not used: ${thrownMessage(error)}`);
    }
  }
  return { found: [...found.values()], problems, untrusted };
}

function agentOf(parts: MarkdownParts, file: DefinitionFile): AgentDefinition {
  const model = textField(parts, 'model');
  if (parts.body === '') throw new ConfigurationError('it has no instructions: they stand after the front matter');
  return {
    ...definitionOf(parts, file),
    tools: listField(parts, 'tools'),
    withoutTools: listField(parts, 'disallowedTools') ?? [],
    model: model === undefined || INHERITS.has(model) ? undefined : model,
    instructions: parts.body,
  };
}

function skillOf(parts: MarkdownParts, file: DefinitionFile): SkillDefinition {
  return { ...definitionOf(parts, file), body: parts.body };
}

function commandOf(parts: MarkdownParts, { name, path }: DefinitionFile): CommandDefinition {
  if (parts.body === '') throw new ConfigurationError('it has no text to send');
  const [firstLine = ''] = parts.body.split('\n', 1);
  const description = textField(parts, 'description') ?? firstLine.replace(/^#+\s*/, '');
  const hint = parts.fields['argument-hint'];
  return {
    ...{ name, path, description: beginning(description, DESCRIPTION_MAX), body: parts.body },
    // YAML reads `[file]` as a list.
    hint: Array.isArray(hint) ? `[${hint.join(', ')}]` : (textField(parts, 'argument-hint') ?? ''),
  };
}

function definitionOf(parts: MarkdownParts, { name: placeName, path }: DefinitionFile): Definition {
  const name = textField(parts, 'name') ?? placeName.split(':').at(-1) ?? placeName;
  const description = textField(parts, 'description');
  if (description === undefined) {
    throw new ConfigurationError('it has no description: the model chooses by it, like "description: Reviews changes"');
  }
  return { name, description: beginning(description, DESCRIPTION_MAX), path };
}

/** The command at the beginning of a message, and its text; undefined if there is none. */
export function commandIn(
  message: string,
  commands: readonly CommandDefinition[],
): { command: CommandDefinition; text: string } | undefined {
  const [, name, argument = ''] = /^\/([\w:-]+)\s*([\s\S]*)$/.exec(message.trim()) ?? [];
  const command = commands.find((each) => each.name === name);
  return command && { command, text: commandText(command, argument.trim()) };
}

/**
 * The text of a command with its arguments: `$ARGUMENTS` is all of them, `$1` to `$9` are the words. Arguments without a
 * place in the text follow it.
 */
export function commandText({ body }: CommandDefinition, argument: string): string {
  const words = argument.split(/\s+/).filter((word) => word !== '');
  const placed = new Set<number>();
  const text = body.replace(/\$(?:ARGUMENTS\b|([1-9])(?!\d))/g, (_, digit: string | undefined) => {
    const index = Number(digit) - 1;
    for (const each of digit === undefined ? words.keys() : [index]) placed.add(each);
    return digit === undefined ? argument : (words[index] ?? '');
  });
  const rest = placed.size === 0 ? argument : words.filter((_, index) => !placed.has(index)).join(' ');
  return rest === '' ? text : `${text}\n\n${rest}`;
}
