/** Defects of what is printed and stored, and of what happens a second time, each with the test file that has to find it. */
export const printed = [
  {
    id: 'secret-in-key-alone',
    about: 'a secret that stands in a key and in no value is not looked for',
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
    about: 'two keys that are alike without their secrets become one, and a value is lost',
    witness: 'test/hostile/streamedSecrets.test.ts',
    edits: [['[freeKey(clean(key), key, value, taken), cleaned(child, clean)]', '[clean(key), cleaned(child, clean)]']],
  },
  {
    id: 'in-flight-raw',
    about: 'who comes in the middle of a reply is shown a secret that the others are not',
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
    about: 'the end of a reply that may begin a secret is never shown to listeners',
    witness: 'test/hostile/streamedSecrets.test.ts',
    edits: [['redacted?.end();', '']],
  },
  {
    id: 'pieces-apart',
    about: 'a secret that comes in pieces is looked for in each piece alone',
    witness: 'test/hostile/streamedSecrets.test.ts',
    edits: [['openFrom(this.#held + piece, secrets)', 'openFrom(piece, secrets)']],
  },
  {
    id: 'progress-raw',
    about: 'progress of a tool is shown with its secrets',
    witness: 'test/hostile/sinks.test.ts',
    edits: [['update: redact(read.value) });', 'update: read.value });']],
  },
  {
    id: 'ids-for-a-shell',
    about: 'ids of sessions that a shell would run are offered to its completion',
    witness: 'test/cli/sessions.test.ts',
    edits: [['if (isPlainWord(id)) screen.reply(`${id}\\n`);', 'screen.reply(`${id}\\n`);']],
  },
  {
    id: 'source-drives-the-terminal',
    about: 'a log as a test is printed as it is',
    witness: 'test/cli/foreign.test.ts',
    edits: [['shown.write(sourceText(testOf(entries)));', 'shown.write(testOf(entries));']],
  },
  {
    id: 'part-of-a-question-raw',
    about: 'a part of a command that is asked about is printed with what leaves no mark',
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
    about: 'of several calls of an MCP server the first one gets the question',
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
    about: 'an answer goes to a call at an MCP server whose arguments a plugin has changed since',
    witness: 'test/mcp/questions.test.ts',
    edits: [['isAnswered && held.args === JSON.stringify(call.args)', 'isAnswered']],
  },
  {
    id: 'early-answer-for-other-arguments',
    about: 'an answer about earlier arguments answers the question of a call that is made anew with others',
    witness: 'test/mcp/questions.test.ts',
    edits: [['isAnswered ? { ...call, decision: undefined } : call', 'call']],
  },
  {
    id: 'answer-for-every-question',
    about: 'an answer that came before its question answers every question of the call',
    witness: 'test/mcp/questions.test.ts',
    edits: [['call.early = undefined;', '']],
  },
  {
    id: 'read-again-forgotten-first',
    about: 'a file that is read again keeps its place among those that are forgotten',
    witness: 'test/tools/coding/knownFiles.test.ts',
    edits: [['files.delete(path); files.set(path, hash);', 'files.set(path, hash);']],
  },
  {
    id: 'mode-by-the-mask',
    about: 'a file that is changed loses the permissions that the mask of the process takes away',
    witness: 'test/tools/coding/knownFiles.test.ts',
    edits: [['if (mode !== undefined) await file.chmod(mode);', '']],
  },
  {
    id: 'copy-for-everybody',
    about: 'the copy that a file is written to may be read by everybody until it is complete',
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
    about: 'a model that is silent after the clock was set back is waited for as long as that',
    witness: 'test/hostile/timeAndProcess.test.ts',
    edits: [['passed < 0 || passed > ms + 1_000 ?', 'passed > ms + 1_000 ?']],
  },
];
