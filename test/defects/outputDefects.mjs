/** Defects of printed and stored text, and of repeated acts. Each has the test file that must detect it. */
export const printed = [
  {
    id: 'secret-in-key-alone',
    about: 'a secret in a key that is in no value is not redacted',
    witness: 'test/hostile/sinks.test.ts',
    edits: [
      [
        'if (holds(key, secrets) || holds((value as { [key: string]: unknown })[key], secrets)) return true;',
        'if (holds((value as { [key: string]: unknown })[key], secrets)) return true;',
      ],
    ],
  },
  {
    id: 'keys-become-one',
    about: 'two keys that are equal after redaction become one, and a value is lost',
    witness: 'test/hostile/streamedSecrets.test.ts',
    edits: [['[freeKey(clean(key), key, value, taken), cleaned(child, clean)]', '[clean(key), cleaned(child, clean)]']],
  },
  {
    id: 'in-flight-raw',
    about: 'a subscriber that arrives during a reply receives a secret that others do not',
    witness: 'test/hostile/sinks.test.ts',
    edits: [
      [
        'return this.#redacted ? this.#redacted.inFlight : this.#streaming.inFlight;',
        'return this.#streaming.inFlight;',
      ],
    ],
  },
  {
    id: 'held-piece-lost',
    about: 'the end of a reply that may start a secret never reaches listeners',
    witness: 'test/hostile/streamedSecrets.test.ts',
    edits: [['this.#redacted?.end();', '']],
  },
  {
    id: 'pieces-apart',
    about: 'a secret that arrives in pieces is redacted only inside a single piece',
    witness: 'test/hostile/streamedSecrets.test.ts',
    edits: [['openFrom(this.#held + piece, secrets)', 'openFrom(piece, secrets)']],
  },
  {
    id: 'progress-raw',
    about: 'progress of a tool is shown with its secrets',
    witness: 'test/hostile/sinks.test.ts',
    edits: [['return show(redact(progressValue.value));', 'return show(progressValue.value);']],
  },
  {
    id: 'ids-for-a-shell',
    about: 'ids of sessions with shell syntax are offered for completion',
    witness: 'test/cli/sessions.test.ts',
    edits: [['if (isPlainWord(id)) screen.reply(`${id}\\n`);', 'screen.reply(`${id}\\n`);']],
  },
  {
    id: 'source-drives-the-terminal',
    about: 'a log as a test is printed unescaped',
    witness: 'test/cli/foreign.test.ts',
    edits: [['shown.write(sourceText(testOf(entries)));', 'shown.write(testOf(entries));']],
  },
  {
    id: 'part-of-a-question-raw',
    about: 'a command part that needs approval is printed with invisible characters',
    witness: 'test/cli/foreign.test.ts',
    edits: [['`  ${printableLine(part.text)}  `', '`  ${part.text}  `']],
  },
  {
    id: 'session-start-once',
    about: 'a conversation that is opened again by the same plugin has no SessionStart',
    witness: 'test/hooks/reopening.test.ts',
    edits: [['this.#sessions.delete(conversationId);', '']],
  },
  {
    id: 'question-of-another-call',
    about: 'of several calls of an MCP server the first one receives the question',
    witness: 'test/mcp/questions.test.ts',
    edits: [
      [
        'return changing?.[0] ?? (running.length === 1 ? running[0]?.[0] : undefined);',
        'return changing?.[0] ?? running[0]?.[0];',
      ],
    ],
  },
  {
    id: 'answer-for-other-arguments',
    equipped: true,
    about: 'an answer reaches a call at an MCP server whose arguments a plugin has changed since',
    witness: 'test/mcp/questions.test.ts',
    edits: [['isAnswered && waiting.args === JSON.stringify(call.args)', 'isAnswered']],
  },
  {
    id: 'early-answer-for-other-arguments',
    about: 'an answer about earlier arguments answers the question of a new call with others',
    witness: 'test/mcp/questions.test.ts',
    edits: [['isAnswered ? { ...call, decision: undefined } : call', 'call']],
  },
  {
    id: 'answer-for-every-question',
    about: 'an answer that arrived before its question answers every question of the call',
    witness: 'test/mcp/questions.test.ts',
    edits: [['call.earlyDecision = undefined;', '']],
  },
  {
    id: 'read-again-forgotten-first',
    about: 'a file that is read again keeps its position in the order of removal',
    witness: 'test/tools/coding/knownFiles.test.ts',
    edits: [['files.delete(path); files.set(path, hash);', 'files.set(path, hash);']],
  },
  {
    id: 'mode-by-the-mask',
    about: 'a changed file loses the permissions that the umask of the process removes',
    witness: 'test/tools/coding/knownFiles.test.ts',
    edits: [['if (mode !== undefined) await file.chmod(mode);', '']],
  },
  {
    id: 'copy-for-everybody',
    about: 'the temporary copy of a written file is readable by everybody until it is complete',
    witness: 'test/tools/coding/knownFiles.test.ts',
    edits: [['mode ?? 0o666);', '0o666);']],
  },
  {
    id: 'signals-go-on',
    about: 'live$ is not completed when its conversation is closed',
    witness: 'test/scenarios/secondTimes.test.ts',
    edits: [['this.#endCancels(); this.live.complete();', 'this.#endCancels();']],
  },
  {
    id: 'silence-after-clock-set-back',
    about: 'the wait for a model that is silent after the clock was set back is longer by that time',
    witness: 'test/hostile/timeAndProcess.test.ts',
    edits: [['passed < 0 || passed > ms + 1_000 ?', 'passed > ms + 1_000 ?']],
  },
  {
    id: 'question-of-the-session-before',
    about: 'a session that waits does not ask if the session before it asked about a call with the same id',
    witness: 'test/cli/interactive/session.test.ts',
    edits: [
      ['this.#queued = new AbortController(); this.#questions.reset();', 'this.#queued = new AbortController();'],
    ],
  },
  {
    id: 'last-piece-of-text-lost',
    about: 'half of a character or of a line break at the end of streamed text is not shown',
    witness: 'test/cli/render.test.ts',
    edits: [['this.#put(this.#pieces.end()); if', 'if']],
  },
  {
    id: 'question-after-a-refusal',
    about: 'after a decision that was refused the terminal asks nothing more',
    witness: 'test/cli/interactive/session.test.ts',
    edits: [
      [
        `      say('red', thrownText(error));
      this.#asked = undefined;
`,
        `      say('red', thrownText(error));
`,
      ],
    ],
  },
  {
    id: 'second-try-keeps-nothing',
    about: 'a person who keeps a rule again after a full disk keeps nothing, and reads nothing about it',
    witness: 'test/cli/interactive/session.test.ts',
    edits: [['added.length === 0 && this.#unkept?.callId === callId ? this.#unkept.rules : added', 'added']],
  },
  {
    id: 'logger-without-its-object',
    about: 'a logger of a class receives nothing',
    witness: 'test/scenarios/hostObjects.test.ts',
    edits: [
      [
        'callHarmlessly(() => logger[level]?.(fact));',
        'const write = logger[level];\n    callHarmlessly(() => write?.(fact));',
      ],
    ],
  },
  {
    id: 'error-to-stately-inspector',
    about: 'the error of an actor reaches the Stately inspector with its secrets',
    witness: 'test/inspect/statelySinks.test.ts',
    edits: [['{ error: shown(error) }', '{ error }']],
  },
  {
    id: 'served-list-ends-early',
    about: 'a server lists the sessions of its directory among the latest 200 only',
    witness: 'test/cli/servedSessions.test.ts',
    edits: [['page.length < PAGE ||', 'page.length <= PAGE ||']],
  },
  {
    id: 'credential-in-a-map',
    about: 'a password in a Map is shown in the inspector',
    witness: 'test/inspect/statelySinks.test.ts',
    edits: [['isCredential(name, field) ? REDACTED : field', 'field']],
  },
  {
    id: 'shortest-key-not-redacted',
    about: 'a key of a model with the least number of characters is not redacted',
    witness: 'test/hostile/secrets.test.ts',
    edits: [['secret.length >= MODEL_SHORTEST', 'secret.length > MODEL_SHORTEST']],
  },
  {
    id: 'refused-session-held',
    about: 'a session of another directory, which is refused, stays open in the program',
    witness: 'test/cli/interactive/sessionChanges.test.ts',
    edits: [
      [
        '} catch (error) { await conversation.close(); throw error; } this.#opened?.release();',
        '} catch (error) { throw error; } this.#opened?.release();',
      ],
    ],
  },
  {
    id: 'left-session-watched',
    about: 'commands in the background are still watched for a session that was left',
    witness: 'test/cli/interactive/sessionChanges.test.ts',
    edits: [['unwatch?.(); log.unsubscribe();', 'log.unsubscribe();']],
  },
  {
    id: 'unfound-session-keeps-servers',
    about: 'the MCP servers of a terminal session are not ended if its session is not found',
    witness: 'test/cli/codingAgent.test.ts',
    edits: [['await (session?.closeAgent() ?? made.close());', 'await session?.closeAgent();']],
  },
  {
    id: 'later-decision-sends-prompt',
    about: 'a prompt for a session is sent though its call still waits for a decision',
    witness: 'test/cli/runCommand.test.ts',
    edits: [
      [
        "screen.line(['plain', 'the prompt was not sent']); return code;",
        "screen.line(['plain', 'the prompt was not sent']);",
      ],
    ],
  },
  {
    id: 'menu-scrolls-late',
    about: 'the chosen command lies one row below the rows of the menu',
    witness: 'test/cli/commands/shownEquipment.test.ts',
    edits: [
      [
        'Math.min(this.#chosen - SHOWN + 1, matches.length - SHOWN)',
        'Math.min(this.#chosen - SHOWN, matches.length - SHOWN)',
      ],
    ],
  },
  {
    id: 'regions-as-low-as-the-lowest',
    about: 'the regions of a parallel state are as high as the lowest of them',
    witness: 'test/inspect/layouts.test.ts',
    edits: [['Math.max(...sizes.map((size) => size.height))', 'Math.min(...sizes.map((size) => size.height))']],
  },
  {
    id: 'hint-counted-in-characters',
    about: 'a hint of wide characters is sent though it is longer than PostgreSQL takes',
    witness: 'test/stores/postgres/betweenProcesses.test.ts',
    edits: [
      ['if (byteLength(payload) > PAYLOAD_BYTES_MAX) return;', 'if (payload.length > PAYLOAD_BYTES_MAX) return;'],
    ],
  },
];
