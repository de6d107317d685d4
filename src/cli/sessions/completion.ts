/**
 * `runchart completion`: a script for a shell that completes commands, options and the ids of sessions. Rule: what is offered comes from the
 * program itself when it is asked for; an id is offered only where a session may be named.
 */
import type { Command } from 'commander';
import { ConfigurationError } from '../../errors.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** Words of the program, read off its commands. */
interface Words {
  commands: readonly string[];
  /** Of the program and of each command by its name. */
  options: ReadonlyMap<string, readonly string[]>;
}

function wordsOf(program: Command): Words {
  const longNames = (command: Command): string[] => command.options.flatMap(({ long }) => (long ? [long] : []));
  return {
    commands: program.commands.map((command) => command.name()),
    options: new Map([
      ['', longNames(program)],
      ...program.commands.map((command) => [command.name(), longNames(command)] as const),
    ]),
  };
}

/** The script for a shell. Throws ConfigurationError for a shell that it knows nothing of. */
export function completionScript(shell: string, program: Command): string {
  const words = wordsOf(program);
  if (shell === 'bash') return bash(words);
  if (shell === 'zsh') return `autoload -U +X bashcompinit && bashcompinit\n${bash(words)}`;
  if (shell === 'fish') return fish(words);
  throw new ConfigurationError(`expected a shell, one of ${SHELLS.join(', ')}; got ${shell}`);
}

const IDS = 'command runchart sessions --all --ids 2>/dev/null';

function bash({ commands, options }: Words): string {
  const cases = [...options].map(([name, names]) => `    ${name === '' ? "''" : name}) words='${names.join(' ')}' ;;`);
  return `# runchart: put this into your .bashrc as   source <(runchart completion bash)
_runchart() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command='' words=''
  local name
  for name in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$name" in ${commands.join('|')}) command="$name"; break ;; esac
  done
  case "$before" in
    -r|--resume|--session) words="$(${IDS})" ;;
    --permission-mode) words='default acceptEdits plan dontAsk bypass' ;;
    --store|--cwd) COMPREPLY=($(compgen -d -- "$current")); return ;;
    completion) words='${SHELLS.join(' ')}' ;;
    *)
      case "$command" in
${cases.map((line) => `    ${line}`).join('\n')}
      esac
      case "$command" in
        '') words="$words ${commands.join(' ')}" ;;
        rm|replay) words="$words $(${IDS})" ;;
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _runchart runchart
`;
}

function fish({ commands, options }: Words): string {
  const none = `not __fish_seen_subcommand_from ${commands.join(' ')}`;
  const lines = [...options].flatMap(([name, names]) =>
    names.map((option) => {
      const when = name === '' ? none : `__fish_seen_subcommand_from ${name}`;
      const takesId = option === '--resume' || option === '--session';
      return `complete -c runchart -n '${when}' -l ${option.slice(2)}${takesId ? ` -xa '(${IDS})'` : ''}`;
    }),
  );
  return `# runchart: save this as ~/.config/fish/completions/runchart.fish
complete -c runchart -f
complete -c runchart -n '${none}' -a '${commands.join(' ')}'
complete -c runchart -n '__fish_seen_subcommand_from rm replay' -a '(${IDS})'
complete -c runchart -n '__fish_seen_subcommand_from completion' -a '${SHELLS.join(' ')}'
${lines.join('\n')}
`;
}
