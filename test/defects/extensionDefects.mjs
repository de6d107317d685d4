/**
 * Defects of an agent's surroundings: MCP servers, hooks, plugins, sub-agents, settings, the request loop, views, the
 * command line. Each has the test file that must detect it.
 */
export const extensions = [
  {
    id: 'mcp-others-left-connected',
    about: 'connected servers stay connected if another one could not be reached',
    witness: 'test/mcp/foreignTools.test.ts',
    edits: [['} catch (error) { await close(); throw error; }', '} catch (error) { throw error; }']],
  },
  {
    id: 'mcp-environment-of-the-host',
    about: 'the process of an MCP server receives every variable of this process, including keys and tokens',
    witness: 'test/mcp/foreignTools.test.ts',
    edits: [
      [
        'const own = { ...getDefaultEnvironment(), ...env };',
        'const own = { ...getDefaultEnvironment(), ...(process.env as { [name: string]: string }), ...env };',
      ],
    ],
  },
  {
    id: 'mcp-lost-call-made-again',
    about: 'a call of an MCP tool that may have run is made again after its server died',
    witness: 'test/mcp/deadServers.test.ts',
    edits: [['ended: readOnly ? 1 : 0,', 'ended: 1,']],
  },
  {
    id: 'mcp-stream-without-end',
    about: 'a call waits for ever when the stream of its answer breaks',
    witness: 'test/mcp/httpServers.test.ts',
    isSlow: true,
    edits: [['return send(message, { ...options, onRequestStreamEnd });', 'return send(message, options);']],
  },
  {
    id: 'mcp-secret-in-error',
    about: 'the error of an MCP server that ended quotes the values of its variables',
    witness: 'test/mcp/deadServers.test.ts',
    edits: [['this.#shown(stderr).trim()', 'plain(stderr).trim()']],
  },
  {
    id: 'mcp-removed-tool-runs',
    about: 'a call that waited for approval runs although the MCP server has removed its tool',
    witness: 'test/mcp/changingTools.test.ts',
    edits: [['this.tools.some((tool) => tool.name === name) ||', 'this.tools.length >= 0 ||']],
  },
  {
    id: 'mcp-tool-becomes-read-only',
    about: 'an MCP server that calls a tool read-only later makes it run without approval',
    witness: 'test/mcp/changingTools.test.ts',
    edits: [['isReading && this.#readOnly.get(name) !== false;', 'isReading;']],
  },
  {
    id: 'mcp-withheld-tool-offered',
    about: 'a change of an MCP server brings back the tools that the host had left out',
    witness: 'test/mcp/changingTools.test.ts',
    edits: [['!withheld.has(name) && !others.has(name)', '!others.has(name)']],
  },
  {
    id: 'mcp-stream-timer-left',
    about: 'the timer that opens a broken stream of an MCP server again survives the close',
    witness: 'test/mcp/httpServers.test.ts',
    edits: [['for (const each of timers) clearTimeout(each);', '']],
  },
  {
    id: 'mcp-change-runs-again',
    about: 'a call of an MCP tool that changes something runs again after a crash',
    witness: 'test/mcp/foreignTools.test.ts',
    edits: [['idempotent: readOnly,', 'idempotent: true,']],
  },
  {
    id: 'matcher-of-choices-unanchored',
    about: 'a matcher with alternatives matches names that only start or end like one of them',
    witness: 'test/hooks/together.test.ts',
    edits: [['`^(?:${matcher})$`', '`^${matcher}$`']],
  },
  {
    id: 'hook-allows-what-it-rewrote-not',
    about: 'a hook that rewrites a call and allows it still requires approval',
    witness: 'test/hooks/together.test.ts',
    edits: [['outputs.slice(Math.max(0, rewrite))', 'outputs.slice(rewrite + 1)']],
  },
  {
    id: 'hook-output-misread',
    about: 'an answer of a hook whose suppressOutput is not a boolean counts',
    witness: 'test/hooks/answers.test.ts',
    edits: [["const FLAGS = ['continue', 'suppressOutput'] as const;", "const FLAGS = ['continue'] as const;"]],
  },
  {
    id: 'hooks-of-the-nearest-file-alone',
    about: 'if several configuration files have hooks of one event, only the last file’s hooks run',
    witness: 'test/session/layers.test.ts',
    edits: [['all[event] = [...(all[event] ?? []), ...(hookList ?? [])];', 'all[event] = [...(hookList ?? [])];']],
  },
  {
    id: 'trust-is-forgotten',
    about: 'a trusted project removes the trust of every other one',
    witness: 'test/session/layers.test.ts',
    edits: [['Object.assign(await readRecord(), changes)', '{ ...changes }']],
  },
  {
    id: 'no-limit-is-the-lowest',
    about: 'a project cannot set a limit that the user has not set, and can remove an existing one',
    witness: 'test/session/layers.test.ts',
    edits: [["typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY", "typeof limit === 'number' ? limit : 0"]],
  },
  {
    id: 'git-hears-the-environment',
    about: 'git runs with every variable of this process',
    witness: 'test/session/filesOfProjects.test.ts',
    edits: [
      [
        "...{ PATH, HOME, XDG_CONFIG_HOME, LC_ALL: 'C' },",
        "...process.env, ...{ PATH, HOME, XDG_CONFIG_HOME, LC_ALL: 'C' },",
      ],
    ],
  },
  {
    id: 'failed-by-an-earlier-tool',
    about: 'a request whose model failed rejects with an earlier error of a tool',
    witness: 'test/requestLoop/reach.test.ts',
    edits: [["error: cause === 'tool' && failed ?", 'error: failed ?']],
  },
  {
    id: 'aborted-request-takes-the-next-agent',
    about: 'an aborted request drops the agent that has replaced its own',
    witness: 'test/requestLoop/reach.test.ts',
    edits: [['if (this.#current.get(cached.model) !== cached) return;', '']],
  },
  {
    id: 'batch-of-the-one-before',
    about: 'a batch is announced with the name of a call whose tool never started',
    witness: 'test/requestLoop/folds.test.ts',
    edits: [["if (entry.boundary === 'ToolResultsCommitted') this.#batch = [];", '']],
  },
  {
    id: 'looser-verdict-counts',
    about: 'of two plugins with rules the more permissive one decides a call',
    witness: 'test/plugins/verdicts.test.ts',
    edits: [
      [
        'STRICTNESS.indexOf(other.outcome) > STRICTNESS.indexOf(one.outcome)',
        'STRICTNESS.indexOf(other.outcome) < STRICTNESS.indexOf(one.outcome)',
      ],
    ],
  },
  {
    id: 'checks-behind-a-cancelled-one',
    about: 'after a cancel during a check no call passes its checks any more',
    witness: 'test/plugins/several.test.ts',
    edits: [['this.#lastCheck.catch(() => undefined).then(', 'this.#lastCheck.then(']],
  },
  {
    id: 'end-of-a-run-shared-by-nobody',
    about: 'each plugin has the whole time limit that all plugins share at the end of a run',
    witness: 'test/plugins/several.test.ts',
    edits: [['limitMs === undefined ? PHASE_MS : limitMs / sharing', 'limitMs ?? PHASE_MS']],
  },
  {
    id: 'place-given-back-twice',
    about: 'a slot that is released twice lets one more sub-agent work at once',
    witness: 'test/subAgents/parts.test.ts',
    edits: [['if (isHeld) this.#releaseSlot();', 'this.#releaseSlot();']],
  },
  {
    id: 'held-decision-forgotten',
    about: 'an early decision on a call of a sub-agent leaves the call of its parent waiting',
    witness: 'test/subAgents/alone.test.ts',
    edits: [["receipt === 'applied' || receipt === 'held' || receipt === 'duplicate'", "receipt === 'applied'"]],
  },
  {
    id: 'unknown-price-within-budget',
    about: 'a sub-agent with an unpriced model may continue under a limit of costs',
    witness: 'test/subAgents/parts.test.ts',
    edits: [['counted.unpriced === 0 && since.costUsd !== null', 'counted.unpriced === 0']],
  },
  {
    id: 'one-family-of-ids',
    about: 'a call id of a sub-agent in one conversation is reserved in every other one of the agent',
    witness: 'test/subAgents/alone.test.ts',
    edits: [
      [
        'const withSpawns: MakeSubAgents = (parent) => new SubAgentRegistry({ ...parent, spawns: profiles, callIds: new CallIds() });',
        'const callIds = new CallIds(); const withSpawns: MakeSubAgents = (parent) => new SubAgentRegistry({ ...parent, spawns: profiles, callIds });',
      ],
    ],
  },
  {
    id: 'gap-looked-over-changes-the-log',
    about: 'early entries before a gap leave their suspensions in the view of the log',
    witness: 'test/projector/pairs.test.ts',
    edits: [['suspensions: new Lookup(table.suspensions),', 'suspensions: table.suspensions,']],
  },
  {
    id: 'early-result-of-another-cycle',
    about: 'a result that arrived before its call is assigned to a call of a later cycle',
    witness: 'test/projector/pairs.test.ts',
    edits: [['calls.early.clear();', '']],
  },
  {
    id: 'failed-change-fails-the-next',
    about: "a failed change of the user's records fails the changes that wait for it",
    witness: 'test/session/layers.test.ts',
    edits: [
      [
        'const removeTurn = done .catch(() => undefined) .then(() => { if (turns.get(file) === removeTurn) turns.delete(file); }); turns.set(file, removeTurn);',
        'void done.catch(() => undefined).then(() => { if (turns.get(file) === done) turns.delete(file); }); turns.set(file, done);',
      ],
    ],
  },
  {
    id: 'filter-process-not-risky',
    about: 'git lists changes although a setting of the repository makes it run a filter process',
    witness: 'test/session/filesOfProjects.test.ts',
    edits: [['filter\\..*\\.(clean|smudge|process)', 'filter\\..*\\.(clean|smudge)']],
  },
  {
    id: 'editor-list-ends-early',
    about: 'the list of an editor ends at a page that has a session without a message',
    witness: 'test/cli/acp/editorHistory.test.ts',
    edits: [
      [
        'rows.length === PAGE ? rows.at(-1)?.cursor : undefined;',
        'rows.length === PAGE && rows.every(({ title }) => title !== undefined) ? rows.at(-1)?.cursor : undefined;',
      ],
    ],
  },
  {
    id: 'undone-twice',
    about: 'changes that were taken back count again for the next undo',
    witness: 'test/cli/undo/undo.test.ts',
    edits: [['      if (isUndone) continue;\n', '']],
  },
  {
    id: 'durations-in-milliseconds',
    about: 'the duration metrics have values in milliseconds, and their unit is the second',
    witness: 'test/otel/durations.test.ts',
    edits: [['duration.record(ms / 1_000, ', 'duration.record(ms, ']],
  },
  {
    id: 'shrunk-to-another-fault',
    about: 'a tape is shrunk to one that breaks another invariant',
    witness: 'test/simulation/choiceTape.test.ts',
    edits: [['violations.some((violation) => violation.invariant === invariant)', 'violations.length > 0']],
  },
  {
    id: 'edit-against-the-rules',
    about: 'a call that ran with an edit that the rules forbid is no fault if an example expects that it runs',
    witness: 'test/testing/editFaults.test.ts',
    edits: [['[edit.expected ?? edit.verdict, edit.verdict]', '[edit.expected ?? edit.verdict]']],
  },
];
