/**
 * One real task on a real repository, from the first message to the end: a person plans, reviews, is interrupted by a
 * kill, resumes, takes back and forks. Invariant: the program, its tools, git and the tests of the repository are real;
 * only the model is a script.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { LogEntry } from '../../machines/index.ts';
import { proves } from '../support/tier.ts';
import { hasTerminals, start, storedEntries, temporaryDirectory } from './cli.ts';
import { type Asked, modelServer, type Script } from './modelServer.ts';
import { CTRL_C, CTRL_D, personTerminal } from './personTerminal.ts';
import { KEY } from './runDirectory.ts';

const FILES = {
  'package.json': '{ "name": "shop", "type": "module", "scripts": { "test": "node --test" } }\n',
  'README.md': '# Shop\n\nPrices are in cents.\n',
  'src/price.js':
    '/** The price of an item in cents, with its tax. */\nexport function priceOf({ cents, taxPercent }) {\n' +
    '  return Math.floor(cents * (1 + taxPercent / 100));\n}\n',
  'src/cart.js':
    "import { priceOf } from './price.js';\n\n/** The sum of a cart in cents. */\nexport function totalOf(cart) {\n" +
    '  return cart.items.reduce((sum, item) => sum + priceOf(item), 0);\n}\n',
  'test/cart.test.js':
    "import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport { totalOf } from '../src/cart.js';\n\n" +
    "test('a discount is taken off the whole', () => {\n  const items = [{ cents: 1050, taxPercent: 19 }];\n" +
    '  assert.equal(totalOf({ items, discountPercent: 10 }), 1125);\n});\n',
};
const TESTS = 'node --test';
const STEPS = ['Round the price', 'Take off the discount', 'Document it', 'Run the tests'];
const SUM = '  return cart.items.reduce((sum, item) => sum + priceOf(item), 0);';
/** The model names a field that does not exist. */
const WRONG =
  '  const sum = cart.items.reduce((total, item) => total + priceOf(item), 0);\n  return Math.round(sum * (1 - cart.discount / 100));';

/** A commit of the files, whose test fails. */
async function repository(cwd: string): Promise<(...args: string[]) => string> {
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', cwd, '-c', 'user.name=ada', '-c', 'user.email=ada@example.org', ...args], {
      encoding: 'utf8',
    });
  for (const [path, text] of Object.entries(FILES)) {
    await mkdir(join(cwd, dirname(path)), { recursive: true });
    await writeFile(join(cwd, path), text);
  }
  git('init', '-q', '-b', 'main');
  git('add', '.');
  git('commit', '-qm', 'Begin');
  return git;
}

const passes = (cwd: string): boolean => {
  try {
    execFileSync(process.execPath, ['--test'], { cwd, stdio: 'ignore', env: { PATH: process.env.PATH ?? '' } });
    return true;
  } catch {
    return false;
  }
};

const calls =
  (text: string, ...all: [id: string, name: string, args: object][]): Script =>
  (reply) => {
    if (text !== '') reply.text(text);
    for (const [index, [id, name, args]] of all.entries())
      reply.delta({
        tool_calls: [{ index, id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
      });
    reply.finish('tool_calls');
  };
const says =
  (...pieces: string[]): Script =>
  (reply) => {
    reply.text(...pieces);
    reply.finish('stop');
  };
const edits = (id: string, file_path: string, old_string: string, new_string: string): [string, string, object] => [
  id,
  'Edit',
  { file_path, old_string, new_string },
];
const plan = (id: string, done: number): [string, string, object] => [
  id,
  'TodoWrite',
  {
    todos: STEPS.map((content, at) => ({
      content,
      status: at < done ? 'completed' : at === done ? 'in_progress' : 'pending',
    })),
  },
];
const runsTests = (id: string): Script => calls('', [id, 'Bash', { command: TESTS, run_in_background: true }]);

/** The text of the last result, as the model reads it. */
const lastResult = ({ messages }: Asked): string => String(messages.at(-1)?.content);
/** Reads the output of the command that was started last. */
const readsOutput =
  (id: string): Script =>
  (reply, asked) => {
    const [bash_id = ''] = /bash_[0-9a-f]+/.exec(lastResult(asked)) ?? [];
    reply.call(id, 'BashOutput', JSON.stringify({ bash_id, waitMs: 60_000 }));
    reply.finish('tool_calls');
  };

const beforeTheKill: Script[] = [
  calls(
    'I look for the cause.',
    ['c1', 'Read', { file_path: 'test/cart.test.js' }],
    ['c2', 'Grep', { pattern: 'priceOf|totalOf' }],
    ['c3', 'Read', { file_path: 'src/price.js' }],
    ['c4', 'Read', { file_path: 'src/cart.js' }],
    ['c5', 'Read', { file_path: 'README.md' }],
  ),
  calls('', plan('c6', 0)),
  calls('', [
    'c7',
    'ExitPlanMode',
    { plan: '1. Round the price in `src/price.js`\n2. Discount in `src/cart.js`\n3. README' },
  ]),
  calls('', edits('c8', 'src/price.js', 'Math.floor', 'Math.round')),
  calls('', edits('c9', 'src/cart.js', SUM, WRONG)),
  calls('', edits('c10', 'README.md', 'cents.', 'cents. A discount is a percentage, it is taken off the whole.')),
  calls('', edits('c11', 'README.md', 'cents.', 'cents. `discountPercent` is taken off the whole.')),
  calls('', plan('c12', 3)),
  runsTests('c13'),
  async (reply) => {
    reply.text('While they run, I look at ');
    await reply.gone;
  },
];
const afterTheKill: Script[] = [
  runsTests('c14'),
  readsOutput('c15'),
  calls('NaN: the field has another name.', ['c16', 'Read', { file_path: 'src/cart.js' }]),
  calls('', edits('c17', 'src/cart.js', 'cart.discount /', '(cart.discountPercent ?? 0) /')),
  runsTests('c18'),
  readsOutput('c19'),
  calls('', plan('c20', 4)),
  says('The test passes: the price is rounded, and **the discount** is taken off.'),
];
const another: Script[] = [
  calls('', ['c21', 'Write', { file_path: 'src/euros.js', content: 'export const euros = (cents) => cents / 100;\n' }]),
  says('Done.'),
];

const resultsIn = (entries: readonly LogEntry[], callId: string): string[] =>
  entries.flatMap((entry) =>
    entry.type === 'tool-result' && entry.callId === callId
      ? [`${entry.outcome} ${JSON.stringify(entry.content)}`]
      : [],
  );

describe.skipIf(!hasTerminals || !proves)('a task on a repository', () => {
  test('it is planned, reviewed, tested in the background, killed, resumed, mended, taken back and forked', async () => {
    const server = await modelServer(...beforeTheKill, ...afterTheKill, ...another, says('Three files changed.'));
    const root = await temporaryDirectory();
    await mkdir(join(root, 'config', 'runchart'), { recursive: true });
    await writeFile(join(root, 'config', 'runchart', 'config.json'), '{"titles":false}');
    const cwd = join(root, 'shop');
    const state = join(root, 'state');
    const env = {
      ...{ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: server.baseURL, XDG_STATE_HOME: state },
      XDG_CONFIG_HOME: join(root, 'config'),
    };
    const git = await repository(cwd);
    const fileOf = (path: string): Promise<string> => readFile(join(cwd, path), 'utf8');
    expect(passes(cwd)).toBe(false);

    // It reads, searches and plans, and may change nothing before the plan is approved.
    const first = personTerminal({ cwd, env }, ['--permission-mode', 'plan']);
    await first.shows(/mode plan · session \S+ · \/help\n>$/);
    const [, session = ''] = /session (\S+)/.exec(first.text()) ?? [];
    first.type('the test of the cart fails: plan, then fix it\r');
    await first.shows(/┃ ExitPlanMode asks to carry out this plan.*\n┃ 1\. Round the price in src\/price\.js\n/);
    expect(first.text()).toMatch(/✓ Grep priceOf\|totalOf[\s\S]* {2}▸ Round the price\n {2}☐ Take off the discount\n/);
    expect(git('status', '--porcelain')).toBe('');

    // Three edits are reviewed as diffs. One is sent back with a reason.
    await first.answers('y\r', /┃ Edit asks to change src\/price\.js/);
    expect(first.text()).toMatch(/┃ 3 - +return Math\.floor\(.*\n┃ 3 \+ +return Math\.round\(/);
    expect(await fileOf('src/price.js')).toContain('Math.floor');
    await first.answers('y\r', /┃ Edit asks to change src\/cart\.js/);
    expect(await fileOf('src/price.js')).toContain('Math.round');
    await first.answers('y\r', /┃ Edit asks to change README\.md/);
    await first.answers('n, name the field\r', /· Edit: denied: name the field[\s\S]*┃ Edit asks to change README\.md/);
    expect(first.text()).toContain('`discountPercent` is taken off the whole.');
    await first.answers('y\r', `┃ $ ${TESTS}`);

    // The tests run in the background, by a rule that is kept. The program is killed in the middle of a reply.
    await first.answers('k\r', '  While they run, I look at');
    expect(first.text()).toMatch(/· kept for this directory in\s+\S+allowed\.json/);
    process.kill(first.programId(), 'SIGKILL');
    await first.program.ended;
    const listed = start(['sessions', '--json'], { cwd, env });
    await listed.ended;
    expect(JSON.parse(listed.stdout)).toMatchObject({
      id: session,
      title: 'the test of the cart fails: plan, then fix it',
    });

    // The next program shows its last state, and the commands that were lost. Nothing runs again by itself.
    const second = personTerminal({ cwd, env }, ['-c']);
    await second.shows(
      /the plan of this session\n {2}✓ Round the price\n[\s\S]* {2}▸ Run the tests\n! bash_\w+ node --test: it ended when/,
    );
    expect(second.text()).toContain(session);
    expect(server.asked).toHaveLength(beforeTheKill.length);
    second.type('go on\r');
    // The kept rule allows the tests, which fail. A file is read again before it is changed.
    await second.shows(/┃ Edit asks to change src\/cart\.js/);
    expect(second.text()).toContain('NaN: the field has another name.');
    expect(second.text()).not.toContain('Bash asks');
    await second.answers('y\r', /The test passes: the price is rounded/);
    await second.idle('■ completed');
    expect(passes(cwd)).toBe(true);

    // Another request is undone: its file is gone, and the others stay.
    second.type('add euros\r');
    await second.shows(/┃ Write asks to create src\/euros\.js/);
    await second.answers('y\r', /✓ Write src\/euros\.js[\s\S]*■ completed/);
    await second.idle('■ completed');
    expect(existsSync(join(cwd, 'src/euros.js'))).toBe(true);
    second.type('/undo\r');
    await second.shows(/removed src\/euros\.js, which was new\n[\s\S]*\n> add euros$/);
    expect(existsSync(join(cwd, 'src/euros.js'))).toBe(false);
    second.type(`${CTRL_C}/fork\r`);
    // The fork continues after the request that counts, and shows it.
    await second.shows(
      /the conversation continues[\s\S]*\nrunchart · m1 · mode default · session \S+ · \/help\n> go on\n[\s\S]*■ completed.*\n>$/,
    );
    second.type('what has changed?\r');
    await second.idle('■ completed · 1 turn');
    second.type(CTRL_D);
    expect(await second.program.ended).toEqual({ code: 0, signal: null });

    // The repository has the three changes and no others, and its history is as before.
    expect(git('status', '--porcelain').trim().split('\n')).toEqual(
      [' M README.md', ' M src/cart.js', ' M src/price.js'].map((line, at) => (at === 0 ? line.trim() : line)),
    );
    expect(git('log', '--format=%s').trim()).toBe('Begin');
    expect(passes(cwd)).toBe(true);
    const [, fork = ''] = /session (\S+): runchart -r/.exec(second.text()) ?? [];
    const sessions = join(state, 'runchart');
    const original = await storedEntries(sessions, session);
    const forked = await storedEntries(sessions, fork);
    const started = original.flatMap((entry) => (entry.type === 'tool-started' ? [entry.callId] : []));
    expect(started.length).toBe(new Set(started).size);
    expect(resultsIn(original, 'c10')).toEqual([expect.stringContaining('name the field')]);
    expect(resultsIn(original, 'c15')).toEqual([expect.stringMatching(/NaN[\s\S]*\[ended: exit code 1\]/)]);
    expect(resultsIn(original, 'c19')).toEqual([expect.stringContaining('[ended: exit code 0]')]);
    const asked = (entries: readonly LogEntry[]): boolean => JSON.stringify(entries).includes('what has changed?');
    expect([asked(original), asked(forked)]).toEqual([false, true]);
    // The model of the fork has the task, and no part of the request that was undone.
    const last = JSON.stringify(server.asked.at(-1)?.messages);
    expect(last).toContain('The test passes');
    expect(last).not.toContain('add euros');
    // The model received a note about the commands that the kill ended.
    expect(JSON.stringify(server.asked[beforeTheKill.length]?.messages.at(-1))).toContain('is gone');
    expect(server.asked).toHaveLength(beforeTheKill.length + afterTheKill.length + another.length + 1);
  });
});
