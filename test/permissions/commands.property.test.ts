/** Properties of rules for arbitrary commands. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { permissions } from '../../src/node.ts';
import { commandPattern } from '../../src/permissions/rules.ts';
import { volume } from '../support/tier.ts';
import { EVERYDAY, TEAM_RULES } from './everydayCommands.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const outcomeOf = async (command: string): Promise<string> =>
  (await explain(TEAM_RULES, 'Bash', { command }, ws)).outcome;

const allowed = fc.constantFrom(...EVERYDAY.map(([command]) => command).filter((command) => !/\n|&$/.test(command)));
/** Each puts a command in a position where bash also runs it. */
const beside = fc.constantFrom<(base: string, more: string) => string>(
  (base, more) => `${base}; ${more}`,
  (base, more) => `${base} && ${more}`,
  (base, more) => `${base} || ${more}`,
  (base, more) => `${base} | ${more}`,
  (base, more) => `${base} & ${more}`,
  (base, more) => `${base}\n${more}`,
  (base, more) => `${more}; ${base}`,
  (base, more) => `! ${more} || ${base}`,
  (base, more) => `${base}; echo $(${more})`,
  (base, more) => `${base}; echo "$(${more})"`,
  // Inside backquotes, a backquote or a backslash needs a preceding backslash.
  (base, more) => `${base}; echo \`${more.replace(/[\\`]/g, '\\$&')}\``,
  (base, more) => `${base}; cat <(${more})`,
  (base, more) => `${base}; (${more})`,
  (base, more) => `{ ${base}; ${more}; }`,
  (base, more) => `if ${base}; then ${more}; fi`,
  (base, more) => `for x in a b; do ${more}; done; ${base}`,
  (base, more) => `while ${more}; do ${base}; done`,
  (base, more) => `case a in a) ${more};; esac; ${base}`,
  (base, more) => `f() { ${more}; }; f; ${base}`,
  (base, more) => `cat <<EOF\n$(${more})\nEOF\n${base}`,
  (base, more) => `${base}; echo \${x:-$(${more})}`,
  (base, more) => `${base}; echo $(( $(${more}) ))`,
  (base, more) => `${base}; [[ -n $(${more}) ]]`,
  (base, more) => `a=($(${more})); ${base}`,
  (base, more) => `x=$(${more}) && ${base}`,
  (base, more) => `${base} <<< "$(${more})"`,
);
const spelled = fc.constantFrom(
  'rm -rf x',
  'r\\m -rf x',
  '"rm" -rf x',
  "'r'm -rf x",
  "$'rm' -rf x",
  '/bin/rm -rf x',
  'A=1 rm -rf x',
  'command rm -rf x',
  'timeout 5 rm -rf x',
  'nohup nice -n 5 rm -rf x',
  'env -u A B=1 rm -rf x',
  'sudo -u root rm -rf x',
  'xargs -I {} rm -rf {}',
  'find . -exec rm -rf {} +',
  "bash -c 'rm -rf x'",
  "sh -c 'A=1 rm -rf x'",
  'eval rm -rf x',
  'rm  -rf\t x > /dev/null',
  'rm -rf x 2>&1',
);

it('a denied command is denied in every position of a line that is allowed without it', async () => {
  await fc.assert(
    fc.asyncProperty(allowed, beside, spelled, beside, async (base, put, denied, again) => {
      const line = put(base, denied);
      expect([line, await outcomeOf(line)]).toEqual([line, 'deny']);
      const within = put('ls', denied).includes('\n') ? denied : put('ls', denied);
      // Bash accepts a `!` only at the start of a pipeline.
      const deeper = again('ls', within.startsWith('!') ? ` ( ${within} ) ` : within);
      expect([deeper, await outcomeOf(deeper)]).toEqual([deeper, 'deny']);
    }),
    { numRuns: volume.commandLines },
  );
});

it('a line with a command that no rule names requires approval', async () => {
  await fc.assert(
    fc.asyncProperty(
      allowed,
      beside,
      fc.constantFrom('nc -l 80', 'dd if=a of=b', 'ln -s a b', './run'),
      async (base, put, more) => {
        const line = put(base, more);
        expect([line, await outcomeOf(line)]).toEqual([line, 'ask']);
      },
    ),
    { numRuns: volume.commandLines },
  );
});

it('an allowed command with a variable before it, a file after it or a computed name is not allowed by its rule', async () => {
  const changed = fc.constantFrom<(command: string) => string>(
    (command) => `PATH=. ${command}`,
    (command) => `LD_PRELOAD=./a.so ${command}`,
    (command) => `NODE_OPTIONS=--require=./a ${command}`,
    (command) => `${command} > ../a`,
    (command) => `${command} >> .git/config`,
    (command) => `${command} &> $F`,
    (command) => `\${X}${command}`,
    (command) => `PATH=.\n${command}`,
  );
  const plain = fc.constantFrom('npm test', 'git add a', 'git status', 'ls', 'make', 'grep a README.md');
  await fc.assert(
    fc.asyncProperty(plain, changed, async (command, change) => {
      expect(await outcomeOf(command)).toBe('allow');
      expect([change(command), await outcomeOf(change(command))]).toEqual([change(command), 'ask']);
    }),
  );
});

it('any text has an outcome, quickly, and the same one twice', async () => {
  const pieces = fc.constantFrom(
    ...[
      'git',
      'rm',
      'ls',
      'a',
      ' ',
      '  ',
      '\n',
      ';',
      '&',
      '|',
      '(',
      ')',
      '{',
      '}',
      '<',
      '>',
      '$',
      '`',
      '"',
      "'",
      '\\',
      '#',
    ],
    ...[
      '$(',
      '<<',
      '<<<',
      'EOF',
      '*',
      '?',
      '[',
      ']',
      '=',
      '~',
      '-',
      '/',
      '..',
      'if',
      'then',
      'fi',
      'do',
      'done',
      '!',
      '\t',
    ],
  );
  const text = fc.oneof(
    fc.array(pieces, { maxLength: 60 }).map((each) => each.join('')),
    fc.string({ unit: 'binary' }),
  );
  await fc.assert(
    fc.asyncProperty(text, async (command) => {
      const since = performance.now();
      const outcome = await outcomeOf(command);
      expect(['allow', 'ask', 'deny']).toContain(outcome);
      expect(performance.now() - since).toBeLessThan(2_000);
      expect(await outcomeOf(command)).toBe(outcome);
    }),
    { numRuns: volume.commandLines },
  );
});

it('a rule that "always allow" saves permits the same call from now on, and no other', async () => {
  // Words after these may be shell lines, for which no rule is sufficient: see the test below.
  const READS_LINES = /^(z|k|da|ba|a|c|tc|fi)?sh$|^(eval|git|trap|ssh|su|watch|env|parallel|alias)$/;
  const word = fc.stringMatching(/^[a-z*?'"\\ ()$;.-]{1,8}$/).filter((text) => !READS_LINES.test(text));
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  await fc.assert(
    fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 4 }), word, async (words, other) => {
      const plugin = permissions({});
      const command = ['tool', ...words.map(quoted)].join(' ');
      const saved = await plugin.remember('Bash', { command }, ws);
      const outcome = async (text: string): Promise<string> =>
        (await plugin.explain('Bash', { command: text }, ws)).outcome;
      expect(saved).toHaveLength(1);
      expect(await outcome(command)).toBe('allow');
      for (const more of [
        `${command} ${quoted(other)}`,
        `${command}; tool`,
        `A=1 ${command}`,
        `${command} > x`,
        `x${command}`,
      ]) {
        expect([more, await outcome(more)]).toEqual([more, 'ask']);
      }
    }),
    { numRuns: volume.commandLines },
  );
});

it('a pattern of a rule matches what it would match as a regular expression, and its parts never share a character', () => {
  const literal = fc.array(fc.constantFrom('a', 'b', ' ', '\\*'), { maxLength: 3 }).map((tokens) => tokens.join(''));
  const specs = fc.array(literal, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('*').trim());
  const texts = fc.array(fc.constantFrom('a', 'b', ' ', '*'), { maxLength: 7 }).map((letters) => letters.join(''));
  const sources: { readonly [token: string]: string } = { '*': '.*', '\\*': '\\*' };
  fc.assert(
    fc.property(specs, fc.array(texts, { minLength: 5, maxLength: 20 }), (spec, lines) => {
      const pattern = spec === '' ? undefined : commandPattern(spec);
      if (!pattern) return;
      const wholeOf = (rule: string): RegExp => {
        const source = (rule.match(/\\\*|./g) ?? []).map((token) => sources[token] ?? token).join('');
        return new RegExp(`^(?:${source.replace(/ \.\*$/, '(?: .*)?')})$`);
      };
      // A run of blanks in a rule also counts as one blank.
      const wholes = [spec, spec.replace(/ +/g, ' ')].map(wholeOf);
      // Returns texts that are similar to the pattern but do not match: without the star, or with a character that two
      // parts share.
      const pieces = spec.split(/(?<!\\)\*/).map((piece) => piece.replaceAll('\\', ''));
      const shared = pieces.reduce((text, piece) => text + (text.endsWith(piece.charAt(0)) ? piece.slice(1) : piece));
      const near = [pieces.join(''), shared, spec];
      for (const line of [...lines, ...near])
        expect([spec, line, pattern.matches(line)]).toEqual([spec, line, wholes.some((whole) => whole.test(line))]);
    }),
    { numRuns: volume.commandLines },
  );
});

it.each([
  ['tool * --end', 'tool --end', 'tool x --end'],
  ['ab*ba', 'aba', 'abba'],
  ['a*a', 'a', 'aa'],
  ['tool a*a b', 'tool a b', 'tool aa b'],
  ['tool *x*x', 'tool x', 'tool xx'],
])('a rule for %j does not allow %j, whose beginning is its end, and does allow %j', async (rule, short, long) => {
  const outcome = async (command: string): Promise<string> =>
    (await permissions({ allow: [`bash(${rule})`] }).explain('Bash', { command }, ws)).outcome;
  expect([await outcome(short), await outcome(long)]).toEqual(['ask', 'allow']);
});

it.each([
  ['a[bc]*.ts', 'ab.ts', 'abx.ts', 'a[bc]x.ts'],
  ['a?.ts', 'ab.ts', 'a??.ts', 'a.ts'],
  ['?', 'a', '??'],
  ['**', 'a', 'sub/a'],
  ['[!a].ts', 'b.ts', '!.ts'],
  ['a\\b.ts', 'ab.ts', 'a\\\\b.ts'],
  ['a\\?.ts', 'a\\b.ts', 'a?.ts'],
  ['!a.ts', 'a.ts', 'b.ts'],
  ['#a.ts', 'a.ts'],
  ['a b', 'a', 'ab'],
  ['a  ', 'a', 'a '],
  ['/elsewhere/a?.ts', '/elsewhere/ab.ts', 'elsewhere/a?.ts'],
])(
  'what "always allow" saves of the file %j is that file, though its name looks like a pattern',
  async (file, ...others) => {
    const plugin = permissions({});
    const outcome = async (file_path: string): Promise<string> =>
      (await plugin.explain('Write', { file_path, content: '' }, ws)).outcome;
    expect(await outcome(file)).toBe('ask');
    expect(await plugin.remember('Write', { file_path: file, content: '' }, ws)).toHaveLength(1);
    expect(await Promise.all([file, ...others].map(outcome))).toEqual(['allow', ...others.map(() => 'ask')]);
  },
);

it('"always allow" saves a rule for each part that needs one, at most five, and none if no rule would be sufficient', async () => {
  const saved = (command: string): Promise<string[]> => permissions(TEAM_RULES).remember('Bash', { command }, ws);
  expect(await saved('tool a | other b && ls > out')).toEqual(['bash(tool a)', 'bash(other b)', 'edit(./out)']);
  expect(await saved('a; b; c; d; e')).toHaveLength(5);
  expect(await saved('a; b; c; d; e; f')).toEqual([]);
  expect(await saved('npm ci && tool *.ts')).toEqual(['bash(tool \\*.ts)']);
  for (const command of [
    'git push',
    'rm -rf x',
    "tool su ';*'",
    'tool $X',
    'tool &&',
    'cp a .git/config',
    'tool > $X',
    'git status',
  ]) {
    expect([command, await saved(command)]).toEqual([command, []]);
  }
});
