/**
 * Runs lines of the shell under strace, many in one process, and returns the acts of each: opened files and
 * directories, started programs, writes, and connections. Invariant: a path is the one that the kernel opened.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

export interface Act {
  /** The file of the acting program. */
  program: string;
  kind: 'read' | 'write' | 'run' | 'connect' | 'look';
  path: string;
}
export interface Traced {
  line: string;
  output: string;
  acts: readonly Act[];
  /** The line did not end in time, or was not reached. */
  isCut: boolean;
}
export interface TraceOptions {
  /** The trace is written into a temporary directory in it. Accesses to that directory are not reported. */
  scratch: string;
  cwd: string;
  env: Record<string, string>;
  /** A command that creates the workspace again after each line that may change it. */
  anewCommand?: string;
  timeoutMs?: number;
}

export const hasStrace: boolean = spawnSync('strace', ['-V']).status === 0;

const CALLS = [
  ...['open', 'openat', 'openat2', 'creat', 'execve', 'execveat', 'connect', 'chdir', 'fchdir'],
  ...['rename', 'renameat', 'renameat2', 'unlink', 'unlinkat', 'rmdir', 'mkdir', 'mkdirat', 'mknod', 'mknodat'],
  ...['link', 'linkat', 'symlink', 'symlinkat', 'truncate', 'chmod', 'fchmodat', 'chown', 'lchown', 'fchownat'],
  ...['utimensat', 'setxattr', 'clone', 'clone3', 'fork', 'vfork'],
  ...['stat', 'lstat', 'newfstatat', 'statx', 'access', 'faccessat', 'faccessat2'],
].join(',');
const STRACE = ['-ff', '--seccomp-bpf', '-qqq', '-y', '-s', '4096', '-e', 'signal=none', '-e', `trace=${CALLS}`];

/**
 * `$1` is the working directory, `$2` the folder of marks and outputs, `$3` the command that creates the workspace
 * again.
 */
const DRIVER = `
n=0
cd "$1" || exit
while IFS= read -r -d '' -u 9 line; do
  : > "$2/mark.$n"
  bash -c -- "$line" </dev/null >"$2/out.$n" 2>&1
  : > "$2/over.$n"
  if [ -n "$3" ] && [[ $line =~ $4 ]]; then eval "$3"; cd "$1" || exit; fi
  n=$((n+1))
done 9<"$2/lines"
`;

/** A line that may write contains one of these. Other changes are repaired before the next list of lines. */
const MAY_WRITE = '>|tee|touch|cp|mv|rm|ln|mk|trunc|make|tar|sort|uniq|stash|check|out|-[oi]|fprint|delete|run|branch';

/** Runs the lines one after the other. */
export async function traced(lines: readonly string[], options: TraceOptions): Promise<Traced[]> {
  const { scratch, cwd, env, anewCommand = '', timeoutMs = 300_000 } = options;
  const here = mkdtempSync(join(scratch, 'trace-'));
  mkdirSync(join(here, 'calls'));
  writeFileSync(join(here, 'lines'), lines.map((line) => `${line}\0`).join(''));
  const driven = ['bash', '--noprofile', '--norc', '-c', DRIVER, 'driver', cwd, here, anewCommand, MAY_WRITE];
  const [program = 'bash', ...args] = hasStrace
    ? ['strace', ...STRACE, '-o', join(here, 'calls', 'of'), ...driven]
    : driven;
  await new Promise<void>((done) => {
    const child = execFile(program, args, { env, timeout: timeoutMs, killSignal: 'SIGKILL' }, () => done());
    child.stdin?.end();
  });
  const acts = hasStrace ? actsOf(here, cwd) : new Map<number, Act[]>();
  const names = new Set(readdirSync(here));
  const found = lines.map((line, at) => ({
    line,
    output: names.has(`out.${at}`) ? readFileSync(join(here, `out.${at}`), 'latin1') : '',
    acts: acts.get(at) ?? [],
    isCut: !names.has(`over.${at}`),
  }));
  rmSync(here, { recursive: true, force: true });
  return found;
}

/** The output of strace for each process, by its id. */
function callsByProcess(here: string): { calls: Map<number, string[]>; driver: number } {
  const calls = new Map<number, string[]>();
  let driver = 0;
  for (const name of readdirSync(join(here, 'calls'))) {
    const process = Number(name.slice(name.lastIndexOf('.') + 1));
    const text = readFileSync(join(here, 'calls', name), 'latin1').split('\n');
    calls.set(process, text);
    if (text.some((call) => call.includes(`"${here}/mark.0"`))) driver = process;
  }
  return { calls, driver };
}

const STARTED = /^(?:clone3?|v?fork)\(.*\)\s+= (\d+)/;

/** The acts of each line: of the first process that the driver starts after its mark, and of all its children. */
function actsOf(here: string, cwd: string): Map<number, Act[]> {
  const { calls, driver } = callsByProcess(here);
  const found = new Map<number, Act[]>();
  let line = -1;
  for (const call of calls.get(driver) ?? []) {
    const mark = /\/mark\.(\d+)"/.exec(call);
    if (mark) line = Number(mark[1]);
    const child = STARTED.exec(call);
    if (!child || line < 0 || found.has(line)) continue;
    const acts: Act[] = [];
    collect(Number(child[1]), { calls, here, acts }, 'bash', cwd);
    // The driver chooses the shell that reads the line.
    found.set(line, acts.slice(acts.findIndex(({ kind }) => kind === 'run') + 1));
  }
  return found;
}

interface Collected {
  calls: ReadonlyMap<number, string[]>;
  here: string;
  acts: Act[];
}

function collect(process: number, into: Collected, program: string, cwd: string): void {
  let [self, directory] = [program, cwd];
  for (const call of into.calls.get(process) ?? []) {
    const child = STARTED.exec(call);
    if (child) {
      collect(Number(child[1]), into, self, directory);
      continue;
    }
    const moved = /^(?:chdir\("(.*)"\)|fchdir\(\d+<(.*)>\))\s+= 0/.exec(call);
    if (moved) directory = resolve(directory, plain(moved[1] ?? moved[2] ?? ''));
    for (const act of actsIn(call, self, directory)) {
      if (act.path.startsWith(into.here)) continue;
      if (act.kind === 'run') self = act.path;
      into.acts.push(act);
    }
  }
}

/** strace writes non-printable bytes as \ooo. */
function plain(text: string): string {
  const bytes = text.replace(/\\([0-7]{1,3}|[nrtvf"\\])/g, (_, code: string) => {
    if (/^[0-7]/.test(code)) return String.fromCharCode(Number.parseInt(code, 8));
    return { n: '\n', r: '\r', t: '\t', v: '\v', f: '\f' }[code] ?? code;
  });
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** The place of a path whose last part may be missing. */
function realPlace(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

const OPENED = /^(?:openat2?|open|creat)\(.*?"(.*)", ?(.*?)\)\s+= \d+<(.*?)>(?:\(deleted\))?$/;
/** True for existing and missing files. */
const LOOKED = /^(l?stat|newfstatat|statx|access|faccessat2?)\(/;
const AT = /(?:AT_FDCWD|\d+)(?:<((?:[^>\\]|\\.)*)>)?, "((?:[^"\\]|\\.)*)"/g;

function actsIn(call: string, program: string, cwd: string): Act[] {
  const opened = OPENED.exec(call);
  if (opened) {
    const writes = /^creat/.test(call) || /O_WRONLY|O_RDWR|O_CREAT|O_TRUNC/.test(opened[2] ?? '');
    // Neither reads nor lists: it only names the place.
    if (!writes && /O_PATH/.test(opened[2] ?? '')) return [];
    const path = plain(opened[3] ?? '');
    const reads = !/O_WRONLY/.test(opened[2] ?? '');
    return [
      ...(writes ? [{ program, kind: 'write' as const, path }] : []),
      ...(reads ? [{ program, kind: 'read' as const, path }] : []),
    ];
  }
  if (LOOKED.test(call)) {
    const path = [...call.matchAll(AT)][0]?.[2] ?? /"((?:[^"\\]|\\.)*)"/.exec(call)?.[1] ?? '';
    // Programs test many paths. The shell does so only if a line asks whether a file exists.
    return /\/(ba)?sh$|^bash$/.test(program) && path !== ''
      ? [{ program, kind: 'look', path: realPlace(resolve(cwd, plain(path))) }]
      : [];
  }
  if (!/= 0(\s|$)/.test(call) || /^(open|creat|chdir|fchdir)/.test(call)) {
    const target = /^connect\(.*?\{(.*)\}/.exec(call)?.[1];
    return target === undefined ? [] : [{ program, kind: 'connect', path: plain(target) }];
  }
  const started = /^execve\("((?:[^"\\]|\\.)*)"/.exec(call);
  if (started) return [{ program, kind: 'run', path: resolve(cwd, plain(started[1] ?? '')) }];
  if (call.startsWith('connect')) return [{ program, kind: 'connect', path: call }];
  const at = [...call.matchAll(AT)].map(([, from, path]) => resolve(plain(from ?? cwd), plain(path ?? '')));
  const named =
    at.length > 0 ? at : [...call.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, path]) => resolve(cwd, plain(path ?? '')));
  // The content of a link is not written.
  const changed = /^symlink/.test(call) ? named.slice(-1) : named;
  return changed.map((path) => ({ program, kind: 'write', path: realPlace(path) }));
}
