/**
 * Defects of the edges: readers and writers of transports, rules, sandboxes, stores and adapters. Each has the test
 * file that must detect it.
 */
export const edges = [
  {
    id: 'client-keeps-cut-text',
    about: 'a client joins the text of a reply that a lost connection cut off with the whole text that comes again',
    witness: 'test/client/connection.test.ts',
    edits: [['this.#isInterrupted = this.#inFlight !== null;', '']],
  },
  {
    id: 'client-repeats-under-a-new-id',
    about: 'a server acts again on a request that a client repeats because its answer was lost',
    witness: 'test/client/connection.test.ts',
    edits: [["const requestId = url.searchParams.get('request');", 'const requestId = null;']],
  },
  {
    id: 'client-mixes-two-logs',
    about: 'a client continues with the log of another conversation that has the same id now',
    witness: 'test/client/connection.test.ts',
    edits: [['beginning.createdAt !== overview.createdAt', 'false']],
  },
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
  {
    id: 'body-of-the-limit',
    about: 'a body of exactly the limit is refused if its length is stated',
    witness: 'test/transports/requestBounds.test.ts',
    edits: [['if (Number(declared) > bytesMax) throw tooLarge;', 'if (Number(declared) >= bytesMax) throw tooLarge;']],
  },
  {
    id: 'location-not-escaped',
    about: 'the location of a new conversation leads elsewhere if its id is no plain word',
    witness: 'test/transports/requestBounds.test.ts',
    edits: [['conversations/${encodeURIComponent(conversation.id)}', 'conversations/${conversation.id}']],
  },
  {
    id: 'id-outside-addresses',
    about: 'a conversation is created under an id that no address can contain',
    witness: 'test/transports/requestBounds.test.ts',
    edits: [["id !== '.' && id !== '..' && !/\\p{Surrogate}/u.test(id)", "id !== '.' && !/\\p{Surrogate}/u.test(id)"]],
  },
  {
    id: 'sent-signals-wait',
    about: 'a page that reads in time loses live signals after enough of them in total',
    witness: 'test/inspect/repeatedLogs.test.ts',
    edits: [['if (this.#waiting.length === 0) this.#size = 0;', '']],
  },
  {
    id: 'position-of-another-log',
    about: 'another log of an id that was observed before is recorded from its middle',
    witness: 'test/inspect/repeatedLogs.test.ts',
    edits: [['position && position.began === began ?', 'position ?']],
  },
  {
    id: 'client-keeps-old-overview',
    about: 'a client compares what the server says with the log that the id had before',
    witness: 'test/client/remoteParts.test.ts',
    edits: [
      [
        `    this.#overview = undefined;
`,
        '',
      ],
    ],
  },
  {
    id: 'client-hammers-server',
    about: 'a client repeats requests without a wait',
    witness: 'test/client/remoteParts.test.ts',
    edits: [['Math.max(ms, leastMs)', 'Math.min(ms, leastMs)']],
  },
  {
    id: 'client-receipt-unhandled',
    about: 'a refused steer ends the process of a client',
    witness: 'test/client/remoteParts.test.ts',
    edits: [['delivered.catch(() => undefined);\n    accepting.catch', 'accepting.catch']],
  },
  {
    id: 'client-loses-first-text',
    about: 'a client loses the beginning of a reply after a reconnection between replies',
    witness: 'test/client/remoteParts.test.ts',
    edits: [['this.#isInterrupted = this.#inFlight !== null;', 'this.#isInterrupted = true;']],
  },
  {
    id: 'second-question-not-rendered',
    about: 'a component does not render the second question of a call',
    witness: 'test/react/snapshots.test.ts',
    edits: [['call.suspension === other?.suspension', 'call.callId === other?.callId']],
  },
  {
    id: 'failed-close-for-ever',
    about: 'after one failed close a page cannot open the id again',
    witness: 'test/react/snapshots.test.ts',
    edits: [['// The next opening says what is wrong.\n      .catch(() => undefined)', '']],
  },
  {
    id: 'left-broadcast-subscribed',
    about: 'a page that comes after all others have left receives each live signal twice',
    witness: 'test/transports/secondReaders.test.ts',
    edits: [
      [
        `    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
    for (const subscription of this.#subscriptions.splice(0)) subscription.unsubscribe();
`,
        `    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
`,
      ],
    ],
  },
  {
    id: 'slow-page-keeps-status',
    about: 'a page that was too slow keeps an old status',
    witness: 'test/transports/secondReaders.test.ts',
    edits: [
      [
        `    this.#join();
    this.#beginning.push(...this.#broadcast.current().map((signal) => ({ signal })));
`,
        `    this.#join();
`,
      ],
    ],
  },
];
