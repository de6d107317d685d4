/**
 * Names of files and directories that can make programs run later. No rule opens them for writing, wherever they are.
 */

/** Names that protect a path and everything below it. */
export const PROTECTED_PARTS: ReadonlySet<string> = new Set([
  '.git',
  // The short name of `.git` on Windows.
  'git~1',
  '.runchart',
  '.husky',
  '.ssh',
  '.gnupg',
  '.vscode',
  '.idea',
]);
/** Names that protect a file with exactly this name. */
export const PROTECTED_NAMES: ReadonlySet<string> = new Set(
  `.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
   .kshrc .cshrc .tcshrc .login .inputrc .envrc .gitconfig .gitmodules .mcp.json`
    .trim()
    .split(/\s+/),
);
export const PROTECTED_BELOW_HOME: readonly string[] = [
  '.config/fish',
  '.config/git',
  '.config/runchart',
  '.local/state/runchart',
];
