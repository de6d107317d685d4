/** docs/reference/program.md: commands and options of the program, read from their declarations in src/cli/main.ts. */
import ts from 'typescript5';
import { read } from '../documents.ts';
import { type Cells, tableOf } from '../markdownTable.ts';

const FILE = 'src/cli/main.ts';

interface CommandRows {
  readonly name: string;
  description: string;
  takesAgentOptions: boolean;
  readonly rows: Cells[];
}

/** Collects the declarations of each function, in the order of the file. */
class Declared {
  /** Those of every command that runs the agent. */
  readonly shared: CommandRows = { name: '', description: '', takesAgentOptions: false, rows: [] };
  readonly commands: CommandRows[] = [this.#commandNamed('runchart')];
  readonly #lists = new Map<string, ts.ArrayLiteralExpression>();
  #current: CommandRows = this.shared;

  #commandNamed(name: string): CommandRows {
    return { name, description: '', takesAgentOptions: false, rows: [] };
  }

  read(source: ts.SourceFile): void {
    const calls: { at: number; act: () => void }[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isVariableDeclaration(node)) {
        const value =
          node.initializer && ts.isAsExpression(node.initializer) ? node.initializer.expression : node.initializer;
        if (value && ts.isArrayLiteralExpression(value)) this.#lists.set(node.name.getText(), value);
      }
      if (ts.isFunctionDeclaration(node)) {
        const isShared = node.name?.text === 'agentOptions';
        calls.push({ at: node.getStart(), act: () => this.#begin(isShared) });
      }
      if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === 'agentOptions')
        // After the command that is its argument.
        calls.push({ at: node.end - 1, act: () => this.#takeAgentOptions() });
      if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
        const { name } = node.expression;
        calls.push({ at: name.getStart(), act: () => this.#take(name.text, [...node.arguments]) });
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    for (const { act } of calls.sort((a, b) => a.at - b.at)) act();
  }

  #begin(isShared: boolean): void {
    const [program] = this.commands;
    this.#current = isShared || !program ? this.shared : program;
  }

  #takeAgentOptions(): void {
    this.#current.takesAgentOptions = true;
  }

  #take(method: string, args: readonly ts.Expression[]): void {
    const texts = args.flatMap((value) => this.#textsOf(value));
    const [first = '', second = '', standard] = texts;
    if (method === 'command') {
      this.#current = this.#commandNamed(first);
      this.commands.push(this.#current);
    }
    if (method === 'description' && first !== '') this.#current.description = first;
    if (method === 'argument') this.#current.rows.push([`\`${first}\``, second]);
    if (method === 'option')
      this.#current.rows.push([`\`${first}\``, standard ? `${second} (default: ${standard})` : second]);
    const [option] = args;
    if (method === 'addOption' && option) this.#addOption(option);
  }

  /** `new Option(flags, description).env(name)` */
  #addOption(option: ts.Node): void {
    const texts: string[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isStringLiteralLike(node)) texts.push(node.text);
      ts.forEachChild(node, visit);
    };
    visit(option);
    const [flags, meaning, variable] = texts;
    this.#current.rows.push([
      `\`${flags}\``,
      variable ? `${meaning} (default: \`${variable}\` of the environment)` : `${meaning}`,
    ]);
  }

  #textsOf(value: ts.Expression): string[] {
    if (ts.isStringLiteralLike(value)) return [value.text];
    if (!ts.isSpreadElement(value)) return [];
    const list = this.#lists.get(value.expression.getText());
    return (list?.elements ?? []).flatMap((each) => this.#textsOf(each));
  }
}

const AGENT_OPTIONS = 'Options of the agent';

export function programPage(): string {
  const declared = new Declared();
  declared.read(ts.createSourceFile(FILE, read(FILE), ts.ScriptTarget.ES2022, true));
  const head = ['option', 'meaning'];
  const sections = declared.commands.map(({ name, description, takesAgentOptions, rows }) => {
    const title = name === 'runchart' ? 'runchart' : `runchart ${name}`;
    const parts = [
      `## ${title}`,
      description && `${description[0]?.toUpperCase()}${description.slice(1)}.`,
      rows.length > 0 ? tableOf([head, ...rows]) : '',
      takesAgentOptions
        ? `It also takes the [options of the agent](#${AGENT_OPTIONS.toLowerCase().replaceAll(' ', '-')}).`
        : '',
    ];
    return parts.filter((part) => part !== '').join('\n\n');
  });
  return `${[
    '# Options of the program',
    '<!-- Made from the sources by `npm run reference`. Change the declarations in src/cli/main.ts. -->',
    'This page lists the commands and options of the program `runchart`. [The program](../cli.md) explains them.',
    ...sections,
    `## ${AGENT_OPTIONS}`,
    'Every command that runs the agent takes them.',
    tableOf([head, ...declared.shared.rows]),
  ].join('\n\n')}\n`;
}
