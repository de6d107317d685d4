/**
 * The house rules that no compiler checks: allowed imports, the sizes of files, folders and functions, and the words in names. Rule: no
 * list of exceptions.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chartRows } from '../machines/policyRows.ts';
import { APART } from '../vitest.config.ts';
import { DOORS, HOUSE, LEAVES, NODE_ONLY, PACKAGES } from './support/rooms.ts';

const root = resolve(import.meta.dirname, '..');
const filesUnder = (folder: string, kind = /\.tsx?$/): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && kind.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
const machines = filesUnder('machines');
const src = filesUnder('src');
const tests = filesUnder('test');
const scripts = ['test', 'inspector'].flatMap((folder) => filesUnder(folder, /\.mjs$/));
/** The inspector's page. */
const page = filesUnder('inspector').filter((file) => !/^inspector\/vite\.(file\.)?config\.ts$/.test(file));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Returns the imports of a file: paths from the root for its own, names for packages. */
function importsOf(file: string): string[] {
  const found = read(file).matchAll(
    /(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g,
  );
  return [...found].map(([, stated, dynamic]) => {
    const name = stated ?? dynamic ?? '';
    return name.startsWith('.') ? relative(root, resolve(root, dirname(file), name)) : name;
  });
}

/** The room of a file: its folder, a file at the top of its half, or the charts and folds as one. */
function roomOf(file: string): string {
  if (/^machines\/(\w+\.machine|nextState)\.ts$|^machines\/(?!cases\/)\w+\//.test(file)) return 'machines/charts';
  const rooms = HOUSE.map(([room]) => room).filter((room) => file === room || file.startsWith(`${room}/`));
  return rooms.sort((a, b) => b.length - a.length)[0] ?? file;
}

/** Files that import each other in a circle, type imports included. */
function circles(files: readonly string[]): string[][] {
  const found: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) return void found.push([...path.slice(at), file]);
    if (done.has(file)) return;
    for (const name of importsOf(file)) if (/^(src|machines|inspector)\//.test(name)) visit(name, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  return found;
}

describe('the house', () => {
  it('every room imports what it may and nothing else', () => {
    const allowed = new Map(HOUSE);
    const strays = [...machines, ...src].flatMap((file) => {
      const room = roomOf(file);
      return importsOf(file)
        .filter((name) => /^(src|machines)\//.test(name) && roomOf(name) !== room)
        .filter((name) => !allowed.get(room)?.includes(roomOf(name)))
        .map((name) => `${file} -> ${name}`);
    });
    expect(strays).toEqual([]);
  });

  it('no arrow between rooms leads upwards', () => {
    const rooms = HOUSE.map(([room]) => room);
    const upwards = HOUSE.flatMap(([room, imports], index) =>
      imports.filter((name) => !rooms.slice(0, index).includes(name)).map((name) => `${room} -> ${name}`),
    );
    expect(upwards).toEqual([]);
    expect(new Set(rooms).size).toBe(rooms.length);
  });

  it('no files import each other in a circle, type imports included', () => {
    expect(circles([...machines, ...src, ...page]).map((circle) => circle.join(' -> '))).toEqual([]);
  });

  it('the picture of the house shows every room of src/', () => {
    const [, picture = ''] = /```mermaid\nflowchart([\s\S]*?)```/.exec(read('docs/ARCHITECTURE.md')) ?? [];
    const [, touches = ''] = picture.split('subgraph touches');
    const drawn = [...touches.matchAll(/^ +\w+\["(.*)"\]$/gm)].flatMap(([, rooms = '']) => rooms.split(' '));
    const rooms = new Set(src.map(roomOf).map((room) => room.replace('src/', '')));
    expect(drawn.map((room) => room.replace(/\/$/, '')).sort()).toEqual([...rooms].sort());
  });

  it('the top of src/ holds entries and leaves only', () => {
    const top = ['index', 'node', 'browser', 'schema', 'agent', 'options', 'agentPolicies'].map(
      (name) => `src/${name}.ts`,
    );
    expect(src.filter((file) => dirname(file) === 'src')).toEqual([...top, ...LEAVES].sort());
  });
});

describe('layers', () => {
  it('the charts import xstate and their siblings only', () => {
    const strays = machines.flatMap((file) =>
      importsOf(file)
        .filter((name) => name !== 'xstate' && !name.startsWith('machines/'))
        .map((name) => `${file} -> ${name}`),
    );
    expect(strays).toEqual([]);
  });

  it('each file names only the packages of its layer', () => {
    const strays = [...machines, ...src].flatMap((file) => {
      const allowed = PACKAGES.find(([place]) => place.test(file))?.[1] ?? [];
      return importsOf(file)
        .filter((name) => !/^(src|machines)\//.test(name))
        .filter((name) => !allowed.some((rule) => rule.test(name)))
        .map((name) => `${file} -> ${name}`);
    });
    expect(strays).toEqual([]);
  });

  it('the library imports neither tests nor docs, and outside machines/ only its door', () => {
    const strays = src.flatMap((file) =>
      importsOf(file)
        .filter((name) => /^(test|docs)\//.test(name) || (/^machines\//.test(name) && !DOORS.test(name)))
        .map((name) => `${file} -> ${name}`),
    );
    expect(strays).toEqual([]);
  });

  it("the inspector's page imports of the library what runs in a browser: observation, views, the encoding and the fold of a log, stories", () => {
    const allowed =
      /^(machines\/(vocabulary|log\/logState)\.ts|src\/(inspect\/(wire|chart|excerpt)\.ts|inspect\/drawing\/|projector\/|words\/|(live|printable)\.ts|scripts\/|stores\/jsonl\/entryEncoding\.ts))/;
    const strays = page.flatMap((file) =>
      importsOf(file)
        .filter((name) => /^(src|machines|test|docs|node:)/.test(name) && !allowed.test(name))
        .map((name) => `${file} -> ${name}`),
    );
    expect(strays).toEqual([]);
  });

  it('the imports of the core entry reach no file that needs Node', () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const name of importsOf(file)) if (/^(src|machines)\//.test(name)) visit(name);
    };
    visit('src/index.ts');
    expect([...reached].filter((file) => NODE_ONLY.test(file))).toEqual([]);
  });

  it('the projector sees log entries only', () => {
    const strays = src
      .filter((file) => file.startsWith('src/projector/'))
      .flatMap((file) =>
        importsOf(file).filter((name) => name.startsWith('src/') && !/^src\/(projector\/|live\.ts$)/.test(name)),
      );
    expect(strays).toEqual([]);
  });
});

const limitOf = (file: string): number => (/\.machine\.ts$/.test(file) || file.startsWith('test/') ? 500 : 400);

/** Code without its comments. */
const code = (file: string): string => read(file).replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, '');

describe('decisions', () => {
  /** The files that run the charts, and the host's part of a conversation. The interpreter runs any chart. */
  const around = src.filter((file) => /^src\/(runtime|conversation)\/[^/]+$/.test(file));

  it('the code around the charts reads no policy that they decide by', () => {
    const executed = ['onRestart', 'partialReply', 'toolRetry', 'limits'];
    // An option of a message has the name of the policy that it replaces.
    const decided = Object.keys(chartRows).filter((name) => ![...executed, 'whileSuspended'].includes(name));
    expect(decided.length).toBeGreaterThan(8);
    const strays = around.flatMap((file) =>
      [...code(file).matchAll(new RegExp(`\\b(?:${decided.join('|')}|policies\\.whileSuspended)\\b`, 'g'))].map(
        ([name]) => `${file}: ${name}`,
      ),
    );
    const message = 'let a chart read the policy in a guard or a request; name what is not the policy otherwise';
    expect(strays, message).toEqual([]);
  });

  it('it reads the reason of no stop and the value of no state', () => {
    const readings =
      /'(?:interrupted|max_\w+|superseded)'|\bstop\??\.(?:reason|cause)\b|\.matches\(|[sS]napshot\(?\)?\??\.value\b|promoteFollowUp/g;
    const strays = around.flatMap((file) => [...code(file).matchAll(readings)].map(([text]) => `${file}: ${text}`));
    expect(strays).toEqual([]);
  });
});

describe('budgets', () => {
  it('every file keeps its number of lines', () => {
    const over = [...machines, ...src, ...page, ...tests]
      .map((file) => ({ file, lines: read(file).split('\n').length - 1 }))
      .filter(({ file, lines }) => lines > limitOf(file))
      .map(({ file, lines }) => `${file} has ${lines} lines, ${limitOf(file)} are allowed`);
    expect(over).toEqual([]);
  });

  it('a file below 40 lines that only one file imports stands in that file, but for entries of folders and parts loaded on demand', () => {
    const importers = new Map<string, string[]>();
    for (const file of [...machines, ...src]) {
      for (const name of importsOf(file)) importers.set(name, [...(importers.get(name) ?? []), file]);
    }
    const slivers = [...machines, ...src].filter((file) => {
      const [importer, ...others] = importers.get(file) ?? [];
      if (importer === undefined || others.length > 0 || basename(file) === 'index.ts') return false;
      const onDemand = new RegExp(`import\\(\\s*'[^']*/${basename(file)}'`).test(read(importer));
      return !onDemand && read(file).split('\n').length - 1 < 40;
    });
    expect(slivers).toEqual([]);
  });

  it('no folder holds more than 15 files', () => {
    const sizes = new Map<string, number>();
    for (const file of [...machines, ...src, ...page]) sizes.set(dirname(file), (sizes.get(dirname(file)) ?? 0) + 1);
    expect([...sizes].filter(([, size]) => size > 15)).toEqual([]);
  });

  it('no two files have the same name, but for the entries of folders and for tests', () => {
    const names = [...machines, ...src, ...page, ...tests, ...scripts]
      .filter((file) => !/\.test\.ts$/.test(file))
      .map((file) => basename(file))
      .filter((name) => name !== 'index.ts');
    expect(names.length).toBeGreaterThan(600);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('no file has a name without a meaning', () => {
    const unclear =
      /^(ride|stub|situation|tape|lenient|shortForms|sentBack|keptFields|abortGate|acts|bench|place|drawn|ends|living|driving|told|covered|deciding|standing|given|data|misc|helpers?|utils?|common|stuff)\.(tsx?|mjs)$/;
    const files = [...machines, ...src, ...page, ...tests, ...scripts];
    expect(files.filter((file) => unclear.test(basename(file).replace('.test.', '.')))).toEqual([]);
  });

  it('a test file that counts the timers of its process shares the process with no other file', () => {
    const patterns = APART.map((glob) => glob.replace(/[.]/g, '\\.').replace(/\*/g, '[^/]*'));
    const alone = new RegExp(
      `^(${patterns.join('|').replace(/\{([^}]*)\}/g, (_, names) => `(${names.replaceAll(',', '|')})`)})$`,
    );
    const counting = tests.filter((file) => read(file).includes('vi.getTimer' + 'Count('));
    expect(counting.length).toBeGreaterThan(10);
    expect(counting.filter((file) => !alone.test(file))).toEqual([]);
  });

  it('every function keeps to 60 lines', () => {
    const biome = join(root, 'node_modules/.bin/biome');
    const rule = '--only=complexity/noExcessiveLinesPerFunction';
    const lint = (): string =>
      execFileSync(biome, ['lint', 'machines', 'src', 'inspector', rule], { cwd: root, encoding: 'utf8' });
    expect(read('biome.json')).toContain('"maxLines": 60');
    expect(lint).not.toThrow();
  });

  it('every source file begins with a header comment', () => {
    const bare = [...machines, ...src, ...page].filter((file) => !/^(#!.*\n)?\/\*\*/.test(read(file)));
    expect(bare).toEqual([]);
  });
});

describe('words', () => {
  it('no name contains Manager, Helper or Util', () => {
    const strays = [...machines, ...src, ...page].flatMap((file) =>
      [...read(file).matchAll(/\b(?:class|interface|type|function|const)\s+(\w*(?:Manager|Helper|Util)s?\w*)/g)].map(
        ([, name]) => `${file}: ${name}`,
      ),
    );
    expect(strays).toEqual([]);
  });

  it('exported names contain none of the words that no reader can look up', () => {
    const refused =
      /(Nursery|Brood|Ward|Kin|Cast|House|Family|Nest|Birth|Keeper|Claims|Ticket|Outlook|Standing|Hurry|Patience|Desk|Gallery|Knowledge|Sequel|Told(?=[A-Z]|$))/;
    const strays = src
      .filter((file) => !file.startsWith('src/testing/'))
      .flatMap((file) =>
        [...read(file).matchAll(/^export (?:class|interface|type|function|const) (\w+)/gm)]
          .filter(([, name = '']) => refused.test(name))
          .map(([, name]) => `${file}: ${name}`),
      );
    expect(strays).toEqual([]);
  });

  it('each exported class and interface is named by a word of the vocabulary', () => {
    const stem = (word: string): string =>
      word
        .replace(/ies$/, 'y')
        .replace(/s$/, '')
        .replace(/(ed|ing|er|or|e)$/, '');
    const terms = [...read('docs/VOCABULARY.md').matchAll(/^\| (?!-)([^|]+)\|/gm)];
    const words = new Set(
      terms
        .flatMap(([, term = '']) => term.toLowerCase().split(/[^a-z]+/))
        .filter((word) => word.length > 2)
        .map(stem),
    );
    const strays = src
      .filter((file) => !file.startsWith('src/testing/'))
      .flatMap((file) =>
        [...read(file).matchAll(/^export (?:class|interface) (\w+)/gm)]
          .filter(
            ([, name = '']) =>
              !(name.match(/[A-Z][a-z]+|[A-Z]+(?![a-z])/g) ?? []).some((word) => words.has(stem(word.toLowerCase()))),
          )
          .map(([, name]) => `${file}: ${name}`),
      );
    expect(strays).toEqual([]);
  });

  it('only charts decide: the loop and the conversation read no state value, no stop reason and no policy about messages', () => {
    const readers = src.filter((file) => /^src\/(runtime|conversation)\/[^/]+$/.test(file));
    const decisions =
      /\.matches\(|getSnapshot\(\)\??\.value|\bstop\??\.reason|\b(whileActive|promoteFollowUpOn|queueDrain|steerAt)\b|policies\??\.whileSuspended/;
    expect(readers.length).toBeGreaterThan(20);
    expect(readers.filter((file) => decisions.test(read(file)))).toEqual([]);
  });

  it('charts and folds read no clock, no randomness and no surroundings', () => {
    const pure = [...machines, ...src.filter((file) => file.startsWith('src/projector/'))];
    const impure = /\b(Date\.now|new Date\(|Math\.random|randomUUID|process\.|setTimeout|setInterval|performance\.)/;
    expect(pure.filter((file) => impure.test(read(file)))).toEqual([]);
  });
});
