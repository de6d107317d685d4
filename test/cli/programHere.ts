/**
 * The program `runchart` in this process: its arguments, its environment, its piped or typed input, and both of its outputs. Invariant:
 * after its end the process is as before. Its user lists the test file as APART.
 */
import { PassThrough, type Readable } from 'node:stream';
import { expect, onTestFinished, vi } from 'vitest';

const piped = vi.hoisted(() => ({ input: null as Readable | null }));
vi.mock('../../src/cli/personInput.ts', async (original) => ({ ...(await original()), pipedInput: () => piped.input }));
// The program looks for its package three directories above its built file.
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const own = {
    ...fs,
    readFileSync: ((path: never, ...rest: never[]) => {
      const isPackage = String(path).endsWith('/package.json') && !fs.existsSync(path);
      return fs.readFileSync(isPackage ? new URL('../../package.json', import.meta.url) : path, ...rest);
    }) as typeof fs.readFileSync,
  };
  return { ...own, default: own };
});

export interface Program {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: Promise<Program>;
  says(text: string): Promise<void>;
  /** Delivers a signal of the system. */
  signal(name: NodeJS.Signals): void;
}
export interface Surroundings {
  env?: Record<string, string>;
  /** Text that is piped in. */
  input?: string | undefined;
  /** A terminal whose person types the pushed text. */
  typed?: PassThrough | undefined;
}

let started = 0;
const VARIABLES = ['OPENAI_MODEL', 'OPENAI_API_KEY', 'OPENAI_BASE_URL', 'XDG_STATE_HOME', 'XDG_CONFIG_HOME'];

/** Runs the program once, as its file does. */
export function start(args: readonly string[], { env = {}, input, typed }: Surroundings = {}): Program {
  for (const name of VARIABLES) vi.stubEnv(name, env[name]);
  piped.input = input === undefined ? null : new PassThrough().end(input);
  const shown = { stdout: '', stderr: '', code: undefined as number | undefined };
  const handlers = new Map<string, () => void>();
  const taking = (name: 'stdout' | 'stderr') =>
    vi.spyOn(process[name], 'write').mockImplementation(((text: string, done?: () => void) => {
      shown[name] += text;
      done?.();
      return true;
    }) as never);
  const on = process.on.bind(process);
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin') as PropertyDescriptor;
  const isTTY = Object.getOwnPropertyDescriptor(process.stderr, 'isTTY');
  const argv = process.argv;
  let end = (_: Program): void => {};
  let fail = (_: unknown): void => {};
  const ended = new Promise<Program>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  const spies = [
    taking('stdout'),
    taking('stderr'),
    vi.spyOn(process.stdout, 'on').mockReturnThis(),
    vi.spyOn(process.stderr, 'on').mockReturnThis(),
    vi.spyOn(process, 'on').mockImplementation(((name: string, handler: () => void) => {
      if (!name.startsWith('SIG')) return on(name as never, handler);
      handlers.set(name, () => (handler as (name: string) => void)(name));
      return process;
    }) as never),
    vi.spyOn(process, 'exit').mockImplementation(((code: number) => {
      shown.code = code;
      end(program);
    }) as never),
  ];
  const restore = (): void => {
    vi.unstubAllEnvs();
    piped.input = null;
    for (const spy of spies) spy.mockRestore();
    process.argv = argv;
    Object.defineProperty(process, 'stdin', stdin);
    if (isTTY) Object.defineProperty(process.stderr, 'isTTY', isTTY);
    else delete (process.stderr as { isTTY?: boolean }).isTTY;
  };
  onTestFinished(restore);
  const standardInput = Object.assign(typed ?? new PassThrough().end(), { isTTY: typed !== undefined });
  Object.defineProperty(process, 'stdin', { configurable: true, get: () => standardInput });
  Object.defineProperty(process.stderr, 'isTTY', { configurable: true, value: typed !== undefined });
  process.argv = ['node', 'runchart', ...args];
  const program: Program = {
    get code() {
      return shown.code;
    },
    get stdout() {
      return shown.stdout;
    },
    get stderr() {
      return shown.stderr;
    },
    ended: ended.finally(restore),
    says: (text) =>
      vi.waitFor(() => expect(shown.stdout + shown.stderr).toContain(text), { timeout: 20_000, interval: 5 }),
    signal: (name) => handlers.get(name)?.(),
  };
  started += 1;
  const file = `../../src/cli/main.ts?${started}`;
  import(/* @vite-ignore */ file).catch(fail);
  return program;
}
