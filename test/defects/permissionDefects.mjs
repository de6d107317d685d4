/** Defects of rules, hooks and trust, each with the test file that must detect it. */
export const permissions = [
  {
    id: 'one-agent-allows-all',
    about: 'a rule for one sub-agent allows a call that also starts others',
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
    about: 'an edit answers a denial of a hook or of decide like a question',
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
    about: 'arguments from a PermissionRequest hook are not checked by the rules',
    witness: 'test/permissions/editedArguments.test.ts',
    edits: [['const ruled = await this.permit(again.prepared);', 'const ruled = passed(again.prepared);']],
  },
  {
    id: 'request-rewrite-ungated',
    about: 'other plugins do not receive the arguments from a PermissionRequest hook',
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
    about: 'a search shows files without approval that a rule asks about',
    witness: 'test/permissions/paths.test.ts',
    edits: [['for (const rule of [...deny, ...ask]) {', 'for (const rule of deny) {']],
  },
  {
    id: 'protected-in-lower-case',
    about: 'protected places are compared in lower case only',
    witness: 'test/permissions/paths.test.ts',
    edits: [["    .toLowerCase()\n    .replace(/(?<=[^.]):.*$/s, '')", "    .replace(/(?<=[^.]):.*$/s, '')"]],
  },
  {
    id: 'denied-link',
    about: 'a link leads to a file that is denied by its name',
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
    about: 'the folder of the state is not protected if the environment names it',
    witness: 'test/permissions/paths.test.ts',
    edits: [
      ['...[XDG_STATE_HOME, XDG_CONFIG_HOME].flatMap((directory) =>', '...[XDG_CONFIG_HOME].flatMap((directory) =>'],
    ],
  },
  {
    id: 'saved-pattern',
    about: 'a rule that "always allow" saves for a file is a pattern that matches others',
    witness: 'test/permissions/commands.property.test.ts',
    edits: [[".replace(/[\\\\*?[\\]{]/g, '\\\\$&')", ".replace(/[\\\\*?{]/g, '\\\\$&')"]],
  },
  {
    id: 'directories-not-followed',
    about: 'directory changes after the last tracked one cause no question',
    witness: 'test/permissions/hostileCommands.test.ts',
    edits: [["else doubts.push('the directory is changed too often');", '']],
  },
  {
    id: 'last-hook-counts',
    about: 'of several plugins with hooks the last one applies, although an earlier one asks',
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
    about: 'of the rules of several plugins the last ones apply',
    witness: 'test/permissions/agent.test.ts',
    edits: [
      ['return STRICTNESS.indexOf(other.outcome) > STRICTNESS.indexOf(one.outcome) ? other : one;', 'return other;'],
    ],
  },
  {
    id: 'stop-hook-over-runs',
    about: 'the continuations of a Stop hook are counted over all runs of a request',
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
    about: 'arguments from another plugin are not checked by the rules',
    witness: 'test/permissions/agent.test.ts',
    edits: [['if (this.#judged?.prepared !== prepared) {', 'if (this.#judged === undefined) {']],
  },
  {
    id: 'edit-covers-rewrite',
    about: 'an edit by a person also approves the later changes of a plugin',
    witness: 'test/permissions/agent.test.ts',
    edits: [
      ["decision?.action === 'edit' && answered.prepared.call.args === decision.args;", "decision?.action === 'edit';"],
    ],
  },
  {
    id: 'after-hooks-apart',
    about: "each plugin after a tool receives its own result instead of the previous plugin's",
    witness: 'test/scenarios/plugins.test.ts',
    edits: [
      ['outcome,\n        result: deepFreeze(content),', 'outcome,\n        result: deepFreeze(request.content),'],
    ],
  },
  {
    id: 'trust-whatever-it-holds',
    about: 'a file that was trusted once is trusted with any content',
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
    about: 'a file above the project that another user created is sent to the model',
    witness: 'test/session/systemPrompt.test.ts',
    edits: [
      [
        'if (!stats || (user !== undefined && stats.uid !== user && stats.uid !== 0)) return undefined;',
        'if (!stats) return undefined;',
      ],
    ],
  },
  {
    id: 'waits-for-a-pipe',
    about: 'the reader waits for a named file that is a pipe',
    witness: 'test/session/systemPrompt.test.ts',
    edits: [['constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch', 'constants.O_RDONLY).catch']],
  },
  {
    id: 'failed-hook-lets-pass',
    about: 'a required hook that fails lets the call pass',
    witness: 'test/hooks/hooks.test.ts',
    edits: [['results.failed ??= answer.message;', '']],
  },
  {
    id: 'prompts-told-again',
    about: 'hooks receive each prompt of a run again before every step',
    witness: 'test/hooks/hooks.test.ts',
    edits: [['if (session) session.entriesRead = entries.length;', '']],
  },
  {
    id: 'both-ways-reads-only',
    about: 'a file that is opened for reading and writing counts as read only',
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
    about: 'a path that is attached to a short option is not judged',
    witness: 'test/permissions/operators.test.ts',
    edits: [['candidates.push(...gluedTo(value));', '']],
  },
  {
    id: 'glued-pattern',
    about: 'after a pattern that is attached to its option, the first file of a search is read as the pattern',
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
    about: 'a rule for a file permits writes to any computed path that ends like it',
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
    about: '`..` moves up by spelling although the kernel follows a link first',
    witness: 'test/permissions/expansions.test.ts',
    edits: [['const rest = partsOf(path).reverse();', 'const rest = partsOf(join(path)).reverse();']],
  },
  {
    id: 'any-setting-of-git',
    about: 'git runs without approval, whatever the settings of the repository are',
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
    about: 'a setting of bash that lets patterns match names with a leading dot is ignored',
    witness: 'test/permissions/expansions.test.ts',
    edits: [['if (mayMatchDotted([line, ...inner]))', 'if (false as boolean)']],
  },
  {
    id: 'computed-words-allowed',
    about: 'a computed word of a command that a rule allows needs no approval',
    witness: 'test/permissions/expansions.test.ts',
    edits: [['if (word.isLiteral) return false;\n', 'if (word.isLiteral || !word.isGlob) return false;\n']],
  },
  {
    id: 'approved-place-unheld',
    about: "an approved call runs with its path's current target",
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
    about: 'a read-only command without approval may change the working directory',
    witness: 'test/permissions/sandboxed.test.ts',
    edits: [['onlyReads = confinement?.writes === false;', 'onlyReads = confinement?.writes === undefined;']],
  },
  {
    id: 'history-of-hidden-files',
    about: 'git shows hidden files of its history without approval, inside the sandbox',
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
    about: 'a line that certainly names a place outside runs without approval in the sandbox',
    witness: 'test/permissions/sandboxed.test.ts',
    edits: [['return !this.#files.isCertainlyOutside(paths);', 'return paths.length >= 0;']],
  },
  {
    id: 'missing-place-made',
    about: 'a protected place that does not exist can be created in the sandbox',
    witness: 'test/tools/coding/sandboxPlaces.test.ts',
    edits: [["for (const path of masked) args.push('--tmpfs', path, '--remount-ro', path);", '']],
  },
  {
    id: 'repository-moved-away',
    about: 'a command in the sandbox may rename the repository and create another one',
    witness: 'test/tools/coding/sandboxPlaces.test.ts',
    edits: [["args.push('--bind', repository, repository);", 'args.push();']],
  },
  {
    id: 'masks-left-behind',
    about: 'the placeholder of a missing place stays on the disk',
    witness: 'test/tools/coding/sandboxPlaces.test.ts',
    edits: [['await unmask(masked);', '']],
  },
  {
    id: 'hidden-root',
    about: 'a search in a directory with a leading dot shows files that a rule hides there',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [
      [
        'if (isSkipped(entry.name) || !(isOnWay(path) || isOnWay(byCall))) continue;',
        "if ((!dotted && path.includes('/.')) || !(isOnWay(path) || isOnWay(byCall))) continue;",
      ],
    ],
  },
  {
    id: 'made-before-search',
    about: 'a file that a line creates before its search is looked up before it exists',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [
      ['const search = { dotted: descends', 'const search = { ...{ isNow: true }, dotted: descends'],
      ["=== 'all', isNow, ...included };", "=== 'all', ...included };"],
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
    about: 'the output of a command in <(…) counts as a file with an unknown name',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [['return [{ ...computed, isProcess: true }];', 'return [computed];']],
  },
  {
    id: 'handed-names-anywhere',
    about: 'any command that receives file names from xargs or find runs without approval',
    witness: 'test/permissions/readingForms.test.ts',
    edits: [
      [
        'return inner.length === 0 ? undefined : readingOf(unwrapped(named), true);',
        'return inner.length === 0 ? undefined : (readingOf(unwrapped(named), true) ?? { paths: [], descends: false, namesOnly: true, filesOnly: false, usesGit: false });',
      ],
    ],
  },
  {
    id: 'ask-by-both-names',
    about: 'an ask rule applies to a linked file only if it names the link and its target',
    witness: 'test/permissions/linkedRules.test.ts',
    edits: [
      ['ask: rules.ask.filter((rule) => fits(rule, false)),', 'ask: rules.ask.filter((rule) => fits(rule, true)),'],
    ],
  },
  {
    id: 'glob-leaves-by-dots',
    about: 'a pattern without a match may lead outside through .. after its wildcard',
    witness: 'test/permissions/linkedRules.test.ts',
    edits: [
      ["if (rest.includes('..') || glob.includes('**')) return outside;", "if (glob.includes('**')) return outside;"],
    ],
  },
  {
    id: 'decide-without-limit',
    about: 'a decide that never answers holds its call for ever',
    witness: 'test/permissions/absentAnswers.test.ts',
    edits: [
      ['await within(PHASE_MS, { setTimer, signal }, () => decide({ name, args }))', 'await decide({ name, args })'],
    ],
  },
  {
    id: 'tree-of-another-repository',
    about: 'git reads without approval in a tree whose part of the repository names another tree',
    witness: 'test/permissions/expansions.test.ts',
    edits: [
      [
        'real === own && resolve(own, back) === file ? { own, common }',
        "real === own && back !== '' ? { own, common }",
      ],
    ],
  },
  {
    id: 'directory-of-a-rule-itself',
    about: 'a rule for a directory with a slash at its end does not hold for the directory itself',
    witness: 'test/permissions/linkedRules.test.ts',
    edits: [
      ['return matcher.ignores(rest) || (!strict && matcher.ignores(`${rest}/`));', 'return matcher.ignores(rest);'],
    ],
  },
  {
    id: 'cut-search-is-complete',
    about: 'a search for hidden files that ends early counts as complete',
    witness: 'test/permissions/hiddenPaths.test.ts',
    edits: [
      [
        'if (this.#entryCount > this.#most.entries) return undefined;',
        'if (this.#entryCount > this.#most.entries) return [];',
      ],
    ],
  },
  {
    id: 'link-of-a-rule-shown',
    about: 'the sandbox shows the target of a link that a rule hides',
    witness: 'test/permissions/hiddenLinks.test.ts',
    edits: [
      [
        'return this.#steps.areNamed(steps) || this.#isHidden(spelled, target.path) ? target : undefined;',
        'return undefined;',
      ],
    ],
  },
  {
    id: 'xargs-with-options-covered',
    about: 'a wide rule for xargs covers its options, which may name any program',
    witness: 'test/permissions/overlookedForms.test.ts',
    edits: [
      [
        "first === undefined || first.startsWith('-') || needsExactRule(args)",
        'first === undefined || needsExactRule(args)',
      ],
    ],
  },
  {
    id: 'settings-of-one-tree-unread',
    about: 'the settings of a single working tree of git are not looked at',
    witness: 'test/permissions/expansions.test.ts',
    edits: [["...[common, own].map((each) => join(each, 'config.worktree'))", "join(common, 'config.worktree')"]],
  },
  {
    id: 'place-of-a-program-unknown',
    about: 'a program with an option that makes it work outside needs no approval',
    witness: 'test/permissions/programPlaces.test.ts',
    edits: [
      [
        "long: ['project-dir', 'build-file', 'settings-file', 'init-script', 'include-build']",
        "long: ['project-dir', 'build-file', 'settings-file', 'init-script']",
      ],
    ],
  },
  {
    id: 'option-of-uniq-that-writes',
    about: 'the second name of uniq, which it writes to, counts as a file that it reads',
    witness: 'test/permissions/readingTables.test.ts',
    edits: [
      ['uniq: { options: /^-[cdDiuz]+$|^-[fsw]\\d*$/, wordsMax: 1 }', 'uniq: { options: /^-[cdDiuz]+$|^-[fsw]\\d*$/ }'],
    ],
  },
];
