/**
 * The `sandbox-exec` profile (macOS) for a command. Rule: everything is denied unless a rule allows it. An exception is
 * part of its own rule, so the order of rules does not matter. A profile works on paths, not on mounts, so no directory
 * above a hidden or protected place can be renamed.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isInside, kernelPath } from '../workspace.ts';
import type { FoundPlace, SandboxPlaces } from './sandboxPlaces.ts';

/** The input of a profile. */
interface ProfilePlaces extends Omit<SandboxPlaces, 'protected'> {
  /** Protected places, and the targets of those that are links. */
  guarded: readonly string[];
  /** The command's own directory for temporary files, links resolved. */
  temporary: string;
}

/**
 * System directories. The macOS file `system.sb`, which every profile imports, allows the rest that programs need to
 * start.
 */
const SYSTEM = [
  ...['/usr', '/bin', '/sbin', '/System', '/opt', '/nix', '/Applications/Xcode.app'],
  ...['/Library/Developer', '/Library/Apple', '/Library/Frameworks', '/private/var/select'],
  ...[
    '/private/var/db/xcode_select_link',
    '/private/var/db/timezone',
    '/private/var/db/dyld',
    '/private/etc/localtime',
  ],
];
/** macOS shows the machine's files a second time under this path. */
const SECOND_PATH = '/System/Volumes/Data';
const TEMPORARY = ['/private/tmp', '/private/var/tmp', '/private/var/folders'];

const BASE_RULES = [
  '(version 1)',
  '(deny default)',
  '(import "system.sb")',
  '(allow process-exec process-fork sysctl-read ipc-posix-sem)',
  '(allow signal process-info* (target same-sandbox))',
  '(allow file-read* file-write-data (subpath "/dev/fd") (literal "/dev/null") (literal "/dev/zero"))',
  '(allow file-read* (literal "/") (literal "/dev/random") (literal "/dev/urandom"))',
];
/** Network addresses, names and certificates. Only the name resolver is allowed among the service sockets. */
const NETWORK_RULES = [
  '(allow system-socket)',
  '(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))',
  '(allow network-inbound network-bind (local ip "*:*"))',
  `(allow mach-lookup ${['SystemConfiguration.configd', 'SecurityServer', 'trustd.agent'].map((name) => `(global-name "com.apple.${name}")`).join(' ')})`,
];
/** Every part of `file-write*` that changes a file in place. */
const CHANGE = ['create', 'data', 'flags', 'mode', 'owner', 'times', 'xattr']
  .map((what) => `file-write-${what}`)
  .join(' ');

const text = (value: string): string =>
  `"${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')}"`;
const subpath = (path: string): string => `(subpath ${text(path)})`;
const literal = (path: string): string => `(literal ${text(path)})`;
const except = (filter: string, exceptions: readonly string[]): string =>
  exceptions.length === 0
    ? filter
    : `(require-all ${[filter, ...exceptions.map((each) => `(require-not ${each})`)].join(' ')})`;
const allow = (operations: string, filters: readonly string[]): string[] =>
  filters.length === 0 ? [] : [`(allow ${operations} ${filters.join(' ')})`];

/** The path and everything below it, with the last part in any case: most macOS disks treat `.ENVRC` as `.envrc`. */
function inAnyCase(path: string): string {
  const quoted = (part: string): string => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const name = basename(path).replace(/[a-z]|[^a-z]+/gi, (part) =>
    /^[a-z]$/i.test(part) ? `[${part.toLowerCase()}${part.toUpperCase()}]` : quoted(part),
  );
  return `(regex ${text(`^${quoted(join(dirname(path), '/'))}${name}(/|$)`)})`;
}

function directoriesAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [...directoriesAbove(above), above];
}

export function sandboxExecProfile(places: ProfilePlaces): string {
  const { root, onlyReads, programs, writable, hold, hidden, guarded, network, temporary } = places;
  const hides = hidden.map(({ path }) => subpath(path));
  // The names of hidden files are visible in their directory; nothing below a hidden directory is.
  const within = ({ path }: FoundPlace): string => `(require-all ${subpath(path)} (require-not ${literal(path)}))`;
  const unseen = hidden.filter(({ isDirectory }) => isDirectory).map(within);
  const own = [...new Set([root, ...writable])];
  const all = onlyReads ? [...SYSTEM, ...programs] : ['/'];
  const shared = onlyReads ? [] : TEMPORARY.map(subpath);
  const fixedPaths = [...hidden.map(({ path }) => path), ...guarded, ...hold];
  const fixedDirectories = new Set(
    [...fixedPaths.flatMap(directoriesAbove), ...hold].filter((path) => writable.some((from) => isInside(from, path))),
  );
  const guards = [...hides, ...guarded.map(inAnyCase)];
  const ancestors = new Set([...own, ...programs, temporary].flatMap(directoriesAbove));
  return [
    ...BASE_RULES,
    ...allow(
      'file-read*',
      all.map((path) => except(subpath(path), [subpath(SECOND_PATH), ...shared, ...hides])),
    ),
    ...allow(
      'file-read*',
      own.map((path) => except(subpath(path), hides)),
    ),
    ...allow(
      'file-read-metadata',
      own.map((path) => except(subpath(path), unseen)),
    ),
    ...allow('file-read-metadata', [...ancestors].map(literal)),
    ...allow(
      CHANGE,
      writable.map((path) => except(subpath(path), guards)),
    ),
    ...allow(
      'file-write-unlink',
      writable.map((path) => except(subpath(path), [...guards, ...[...fixedDirectories].map(literal)])),
    ),
    `(allow file-read* file-write* ${subpath(temporary)})`,
    ...(network ? NETWORK_RULES : []),
    '',
  ].join('\n');
}

/** The words before the command's own. */
export async function sandboxExecWords({ protected: protects, ...places }: SandboxPlaces) {
  const temporary = await realpath(await mkdtemp(join(tmpdir(), 'runchart-tmp-')));
  const named = [...(protects?.paths ?? []), ...(protects?.leading ?? [])];
  const guarded = await Promise.all(
    named.map(async (path) => [await unlinked(dirname(path), basename(path)), await leadsTo(path)]),
  );
  // If `.git` is a link, the link itself must not be replaced.
  const hold = protects?.repository === undefined ? places.hold : [...places.hold, join(places.root, '.git')];
  const profile = sandboxExecProfile({ ...places, hold, guarded: [...new Set(guarded.flat())], temporary });
  return {
    args: ['-p', profile, '/usr/bin/env', `TMPDIR=${temporary}`],
    release: () => rm(temporary, { recursive: true, force: true }),
  };
}

/** Resolves links on the way, whether or not the target exists. */
const leadsTo = (path: string): Promise<string> => kernelPath('/', path).catch(() => path);
/** The place itself, even if it is a link. */
const unlinked = async (directory: string, name: string): Promise<string> => join(await leadsTo(directory), name);

const TRIAL_MS = 5_000;
/** A writing and a reading command. Each checks that allowed acts work and denied acts fail. */
const TRIALS = [
  {
    onlyReads: false,
    script: `: > made && : > "$TMPDIR/x" || exit
for each in "cat above/hidden" "ln above/hidden linked" "mv above moved" "touch ../outside" "touch .envrc" "mv made .ENVRC"
do $each > /dev/null 2>&1 && echo "$each" && exit; done; echo holds`,
  },
  {
    onlyReads: true,
    script: `cat made || exit
for each in "cat ../outside" "touch made" "cat above/hidden"; do $each > /dev/null 2>&1 && echo "$each" && exit; done; echo holds`,
  },
];

/** The reason why commands cannot run in this sandbox; undefined if they can. */
export function sandboxExecFault(): string | undefined {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-trial-')));
  const [root, temporary] = [join(base, 'ws'), join(base, 'tmp')];
  try {
    for (const directory of [root, temporary, join(root, 'above')]) mkdirSync(directory);
    const hidden = join(root, 'above/hidden');
    for (const file of [hidden, join(base, 'outside')]) writeFileSync(file, 'x\n');
    for (const { onlyReads, script } of TRIALS) {
      const profile = sandboxExecProfile({
        ...{ root, onlyReads, writable: onlyReads ? [] : [root], temporary, network: false, programs: [], hold: [] },
        ...{ hidden: [{ path: hidden, isDirectory: false }], guarded: onlyReads ? [] : [join(root, '.envrc')] },
      });
      const words = ['-p', profile, '/usr/bin/env', `TMPDIR=${temporary}`, 'bash', '-c', script];
      const trial = spawnSync('sandbox-exec', words, { cwd: root, timeout: TRIAL_MS, encoding: 'utf8' });
      if (trial.error) return `sandbox-exec cannot be started: ${trial.error.message}`;
      const printed = trial.stdout.trim();
      if (trial.status !== 0 || printed === '') return `sandbox-exec does not work here: ${trial.stderr.trim()}`;
      if (printed !== 'holds') return `sandbox-exec does not keep a command from ${JSON.stringify(printed)}`;
    }
    return undefined;
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}
