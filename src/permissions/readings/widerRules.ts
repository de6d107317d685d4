/**
 * Wider forms of the rules that allow exactly one call: a command with any arguments, a directory, a server. Rule: pure,
 * and only for listed commands, whose arguments neither run code nor remove or write files of their choice.
 */

/** Programs that only read, with any arguments, and git commands that read or stage. */
const ANY_ARGUMENTS: ReadonlySet<string> = new Set([
  ...'ls cat head tail wc grep stat du df cut tr nl od diff cmp comm cksum md5sum sha1sum sha256sum readlink realpath'.split(
    ' ',
  ),
  ...['git status', 'git diff', 'git log', 'git show', 'git blame', 'git add', 'npm test', 'pnpm test', 'yarn test'],
]);
const SCRIPT_RUNNERS: ReadonlySet<string> = new Set(['npm', 'pnpm', 'yarn']);
/** The name of a script of a project: no path and no option. */
const SCRIPT_NAME = /^\w[\w:-]*$/;
/** The minimum number of path parts below the home directory, including the file name. */
const PARTS_BELOW_HOME = 3;

/** The wider form of a literal rule; undefined if there is none. `home`: the absolute path of the home directory. */
export function widerRule(rule: string, home: string): string | undefined {
  const [, tool = '', spec = ''] = /^([\w-]+)\((.*)\)$/s.exec(rule) ?? [];
  if (tool === 'bash') return prefixRule(spec);
  if (['read', 'ls', 'glob', 'grep', 'edit'].includes(tool)) return directoryRule(tool, spec, home);
  const [prefix, server, own] = rule.split('__');
  return prefix === 'mcp' && server && own ? `mcp__${server}__*` : undefined;
}

function prefixRule(command: string): string | undefined {
  const [program = '', verb, script = ''] = command.split(' ');
  if (SCRIPT_RUNNERS.has(program) && verb === 'run')
    return SCRIPT_NAME.test(script) ? `bash(${program} run ${script} *)` : undefined;
  const prefix = [program, `${program} ${verb}`].find((each) => ANY_ARGUMENTS.has(each));
  return prefix && `bash(${prefix} *)`;
}

/** The directory of a file: a named one in the working directory, or one well below the home directory. */
function directoryRule(tool: string, path: string, home: string): string | undefined {
  const folder = path.slice(0, path.lastIndexOf('/'));
  const parts = path.startsWith(`/${home}/`) ? path.slice(home.length + 2).split('/').length : 0;
  const isInside = path.startsWith('./') && folder.length > 1;
  return isInside || parts >= PARTS_BELOW_HOME ? `${tool}(${folder}/**)` : undefined;
}
