/**
 * `npm run bench:typing`: the time from a key to its character on the screen, while a reply streams at 500 tokens a second
 * and after 10,000 lines of conversation. The built program runs on a pseudo-terminal. Beside it runs the smallest program that can echo
 * a key: a program of Node that writes each character back. Both are typed into in turn, so load of the machine
 * delays both.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const KEYS = Number(process.env.BENCH_KEYS ?? 400);
const LINES = 10_000;
const TOKENS_A_SECOND = 500;
const AIM_MS = 16;
const LOST_MS = 30_000;
const WORD_MAX = 40;
const CLEAR_LINE = '\u0015';
const LETTERS = 'qxzjvkwy';
/** Each word begins with letters that occur nowhere else on the screen in this order. */
const BEGINNING = 'jzq';
const program = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));
const ECHO = `process.stdin.setRawMode(true); process.stdin.on('data', (keys) => process.stdout.write(keys)); process.stdout.write('ready');`;

const tokens = [
  'the ',
  'run ',
  'is ',
  'a ',
  '**chart** ',
  'of ',
  '`states`',
  ', ',
  'and ',
  'each ',
  'step ',
  'is ',
  'stored.',
  '\n\n',
];

/** Streams the long earlier reply first, and then, for each request, tokens at their rate until the client leaves. */
async function modelServer() {
  let count = 0;
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (fields) =>
      response.write(
        `data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', created: 1, ...fields })}\n\n`,
      );
    const say = (content) => send({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
    count += 1;
    if (count === 1) {
      for (let line = 0; line < LINES; line += 100) {
        say(Array.from({ length: 100 }, (_, at) => `- line ${line + at} of an earlier reply\n`).join(''));
        await wait(5);
      }
      send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
      return response.end('data: [DONE]\n\n');
    }
    const since = performance.now();
    for (let sent = 0; !response.destroyed; await wait(2)) {
      const due = ((performance.now() - since) / 1000) * TOKENS_A_SECOND;
      for (; sent < due; sent += 1) say(tokens[sent % tokens.length]);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    close: () => server.closeAllConnections() ?? server.close(),
  };
}

class Typed {
  #child;
  #word = '';
  #seen = '';
  #looks = () => {};

  constructor(command, options) {
    const shell = `stty rows 40 cols 120; exec ${command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')}`;
    this.#child = spawn('script', ['-qefc', shell, '/dev/null'], options);
    this.#child.stdout.setEncoding('utf8').on('data', (text) => {
      this.#seen = (this.#seen + text).slice(-20_000);
      this.#looks();
    });
  }

  write(keys) {
    this.#child.stdin.write(keys);
  }

  /** Resolves when the output contains the text. */
  shows(text) {
    return new Promise((resolve, reject) => {
      const lost = setTimeout(
        () => reject(new Error(`"${text}" was not shown:\n${this.#seen.slice(-2_000)}`)),
        LOST_MS,
      );
      this.#looks = () => {
        if (!this.#seen.includes(text)) return;
        clearTimeout(lost);
        this.#looks = () => {};
        resolve();
      };
      this.#looks();
    });
  }

  /** Clears the line and sends this one. */
  send(text) {
    this.write(`${CLEAR_LINE}${text}\r`);
    this.#word = '';
  }

  /** Types one letter. Resolves to the milliseconds until the word with it is shown. `isWhole`: all of the word is drawn again. */
  async key(isWhole) {
    if (this.#word.length >= WORD_MAX) {
      this.write(CLEAR_LINE);
      this.#word = '';
    }
    if (this.#word === '') {
      this.write(BEGINNING);
      this.#word = BEGINNING;
      await wait(100);
    }
    const letter = LETTERS[Math.floor(Math.random() * LETTERS.length)];
    this.#word += letter;
    this.#seen = '';
    const since = performance.now();
    this.write(letter);
    await this.shows(isWhole ? this.#word : letter);
    return performance.now() - since;
  }

  /** The CPU time of the program in milliseconds; NaN where it cannot be read. */
  get cpuMs() {
    try {
      const [pid] = execFileSync('pgrep', ['-P', String(this.#child.pid)], { encoding: 'utf8' }).split('\n');
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ');
      return (Number(fields[11]) + Number(fields[12])) * 10;
    } catch {
      return Number.NaN;
    }
  }

  stop() {
    this.#child.kill('SIGKILL');
  }
}

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
function row(name, times) {
  const sorted = times.toSorted((one, other) => one - other);
  const cells = [0.5, 0.9, 0.99, 1].map((share) => at(sorted, share).toFixed(1).padStart(7));
  console.log(`${name.padEnd(46)} ${cells.join(' ')}`);
  return at(sorted, 0.99);
}

/** Types into all of them in turn, at random moments. */
async function typed(terminals) {
  const times = terminals.map(() => []);
  for (let key = 0; key < KEYS; key += 1) {
    for (const [index, [terminal, isWhole]] of terminals.entries()) {
      await wait(20 + Math.random() * 40);
      times[index].push(await terminal.key(isWhole));
    }
  }
  return times;
}

const home = mkdtempSync(join(tmpdir(), 'runchart-typing-'));
const server = await modelServer();
const env = {
  ...{ PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8', TERM: 'xterm-256color', SHELL: '/bin/sh' },
  ...{ OPENAI_API_KEY: 'sk-bench-0123456789', OPENAI_BASE_URL: server.url },
};
const echo = new Typed([process.execPath, '-e', ECHO], { env });
const talk = new Typed([process.execPath, program, '-m', 'm'], { env, cwd: home });
try {
  await echo.shows('ready');
  await talk.shows('/help');
  console.log(
    `milliseconds from a key to its character, ${KEYS} keys each`.padEnd(46),
    '    p50     p90     p99     max',
  );
  const [bare, idle] = await typed([
    [echo, false],
    [talk, true],
  ]);
  row('echo by Node alone', bare);
  row('runchart, nothing under way', idle);
  talk.send('go');
  await talk.shows(`line ${LINES - 1} of`);
  await talk.shows('completed');
  talk.send('go on');
  await wait(1_000);
  const [cpuBefore, since] = [talk.cpuMs, performance.now()];
  const [besides, streaming] = await typed([
    [echo, false],
    [talk, true],
  ]);
  const cpu = (100 * (talk.cpuMs - cpuBefore)) / (performance.now() - since);
  row('echo by Node alone, at the same time', besides);
  const p99 = row(`runchart, ${TOKENS_A_SECOND} tokens/s after ${LINES.toLocaleString('en-US')} lines`, streaming);
  console.log(`aim: p99 ${AIM_MS} ms, measured ${p99.toFixed(1)} ms, with a load of ${loadavg()[0].toFixed(1)}`);
  console.log(`CPU of the program meanwhile: ${cpu.toFixed(0)} % of a core`);
} finally {
  echo.stop();
  talk.stop();
  server.close();
  rmSync(home, { recursive: true, force: true });
}
process.exit(0);
