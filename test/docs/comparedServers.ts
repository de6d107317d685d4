/**
 * The servers of docs/examples/compared as processes, with the page of `useChat`, a model server and a bank. Invariant: a process runs
 * the file that docs/compared.md counts. Only the effect of its tool is replaced, by a request to the bank.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { UIMessage } from 'ai';
import { build, type Plugin } from 'esbuild';
import { afterAll, onTestFinished } from 'vitest';
import { callPiece, delta, ends } from '../../src/testing/modelSuite/chatServer.ts';
import { responsesWire } from '../models/vendorWires.ts';
import { translated } from '../models/wireTranslator.ts';
import { portOf } from '../transports/agentServer.ts';
import { type ChatPage, ChatPage7 } from '../transports/chatPages.ts';
import { entries, root } from './documents.ts';

export const PLACE = 'docs/examples/compared';

/** Holds answers of a server until the test lets them continue. */
class Gate {
  isClosed = false;
  #arrived = 0;
  readonly #held: (() => void)[] = [];
  readonly #watchers: (() => void)[] = [];

  async pass(): Promise<void> {
    this.#arrived += 1;
    for (const watcher of this.#watchers.splice(0)) watcher();
    if (this.isClosed) await new Promise<void>((resolve) => this.#held.push(resolve));
  }

  /** Resolves when this number has arrived since the beginning. */
  async arrived(count: number): Promise<void> {
    while (this.#arrived < count) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  /** Lets the first of those that wait continue. */
  letOne(): void {
    this.#held.shift()?.();
  }

  open(): void {
    this.isClosed = false;
    for (const next of this.#held.splice(0)) next();
  }
}

/** Receives the transfers of the tool. A closed gate keeps the tool waiting. */
async function bankServer() {
  const gate = new Gate();
  const transfers: string[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += String(piece);
    transfers.push(text);
    await gate.pass();
    response.end();
  });
  return { gate, transfers, url: `http://127.0.0.1:${await portOf(server)}` };
}

type ChatMessage = { role: string; content: unknown };
const textOf = ({ content }: ChatMessage): string =>
  typeof content === 'string' ? content : (content as { text?: string }[]).map(({ text = '' }) => text).join('');

/**
 * A model that asks for a transfer when a message says "Pay", and answers every other message in two halves. A closed gate keeps it
 * between the halves.
 */
async function modelServer() {
  const gate = new Gate();
  const requests: ChatMessage[][] = [];
  const write = (response: ServerResponse, chunk: unknown) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += String(piece);
    const { messages } = JSON.parse(text) as { messages: ChatMessage[] };
    requests.push(messages);
    const last = messages.at(-1) as ChatMessage;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (last.role === 'user' && textOf(last).includes('Pay')) {
      write(response, callPiece(0, `call_${messages.length}`, 'transfer', '{"to":"ann","euros":9}'));
      write(response, ends('tool_calls'));
    } else {
      write(response, delta({ content: 'The first half, ' }));
      if (last.role === 'user') await gate.pass();
      write(response, delta({ content: last.role === 'tool' ? 'after the tool.' : `of ${textOf(last)}` }));
      write(response, ends('stop'));
    }
    response.end('data: [DONE]\n\n');
  });
  return { gate, requests, url: `http://127.0.0.1:${await portOf(server)}` };
}

/** The database of `stop-ai-sdk.ts`, which `chats.ts` only declares: one file for each chat. */
const CHATS = `
  import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
  const fileOf = (id) => '.chats/' + id + '.json';
  export async function readChat(id) {
    try { return JSON.parse(readFileSync(fileOf(id), 'utf8')); } catch { return { messages: [], activeStreamId: null }; }
  }
  export async function saveChat(id, changes) {
    mkdirSync('.chats', { recursive: true });
    writeFileSync(fileOf(id), JSON.stringify({ ...(await readChat(id)), ...changes }));
  }`;
const idOf = "(url) => new URL(url).pathname.split('/').at(-1)";
/** The code that each file needs to be a server. */
const ROUTES = {
  'approval-runchart': "import { handler } from './approval-runchart.ts'; const answer = handler;",
  /** With the policy that continues an interrupted run. */
  'resuming-runchart': "import { handler } from './approval-runchart.ts?resume'; const answer = handler;",
  'approval-ai-sdk': `import { GET, POST } from './approval-ai-sdk.ts'; const idOf = ${idOf};
    const answer = (request) => request.method === 'POST' ? POST(request) : GET(idOf(request.url));`,
  'stop-ai-sdk': `import { POST } from './stop-ai-sdk.ts'; import { readChat } from './chats.ts'; const idOf = ${idOf};
    const answer = async (request) =>
      request.method === 'POST' ? POST(request) : Response.json((await readChat(idOf(request.url))).messages);`,
} as const;
type ServerName = keyof typeof ROUTES;
const SERVE = `
  import { createAdaptorServer } from '@hono/node-server';
  const server = createAdaptorServer({ fetch: answer, overrideGlobalObjects: false });
  server.on('request', (_, response) => response.on('close', () => response.writableFinished || console.log('left')));
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;

/** The tool sends its transfer to the bank. */
const replacements: Plugin = {
  name: 'replacements',
  setup(bundle) {
    bundle.onLoad({ filter: /chats\.ts$/ }, () => ({ contents: CHATS, loader: 'js' }));
    bundle.onLoad({ filter: /approval-[\w-]+\.ts$/ }, ({ path, suffix }) => {
      const source = readFileSync(path, 'utf8');
      const policies = suffix === '?resume' ? ", policies: { onRestart: 'resume' } })" : ' })';
      const transfer = "await fetch(process.env.BANK_URL, { method: 'POST', body: JSON.stringify({ to, euros }) });";
      const waiting = source.replace(
        /execute: \(\{ to, euros \}\) => (`.*`),/,
        `execute: async ({ to, euros }) => { ${transfer} return $1; },`,
      );
      const contents = waiting.replace(/(?<=jsonlStore\('.chats'\)) \}\)/, policies);
      if (waiting === source || (suffix !== '' && contents === waiting))
        throw new Error(`${path} has no line that can be replaced`);
      return { contents, loader: 'ts' };
    });
  },
};

const folder = mkdtempSync(join(tmpdir(), 'runchart-compared-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const bundles = new Map<ServerName, Promise<string>>();
const sources = Object.fromEntries([...entries].map(([name, source]) => [name, join(root, source)]));
const others = { ai: join(root, 'node_modules/ai-v7'), '@ai-sdk/openai': join(root, 'node_modules/ai-sdk-openai-v4') };

async function bundled(name: ServerName): Promise<string> {
  const outfile = join(folder, `${name}.mjs`);
  const js = "import { createRequire as ofModule } from 'node:module'; const require = ofModule(import.meta.url);";
  const stdin = { contents: ROUTES[name] + SERVE, resolveDir: join(root, PLACE), loader: 'js' } as const;
  const how = { bundle: true, platform: 'node', format: 'esm', banner: { js }, logLevel: 'silent' } as const;
  await build({ stdin, plugins: [replacements], alias: { ...sources, ...others }, outfile, ...how });
  return outfile;
}

/** A server in a process of its own. */
export class ChatProcess {
  #child: ChildProcess | undefined;
  #lines: AsyncIterator<string> | undefined;
  #url = '';
  readonly #name: ServerName;
  readonly #environment: Record<string, string>;
  readonly #cwd = mkdtempSync(join(folder, 'chats-'));

  constructor(name: ServerName, environment: Record<string, string>) {
    this.#name = name;
    this.#environment = environment;
  }

  async start(): Promise<void> {
    const bundle = bundles.get(this.#name) ?? bundled(this.#name);
    bundles.set(this.#name, bundle);
    const { PATH = '' } = process.env;
    const env = { PATH, OPENAI_API_KEY: 'key-of-a-test', ...this.#environment };
    const child = spawn(process.execPath, [await bundle], { cwd: this.#cwd, env, stdio: ['ignore', 'pipe', 'ignore'] });
    this.#child = child;
    onTestFinished(() => void child.kill('SIGKILL'));
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    this.#url = `http://127.0.0.1:${await this.#line()}/api/chat`;
  }

  async #line(): Promise<string> {
    const { value, done } = (await this.#lines?.next()) ?? { done: true };
    if (done) throw new Error('the server has ended');
    return String(value);
  }

  /** SIGKILL, then the same server in a new process, with the stored chats. */
  async killAndRestart(): Promise<void> {
    const child = this.#child as ChildProcess;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    await this.start();
  }

  /** Resolves when the server notices that a page has left before its answer has ended. */
  async noticesDisconnect(): Promise<void> {
    await this.#line();
  }

  async history(): Promise<UIMessage[]> {
    return (await (await fetch(`${this.#url}/c`)).json()) as UIMessage[];
  }

  /** A page that was loaded now. */
  async page(): Promise<ChatPage> {
    return new ChatPage7(this.#url, await this.history(), !this.#name.endsWith('runchart'));
  }
}

export interface Place {
  chat: ChatProcess;
  model: Awaited<ReturnType<typeof modelServer>>;
  bank: Awaited<ReturnType<typeof bankServer>>;
}

/** A started server with its model and its bank, until the end of the test. `secret`: of the approvals of the AI SDK. */
export async function chatPlace(name: ServerName, secret?: string): Promise<Place> {
  const [model, bank] = await Promise.all([modelServer(), bankServer()]);
  const isOurs = name.endsWith('runchart');
  const baseURL = isOurs ? model.url : await translated(responsesWire, `${model.url}/v1`);
  const chat = new ChatProcess(name, {
    OPENAI_BASE_URL: `${baseURL}/v1`,
    BANK_URL: bank.url,
    ...(secret !== undefined && { TOOL_APPROVAL_SECRET: secret }),
  });
  await chat.start();
  return { chat, model, bank };
}
