/**
 * `runchart completion`: a shell script that completes commands, options and session ids. Invariant: the completions
 * come from the program itself. An id is offered only where a session can be named.
 */
import type { Command, Option } from 'commander';
import { ConfigurationError } from '../../errors.ts';
import { PERMISSION_MODES } from '../../permissions/verdict.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** The words of the program, taken from its commands. */
interface Words {
  commands: readonly string[];
  /** The options of the program and of each command, by name. */
  options: ReadonlyMap<string, readonly Option[]>;
}

function wordsOf(program: Command): Words {
  return {
    commands: program.commands.map((command) => command.name()),
    options: new Map([
      ['', program.options],
      ...program.commands.map((command) => [command.name(), command.options] as const),
    ]),
  };
}

const longNames = (options: readonly Option[]): string[] => options.flatMap(({ long }) => (long ? [long] : []));

/** Returns the script for a shell. Throws ConfigurationError for an unknown shell. */
export function completionScript(shell: string, program: Command): string {
  const words = wordsOf(program);
  if (shell === 'bash') return bash(words);
  if (shell === 'zsh') return zsh(words);
  if (shell === 'fish') return fish(words);
  throw new ConfigurationError(`expected a shell, one of ${SHELLS.join(', ')}; got ${shell}`);
}

const MODES = PERMISSION_MODES.join(' ');
/** Commands that accept a session id. */
const TAKE_IDS = ['rm', 'replay', 'inspect'];
const IDS = 'command runchart sessions --all --ids 2>/dev/null';

function bash({ commands, options }: Words): string {
  const cases = [...options].map(
    ([name, commandOptions]) => `    ${name === '' ? "''" : name}) words='${longNames(commandOptions).join(' ')}' ;;`,
  );
  return `# runchart: put this into your .bashrc as   source <(runchart completion bash)
_runchart() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command='' words=''
  local name
  for name in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$name" in ${commands.join('|')}) command="$name"; break ;; esac
  done
  case "$before" in
    -r|--resume|--session) words="$(${IDS})" ;;
    --permission-mode) words='${MODES}' ;;
    --store|--cwd) COMPREPLY=($(compgen -d -- "$current")); return ;;
    completion) words='${SHELLS.join(' ')}' ;;
    *)
      case "$command" in
${cases.map((line) => `    ${line}`).join('\n')}
      esac
      case "$command" in
        '') words="$words ${commands.join(' ')}" ;;
        ${TAKE_IDS.join('|')}) words="$words $(${IDS})" ;;
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _runchart runchart
`;
}

/** zsh has its own arrays for typed words. The script for bash has another meaning there. */
function zsh({ commands, options }: Words): string {
  const cases = [...options].map(
    ([name, commandOptions]) =>
      `        ${name === '' ? "''" : name}) offered=(${longNames(commandOptions).join(' ')}) ;;`,
  );
  return `#compdef runchart
# runchart: put this into your .zshrc as   source <(runchart completion zsh)
_runchart() {
  local before="\${words[CURRENT-1]}" name chosen=''
  local -a offered
  for name in "\${(@)words[2,CURRENT-1]}"; do
    case "$name" in ${commands.join('|')}) chosen="$name"; break ;; esac
  done
  case "$before" in
    -r|--resume|--session) offered=(\${(f)"$(${IDS})"}) ;;
    --permission-mode) offered=(${MODES}) ;;
    --store|--cwd) _files -/; return ;;
    completion) offered=(${SHELLS.join(' ')}) ;;
    *)
      case "$chosen" in
${cases.join('\n')}
      esac
      case "$chosen" in
        '') offered+=(${commands.join(' ')}) ;;
        ${TAKE_IDS.join('|')}) offered+=(\${(f)"$(${IDS})"}) ;;
      esac ;;
  esac
  compadd -a offered
}
(( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit; }
compdef _runchart runchart
`;
}

/** Returns the completion of an option's value. An option without a value is followed by the next word. */
function fishValue({ long, required, optional }: Option): string {
  if (long === '--resume' || long === '--session') return ` -xa '(${IDS})'`;
  if (long === '--permission-mode') return ` -xa '${MODES}'`;
  if (long === '--store' || long === '--cwd') return " -xa '(__fish_complete_directories)'";
  return required || optional ? ' -x' : '';
}

function fish({ commands, options }: Words): string {
  const none = `not __fish_seen_subcommand_from ${commands.join(' ')}`;
  const lines = [...options].flatMap(([name, commandOptions]) =>
    commandOptions.flatMap((option) => {
      const { long, short } = option;
      if (long == null) return [];
      const when = name === '' ? none : `__fish_seen_subcommand_from ${name}`;
      const letter = short == null ? '' : ` -s ${short.slice(1)}`;
      return [`complete -c runchart -n '${when}'${letter} -l ${long.slice(2)}${fishValue(option)}`];
    }),
  );
  return `# runchart: save this as ~/.config/fish/completions/runchart.fish
complete -c runchart -f
complete -c runchart -n '${none}' -a '${commands.join(' ')}'
complete -c runchart -n '__fish_seen_subcommand_from ${TAKE_IDS.join(' ')}' -a '(${IDS})'
complete -c runchart -n '__fish_seen_subcommand_from completion' -a '${SHELLS.join(' ')}'
${lines.join('\n')}
`;
}
