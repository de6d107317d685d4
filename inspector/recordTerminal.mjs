/**
 * Makes the pictures of the program for the docs (`npm run pictures`): its screen at 80×24 and at 120×40, in colour. Each
 * is the real program on a pseudo-terminal with a scripted model. `--only edit,plan` selects pictures, and `--to <folder>` sets their
 * folder.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { modelServer, ProgramOnTerminal, QUESTION_MS } from './terminal/programOnTerminal.mjs';
import { terminalPicture } from './terminal/terminalPicture.mjs';

const { values } = parseArgs({ options: { only: { type: 'string' }, to: { type: 'string' } } });
const root = fileURLToPath(new URL('..', import.meta.url));
const program = `${root}dist/src/cli/main.js`;
const folder = values.to ?? `${root}docs/pictures/cli`;
const only = values.only?.split(',');
const SIZES = [
  [80, 24],
  [120, 40],
];
const [ENTER, CLEAR, KILL_LINE, END] = ['\r', '\f', '\u0015', '\u0004'];
const IDLE = /\n>$/;

const FILES = {
  'package.json': '{ "name": "shop", "type": "module", "scripts": { "test": "node --test" } }\n',
  'src/price.js':
    '/** The price of an item in cents, with its tax. */\nexport function priceOf({ cents, taxPercent }) {\n' +
    '  const withTax = cents * (1 + taxPercent / 100);\n  return Math.floor(withTax);\n}\n',
  'test/price.test.js':
    "import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport { priceOf } from '../src/price.js';\n\n" +
    "test('half a cent is rounded up', () => {\n  assert.equal(priceOf({ cents: 1050, taxPercent: 19 }), 1250);\n});\n",
};

const ANSWER = `## Why it fails

\`priceOf\` cuts the fraction instead of rounding it:

\`\`\`js
// 1050 cents with 19 % tax
const withTax = cents * (1 + taxPercent / 100); // 1249.5
return Math.floor(withTax);
\`\`\`

| function     | 1249.5 | 1249.4 |
| ------------ | -----: | -----: |
| \`Math.floor\` |   1249 |   1249 |
| \`Math.round\` |   1250 |   1249 |

1. Use **Math.round** in \`src/price.js\`
2. Run the tests`;
const PLAN = `1. \`src/discount.js\`: a function that takes a percentage off
2. \`src/cart.js\`: the sum of a cart, with its discount
3. Tests for both, and a line in the README`;
const STEPS = ['Read the prices', 'Write src/discount.js', 'Write src/cart.js', 'Run the tests'];

const todos = STEPS.map((content, at) => ({ content, status: ['completed', 'in_progress'][at] ?? 'pending' }));
const reads = {
  calls: [
    ['c1', 'Read', { file_path: 'src/price.js' }],
    ['c2', 'Grep', { pattern: 'priceOf' }],
  ],
};
const edits = {
  text: 'I round the price.',
  calls: [
    [
      'c3',
      'Edit',
      {
        file_path: 'src/price.js',
        old_string: 'return Math.floor(withTax);',
        new_string: 'return Math.round(withTax);',
      },
    ],
  ],
};
const commits = {
  calls: [['c4', 'Bash', { command: 'git diff --stat && git commit -qam "Round prices" && git push origin main' }]],
};
const watches = { calls: [['c5', 'Bash', { command: 'node --test --watch', run_in_background: true }]] };
const lists = { calls: [['c6', 'TodoWrite', { todos }]] };
const plans = { calls: [['c7', 'ExitPlanMode', { plan: PLAN }]] };
const REFUSED = {
  error: {
    message: 'Incorrect API key provided: sk-wrong. You can find your API key at https://platform.example.',
    type: 'invalid_request_error',
    code: 'invalid_api_key',
  },
};
const titles = ['add a discount to the cart', 'why is the total off by one cent?', 'explain how taxes are stored'];

/** A repository with a commit, and a home without any settings. */
function project() {
  const place = mkdtempSync(join(tmpdir(), 'runchart-pictures-'));
  const cwd = join(place, 'shop');
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(join(cwd, dirname(path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const git = (...args) =>
    execFileSync('git', ['-C', cwd, '-c', 'user.name=ada', '-c', 'user.email=ada@example.org', ...args]);
  git('init', '-q', '-b', 'main');
  git('add', '.');
  git('commit', '-qm', 'Begin');
  const home = join(place, 'home');
  mkdirSync(home);
  const env = { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8', TERM: 'xterm-256color' };
  return { place, cwd, env, remove: () => rmSync(place, { recursive: true, force: true }) };
}

/** Takes the pictures of one size, in the order of a working day. */
async function recordSize([columns, rows]) {
  const { place, cwd, env, remove } = project();
  const server = await modelServer();
  const masks = [
    [/\b\d{8}-\d{6}-[0-9a-f]{6}\b/g, '20261127-090000-4f1c2a'],
    [/\bbash_[0-9a-f]{8}\b/g, 'bash_6d0e41b7'],
    [/\b\d\.\d s\b/g, '0.1 s'],
    [new RegExp(place, 'g'), '/home/ada/projects/'],
  ];
  const withModel = { ...env, OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'sk-pictures-0123456789' };
  const opened = [];
  const begin = (args, variables = withModel) => {
    const command = [process.execPath, program, ...args];
    const terminal = new ProgramOnTerminal({ command, columns, rows, cwd, env: variables, masks });
    terminal.echo(`\u001b[1m$\u001b[22m runchart ${args.join(' ')}\r\n`);
    opened.push(terminal);
    return terminal;
  };
  const save = (terminal, name, label) => {
    if (only && !only.includes(name)) return;
    const svg = terminalPicture(terminal.shot, columns, label);
    writeFileSync(join(folder, `${name}-${columns}x${rows}.svg`), svg);
  };
  try {
    await firstStart({ begin, save, env });
    await earlierSessions({ cwd, env: withModel, server });
    await conversation({ begin, save, server });
    await laterSessions({ begin, save, server, withModel });
  } finally {
    for (const terminal of opened) terminal.stop();
    server.close();
    remove();
  }
}

async function firstStart({ begin, save, env }) {
  const terminal = begin([], env);
  await terminal.ended();
  await wait(200);
  save(terminal, 'start', 'The first start without a model: the program says what it needs, with an example');
}

/** Sessions of earlier days, without a terminal. */
async function earlierSessions({ cwd, env, server }) {
  for (const title of titles) {
    server.says({ text: 'Done.' });
    const { execFile } = await import('node:child_process');
    await new Promise((resolve, reject) => {
      execFile(process.execPath, [program, '-m', 'gpt-5-mini', '-p', title], { cwd, env }, (error) =>
        error ? reject(error) : resolve(undefined),
      ).stdin.end();
    });
  }
}

async function conversation({ begin, save, server }) {
  const terminal = begin(['-m', 'gpt-5-mini']);
  await terminal.shows(IDLE);
  /** Clears the screen before the next output. */
  const clear = async () => {
    terminal.type(CLEAR);
    await wait(200);
  };
  const send = async (text, wanted) => {
    terminal.type(`${text}${ENTER}`);
    await terminal.shows(wanted);
  };
  const answer = async (text, wanted) => {
    await wait(QUESTION_MS);
    await send(text, wanted);
  };
  terminal.type('/');
  await terminal.shows(/› \/\w+[\s\S]*\n.*\/\w+/);
  save(terminal, 'menu', 'The menu of commands after a slash');
  terminal.type(`${KILL_LINE}`);

  await clear();
  server.says(reads, { text: ANSWER, usage: [9_120, 240] });
  await send('why does the test fail?', /■ completed[^\n]*\n>$/);
  save(terminal, 'markdown', 'A reply with a heading, code in colours, a table and a list');

  await clear();
  server.says(edits, commits, watches, {
    text: 'The tests run now, and again after each change.',
    usage: [11_004, 40],
  });
  await send('round it, commit, and keep the tests running', /┃ run it\?/);
  save(terminal, 'edit', 'A question about an edit, shown as a diff with marked words');
  await clear();
  await answer('y', /its parts:[\s\S]*┃ run it\?/);
  save(terminal, 'bash', 'A question about a command, with its parts and what the rules say of each');
  await answer('n, I push myself', /node --test --watch[\s\S]*┃ run it\?/);
  await clear();
  await answer('y', /■ completed[^\n]*\n◌ in the background[^\n]*\n>$/);
  save(terminal, 'background', 'A command in the background, shown above the line while it runs');

  await clear();
  await send('/context', /\n>$/);
  save(terminal, 'context', 'How full the context of the model is');
  await clear();
  await send('/cost', /\n>$/);
  save(terminal, 'cost', 'What the session has cost');

  await clear();
  await send('/mode plan', /mode plan · session[\s\S]*\n>$/);
  await clear();
  server.says(lists, plans, { text: 'I begin with src/discount.js.', hangs: true });
  await send('plan a discount for carts', /carry out this plan[\s\S]*┃ carry it out\?/);
  save(terminal, 'plan', 'The plan of the model as a list, and the question whether to carry it out');
  terminal.type('\u001b');
  await terminal.shows(/■ interrupted[^\n]*\n>/);
  terminal.type(`${KILL_LINE}${END}`);
  await terminal.ended();
}

async function laterSessions({ begin, save, server, withModel }) {
  const chooser = begin(['-m', 'gpt-5-mini', '-r']);
  await chooser.shows(/a number opens[\s\S]*\n>$/);
  save(chooser, 'chooser', 'The sessions of a directory, to choose one by its number');
  chooser.type(END);
  await chooser.ended();

  const wrong = begin(['-m', 'gpt-5-mini'], { ...withModel, OPENAI_API_KEY: 'sk-wrong' });
  await wrong.shows(IDLE);
  server.says({ status: 401, body: REFUSED });
  wrong.type(`why does the test fail?${ENTER}`);
  await wrong.shows(/error \(model\)[\s\S]*\n>/);
  save(wrong, 'error', 'An error of the server, with the next step');
}

mkdirSync(folder, { recursive: true });
for (const size of SIZES) await recordSize(size);
console.log(`${folder}: pictures of the program at ${SIZES.map((size) => size.join('×')).join(' and ')}`);
