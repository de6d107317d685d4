/**
 * Defects of the edges: readers and writers of transports, rules, sandboxes, stores and adapters. Each has the test
 * file that must detect it.
 */
export const edges = [
  {
    id: 'address-before-header',
    about: 'a client that reconnects receives again the entries after the one in its address',
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
    about: 'a body of JSON is refused if its content type has parameters',
    witness: 'test/transports/handlers.test.ts',
    edits: [['/^application\\/json\\s*(;|$)/i', '/^application\\/json$/i']],
  },
  {
    id: 'closed-output-awaited',
    about: 'a writer waits forever for an output that has closed',
    witness: 'test/transports/router.test.ts',
    edits: [["output.once?.('close', stopWriting);", "output.once?.('close', go);"]],
  },
  {
    id: 'open-line-for-ever',
    about: 'after a last line without a newline each append writes a blank line',
    witness: 'test/stores/jsonlTail.test.ts',
    edits: [['this.#scan.open = false;', '']],
  },
  {
    id: 'written-for-another-model',
    about: 'a model receives messages in the format of another model',
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
    about: 'null in a later piece removes the value of an earlier one',
    witness: 'test/models/openaiReasoningFields.test.ts',
    edits: [['if (value === null) continue; const before', 'const before']],
  },
  {
    id: 'settlement-in-the-clear',
    about: 'a secret in the result of a settlement is stored',
    witness: 'test/hostile/secrets.test.ts',
    edits: [["case 'record': case 'oneOf': return redact(value);", "case 'record': return redact(value);"]],
  },
  {
    id: 'network-though-denied',
    about: 'without permissions a command that requests the network gets it, although the host denies it',
    witness: 'test/tools/coding/sandbox.test.ts',
    edits: [["(network === 'ask' && wantsNetwork)", 'wantsNetwork']],
  },
  {
    id: 'wrapped-git-unseen',
    about: 'git inside timeout or nohup runs without approval, whatever the settings of the repository name',
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
    about: 'a page that read nothing for a while is disconnected at its next short pause',
    witness: 'test/inspect/pagePace.test.ts',
    edits: [['this.#stalledSince = undefined; return true;', 'return true;']],
  },
];
