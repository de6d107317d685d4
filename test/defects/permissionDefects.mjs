/** Defects of rules, hooks and what is trusted, each with the test file that has to find it. */
export const permissions = [
  {
    id: 'one-agent-allows-all',
    about: 'a rule for one sub-agent allows a call that starts others too',
    witness: 'test/permissions/paths.test.ts',
    edits: [['return every ? agents.every(matches) : agents.some(matches);', 'return agents.some(matches);']],
  },
  {
    id: 'edit-spares-hooks',
    about: 'no hook and no decide judges the arguments that a person edited',
    witness: 'test/permissions/editedArguments.test.ts',
    edits: [["return decision === undefined || decision.action === 'edit';", 'return decision === undefined;']],
  },
  {
    id: 'edit-overrides-denial',
    about: 'an edit answers a denial of a hook or of decide as it answers a question',
    witness: 'test/permissions/editedArguments.test.ts',
    edits: [
      [
        'const answered = await this.#resolved({ ...result, permission: where }, verdict);',
        'const answered = decision ? { ...result, permission: where } : await this.#resolved({ ...result, permission: where }, verdict);',
      ],
    ],
  },
  {
    id: 'request-rewrite-dropped',
    about: 'a PermissionRequest hook allows a call with other arguments, and the old ones run',
    witness: 'test/permissions/editedArguments.test.ts',
    edits: [['...(args !== undefined && { args }) }; }', '}; }']],
  },
  {
    id: 'request-rewrite-unjudged',
    about: 'what a PermissionRequest hook makes of a call is not held to the rules',
    witness: 'test/permissions/editedArguments.test.ts',
    edits: [['const ruled = await this.permit(again.prepared);', 'const ruled = passed(again.prepared);']],
  },
  {
    id: 'request-rewrite-ungated',
    about: 'other plugins do not see what a PermissionRequest hook makes of a call',
    witness: 'test/permissions/editedArguments.test.ts',
    edits: [
      [
        "if (concluded.kind !== 'passed' || concluded.prepared === gated.prepared) return concluded;",
        "if (concluded.kind === 'passed') return concluded; if (concluded.kind !== 'passed') return concluded;",
      ],
    ],
  },
  {
    id: 'search-shows-asked',
    about: 'a search shows unasked what a rule wants to be asked about',
    witness: 'test/permissions/paths.test.ts',
    edits: [['for (const rule of [...deny, ...ask]) {', 'for (const rule of deny) {']],
  },
  {
    id: 'protected-in-lower-case',
    about: 'protected places are known by names in lower case alone',
    witness: 'test/permissions/paths.test.ts',
    edits: [["    .toLowerCase()\n    .replace(/(?<=[^.]):.*$/s, '')", "    .replace(/(?<=[^.]):.*$/s, '')"]],
  },
  {
    id: 'denied-link',
    about: 'a link leads to what is denied by its name',
    witness: 'test/permissions/paths.test.ts',
    edits: [
      [
        'return strict ? bySpelling && byReal : bySpelling || byReal;',
        'return strict ? bySpelling && byReal : bySpelling;',
      ],
    ],
  },
  {
    id: 'state-folder-open',
    about: 'the folder of the state is not protected where the environment names it',
    witness: 'test/permissions/paths.test.ts',
    edits: [
      ['...[XDG_STATE_HOME, XDG_CONFIG_HOME].flatMap((directory) =>', '...[XDG_CONFIG_HOME].flatMap((directory) =>'],
    ],
  },
  {
    id: 'saved-pattern',
    about: 'what "always allow" saves of a file is a pattern that others fit',
    witness: 'test/permissions/commands.property.test.ts',
    edits: [
      [
        "const literal = path.replace(/[\\\\*?[\\]]/g, '\\\\$&')",
        "const literal = path.replace(/[\\\\*?]/g, '\\\\$&')",
      ],
    ],
  },
  {
    id: 'directories-not-followed',
    about: 'directories behind the last one that is followed make no doubt',
    witness: 'test/permissions/hostileCommands.test.ts',
    edits: [["else doubts.push('the directory is changed too often');", '']],
  },
  {
    id: 'last-hook-counts',
    about: 'of several plugins with hooks the last one counts, though one before it asks',
    witness: 'test/hooks/hooks.test.ts',
    edits: [
      [
        "if (decision !== undefined && this.#hook !== 'ask') this.#hook = decision;",
        'if (decision !== undefined) this.#hook = decision;',
      ],
    ],
  },
  {
    id: 'last-rules-count',
    about: 'of the rules of several plugins the last ones count',
    witness: 'test/permissions/agent.test.ts',
    edits: [
      ['return STRICTNESS.indexOf(other.outcome) > STRICTNESS.indexOf(one.outcome) ? other : one;', 'return other;'],
    ],
  },
  {
    id: 'stop-hook-over-runs',
    about: 'how often a Stop hook went on counts over all runs of a request',
    witness: 'test/hooks/hooks.test.ts',
    edits: [
      [
        "if (entry?.type === 'run-started' || entry?.type === 'run-resumed') break;",
        "if (entry?.type === 'run-started') break;",
      ],
    ],
  },
  {
    id: 'rewrite-not-judged',
    about: 'what another plugin makes of a call is not held to the rules',
    witness: 'test/permissions/agent.test.ts',
    edits: [['if (this.#judged?.prepared !== prepared) {', 'if (this.#judged === undefined) {']],
  },
  {
    id: 'edit-covers-rewrite',
    about: 'who edited a call has decided about what a plugin made of it too',
    witness: 'test/permissions/agent.test.ts',
    edits: [
      ["decision?.action === 'edit' && answered.prepared.call.args === decision.args;", "decision?.action === 'edit';"],
    ],
  },
  {
    id: 'after-hooks-apart',
    about: 'each plugin behind a tool is shown its own result, not what the one before made of it',
    witness: 'test/scenarios/plugins.test.ts',
    edits: [['outcome,\n        result: content,', 'outcome,\n        result: request.content,']],
  },
  {
    id: 'trust-whatever-it-holds',
    about: 'a file that was trusted once is trusted whatever it holds',
    witness: 'test/session/configuration.test.ts',
    edits: [
      [
        'return (await trusted(userDirectory).read(path)) === hashOf(text);',
        'return (await trusted(userDirectory).read(path)) !== undefined && text !== undefined;',
      ],
    ],
  },
  {
    id: 'file-of-another-user',
    about: 'a file above the project that another user put there is told to the model',
    witness: 'test/session/systemPrompt.test.ts',
    edits: [
      [
        'if (!found || (user !== undefined && found.uid !== user && found.uid !== 0)) return undefined;',
        'if (!found) return undefined;',
      ],
    ],
  },
  {
    id: 'waits-for-a-pipe',
    about: 'a named file that is a pipe is waited for',
    witness: 'test/session/systemPrompt.test.ts',
    edits: [['constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch', 'constants.O_RDONLY).catch']],
  },
  {
    id: 'failed-hook-lets-pass',
    about: 'a required hook that fails lets the call pass',
    witness: 'test/hooks/hooks.test.ts',
    edits: [['said.failed ??= answer.message;', '']],
  },
  {
    id: 'prompts-told-again',
    about: 'each prompt of a run is told to hooks again before every step',
    witness: 'test/hooks/hooks.test.ts',
    edits: [['if (session) session.seen = entries.length;', '']],
  },
  {
    id: 'both-ways-reads-only',
    about: 'a file that is opened to read and to write counts as read only',
    witness: 'test/permissions/operators.test.ts',
    edits: [
      ["const reads = operator === '<';", "const reads = operator.startsWith('<');"],
      [
        "const tools = operator === '<>' ? ['read', 'edit'] : [reads ? 'read' : 'edit'];",
        "const tools = [reads ? 'read' : 'edit'];",
      ],
    ],
  },
  {
    id: 'glued-path',
    about: 'a path that is glued to a short option is not judged',
    witness: 'test/permissions/operators.test.ts',
    edits: [['candidates.push(...gluedTo(value));', '']],
  },
  {
    id: 'glued-pattern',
    about: 'behind a pattern that is glued to its option, the first file of a search is taken for the pattern',
    witness: 'test/permissions/operators.test.ts',
    edits: [['([ef]|[ABCmdgt]$)', '[efABCmdgt]$']],
  },
  {
    id: 'group-redirected',
    about: 'redirections of a whole group are not judged',
    witness: 'test/permissions/operators.test.ts',
    edits: [['parts.push(...redirects.map((redirect) => this.#redirectPart(redirect)));', '']],
  },
  {
    id: 'computed-target-by-its-end',
    about: 'a rule for a file allows to write any computed path that ends like it',
    witness: 'test/permissions/operators.test.ts',
    edits: [
      [
        'const subjects = target?.isLiteral ? this.#files.subjects(target) : [];',
        'const subjects = target ? this.#files.subjects(target) : [];',
      ],
      ["finding.outcome !== 'allow' || !target || target.isLiteral || target.isProcess", "finding.outcome !== ''"],
    ],
  },
  {
    id: 'computed-target-saved',
    about: '"always allow" of a line with a computed target saves a rule for a file that ends like it',
    witness: 'test/permissions/operators.test.ts',
    edits: [
      [
        'const subjects = target?.isLiteral ? this.#files.subjects(target) : [];',
        'const subjects = target ? this.#files.subjects(target) : [];',
      ],
    ],
  },
  {
    id: 'coprocess-trusted',
    about: 'a line that starts a coprocess may be allowed unasked',
    witness: 'test/permissions/operators.test.ts',
    edits: [["this.doubt('a coprocess is started');", '']],
  },
  {
    id: 'dots-by-spelling',
    about: '`..` goes back by spelling where the kernel follows a link first',
    witness: 'test/permissions/expansions.test.ts',
    edits: [['const rest = partsOf(path).reverse();', 'const rest = partsOf(join(path)).reverse();']],
  },
  {
    id: 'any-setting-of-git',
    about: 'git runs unasked whatever the settings of the repository say',
    witness: 'test/permissions/expansions.test.ts',
    edits: [
      [
        'const unlisted = settings.find(({ key }) => !HARMLESS.some((harmless) => harmless.test(key)));',
        "const unlisted = settings.find(({ key }) => key === '');",
      ],
    ],
  },
  {
    id: 'dotted-names-of-patterns',
    about: 'a setting of bash that lets patterns match names with a leading dot is overlooked',
    witness: 'test/permissions/expansions.test.ts',
    edits: [['if (mayMatchDotted([line, ...inner]))', 'if (false as boolean)']],
  },
  {
    id: 'computed-words-allowed',
    about: 'a computed word of a command that a rule allows is no doubt',
    witness: 'test/permissions/expansions.test.ts',
    edits: [['if (word.isLiteral) return false;\n', 'if (word.isLiteral || !word.isGlob) return false;\n']],
  },
  {
    id: 'approved-place-unheld',
    about: 'an approved call runs where its path leads now',
    witness: 'test/permissions/sandboxed.test.ts',
    edits: [
      [
        'if (decision && this.#isMoved(prepared, verdict))',
        'if (decision && verdict === undefined && this.#isMoved(prepared, verdict))',
      ],
    ],
  },
  {
    id: 'reading-may-write',
    about: 'what runs unasked as reading may change the working directory',
    witness: 'test/permissions/sandboxed.test.ts',
    edits: [['onlyReads = confinement?.writes === false;', 'onlyReads = confinement?.writes === undefined;']],
  },
  {
    id: 'history-of-hidden-files',
    about: 'git shows hidden files of its history unasked, inside the sandbox',
    witness: 'test/permissions/sandboxed.test.ts',
    edits: [
      [
        'if (usesGit && (this.#hidden(command, reading) || !this.#places.ownsRepository)) return false;',
        'if (usesGit && !this.#places.ownsRepository) return false;',
      ],
    ],
  },
  {
    id: 'outside-inside-sandbox',
    about: 'a line that names a place outside for certain runs unasked in the sandbox',
    witness: 'test/permissions/sandboxed.test.ts',
    edits: [['return !this.#files.isCertainlyOutside(paths);', 'return paths.length >= 0;']],
  },
  {
    id: 'missing-place-made',
    about: 'a protected place that does not exist can be made in the sandbox',
    witness: 'test/tools/coding/sandboxPlaces.test.ts',
    edits: [["for (const path of masked) args.push('--tmpfs', path, '--remount-ro', path);", '']],
  },
  {
    id: 'repository-moved-away',
    about: 'a command in the sandbox may rename the repository and make another one',
    witness: 'test/tools/coding/sandboxPlaces.test.ts',
    edits: [["args.push('--bind', repository, repository);", 'args.push();']],
  },
  {
    id: 'masks-left-behind',
    about: 'what stands for a missing place stays on the disk',
    witness: 'test/tools/coding/sandboxPlaces.test.ts',
    edits: [['await unmask(masked);', '']],
  },
  {
    id: 'hidden-root',
    about: 'a search in a directory with a leading dot shows what a rule hides there',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [
      [
        "if ((!dotted && entry.name.startsWith('.')) || !isOnWay(path)) continue;",
        "if ((!dotted && path.includes('/.')) || !isOnWay(path)) continue;",
      ],
    ],
  },
  {
    id: 'made-before-search',
    about: 'what a line makes before its search is looked for before it is there',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [
      ['const search = { dotted: descends', 'const search = { ...{ isNow: true }, dotted: descends'],
      ["=== 'all', isNow };", "=== 'all' };"],
    ],
  },
  {
    id: 'any-runner',
    about: 'a rule that leaves the program of a runner open allows it',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [['.startsWith(` ${program} `)', '.startsWith(` ${program.slice(0, 3)}`)']],
  },
  {
    id: 'process-as-a-path',
    about: 'the output of a command in <(…) counts as a file whose name nobody knows',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [['return [{ ...computed, isProcess: true }];', 'return [computed];']],
  },
  {
    id: 'handed-names-anywhere',
    about: 'what names of files are handed to by xargs or find runs unasked whatever it is',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [
      [
        'return inner.length === 0 ? undefined : readingOf(unwrapped(named), true);',
        'return inner.length === 0 ? undefined : (readingOf(unwrapped(named), true) ?? { paths: [], descends: false, namesOnly: true, filesOnly: false, usesGit: false });',
      ],
    ],
  },
];
