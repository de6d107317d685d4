/** Defects of the edges: readers and writers of transports, rules, sandboxes, stores and adapters; each with the test file that has to find it. */
export const edges = [
  {
    id: 'address-before-header',
    about: 'a client that connects anew is sent again what came behind the entry that its address names',
    witness: 'test/transports/handlers.test.ts',
    edits: [
      [
        "firstWanted(request.headers.get('last-event-id') ?? url.searchParams.get('lastEventId'))",
        "firstWanted(url.searchParams.get('lastEventId') ?? request.headers.get('last-event-id'))",
      ],
    ],
  },
  {
    id: 'content-type-alone',
    about: 'a body of JSON is refused where its content type has parameters',
    witness: 'test/transports/handlers.test.ts',
    edits: [['/^application\\/json\\s*(;|$)/i', '/^application\\/json$/i']],
  },
  {
    id: 'closed-output-awaited',
    about: 'who writes waits for ever behind an output that has closed',
    witness: 'test/transports/router.test.ts',
    edits: [["output.once?.('close', leave);", "output.once?.('close', go);"]],
  },
  {
    id: 'open-line-for-ever',
    about: 'behind a last line that had no newline each append writes a blank line',
    witness: 'test/stores/jsonlTail.test.ts',
    edits: [['this.#scan.open = false;', '']],
  },
  {
    id: 'written-for-another-model',
    about: 'a model is sent the messages as they were written for another one',
    witness: 'test/models/openaiReasoningFields.test.ts',
    edits: [
      [
        'const isSame = last?.model === model && startsWith(messages, last.messages);',
        'const isSame = last !== undefined && startsWith(messages, last.messages);',
      ],
    ],
  },
  {
    id: 'null-replaces-signature',
    about: 'null in a later piece takes away what an earlier one said',
    witness: 'test/models/openaiReasoningFields.test.ts',
    edits: [['if (value === null) continue; const before', 'const before']],
  },
  {
    id: 'settlement-in-the-clear',
    about: 'a secret in the result that a settlement gives is stored',
    witness: 'test/hostile/secrets.test.ts',
    edits: [["case 'record': case 'oneOf': return redact(value);", "case 'record': return redact(value);"]],
  },
  {
    id: 'network-though-denied',
    about: 'without permissions a command that asks for the network gets it, though the host denies it',
    witness: 'test/tools/coding/sandbox.test.ts',
    edits: [["(network === 'ask' && wantsNetwork)", 'wantsNetwork']],
  },
  {
    id: 'wrapped-git-unseen',
    about: 'git behind timeout or nohup runs unasked whatever the settings of the repository name',
    witness: 'test/permissions/expansions.test.ts',
    edits: [
      [
        "const usesGit = line.commands.some(({ words }) => words.some(({ value }) => baseName(value) === 'git'));",
        "const usesGit = line.commands.some(({ words }) => baseName(words[0]?.value ?? '') === 'git');",
      ],
    ],
  },
  {
    id: 'refused-file-open',
    about: 'a file that is refused after it was opened stays open',
    witness: 'test/tools/coding/workspace.test.ts',
    edits: [['await file.close(); return fault;', 'return fault;']],
  },
  {
    id: 'stall-remembered',
    about: 'a page that took nothing for a while is let go the next time that it does so for a moment',
    witness: 'test/inspect/pagePace.test.ts',
    edits: [['this.#stalledSince = undefined; return true;', 'return true;']],
  },
];
