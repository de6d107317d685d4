/**
 * An MCP server as a real process, whose tools behave as their names describe. Rule: it notes each start and each call in files, so a
 * test sees the events in dead processes.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../support/temporaryFolder.ts';

const PROGRAM = `
const { appendFileSync, existsSync, readFileSync } = require('node:fs');
const { spawn } = require('node:child_process');
const folder = process.argv[1];
const lines = (name) => (existsSync(folder + '/' + name) ? readFileSync(folder + '/' + name, 'utf8').trim().split('\\n') : []);
appendFileSync(folder + '/starts', process.pid + '\\n');
const start = lines('starts').length;
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const text = (words) => ({ content: [{ type: 'text', text: words }] });
const inputSchema = { type: 'object' };
const plan = JSON.parse(readFileSync(folder + '/plan.json', 'utf8'));
let { tools } = plan;
if (plan.stderr) process.stderr.write(plan.stderr.replaceAll('{key}', process.env.KEY ?? ''));
if (plan.diesAtStart || start > (plan.startsMax ?? Infinity)) process.exitCode = 3, setTimeout(() => process.exit(3), 20);
if (plan.child) {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
  appendFileSync(folder + '/children', child.pid + '\\n');
}
const calls = {
  echo: (args) => text('echo ' + (args.words ?? '')),
  pid: () => text(String(process.pid)),
  hang: () => undefined,
  die: () => { process.kill(process.pid, 'SIGKILL'); },
  dieOnce: () => { if (start > 1) return text('alive'); process.kill(process.pid, 'SIGKILL'); },
  change: () => {
    tools = JSON.parse(readFileSync(folder + '/plan.json', 'utf8')).tools;
    say({ method: 'notifications/tools/list_changed' });
    return text('changed');
  },
};
process.on('SIGUSR2', () => calls.change());
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, serverInfo: { name: 's', version: '1' },
    capabilities: { tools: { listChanged: true }, ...plan.capabilities },
  }),
  'tools/list': () => ({ tools: tools.map((tool) => ({ inputSchema, ...(typeof tool === 'string' ? { name: tool } : tool) })) }),
  'tools/call': ({ name, arguments: args }) => {
    appendFileSync(folder + '/calls', name + '\\n');
    if (!tools.some((tool) => tool === name || tool.name === name)) throw new Error('there is no ' + name);
    return calls[name](args);
  },
  ...Object.fromEntries(Object.entries(plan.answers ?? {}).map(([method, answer]) => [method, (params) => answer[params.uri ?? params.name] ?? answer])),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined || plan.diesAtStart || start > (plan.startsMax ?? Infinity)) return;
  try {
    const result = answers[method](params);
    if (result !== undefined) say({ id, result });
  } catch (error) {
    say({ id, error: { code: -32602, message: error.message } });
  }
});
process.stdin.on('end', () => plan.staysAfterInput ? setInterval(() => {}, 1000) : process.exit(0));
`;

interface ServerPlan {
  tools?: readonly (string | object)[];
  /** Written at the start; \`{key}\` is the variable KEY. */
  stderr?: string;
  diesAtStart?: boolean;
  /** Later starts die. */
  startsMax?: number;
  /** Starts a process of its own, which holds the pipes. */
  child?: boolean;
  staysAfterInput?: boolean;
  capabilities?: object;
  /** Results by method. */
  answers?: { [method: string]: unknown };
}

export function stdioServer(plan: ServerPlan = {}) {
  const folder = temporaryFolder();
  let current: ServerPlan = { tools: ['echo', 'pid'], ...plan };
  const replan = (change: ServerPlan): void => {
    current = { ...current, ...change };
    writeFileSync(join(folder, 'plan.json'), JSON.stringify(current));
  };
  replan({});
  const noted = (name: string): string[] => {
    const file = join(folder, name);
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  };
  return {
    options: { command: process.execPath, args: ['-e', PROGRAM, folder] },
    replan,
    starts: () => noted('starts').map(Number),
    children: () => noted('children').map(Number),
    calls: () => noted('calls'),
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process whose parent has not taken its end is dead.
    return !/^\d+ \(.*\) [ZX]/.test(existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : '');
  } catch {
    return false;
  }
}

/** Its end was taken by its parent, this process. */
export function isGone(pid: number): boolean {
  try {
    return !process.kill(pid, 0);
  } catch {
    return true;
  }
}
