/**
 * What a command sees of this program's environment. Rule: what is named here, and nothing else: a list of what is a
 * secret is never complete. The host may name more in RUNCHART_BASH_ENV, with commas between; a value that holds the
 * password of an address is left out unless its name stands there.
 */
const NAMES: ReadonlySet<string> = new Set(
  `PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP CI NO_COLOR HOSTNAME
   XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
   NODE_ENV NODE_PATH NODE_EXTRA_CA_CERTS NVM_DIR NVM_BIN VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_DIR COREPACK_HOME
   VIRTUAL_ENV PYTHONPATH PYENV_ROOT CONDA_PREFIX CONDA_DEFAULT_ENV UV_CACHE_DIR
   GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOPROXY GOTOOLCHAIN CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN
   JAVA_HOME GRADLE_HOME GRADLE_USER_HOME MAVEN_HOME SDKMAN_DIR ANDROID_HOME DOTNET_ROOT
   GEM_HOME GEM_PATH BUNDLE_PATH RBENV_ROOT ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR
   LD_LIBRARY_PATH PKG_CONFIG_PATH NIX_PATH NIX_PROFILES
   SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO
   HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
   SYSTEMROOT COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA PROGRAMFILES`
    .trim()
    .split(/\s+/),
);
const MORE = 'RUNCHART_BASH_ENV';
/** Everything that a command starts inherits this. */
const MARK = 'RUNCHART_CALL';
const PASSWORD_IN_ADDRESS = /\/\/[^/@\s]+@/;

/** The environment of a command whose processes are known by `mark`. */
export function commandEnvironment(host: NodeJS.ProcessEnv, mark: string): Record<string, string> {
  const more = new Set((host[MORE] ?? '').split(',').map((name) => name.trim()));
  const passed = Object.entries(host).filter((entry): entry is [string, string] => {
    const [name, value = ''] = entry;
    if (more.has(name)) return true;
    const listed = NAMES.has(name.toUpperCase()) || /^LC_[A-Z]+$/.test(name);
    return listed && !PASSWORD_IN_ADDRESS.test(value);
  });
  // A program that runs commands in a command keeps the outer mark, so that both are found.
  const marks = [host[MARK], mark].filter(Boolean).join(' ');
  return { ...Object.fromEntries(passed), TERM: 'dumb', [MARK]: marks };
}
