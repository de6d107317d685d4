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
    edits: [["return first?.type === 'conversation' && first.createdAt !== createdAt", 'return false']],
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
    edits: [
      ['if (Number(declared) > bytesMax) throw tooLarge();', 'if (Number(declared) >= bytesMax) throw tooLarge();'],
    ],
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
    edits: [["id === '.' || id === '..' || ", "id === '.' || "]],
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
    about: 'a client compares the overview of the server with the log that the id had before',
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
    edits: [['// The next opening reports the error.\n      .catch(() => undefined)', '']],
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
  {
    id: 'form-counts-unread',
    about: 'a form that a person sent without the permission lets the call run',
    witness: 'test/mcp/servedAgent.test.ts',
    edits: [
      [
        "return action === 'accept' && (content as { allow?: unknown } | undefined)?.allow === true;",
        "return action === 'accept';",
      ],
    ],
  },
  {
    id: 'second-page-again',
    about: 'the instruction after the second page of a list leads to the second page again',
    witness: 'test/mcp/changingTools.test.ts',
    edits: [['call again with from ${from + part.length}', 'call again with from ${part.length}']],
  },
  {
    id: 'credentials-of-a-header-shown',
    about: 'an error contains the token of a header if it names it without its scheme',
    witness: 'test/mcp/httpServers.test.ts',
    edits: [["...headers, ...headers.flatMap((value) => value.split(' '))];", '...headers];']],
  },
  {
    id: 'unescaped-password-shown',
    about: 'an error contains the password of an address if it names it without its escapes',
    witness: 'test/mcp/httpServers.test.ts',
    edits: [['flatMap((text) => [text, unescaped(text)])', 'flatMap((text) => [text])']],
  },
  {
    id: 'taken-back-steer-ends-run',
    about: 'a steer that its caller takes back cancels the run of another caller',
    witness: 'test/client/sameFace.test.ts',
    edits: [["{ runId: kind === 'steer' ? runOf(messageId) : run.id }", '{ runId: run.id }']],
  },
  {
    id: 'events-ignore-retry-after',
    about: 'the events of a conversation are asked for again before the server wants it',
    witness: 'test/client/retryAfter.test.ts',
    edits: [['calls.wait(this.#attempts, signal, failure?.waitMs)', 'calls.wait(this.#attempts, signal)']],
  },
  {
    id: 'wait-leaves-listener',
    about: 'each repetition of a request leaves a listener on the signal of the client',
    witness: 'test/client/retryAfter.test.ts',
    edits: [["stop(); signal.removeEventListener('abort', done); resolve();", 'stop(); resolve();']],
  },
  {
    id: 'answer-of-another-caller',
    about: 'a caller receives the answer of another one to a request with the same id, and its act is not carried out',
    witness: 'test/transports/requestBounds.test.ts',
    edits: [['JSON.stringify([act, by ?? null, requestId])', 'JSON.stringify([act, requestId])']],
  },
  {
    id: 'origin-only-begins-like-ours',
    about: 'a page whose origin begins like one of this machine may report to the inspector',
    witness: 'test/inspect/server.test.ts',
    edits: [['127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?$/;', '127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?/;']],
  },
  {
    id: 'file-under-an-earlier-name',
    about: 'the same bytes are shown under the name that they had in an earlier message',
    witness: 'test/content/attachmentPreparer.test.ts',
    edits: [["`${part.mediaType} ${part.name ?? ''}\\n${part.data}`", '`${part.mediaType}\\n${part.data}`']],
  },
  {
    id: 'meter-of-the-first-run',
    about: 'a meter provider that is set after the first run receives nothing',
    witness: 'test/otel/openTelemetry.test.ts',
    edits: [['if (!this.#instruments || provider !== this.#provider) {', 'if (!this.#instruments) {']],
  },
  {
    id: 'output-file-without-beginning',
    about: 'the file of a long output lacks its beginning if the kept part was full exactly at the end of a piece',
    witness: 'test/tools/coding/bashOutput.test.ts',
    edits: [['if (afterHead <= TAIL_BYTES) { this.#spilled', 'if (afterHead < TAIL_BYTES) { this.#spilled']],
  },
  {
    id: 'fence-of-a-fixed-length',
    about: 'an exported text with a long fence ends its block early',
    witness: 'test/cli/personTexts.test.ts',
    edits: [["'`'.repeat(longest + 1)", "'`'.repeat(Math.min(longest + 1, 4))"]],
  },
  {
    id: 'left-out-of-the-last-piece',
    about: 'the number of characters that a command’s output lacks is that of its last piece',
    witness: 'test/cli/personTexts.test.ts',
    edits: [['left += Math.max(0, tail.length - OUTPUT_HALF);', 'left = Math.max(0, tail.length - OUTPUT_HALF);']],
  },
  {
    id: 'result-raw-in-a-trace',
    about: 'a trace contains the secrets of a tool’s result that was recorded before they were configured',
    witness: 'test/otel/redactedOutcomes.test.ts',
    edits: [['textOfContent(redact(value.content))', 'textOfContent(value.content)']],
  },
  {
    id: 'error-code-raw-in-a-trace',
    about: 'a trace contains the secret in the code of a model’s error',
    witness: 'test/hostile/sinks.test.ts',
    edits: [["isCancelled ? 'cancelled' : redact(value.code);", "isCancelled ? 'cancelled' : value.code;"]],
  },
  {
    id: 'actor-error-raw',
    about: 'a page of the inspector receives the secret in the error of an actor',
    witness: 'test/inspect/records.test.ts',
    edits: [['`${excerpt(Object(this.#options.redact({ error })).error, CONTEXT)}`', '`${excerpt(error, CONTEXT)}`']],
  },
  {
    id: 'arguments-at-an-excluded-limit',
    about: 'generated arguments are equal to a limit that the schema excludes',
    witness: 'test/testing/argumentValues.test.ts',
    edits: [['return isOpen && nearest === limit ? rounded(limit + up * step) : nearest', 'return nearest']],
  },
  {
    id: 'foreign-session-held',
    about: 'a served session of another directory stays in use after it was refused',
    witness: 'test/cli/serve.test.ts',
    edits: [
      [
        '      if (conversation.cwd === cwd) return conversation;\n      await conversation.close();',
        '      if (conversation.cwd === cwd) return conversation;',
      ],
    ],
  },
  {
    id: 'server-left-while-starting',
    about: 'an MCP server that is still starting when its program ends is left',
    witness: 'test/cli/serverConnections.test.ts',
    edits: [['connection.close = close;', '']],
  },
  {
    id: 'window-in-binary-thousands',
    about: 'a window of 200k tokens is one of 204,800',
    witness: 'test/cli/modelEdges.test.ts',
    edits: [['{ k: 1_000, m: 1_000_000 }', '{ k: 1_024, m: 1_000_000 }']],
  },
  {
    id: 'undo-over-a-later-change',
    about: 'undo replaces a file that somebody has changed after the plan',
    witness: 'test/cli/undo/undoEdges.test.ts',
    edits: [["if (!isSame(kept, file.now)) return failed('it changed just now: try again');", '']],
  },
  {
    id: 'tools-of-a-longer-server',
    about: 'an agent with the tools of one MCP server has those of another one whose name begins alike',
    witness: 'test/cli/definitions/definitionLimits.test.ts',
    edits: [["'(?:__.*)?' : ''", "'.*' : ''"]],
  },
  {
    id: 'question-of-undo-kept',
    about: 'a list or a question of undo is still answered by a later line',
    witness: 'test/cli/undo/undoEdges.test.ts',
    edits: [
      [
        'const command = this.#answers?.(line.trim().toLowerCase()); this.#answers = undefined;',
        'const command = this.#answers?.(line.trim().toLowerCase());',
      ],
    ],
  },
  {
    id: 'piped-character-split',
    about: 'a character of a piped prompt that is split between two chunks is lost',
    witness: 'test/cli/prompt.test.ts',
    edits: [
      [
        '} chunks.push(chunk); } } catch (error) { // `destroy`',
        "} chunks.push(Buffer.from(chunk.toString('utf8'))); } } catch (error) { // `destroy`",
      ],
    ],
  },
  {
    id: 'signal-of-a-sub-agent-in-flight',
    about: 'the text of a sub-agent is the reply in flight of its parent',
    witness: 'test/client/remoteParts.test.ts',
    edits: [['if (signal.path === undefined) this.#fold(signal);', 'this.#fold(signal);']],
  },
];
