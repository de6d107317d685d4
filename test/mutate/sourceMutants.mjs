/**
 * The small mistakes in the functions of a folder, all in one text: each place becomes `(__m(17) ? mistaken :
 * original)`. Invariant: files are found by glob and parsed as syntax; none is named.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { parseSync } from 'oxc-parser';
import { glob } from 'tinyglobby';

/** Input of the generated tests alone has no behaviour. */
const isCases = (file) => /(^|\/)cases\//.test(file);

/**
 * The files that a chart or an entry point (an index, or a file that nothing else in `machines/` imports) reaches
 * without the cases.
 */
async function behaviour(root, files) {
  const texts = new Map(await Promise.all(files.map(async (file) => [file, await readFile(join(root, file), 'utf8')])));
  const importsOf = (file) =>
    [...texts.get(file).matchAll(/from '(\.[^']+)'/g)].map(([, name]) =>
      relative(root, resolve(root, dirname(file), name)),
    );
  const imported = new Set(files.flatMap(importsOf));
  const begins = (file) => /\.machine\.ts$|(^|\/)index\.ts$/.test(file) || !imported.has(file);
  const reached = new Set(files.filter((file) => begins(file) && !isCases(file)));
  for (const file of reached) {
    for (const next of importsOf(file)) if (texts.has(next) && !isCases(next)) reached.add(next);
  }
  return new Map([...texts].filter(([file]) => reached.has(file)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const OPERATORS = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '**': ['*'],
};
const METHODS = new Map(Object.entries({ some: 'every', every: 'some', min: 'max', max: 'min', find: 'findLast' }));
/** Without them a list stays unchanged. */
const PASSING = new Set(['filter', 'slice', 'sort', 'reverse', 'trim']);

/** Nodes without behaviour. */
const isType = ({ type }) =>
  (type.startsWith('TS') && !/^TS(As|Satisfies|NonNull)/.test(type)) || type === 'ImportDeclaration';
const isFunction = ({ type }) => /Function(Expression|Declaration)$|^ArrowFunction/.test(type);
/** The check of a union's tag that the compiler requires: it is inverted and never removed. */
const isTag = (node) =>
  node.type === 'BinaryExpression' &&
  /^[!=]==$/.test(node.operator) &&
  node.left.type === 'MemberExpression' &&
  node.left.property.name === 'type';

/** `{} as T` is for the compiler; XState's setup ignores it. */
const isTypeOnly = ({ value }) =>
  /^TSAs/.test(value?.type ?? '') &&
  value.expression.type === 'ObjectExpression' &&
  value.expression.properties.length === 0;

/** `a?.b.c()` is undefined as a whole without `a`; in parentheses a part of it is not. */
const isPartOfChain = (node, parent, text) =>
  /^(Member|Call)Expression$/.test(parent?.type ?? '') &&
  (parent.object === node || parent.callee === node) &&
  text.slice(node.start, node.end).includes('?.');

const pastComma = (text, at) => at + (/^\s*,/.exec(text.slice(at))?.[0].length ?? 0);

/** The possible mistakes at a node, as replacement texts. */
function mistakesAt(node, parent, text, inFunction) {
  const raw = ({ start, end }) => text.slice(start, end);
  const around = (from, to) => text.slice(node.start, from) + text.slice(to, node.end);
  switch (node.type) {
    case 'BinaryExpression': {
      if (
        node.operator === '+' &&
        [node.left, node.right].some((side) => /Literal$/.test(side.type) && typeof side.value !== 'number')
      )
        return [];
      const others = OPERATORS[node.operator] ?? [];
      return others.map((operator) => [
        `${node.operator} is ${operator}`,
        `(${raw(node.left)}) ${operator} (${raw(node.right)})`,
      ]);
    }
    case 'LogicalExpression':
      // In a spread it adds a key or does not. JSON omits a key that is undefined.
      if (parent.type === 'SpreadElement') return [['the key is left out', '{}']];
      return isTag(node.left) || node.operator === '??' ? [] : [['the left side is left out', raw(node.right)]];
    case 'ConditionalExpression': {
      const { test, consequent, alternate } = node;
      const tagged = isTag(test) ? test.operator : undefined;
      return [
        ...(tagged === '===' || widens(consequent, alternate) ? [] : [['the condition holds always', raw(consequent)]]),
        ...(tagged === '!==' || widens(alternate, consequent) ? [] : [['the condition holds never', raw(alternate)]]),
      ];
    }
    case 'UnaryExpression':
      return node.operator === '!' ? [['the not is left out', raw(node.argument)]] : [];
    case 'Literal':
      return literal(node, parent, inFunction);
    case 'TemplateLiteral':
      return inFunction && node.expressions.length > 0 ? [['another text', "'~'"]] : [];
    case 'ObjectExpression':
      if (!inFunction) return [];
      return node.properties.flatMap((property, index) => {
        if (isTypeOnly(property)) return [];
        const next = node.properties[index + 1];
        const previous = node.properties[index - 1];
        const [from, to] = next
          ? [property.start, next.start]
          : [previous?.end ?? property.start, pastComma(text, property.end)];
        const name = property.key?.name ?? raw(property).slice(0, 30);
        return property.type === 'Property' || property.argument.type !== 'LogicalExpression'
          ? [[`without ${name}`, around(from, to)]]
          : [];
      });
    case 'ArrayExpression':
      if (!inFunction || node.elements.length === 0) return [];
      return node.elements.flatMap((element, index) => {
        if (!element) return [];
        const next = node.elements[index + 1];
        const previous = node.elements[index - 1];
        const [from, to] = next
          ? [element.start, next.start]
          : [previous?.end ?? element.start, pastComma(text, element.end)];
        return [[`without element ${index + 1}`, around(from, to)]];
      });
    case 'CallExpression': {
      const { callee } = node;
      if (callee.type !== 'MemberExpression' || callee.computed) return [];
      const name = callee.property.name;
      if (PASSING.has(name) && inFunction) return [[`without ${name}`, raw(callee.object)]];
      const other = METHODS.get(name);
      return other
        ? [
            [
              `${name} is ${other}`,
              `${text.slice(node.start, callee.property.start)}${other}${text.slice(callee.property.end, node.end)}`,
            ],
          ]
        : [];
    }
    case 'AssignmentExpression':
      if (node.operator !== '+=' && node.operator !== '-=') return [];
      return [
        [`${node.operator} is other`, `${raw(node.left)} ${node.operator === '+=' ? '-=' : '+='} ${raw(node.right)}`],
      ];
    default:
      return [];
  }
}

/** The possible mistakes in the right side of a logical expression; it counts as reached when it is evaluated. */
function rightSide(node, parent) {
  if (node.type !== 'LogicalExpression' || parent.type === 'SpreadElement') return [];
  if (node.operator === '??') return [['the other value is left out', 'undefined']];
  return isTag(node.right) ? [] : [['the right side is left out', node.operator === '&&' ? 'true' : 'false']];
}

/** `{ ...a, b }` beside `a`: equal in JSON if `b` is undefined. */
const widens = (wide, narrow) =>
  wide.type === 'ObjectExpression' &&
  wide.properties.length === 2 &&
  wide.properties[0].type === 'SpreadElement' &&
  narrow.type === 'Identifier' &&
  wide.properties[0].argument.name === narrow.name;

function literal({ value }, parent, inFunction) {
  if (typeof value === 'number') return [[`${value} is ${value + 1}`, String(value + 1)]];
  if (typeof value === 'boolean') return [[`${value} is ${!value}`, String(!value)]];
  const compared = parent.type === 'BinaryExpression' || parent.type === 'SwitchCase' || parent.type === 'Property';
  if (typeof value === 'string' && inFunction && !compared && parent.type !== 'MemberExpression')
    return [['another text', "'~'"]];
  return [];
}

/** Conditions of statements, and statements that can be removed. */
function statementMistakes(node) {
  const { type, test, expression } = node;
  if (type === 'IfStatement') {
    const tagged = isTag(test) ? test.operator : undefined;
    return [
      ...(tagged === '===' ? [] : [['expression', test, 'the condition holds always', 'true']]),
      ...(tagged === '!==' ? [] : [['expression', test, 'the condition holds never', 'false']]),
    ];
  }
  if (type === 'ExpressionStatement' && /^(Call|Assignment|Update)/.test(expression.type)) {
    return [['statement', node, 'the statement is left out', '']];
  }
  return [];
}

function childrenOf(node) {
  const children = [];
  for (const [key, value] of Object.entries(node)) {
    if (key === 'type' || key === 'parent') continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (child && typeof child === 'object' && typeof child.type === 'string') children.push([key, child]);
    }
  }
  return children;
}

/** The name of a declaration or of its member. */
function nameOf({ type, id, key, value }) {
  if (/Declaration$|^VariableDeclarator$/.test(type)) return id?.name;
  const member = /^(Method|Property)Definition$/.test(type) || (type === 'Property' && isFunction(value));
  return member ? key.name : undefined;
}

/** All possible mistakes in one file: places, outermost first, each with its replacements. */
function placesIn(file, text) {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const places = new Map();
  const lineOf = (at) => text.slice(0, at).split('\n').length;
  const owners = [];
  const note = (inFunction, kind, node, what, becomes, shownNode = node) => {
    const key = `${node.start}-${node.end}`;
    const place = places.get(key) ?? { kind, start: node.start, end: node.end, mistakes: [] };
    places.set(key, place);
    const was = text.slice(shownNode.start, shownNode.end).replace(/\s+/g, ' ');
    place.mistakes.push({
      file,
      owner: owners.join('.'),
      loads: !inFunction,
      line: lineOf(node.start),
      what,
      was: was.length > 70 ? `${was.slice(0, 67)}...` : was,
      becomes,
    });
  };
  const walk = (node, parent, inFunction) => {
    const named = !(inFunction && owners.length > 0) && nameOf(node);
    if (named) owners.push(named);
    const own = isPartOfChain(node, parent, text) ? [] : mistakesAt(node, parent, text, inFunction);
    for (const [what, becomes] of own) note(inFunction, 'expression', node, what, becomes);
    for (const [what, becomes] of rightSide(node, parent))
      note(inFunction, 'expression', node.right, what, becomes, node);
    for (const mistake of statementMistakes(node)) note(inFunction, ...mistake);
    for (const [key, child] of childrenOf(node)) {
      if (isType(child) || key === 'typeAnnotation' || key === 'returnType' || key === 'typeArguments') continue;
      if (key === 'key' && !node.computed) continue;
      // The compiler reads the name of a module and the parts of a tagged text.
      if (node.type === 'ImportExpression' || key === 'quasi') continue;
      // A destructuring pattern is not an object.
      if (/Pattern$/.test(child.type) || (key === 'id' && child.type !== 'ClassExpression')) continue;
      walk(child, node.type === 'ParenthesizedExpression' ? parent : node, inFunction || isFunction(node));
    }
    if (named) owners.pop();
  };
  walk(program, program, false);
  return [...places.values()].sort((a, b) => a.start - b.start || b.end - a.end);
}

/** The text with a question in each place. */
function written(text, places, from) {
  let next = from;
  const numbered = [];
  for (const place of places) {
    numbered.push({ ...place, first: next });
    next += place.mistakes.length;
  }
  const emit = (start, end, index) => {
    let out = '';
    let at = start;
    let i = index;
    while (i < numbered.length && numbered[i].start < end) {
      const place = numbered[i];
      let after = i + 1;
      while (after < numbered.length && numbered[after].start < place.end) after += 1;
      out += text.slice(at, place.start);
      const inner = emit(place.start, place.end, i + 1);
      if (place.kind === 'statement') out += `{ if (!__m(${place.first})) { ${inner} } }`;
      else {
        const asked = place.mistakes.map(({ becomes }, k) => `__m(${place.first + k}) ? (${becomes}) : `).join('');
        const last = place.first + place.mistakes.length - 1;
        // One question for the case without a mistake: some places have twenty.
        if (last === place.first) out += `(${asked}(${inner}))`;
        else out += `(__any(${place.first}, ${last}) ? (${asked}undefined) : (${inner}))`;
      }
      at = place.end;
      i = after;
    }
    return out + text.slice(at, end);
  };
  return { text: emit(0, text.length, 0), next };
}

/** The behaviour of `machines/`: the files that its charts and entry points reach. */
export const machinesBehaviour = async (root) => behaviour(root, await glob('machines/**/*.ts', { cwd: root }));

/** All files that match the patterns. */
export async function filesOf(root, patterns) {
  const files = (await glob(patterns, { cwd: root })).filter((file) => !file.endsWith('.d.ts')).sort();
  return new Map(await Promise.all(files.map(async (file) => [file, await readFile(join(root, file), 'utf8')])));
}

/** For each file the text with all mistakes, and the mistakes in the order of their numbers; the first is number 1. */
export function mistaken(root, sources) {
  const mistakes = [undefined];
  const texts = new Map();
  for (const [file, text] of sources) {
    const places = placesIn(file, text);
    const { text: asked, next } = written(text, places, mistakes.length);
    for (const { mistakes: own } of places) {
      const place = mistakes.length;
      mistakes.push(...own.map((mistake) => ({ ...mistake, place })));
    }
    if (next !== mistakes.length) throw new Error(`${file}: numbers do not fit`);
    texts.set(join(root, file), asked);
  }
  return { texts, mistakes };
}
