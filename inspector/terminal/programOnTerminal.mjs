/**
 * The program on a pseudo-terminal of a fixed size, with a model that follows a script. Invariant: it waits for the content of the
 * screen. Texts that differ from run to run (ids, places, times) are replaced by others of the same length.
 */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { TerminalCells } from './terminalCells.mjs';

const WAIT_MS = 60_000;
const LOOK_MS = 40;
/** A question is answered after this time. */
export const QUESTION_MS = 700;

/** A chat completions server that gives one reply a request. The next reply is the first of the list. */
export async function modelServer() {
  const replies = [];
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    const reply = replies.shift() ?? { status: 500, body: { error: { message: 'the script has no more replies' } } };
    if (reply.status)
      return response.writeHead(reply.status, { 'content-type': 'application/json' }).end(JSON.stringify(reply.body));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (fields) =>
      response.write(
        `data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', created: 1, ...fields })}\n\n`,
      );
    const delta = (fields, finish_reason = null) => send({ choices: [{ index: 0, delta: fields, finish_reason }] });
    const { text = '', calls = [], usage = [8_412, 96], hangs = false } = reply;
    for (const piece of text.match(/\s*\S+\s*/g) ?? []) delta({ content: piece });
    for (const [index, [id, name, args]] of calls.entries()) {
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: JSON.stringify(args) } }] });
    }
    if (hangs) return;
    delta({}, calls.length > 0 ? 'tool_calls' : 'stop');
    const [prompt_tokens, completion_tokens] = usage;
    send({ choices: [], usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens } });
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  /** These replies come next, and no earlier ones. */
  const says = (...next) => void replies.splice(0, replies.length, ...next);
  return { url: `http://127.0.0.1:${server.address().port}/v1`, says, close };
}

/** `masks`: pairs of an expression and the text in its place, which is cut or filled to the same length. */
export class ProgramOnTerminal {
  #child;
  #screen;
  #masks;
  #isEnded = false;

  constructor({ command, columns, rows, cwd, env, masks }) {
    this.#screen = new TerminalCells(columns, rows);
    this.#masks = masks;
    const shell = `stty rows ${rows} cols ${columns}; exec ${command.map(quoted).join(' ')}`;
    this.#child = spawn('script', ['-qefc', shell, '/dev/null'], { cwd, env: { ...env, SHELL: '/bin/sh' } });
    this.#child.stdout.setEncoding('utf8').on('data', (text) => this.#screen.write(text));
    this.#child.once('close', () => {
      this.#isEnded = true;
    });
  }

  /** Writes a text on the screen as if a shell had. */
  echo(text) {
    this.#screen.write(text);
  }

  type(keys) {
    this.#child.stdin.write(keys);
  }

  async shows(wanted) {
    const until = Date.now() + WAIT_MS;
    while (!wanted.test(this.#screen.text)) {
      if (Date.now() > until) throw new Error(`the screen does not show ${wanted}:\n${this.#screen.text}`);
      await wait(LOOK_MS);
    }
    // Output that is drawn in the same moment belongs to the screen.
    await wait(4 * LOOK_MS);
  }

  async ended() {
    const until = Date.now() + WAIT_MS;
    while (!this.#isEnded) {
      if (Date.now() > until) throw new Error(`the program has not ended:\n${this.#screen.text}`);
      await wait(LOOK_MS);
    }
  }

  /** The screen as it is now. */
  get shot() {
    const lines = this.#screen.lines.map((cells) => masked(cells, this.#masks));
    return { lines, cursor: { ...this.#screen.cursor } };
  }

  stop() {
    this.#child.kill('SIGKILL');
  }
}

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

function masked(cells, masks) {
  const all = Array.from(cells, (cell) => cell ?? { text: ' ', style: undefined });
  // A cell with a character of several units would move the others.
  const text = all.map((cell) => (cell.text.length === 1 ? cell.text : '\u0000')).join('');
  const shown = masks.reduce(
    (line, [pattern, constant]) =>
      line.replace(pattern, (old) => constant.padEnd(old.length, constant.at(-1)).slice(0, old.length)),
    text,
  );
  return all.map((cell, at) => (cell.style && cell.text.length === 1 ? { ...cell, text: shown[at] } : cells[at]));
}
