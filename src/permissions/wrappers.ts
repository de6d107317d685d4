/**
 * Programs that run the command in their arguments: wrappers that change nothing else, and all others. Rule: deny and
 * ask rules apply to each command that may begin in the arguments.
 */
import type { ShellWord } from './wordExpansion.ts';

export const baseName = (value: string): string => value.slice(value.lastIndexOf('/') + 1);

/**
 * Each wrapper with a function that returns the index of the wrapped command. It returns undefined if the wrapper's
 * options are not understood.
 */
const WRAPPERS: { readonly [name: string]: (words: readonly string[]) => number | undefined } = {
  timeout: (words) => {
    let at = 1;
    while (/^(--preserve-status|--foreground|-v|--verbose|-k|-s|--(signal|kill-after)=\S+)$/.test(words[at] ?? '')) {
      at += ['-k', '-s'].includes(words[at] ?? '') ? 2 : 1;
    }
    return /^\d+(\.\d+)?[smhd]?$/.test(words[at] ?? '') ? at + 1 : undefined;
  },
  time: (words) => (words[1] === '-p' ? 2 : 1),
  nohup: () => 1,
  builtin: () => 1,
  command: () => 1,
  nice: (words) => {
    if (words[1] === '-n') return /^-?\d+$/.test(words[2] ?? '') ? 3 : undefined;
    return /^(-n?-?\d+|--adjustment=-?\d+)$/.test(words[1] ?? '') ? 2 : 1;
  },
  stdbuf: (words) => {
    let at = 1;
    while (/^-[ioe]([0L]|\d+[KMG]?)$/.test(words[at] ?? '')) at += 1;
    return at > 1 ? at : undefined;
  },
};

/** Global options of git that do not change what it reads or runs. */
const GIT_PLAIN = /^(--no-pager|-P|--no-optional-locks)$/;

/** Removes wrappers that do not change what is run, such as `timeout 5` and `nohup`. */
export function unwrapped(words: readonly ShellWord[]): readonly ShellWord[] {
  const values = words.map(({ value, isLiteral }) => (isLiteral ? value : '\0'));
  let begin = 0;
  for (;;) {
    const name = values[begin] ?? '';
    const at = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name]?.(values.slice(begin)) : undefined;
    const next = at === undefined ? undefined : words[begin + at];
    if (at === undefined || !next || next.value.startsWith('-')) break;
    begin += at;
  }
  return withoutPlainOptions(begin === 0 ? words : words.slice(begin));
}

/** The words without the options of git that change nothing. */
function withoutPlainOptions(words: readonly ShellWord[]): readonly ShellWord[] {
  const [name] = words;
  if (!name?.isLiteral || name.value !== 'git') return words;
  const isLiteral = (at: number, value: RegExp): boolean =>
    words[at]?.isLiteral === true && value.test(words[at]?.value ?? '');
  let at = 1;
  while (isLiteral(at, GIT_PLAIN) || (isLiteral(at, /^-C$/) && isLiteral(at + 1, /^\.$/)))
    at += isLiteral(at, GIT_PLAIN) ? 1 : 2;
  return at === 1 ? words : [name, ...words.slice(at)];
}

export const isWrapper = (name: string): boolean => Object.hasOwn(WRAPPERS, name);

/** These commands run the command that follows their own options. */
const RUNS_ARGUMENTS: ReadonlySet<string> = new Set(
  `env xargs sudo doas su exec eval setsid ionice chroot unshare nsenter watch strace ltrace parallel busybox entr ssh script
   flock systemd-run runuser chrt taskset npx bunx pnpx coproc toybox numactl firejail proxychains proxychains4 xvfb-run
   dbus-run-session caffeinate unbuffer chronic fakeroot faketime setpriv prlimit cpulimit cross-env dotenv gosu su-exec tini
   gdb lldb cgdb ddd valgrind heaptrack hyperfine concurrently watchexec nodemon xterm urxvt konsole gnome-terminal alacritty
   kitty screen mosh rsh remsh pssh pdsh clush dsh wine env-cmd uvx pee rlwrap retry wait-for wait-for-it wait-for-it.sh
   dockerize sem rush uftrace`
    .trim()
    .split(/\s+/),
);
/** Programs that only start another one. A pattern of a rule does not allow them. */
const LAUNCHERS: ReadonlySet<string> = new Set(
  `proot catchsegv setarch linux32 linux64 i386 i486 i586 i686 x86_64 uname26 arch pkexec run0 sg cgexec schroot fakechroot
   bwrap capsh dbus-launch systemd-nspawn systemd-inhibit systemd-cat start-stop-daemon daemonize daemon runcon aa-exec
   sandbox-exec cset torsocks torify tsocks trickle dumb-init catatonit s6-setuidgid setuidgid chpst envdir envuidgid
   softlimit setlock nocache eatmydata choom uclampset coresched with-lock-ex lckdo ifne cronic nq tsp task-spooler`
    .trim()
    .split(/\s+/),
);
/** The loader of shared libraries, and emulators. */
const LOADER = /^(ld(-[\w.-]+)?\.so(\.\d+)*|qemu-\w+)$/;

/** True for a program that does nothing but start another one. */
export const isLauncher = (name: string): boolean => LAUNCHERS.has(name) || LOADER.test(name);

const RUNS_BY_SUBCOMMAND: { readonly [name: string]: RegExp } = {
  npm: /^(exec|x)$/,
  pnpm: /^(exec|dlx)$/,
  yarn: /^(exec|dlx)$/,
  bun: /^x$/,
  docker: /^(exec|run)$/,
  'docker-compose': /^(exec|run)$/,
  podman: /^(exec|run)$/,
  kubectl: /^(exec|run|debug)$/,
  lxc: /^exec$/,
  incus: /^exec$/,
  vagrant: /^ssh$/,
  git: /^(run|foreach)$/,
  uv: /^(run|x)$/,
  poetry: /^run$/,
  pipx: /^run$/,
  pipenv: /^run$/,
  pdm: /^run$/,
  hatch: /^run$/,
  rye: /^run$/,
  conda: /^run$/,
  mamba: /^run$/,
  micromamba: /^run$/,
  bundle: /^exec$/,
  mise: /^(exec|x)$/,
  asdf: /^exec$/,
  rbenv: /^exec$/,
  pyenv: /^exec$/,
  nodenv: /^exec$/,
  nvm: /^(exec|run)$/,
  fnm: /^exec$/,
  volta: /^run$/,
  direnv: /^exec$/,
  nix: /^(-c|--command|run|shell|develop)$/,
  guix: /^(shell|environment)$/,
  op: /^run$/,
  doppler: /^run$/,
  vault: /^exec$/,
  'aws-vault': /^exec$/,
  chamber: /^exec$/,
  sops: /^exec-(env|file)$/,
  heroku: /^run$/,
  perf: /^(stat|record|trace)$/,
  rr: /^record$/,
  ip: /^exec$/,
  cmake: /^-E$/,
  just: /^(-c|--command)$/,
  pm2: /^start$/,
  forever: /^start$/,
  launchctl: /^submit$/,
  tmux: /^(new|new-session|neww|new-window|splitw|split-window|respawnp|respawn-pane|respawnw|respawn-window|popup|display-popup|run|run-shell|pipep|pipe-pane|if|if-shell|send|send-keys)$/,
  find: /^-(exec|execdir|ok|okdir)$/,
  fd: /^(-x|-X|--exec|--exec-batch)$/,
};
/** The number of operands (a host, a file, a directory) before the command that is run. */
const OPERANDS: { readonly [name: string]: number } = {
  direnv: 1,
  ssh: 1,
  flock: 1,
  chroot: 1,
  su: 1,
  runuser: 1,
  taskset: 1,
  chrt: 1,
  setarch: 1,
  bwrap: 100,
  cset: 2,
  uftrace: 1,
  sg: 1,
  rsh: 1,
  remsh: 1,
  mosh: 1,
  lxc: 1,
  incus: 1,
  sops: 1,
  vault: 1,
  'aws-vault': 1,
  chamber: 1,
  ip: 1,
  setuidgid: 1,
  's6-setuidgid': 1,
  gosu: 1,
  'su-exec': 1,
  runcon: 1,
  envdir: 1,
  envuidgid: 1,
  setlock: 1,
  lckdo: 1,
  faketime: 1,
  'wait-for': 1,
  'wait-for-it': 1,
  'wait-for-it.sh': 1,
};
/** A duration or another number, in every form that `timeout` reads. */
const NUMBER = /^\s*\+?([\d.]+(e[-+]?\d+)?|0x[\da-f.]+(p[-+]?\d+)?|inf(inity)?)[smhd]?$/i;
/** After the options of these, the command may begin at any word. */
const ANY_WORD = /^(docker|docker-compose|podman|kubectl)$/;
const READINGS_MAX = 100;

/** The places in the arguments after which a command may begin. */
function startsOf(words: readonly ShellWord[]): number[] {
  const name = baseName(words[0]?.value ?? '');
  const pattern = Object.hasOwn(RUNS_BY_SUBCOMMAND, name) ? RUNS_BY_SUBCOMMAND[name] : undefined;
  const isRunner = RUNS_ARGUMENTS.has(name) || isLauncher(name) || isWrapper(name);
  const starts = isRunner ? [1] : words.flatMap(({ value }, at) => (at > 0 && pattern?.test(value) ? [at + 1] : []));
  const end = words.findIndex(({ value }) => value === '--');
  const all = starts.length > 0 && end > 0 ? [...starts, end + 1] : starts;
  // The words after the first start include those after the others.
  return all.length > 0 && ANY_WORD.test(name) ? [Math.min(...all)] : all;
}

/** The places of the words where a command may begin. */
function beginsOf(words: readonly ShellWord[]): ReadonlySet<number> {
  const begins = new Set([0]);
  for (const begin of begins) {
    if (begins.size > READINGS_MAX) break;
    const command = words.slice(begin);
    for (const start of startsOf(command)) for (const at of innerBegins(command, start)) begins.add(begin + at);
  }
  return begins;
}

/**
 * The readings of a command that runs its arguments: one for each word where an inner command may begin. Many readings of a long
 * command are too large to keep, so take them one at a time.
 */
export function* readingsOf(words: readonly ShellWord[]): Generator<readonly ShellWord[]> {
  for (const begin of beginsOf(words)) yield words.slice(begin);
}

/** The words from `start` on where the inner command may begin. */
function innerBegins(words: readonly ShellWord[], start: number): number[] {
  const name = baseName(words[0]?.value ?? '');
  const begins: number[] = [];
  let operands = Object.hasOwn(OPERANDS, name) ? (OPERANDS[name] ?? 0) : 0;
  for (let at = start; at < words.length; at += 1) {
    const value = words[at]?.value ?? '';
    if (value.startsWith('-')) continue;
    begins.push(at);
    // This word may be the value of an option, a variable or a duration; then the command begins at a later word.
    const isOwn = words[at - 1]?.value.startsWith('-') || /^[\w.]*=/.test(value) || NUMBER.test(value);
    if (isOwn || ANY_WORD.test(name)) continue;
    if (operands === 0) break;
    operands -= 1;
  }
  return begins;
}

/** True if more commands may begin in the arguments than are judged. */
export const startsTooMany = (words: readonly ShellWord[]): boolean => beginsOf(words).size > READINGS_MAX;
