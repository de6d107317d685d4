/**
 * The arguments of bubblewrap for a command. Rule: existing protected places are read-only, and missing ones cannot be
 * created. A directory that contains one cannot be renamed.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { lstat, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isInside } from '../workspace.ts';
import { isMask, maskMissing, unmask } from './sandboxMasks.ts';
import { type ProtectedPlaces, placed, type SandboxPlaces } from './sandboxPlaces.ts';

interface Binds {
  args: readonly string[];
  /** Must be called after the command. */
  release(): Promise<void>;
}

const NAMESPACES = ['--unshare-user-try', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'];
const HELD = ['--die-with-parent', '--cap-drop', 'ALL', '--dev', '/dev', '--proc', '/proc'];

const TRIAL_MS = 5_000;
/** Checks that `$1` cannot be written, `$2` cannot be read, and no network route exists. */
const TRIAL = `if echo y 2>/dev/null > "$1"; then echo writing
elif read -r line < "$2"; then echo 'reading a hidden file'
elif { read -r header; read -r route; } < /proc/net/route; then echo 'the network'
else echo holds; fi`;

/**
 * Returns the reason why bubblewrap cannot be used: it is missing, or a command in it breaks a restriction. Undefined
 * if it works.
 */
export function bubblewrapFault(): string | undefined {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-trial-')));
  const [readOnlyFile, hidden] = [join(base, 'kept'), join(base, 'hidden')];
  try {
    for (const file of [readOnlyFile, hidden]) writeFileSync(file, 'x\n');
    const binds = ['--unshare-net', '--ro-bind', '/', '/', ...HELD, '--ro-bind', '/dev/null', hidden];
    const words = [...NAMESPACES, ...binds, '--', 'sh', '-c', TRIAL, 'trial', readOnlyFile, hidden];
    const { error, status, stderr, stdout } = spawnSync('bwrap', words, { timeout: TRIAL_MS, encoding: 'utf8' });
    const code = error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') return 'bubblewrap (bwrap) is not installed';
    if (code === 'ETIMEDOUT') return `bubblewrap does not end within ${TRIAL_MS} ms`;
    if (error) return `bubblewrap cannot be started: ${error.message}`;
    const printed = stdout.trim();
    if (status !== 0 || printed === '')
      return `bubblewrap does not work here: ${stderr.trim() || `it ends with exit code ${status}`}`;
    return printed === 'holds' ? undefined : `bubblewrap does not keep a command from ${printed}`;
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/**
 * The words before the command's own. Later binds cover earlier ones, so writable places come first, then read-only
 * ones, then hidden ones: a hidden file cannot be opened, and a hidden directory is empty. A new root or `/run` is made
 * read-only last, because places are created in it.
 */
export async function bubblewrapWords(places: SandboxPlaces): Promise<Binds> {
  const { args, release } = places.onlyReads
    ? { args: readingBinds(places), release: async () => undefined }
    : await changingBinds(places);
  const hidden = places.hidden.flatMap(({ path, isDirectory }) =>
    isDirectory ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path],
  );
  const made = places.onlyReads ? '/' : (await hidesSockets(places)) ? SOCKETS : undefined;
  const closed = made === undefined ? [] : ['--remount-ro', made];
  const network = places.network ? [] : ['--unshare-net'];
  const words = [...args, ...hidden, ...closed, ...ownTemporary(places)];
  return { args: [...NAMESPACES, ...network, ...words, '--chdir', places.root, '--'], release };
}

/** Programs use `/tmp` unless a variable names another directory, which must be a writable one. */
const ownTemporary = ({ writable }: SandboxPlaces): string[] =>
  ['TMPDIR', 'TEMP', 'TMP'].flatMap((name) =>
    writable.some((from) => isInside(from, process.env[name] ?? '')) ? [] : ['--unsetenv', name],
  );

/** System directories with programs and libraries, without personal files. */
const SYSTEM = [
  ...['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix'],
  ...['/etc/alternatives', '/etc/ld.so.cache', '/etc/ld.so.conf', '/etc/ld.so.conf.d', '/etc/localtime'],
];

function readingBinds({ root, programs }: SandboxPlaces): string[] {
  const args = ['--tmpfs', '/', '--tmpfs', '/tmp'];
  for (const path of [...SYSTEM, ...programs, root]) args.push('--ro-bind-try', path, path);
  return [...args, ...HELD];
}

/** Sockets of machine services such as docker's. A command that reaches one can leave the sandbox. */
const SOCKETS = '/run';
const NO_SOCKETS = ['/run/systemd/resolve', '/run/current-system', '/run/opengl-driver', '/run/wrappers'];

/** False if there is no such directory, or a writable place contains it. */
const hidesSockets = async ({ writable }: SandboxPlaces): Promise<boolean> =>
  (await placed(SOCKETS))?.path === SOCKETS && !writable.some((from) => isInside(from, SOCKETS));

async function changingBinds(places: SandboxPlaces): Promise<Binds> {
  const args = ['--ro-bind', '/', '/', ...HELD, '--tmpfs', '/tmp'];
  if (await hidesSockets(places)) {
    args.push('--tmpfs', SOCKETS);
    for (const path of NO_SOCKETS) args.push('--ro-bind-try', path, path);
  }
  for (const path of places.writable) args.push('--bind', path, path);
  // A mount point cannot be renamed.
  for (const path of places.hold) args.push('--bind-try', path, path);
  const protection = places.protected && (await protectedBinds(places.protected, places.writable));
  return { args: [...args, ...(protection?.args ?? [])], release: async () => protection?.release() };
}

async function protectedBinds(
  { paths, leading, repository }: ProtectedPlaces,
  writable: readonly string[],
): Promise<Binds> {
  const args: string[] = [];
  const missing: string[] = [];
  const removed: string[] = [];
  // A mount point cannot be renamed.
  if (repository !== undefined) args.push('--bind', repository, repository);
  for (const path of [...paths, ...leading]) {
    const place = await placed(path);
    if (place !== undefined && (await isMask(path))) missing.push(path);
    else if (place !== undefined && writable.some((from) => isInside(from, place.path)))
      args.push('--ro-bind', place.path, place.path);
    else if (place === undefined && (await isFree(path))) (leading.includes(path) ? removed : missing).push(path);
  }
  const masked = await maskMissing(missing);
  for (const path of masked) args.push('--tmpfs', path, '--remount-ro', path);
  return {
    args,
    release: async () => {
      await Promise.all(removed.map((path) => rm(path, { force: true, recursive: true })));
      await unmask(masked);
    },
  };
}

/** True if nothing exists at the path, not even a dangling link, and a directory can be created there. */
async function isFree(path: string): Promise<boolean> {
  const exists = await lstat(path).catch(() => undefined);
  return exists === undefined && (await stat(dirname(path)).catch(() => undefined))?.isDirectory() === true;
}
