/**
 * The public names of each entry, read from the sources with the compiler's API. Rule: a name is described by its comment, and
 * shown as it is declared. TypeScript 7 has no API, so TypeScript 5 reads the files. Only files of this repository are read.
 */
import { join } from 'node:path';
import ts from 'typescript5';
import { entries, root } from '../documents.ts';

export interface Member {
  readonly name: string;
  readonly type: string;
  readonly isOptional: boolean;
  readonly sentence: string;
}

export interface Declaration {
  readonly name: string;
  readonly kind: 'function' | 'constant' | 'class' | 'type';
  readonly file: string;
  readonly sentence: string;
  /** As it is written, without the code of functions. */
  readonly text: string;
  readonly members: readonly Member[];
  /** The names of other declarations in its types. */
  readonly mentions: ReadonlySet<string>;
  /** False for a type that public types use, and that has no name outside. */
  readonly isPublic: boolean;
}

/** The names of each entry, in their order; `hidden` holds the types that public names use and that no entry exports. */
export interface PublicNames {
  readonly byEntry: ReadonlyMap<string, readonly Declaration[]>;
  readonly hidden: readonly Declaration[];
}

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  allowImportingTsExtensions: true,
  noEmit: true,
  noLib: true,
  types: [],
  jsx: ts.JsxEmit.ReactJSX,
};

function programOf(files: readonly string[]): ts.Program {
  const host = ts.createCompilerHost(OPTIONS);
  host.resolveModuleNameLiterals = (literals, from) =>
    literals.map(({ text }) => {
      if (!text.startsWith('.')) return { resolvedModule: undefined };
      const resolvedFileName = join(from, '..', text);
      return { resolvedModule: { resolvedFileName, extension: ts.Extension.Ts, isExternalLibraryImport: false } };
    });
  return ts.createProgram(files, OPTIONS, host);
}

const oneLine = (text: string): string =>
  text
    .replaceAll(/\/\*\*[\s\S]*?\*\/\s*|\/\/ biome-ignore.*/g, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/([{(<[]) (?=[|&])/g, '$1')
    .replaceAll(/: [|&] /g, ': ')
    .replaceAll(/^[|&] /g, '')
    .replaceAll(/; \}/g, ' }')
    .replaceAll(/, ([)\]>])/g, '$1')
    .trim();

/** Reads declarations of one program. */
class Reader {
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;
  readonly #declarations = new Map<ts.Symbol, Declaration>();

  constructor(program: ts.Program) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
  }

  /** The exports of an entry, with their names there. */
  exportsOf(file: string): [name: string, symbol: ts.Symbol][] {
    const source = this.#program.getSourceFile(join(root, file));
    const module = source && this.#checker.getSymbolAtLocation(source);
    if (!module) throw new Error(`${file} exports nothing`);
    return this.#checker.getExportsOfModule(module).map((symbol) => [symbol.name, this.#original(symbol)]);
  }

  /** The files of an entry of which only types are exported. */
  typeOnlyFiles(file: string): ReadonlySet<string> {
    const statements = [...(this.#program.getSourceFile(join(root, file))?.statements ?? [])];
    const exported = statements.filter(ts.isExportDeclaration);
    const pathOf = ({ moduleSpecifier }: ts.ExportDeclaration): string =>
      moduleSpecifier && ts.isStringLiteral(moduleSpecifier) ? join(file, '..', moduleSpecifier.text) : '';
    const whole = exported.filter(({ exportClause, isTypeOnly }) => isTypeOnly && !exportClause);
    return new Set(whole.map(pathOf));
  }

  #original(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  sentenceOf(symbol: ts.Symbol | undefined): string {
    return symbol ? ts.displayPartsToString(symbol.getDocumentationComment(this.#checker)).replaceAll(/\s+/g, ' ') : '';
  }

  describe(name: string, symbol: ts.Symbol, isPublic: boolean): Declaration | undefined {
    const existing = this.#declarations.get(symbol);
    if (existing) return existing;
    const nodes = (symbol.declarations ?? []).filter((node) => !ts.isImportSpecifier(node));
    const node = nodes.find(ts.isFunctionDeclaration) ?? nodes[0];
    if (!node) return undefined;
    const described: Declaration = {
      name,
      kind: kindOf(node),
      file: node.getSourceFile().fileName.slice(root.length + 1),
      sentence: this.sentenceOf(symbol),
      text: textOf(node, name, nodes),
      members: this.#membersOf(node),
      mentions: new Set(this.#mentioned(nodes).map((mentioned) => mentioned.name)),
      isPublic,
    };
    this.#declarations.set(symbol, described);
    return described;
  }

  /** Its own members, and those of a type without a public name that it extends. */
  #membersOf(node: ts.Declaration): Member[] {
    const alias = ts.isTypeAliasDeclaration(node) && ts.isTypeLiteralNode(node.type) ? node.type : undefined;
    // A short literal is shown as it is written.
    const literal = alias?.getText().includes('\n') ? alias : undefined;
    const list = ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) ? node.members : literal?.members;
    const inherited = ts.isInterfaceDeclaration(node)
      ? (node.heritageClauses ?? []).flatMap(({ types }) =>
          types.flatMap(
            ({ expression }) => this.#symbolOf(expression)?.declarations?.flatMap((d) => this.#membersOf(d)) ?? [],
          ),
        )
      : [];
    const own = [...(list ?? [])].flatMap((member): Member[] => {
      if (!member.name || ts.isPrivateIdentifier(member.name) || ts.isComputedPropertyName(member.name)) return [];
      const hides = ts.SyntaxKind.ProtectedKeyword;
      const isHidden = ts.canHaveModifiers(member) && member.modifiers?.some(({ kind }) => kind === hides);
      const isBody = ts.isMethodDeclaration(member) && member.body !== undefined;
      const name = member.name.getText();
      const isOverload = isBody && list?.some((other) => other !== member && other.name?.getText() === name);
      if (isHidden || isOverload) return [];
      const sentence = this.sentenceOf(this.#checker.getSymbolAtLocation(member.name));
      return [
        { name, type: typeOf(member), isOptional: 'questionToken' in member && !!member.questionToken, sentence },
      ];
    });
    return [...own, ...inherited];
  }

  #symbolOf(node: ts.Node): ts.Symbol | undefined {
    const symbol = this.#checker.getSymbolAtLocation(node);
    return symbol && this.#original(symbol);
  }

  /** The types of this repository that the declarations name, without private parts and without code. */
  #mentioned(nodes: readonly ts.Node[]): ts.Symbol[] {
    const found: ts.Symbol[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isBlock(node) || ts.isConstructorDeclaration(node) || ts.isClassStaticBlockDeclaration(node)) return;
      if (ts.isClassElement(node) && node.name && ts.isPrivateIdentifier(node.name)) return;
      if (ts.isPropertyDeclaration(node)) return void (node.type && visit(node.type));
      if (ts.isVariableDeclaration(node)) return signatureNodes(node).forEach(visit);
      const name = ts.isTypeReferenceNode(node)
        ? node.typeName
        : ts.isExpressionWithTypeArguments(node)
          ? node.expression
          : undefined;
      const symbol = name && this.#symbolOf(name);
      if (symbol && !(symbol.flags & ts.SymbolFlags.TypeParameter) && symbol.declarations?.length) found.push(symbol);
      ts.forEachChild(node, visit);
    };
    nodes.forEach(visit);
    return found;
  }

  mentionedBy(symbol: ts.Symbol): ts.Symbol[] {
    return this.#mentioned(symbol.declarations ?? []);
  }
}

/** The parts of a constant's declaration that determine its type. */
function signatureNodes({ type, initializer }: ts.VariableDeclaration): ts.Node[] {
  if (type) return [type];
  if (!initializer || !ts.isArrowFunction(initializer)) return [];
  return [
    ...(initializer.typeParameters ?? []),
    ...initializer.parameters,
    ...(initializer.type ? [initializer.type] : []),
  ];
}

function kindOf(node: ts.Declaration): Declaration['kind'] {
  if (ts.isFunctionDeclaration(node)) return 'function';
  if (ts.isVariableDeclaration(node))
    return node.initializer && ts.isArrowFunction(node.initializer) ? 'function' : 'constant';
  return ts.isClassDeclaration(node) ? 'class' : 'type';
}

function typeOf(member: ts.ClassElement | ts.TypeElement): string {
  const text = member.getText().replace(/^(?:(?:readonly|static|async|override) )*/, '');
  if (ts.isGetAccessor(member)) return oneLine(member.type?.getText() ?? 'unknown');
  if (ts.isPropertyDeclaration(member) || ts.isPropertySignature(member)) {
    const { initializer } = member as ts.PropertyDeclaration;
    return oneLine(member.type?.getText() ?? initializer?.getText() ?? 'unknown');
  }
  const body = ts.isMethodDeclaration(member) ? member.body : undefined;
  const signature = body ? text.slice(0, text.length - body.getText().length) : text;
  return oneLine(signature.replace(/;$/, '').replace(/^\w+\??/, ''));
}

/** The declaration without code: signatures, and types as they are written. */
function textOf(node: ts.Declaration, name: string, nodes: readonly ts.Declaration[]): string {
  if (ts.isFunctionDeclaration(node)) {
    const overloads = nodes.filter(ts.isFunctionDeclaration).filter((each) => nodes.length === 1 || !each.body);
    return overloads.map((each) => oneLine(signatureText(each, name))).join('\n');
  }
  if (ts.isVariableDeclaration(node)) {
    const { initializer, type } = node;
    if (initializer && ts.isArrowFunction(initializer)) return oneLine(signatureText(initializer, name));
    return type ? `const ${name}: ${type.getText()}` : '';
  }
  return ts.isTypeAliasDeclaration(node)
    ? node
        .getText()
        .replace(/^export /, '')
        .replace(/;$/, '')
    : '';
}

function signatureText(node: ts.FunctionDeclaration | ts.ArrowFunction, name: string): string {
  const textsOf = (list: ts.NodeArray<ts.Node> | undefined): string =>
    (list ?? []).map((each) => each.getText()).join(', ');
  const generic = node.typeParameters ? `<${textsOf(node.typeParameters)}>` : '';
  return `${name}${generic}(${textsOf(node.parameters)})${node.type ? `: ${node.type.getText()}` : ''}`;
}

/** Internal types of the library, which nobody passes or reads. */
const INSIDE =
  /^src\/(runtime|log|remote\/remoteLog|react\/shared|transports\/events|stores\/postgres\/(?!database))|^machines\/log\//;

export function readPublicNames(): PublicNames {
  const reader = new Reader(programOf([...entries.values()].map((file) => join(root, file))));
  const places = new Map<ts.Symbol, string>();
  const byEntry = new Map<string, Declaration[]>();
  for (const [entry, file] of entries) {
    const typeOnly = reader.typeOnlyFiles(file);
    const list = reader.exportsOf(file).flatMap(([name, symbol]) => {
      const described = reader.describe(name, symbol, true);
      // `export type *` also lists functions, which nobody can import.
      if (!described || (described.kind !== 'type' && typeOnly.has(described.file))) return [];
      places.set(symbol, entry);
      return [described];
    });
    byEntry.set(entry, list);
  }
  const hidden = new Map<ts.Symbol, Declaration>();
  const queue = [...places.keys()];
  for (let symbol = queue.shift(); symbol; symbol = queue.shift()) {
    for (const mentioned of reader.mentionedBy(symbol)) {
      if (places.has(mentioned) || hidden.has(mentioned)) continue;
      const described = reader.describe(mentioned.name, mentioned, false);
      if (described?.kind !== 'type' || INSIDE.test(described.file)) continue;
      hidden.set(mentioned, described);
      queue.push(mentioned);
    }
  }
  return { byEntry, hidden: [...hidden.values()] };
}
