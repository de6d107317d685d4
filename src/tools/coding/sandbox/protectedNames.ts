/** Names of files and directories whose change would run something later: no rule opens them for writing, wherever they are. */

/** A part of a path, with all that is below it. */
export const PROTECTED_PARTS: ReadonlySet<string> = new Set([
  '.git',
  // Its short name on Windows.
  'git~1',
  '.runchart',
  '.husky',
  '.ssh',
  '.gnupg',
  '.vscode',
  '.idea',
]);
/** The last part of a path. */
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
