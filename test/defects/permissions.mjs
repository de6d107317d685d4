/** Defects of rules, hooks and what is trusted, each with the test file that has to find it. */
export const permissions = [
  {
    id: 'one-agent-allows-all',
    about: 'a rule for one sub-agent allows a call that starts others too',
    witness: 'test/permissions/paths.test.ts',
    edits: [['return every ? agents.every(matches) : agents.some(matches);', 'return agents.some(matches);']],
  },
  {
    id: 'search-shows-asked',
    about: 'a search shows unasked what a rule wants to be asked about',
    witness: 'test/permissions/paths.test.ts',
    edits: [['[...rules.deny, ...rules.ask].some(hides)', 'rules.deny.some(hides)']],
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
    edits: [['...[XDG_STATE_HOME, XDG_CONFIG_HOME].flatMap((given) =>', '...[XDG_CONFIG_HOME].flatMap((given) =>']],
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
      [
        "const isOwn = decision.action === 'edit' && prepared.call.args === decision.args;",
        "const isOwn = decision.action === 'edit';",
      ],
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
];
