/**
 * Wider forms of the rules that allow exactly one call: a command with any arguments, a directory, a server. Rule: pure,
 * and no wider form of a command that removes, changes rights, or runs what its arguments say.
 */

/** Programs whose first argument says what they do. */
const WITH_COMMANDS: ReadonlySet<string> = new Set(
  'git gh npm pnpm yarn bun npx pnpx bunx deno cargo go docker podman kubectl helm uv pip pip3 poetry dotnet mvn gradle terraform brew apt apt-get systemctl rails rake mix swift flutter aws gcloud az'.split(
    ' ',
  ),
);
const SCRIPT_RUNNERS: ReadonlySet<string> = new Set(['npm', 'pnpm', 'yarn', 'bun']);
const NEVER: ReadonlySet<string> = new Set(
  'rm rmdir dd mkfs shred chmod chown chgrp kill pkill killall sudo doas su ssh scp eval exec source env xargs find sh bash zsh fish dash python python3 node perl ruby php curl wget'.split(
    ' ',
  ),
);
const PLAIN = /^[\w./:@+-]+$/;

/** The wider form of a literal rule; undefined if there is none. */
export function widerRule(rule: string): string | undefined {
  const [, tool = '', spec = ''] = /^([\w-]+)\((.*)\)$/s.exec(rule) ?? [];
  if (tool === 'bash') return prefixRule(spec);
  if (['read', 'ls', 'glob', 'grep', 'edit'].includes(tool)) return directoryRule(tool, spec);
  const [prefix, server, own] = rule.split('__');
  return prefix === 'mcp' && server && own ? `mcp__${server}__*` : undefined;
}

function prefixRule(command: string): string | undefined {
  const words = command.split(' ');
  const [program = ''] = words;
  const isRun = SCRIPT_RUNNERS.has(program) && words[1] === 'run';
  const length = isRun ? 3 : WITH_COMMANDS.has(program) ? 2 : 1;
  const kept = words.slice(0, length);
  const isPlain = kept.length === length && kept.every((word) => PLAIN.test(word) && !word.startsWith('-'));
  if (!isPlain || NEVER.has(program.split('/').at(-1) ?? '')) return undefined;
  return `bash(${kept.join(' ')} *)`;
}

/** The directory of a file, which must have a name of its own: not the working directory, not a root. */
function directoryRule(tool: string, path: string): string | undefined {
  const folder = /^(\.\/|\/\/[^/]+\/)(.+)\/[^/]+$/.exec(path);
  return folder ? `${tool}(${folder[1]}${folder[2]}/**)` : undefined;
}
