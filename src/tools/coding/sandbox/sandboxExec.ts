/**
 * The profile of `sandbox-exec` on macOS for the places of a command. Rule: nothing is allowed but what a rule allows, and an
 * exception is a part of the rule that it belongs to, so that nothing depends on the order of rules. Bubblewrap works on mounts, a
 * profile on paths: no directory above a hidden or protected place can be renamed.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isInside, kernelPath } from '../workspace.ts';
import type { FoundPlace, SandboxPlaces } from './sandboxPlaces.ts';

/** What a profile is made from. */
interface ProfilePlaces extends Omit<SandboxPlaces, 'protected'> {
  /** Protected places, and where those that are links lead. */
  guarded: readonly string[];
  /** The command's own directory for temporary files, links resolved. */
  temporary: string;
}

/** What programs are made of. `system.sb` of macOS, which every profile imports, allows the rest that they need to start. */
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
/** The files of the machine once more, under a second path. */
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
/** Addresses, names and certificates; of the sockets of services only the one that looks names up. */
const NETWORK_RULES = [
  '(allow system-socket)',
  '(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))',
  '(allow network-inbound network-bind (local ip "*:*"))',
  `(allow mach-lookup ${['SystemConfiguration.configd', 'SecurityServer', 'trustd.agent'].map((name) => `(global-name "com.apple.${name}")`).join(' ')})`,
];
/** All of `file-write*` that changes a file where it is. */
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

/** The path and all below it, its last part in any case: most disks of macOS take `.ENVRC` for `.envrc`. */
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
  // Names of hidden files are seen with what is around them; nothing below a hidden directory is.
  const within = ({ path }: FoundPlace): string => `(require-all ${subpath(path)} (require-not ${literal(path)}))`;
  const unseen = hidden.filter(({ isDirectory }) => isDirectory).map(within);
  const own = [...new Set([root, ...writable])];
  const all = onlyReads ? [...SYSTEM, ...programs] : ['/'];
  const shared = onlyReads ? [] : TEMPORARY.map(subpath);
  const kept = [...hidden.map(({ path }) => path), ...guarded, ...hold];
  const held = new Set(
    [...kept.flatMap(directoriesAbove), ...hold].filter((path) => writable.some((from) => isInside(from, path))),
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
      writable.map((path) => except(subpath(path), [...guards, ...[...held].map(literal)])),
    ),
    `(allow file-read* file-write* ${subpath(temporary)})`,
    ...(network ? NETWORK_RULES : []),
    '',
  ].join('\n');
}

/** The words before those of the command. */
export async function sandboxExecWords({ protected: protects, ...places }: SandboxPlaces) {
  const temporary = await realpath(await mkdtemp(join(tmpdir(), 'runchart-tmp-')));
  const named = [...(protects?.paths ?? []), ...(protects?.leading ?? [])];
  const guarded = await Promise.all(
    named.map(async (path) => [await unlinked(dirname(path), basename(path)), await leadsTo(path)]),
  );
  // Where `.git` is a link, that link stays.
  const hold = protects?.repository === undefined ? places.hold : [...places.hold, join(places.root, '.git')];
  const profile = sandboxExecProfile({ ...places, hold, guarded: [...new Set(guarded.flat())], temporary });
  return {
    args: ['-p', profile, '/usr/bin/env', `TMPDIR=${temporary}`],
    release: () => rm(temporary, { recursive: true, force: true }),
  };
}

/** Links on the way are followed, whether or not anything is there. */
const leadsTo = (path: string): Promise<string> => kernelPath('/', path).catch(() => path);
/** The place itself, though it may be a link. */
const unlinked = async (directory: string, name: string): Promise<string> => join(await leadsTo(directory), name);

const TRIAL_MS = 5_000;
/** A command that changes files, and one that reads: what they may do works, and what they may not does not. */
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

/** Why commands cannot run in a sandbox here; undefined where they can. */
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
