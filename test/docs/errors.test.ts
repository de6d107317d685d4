/** Checks that docs/errors.md has a row for every code in the sources. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { proseOf, read, root } from './documents.ts';
import { commentsIn, expectTables } from './tables.ts';

const sources = ['machines', 'src']
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, String(name))))
  .filter((file) => file.endsWith('.ts') && !/^src\/testing\/|\.(cases|inputs|surroundings)\.ts$/.test(file));

/** Returns the first group of each match in the sources that `where` selects. */
function found(pattern: RegExp, where = /./): string[] {
  const codes = sources.filter((file) => where.test(file)).flatMap((file) => [...read(file).matchAll(pattern)]);
  return [...new Set(codes.map(([, code = '']) => code))].sort();
}

const sections = new Map(
  proseOf('docs/errors.md')
    .split(/^## /m)
    .map((section) => [section.split('\n')[0] ?? '', section] as const),
);
const codesIn = (section: string): string[] =>
  [...(sections.get(section) ?? '').matchAll(/`([\w-]+)`/g)].map(([, code = '']) => code);

function missing(section: string, codes: readonly string[]): string[] {
  expect(codes.length).toBeGreaterThan(3);
  const documented = codesIn(section);
  return codes.filter((code) => !documented.includes(code));
}

describe('docs/errors.md', () => {
  const thrown = commentsIn('src/errors.ts')
    .filter(({ path: [type, code] }) => type === 'ThrownErrors' && code !== undefined)
    .map(({ path, sentence }) => [path.at(-1) ?? '', ...sentence.split(/\s*@remedy\s*/)] as const);
  const classes = new Map(
    [...read('src/errors.ts').matchAll(/^ {2}(\w+): '(\w+)';$/gm)].map(([, code = '', name = '']) => [code, name]),
  );

  it('has a row for each code of an error that is thrown, with its class, its cause and what to do', async () => {
    const rows = thrown.map(([code, cause = '', remedy = '']) => [
      `\`${code}\``,
      `\`${classes.get(code)}\``,
      cause,
      remedy,
    ]);
    expect(thrown.map(([code]) => code)).toEqual([...classes.keys()]);
    await expectTables('docs/errors.md', { thrown: [['code', 'class', 'cause', 'remedy'], ...rows] });
  });

  it('docs/troubleshooting.md has a row for each of these codes, with what to do', async () => {
    const rows = thrown.map(([code, , remedy = '']) => [`\`${code}\``, remedy]);
    await expectTables('docs/troubleshooting.md', { remedies: [['code', 'what to do'], ...rows] });
  });

  it('the declared codes are those that the sources throw', () => {
    const codes = [
      ...found(/super\(\s*'([a-z_]+)'/g),
      ...found(/new (?:Runchart|AgentBusy|CorruptLog)Error\(\s*'([a-z_]+)'/g),
      ...found(/(?:refuse|code: )\(?'(corrupt|gap|fork)'/g),
      ...found(/kind: '(encoding|no_header|version)'/g),
    ];
    expect(codes.length).toBeGreaterThan(20);
    expect([...new Set(codes)].filter((code) => !classes.has(code))).toEqual([]);
    const written = sources.map(read).join('\n');
    expect([...classes.keys()].filter((code) => written.split(`'${code}'`).length < 2)).toEqual([]);
  });

  it('the declared classes are those of the sources', () => {
    const names = found(/export class (\w+(?:Error|Retry)) extends/g).filter(
      (name) => name !== 'ModelError' && name !== 'RequiredPluginError',
    );
    expect(names.filter((name) => ![...classes.values()].includes(name))).toEqual([]);
    const documented = [...names, 'RunchartError'];
    expect([...classes.values()].filter((name) => !documented.includes(name))).toEqual([]);
  });

  it('describes every code of a model error', () => {
    const models = /^src\/models\//;
    const codes = [...found(/^ {2}\| '([a-z-]+)'$/gm, /models\/model\.ts$/), ...found(/\bcode: '([a-z-]+)'/g, models)];
    expect(missing('Model errors', codes)).toEqual([]);
  });

  it('describes every cause of an end', () => {
    const codes = [
      ...found(/cause: '([a-z_]+)'/g),
      ...found(/(?:return|\?) '((?:max|no|empty)_\w+)'/g, /counters\.ts$/),
      ...found(/runs\.over\('(\w+)'/g),
    ];
    expect(missing('How a run ends', codes)).toEqual([]);
  });

  it('describes every code of a result', () => {
    const codes = [
      ...found(/\b(?:refused|refuse|block|erred)\(\s*'([a-z_]+)'/g, /^src\/(?!stores)/),
      ...found(/^ {2}(\w+): 'This call/gm, /closing\.ts$/),
      ...found(/outcome: '(?:failed|cancelled)',[^}]*code: '([a-z_]+)'/g),
    ];
    // The outcome of a call that may have run is a word of its own and has no code.
    expect(
      missing(
        'Results of tool calls',
        codes.filter((code) => code !== 'unknown'),
      ),
    ).toEqual([]);
  });

  it('describes every diagnostic and notice of the runtime', () => {
    const codes = [
      ...found(/diagnose\(\s*'([a-z_]+)'/g),
      ...found(/type: '(?:diagnostic|notice)', code: '([a-z_]+)'/g),
      ...found(/kind: 'skipped', code: '([a-z_]+)'/g, /^src\/models\//),
      ...found(/#notice\('([a-z_]+)'/g, /^src\/stores\//),
      ...['image', 'file'].flatMap((part) => [
        ...found(/#report\('([a-z_]+)'/g, /attachmentPreparer\.ts$/).map((fault) => `${part}_${fault}`),
        ...found(/`\$\{part(?:\.type)?\}_([a-z_]+)`/g).map((fault) => `${part}_${fault}`),
      ]),
    ];
    expect(missing('Diagnostics and notices', codes)).toEqual([]);
  });
});
