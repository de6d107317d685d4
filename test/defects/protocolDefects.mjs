/**
 * Defects between the library and others: transports, loops of requests, servers of tools. Each has the test file that
 * must detect it.
 */
export const outside = [
  {
    id: 'overrun-drops-said',
    about: "a transport's own messages are dropped with the live signals that a slow client cannot receive",
    witness: 'test/transports/router.test.ts',
    edits: [
      [
        'this.#at = undefined;\n    this.#beginning = [];',
        'this.#at = undefined;\n    this.#beginning = [];\n    this.#added = [];',
      ],
    ],
  },
  {
    id: 'page-arguments-dropped',
    about: 'an approval of a page loses its new arguments, and the old ones run',
    witness: 'test/transports/interfaceHandlers.test.ts',
    edits: [["return { ...others, action: 'approve' };", "return { action: 'approve' };"]],
  },
  {
    id: 'taken-counts-as-waiting',
    about: 'live signals that a client has read still count as waiting, until the client is disconnected',
    witness: 'test/transports/broadcast.test.ts',
    edits: [['this.#broadcast.tail.size - this.#at.size <=', 'this.#broadcast.tail.size <=']],
  },
  {
    id: 'client-names-itself',
    about: 'a client that decides may choose another name',
    witness: 'test/transports/handlers.test.ts',
    edits: [['? input : { ...input, by };', '? input : { by, ...input };']],
  },
  {
    id: 'working-conversation-closed',
    about: 'a working conversation is closed after nobody has held it for a while',
    witness: 'test/transports/sessions.test.ts',
    edits: [
      [
        'return isWorking(conversation) ? this.#watchIdle(session, conversation) : this.#end(session);',
        'return this.#end(session);',
      ],
    ],
  },
  {
    id: 'answer-of-another',
    about: 'a message that arrives with others is answered as soon as any of them is stored',
    witness: 'test/transports/ownAnswers.test.ts',
    edits: [
      ["=== 'message-queued') && entry.messageId === messageId)", "=== 'message-queued') || entry.type === messageId)"],
    ],
  },
  {
    id: 'body-without-length',
    about: 'a body without a length may have any length',
    witness: 'test/transports/interfaceHandlers.test.ts',
    edits: [['if (size > bytesMax) throw tooLarge();', 'if (size < 0) throw tooLarge();']],
  },
  {
    id: 'content-type-anywhere',
    about: 'a content type that contains JSON anywhere counts as JSON',
    witness: 'test/transports/handlers.test.ts',
    edits: [['/^application\\/json\\s*(;|$)/i', '/application\\/json/i']],
  },
  {
    id: 'told-again',
    about: 'a client that reconnects receives the entries again that it has',
    witness: 'test/transports/router.test.ts',
    edits: [['this.#next.set(id, item.entry.seq + 1);\n', '']],
  },
  {
    id: 'full-output',
    about: 'of many writers to a full output all write after one drain',
    witness: 'test/transports/router.test.ts',
    edits: [['while (drained) await drained;', '']],
  },
  {
    id: 'agent-closed-under-requests',
    about: 'a replaced agent is closed during its requests',
    witness: 'test/requestLoop/requestEnds.test.ts',
    edits: [
      [
        'if (cached.users > 0) this.#retiring.add(cached);\n    else void cached.agent.close();',
        'void cached.agent.close();',
      ],
    ],
  },
  {
    id: 'failed-tool-not-again',
    about: 'a tool that failed in a callback is not run again on a retry',
    witness: 'test/requestLoop/callbacks.test.ts',
    edits: [['running.catch(() => this.#ran.delete(callId));', 'running.catch(() => undefined);']],
  },
  {
    id: 'request-log-kept',
    about: 'the log of a request is kept after its end',
    witness: 'test/requestLoop/requestEnds.test.ts',
    edits: [['await conversation.close();\n        await store.delete(id);', 'await conversation.close();']],
  },
  {
    id: 'second-question-replaces',
    about: 'a second question in one call replaces the first, which nobody answers',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [["if (!call || call.question) return { action: 'cancel' };", "if (!call) return { action: 'cancel' };"]],
  },
  {
    id: 'held-calls-left',
    about: 'calls that wait for a person stay open at the server when the connection is closed',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [
      [
        '[...this.#waitingCalls.values(), ...this.#running.keys()]) abort.abort();',
        '[...this.#running.keys()]) abort.abort();',
      ],
    ],
  },
  {
    id: 'held-without-bound',
    about: 'the question of an abandoned call is never cancelled',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [["oldest[1].question?.answer({ action: 'cancel' });", '']],
  },
  {
    id: 'two-tools-one-name',
    about: 'two tools of a server have one name',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [['if (names.has(tool.name)) throw new Error(`another tool is named ${tool.name} too`);', '']],
  },
  {
    id: 'changing-calls-at-once',
    about: 'calls that may change something run at the same time, so a question has no clear call',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [
      [
        'return call.readOnly ? this.#begin(call, closes) : this.#inTurn(() => this.#begin(call, closes));',
        'return this.#begin(call, closes);',
      ],
    ],
  },
  {
    id: 'ended-server-kept',
    about: 'a call uses a server that has ended, without a new connection',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [
      ['client.onclose = () => this.#end();', 'client.onclose = () => {};'],
      ["if (loss !== 'cut') await this.#drop(connection);", ''],
    ],
  },
  {
    id: 'question-to-another-call',
    about: 'a question of one MCP call is assigned to the call that started first',
    witness: 'test/mcp/questions.test.ts',
    edits: [
      [
        'return changing?.[0] ?? (running.length === 1 ? running[0]?.[0] : undefined);',
        'return running[0]?.[0] ?? changing?.[0];',
      ],
    ],
  },
  {
    id: 'calls-of-the-message-before',
    about: 'a message of the AI SDK mentions calls that the message before it shows',
    witness: 'test/transports/protocolLives.test.ts',
    edits: [['this.#calls.clear(); this.#isWhole = true;', 'this.#isWhole = true;']],
  },
  {
    id: 'beginning-after-the-lag',
    about: 'a client that was too slow receives streamed text after the entry of its reply',
    witness: 'test/transports/broadcast.test.ts',
    edits: [['this.#at = undefined; this.#beginning = [];', 'this.#at = undefined;']],
  },
  {
    id: 'queued-edit-twice',
    about: 'a queued edit that a page sends again is queued again',
    witness: 'test/transports/queuedEdits.test.ts',
    edits: [['const last = named.at(-1);', 'const [last] = named;']],
  },
  {
    id: 'followed-conversation-lags',
    about: 'a request for a conversation of another process does not see the entries before it',
    witness: 'test/transports/elsewhere.test.ts',
    edits: [['      await followed.conversation.sync();\n', '']],
  },
  {
    id: 'parked-readers-left',
    about: 'readers of a conversation that was closed when idle miss the entries of another process',
    witness: 'test/transports/elsewhere.test.ts',
    edits: [['    if (conversation) await this.#followReaders(conversation.id);\n', '']],
  },
  {
    id: 'repeated-request-acts-elsewhere',
    about: 'a request that is repeated at another process acts again',
    witness: 'test/transports/elsewhere.test.ts',
    edits: [[', ...(request !== undefined && { request }) });', ' });']],
  },
  {
    id: 'list-notice-missed',
    about: 'a notice about the tools that comes while they are fetched is missed',
    witness: 'test/mcp/listNotices.test.ts',
    edits: [['this.#listing.isStale = true;', '']],
  },
  {
    id: 'state-written-again',
    about: 'the state of an AG-UI page is written again with each request',
    witness: 'test/transports/agUiPages.test.ts',
    edits: [['canonical(value) === canonical(own[key] ?? null)', 'value === own[key]']],
  },
  {
    id: 'list-beyond-its-limit',
    about: 'a list of a client has more conversations than its limit',
    witness: 'test/client/pages.test.ts',
    edits: [['(limit ?? Number.POSITIVE_INFINITY) - rows.length', 'limit ?? Number.POSITIVE_INFINITY']],
  },
  {
    id: 'line-of-a-server-split',
    about: 'the beginning of a line is lost that an MCP server wrote in two pieces',
    witness: 'test/mcp/manyLines.test.ts',
    edits: [["this.#rest = lines.pop() ?? '';", "lines.pop();\n      this.#rest = '';"]],
  },
  {
    id: 'slow-reader-of-a-long-frame',
    about: 'a reader that takes a long frame slowly and steadily is disconnected',
    witness: 'test/transports/nodeHandler.test.ts',
    edits: [['this.#stream.progress();', '']],
  },
  {
    id: 'short-body-not-counted',
    about: 'a short body of a stated length does not count against the bytes of all bodies',
    witness: 'test/transports/requestBounds.test.ts',
    edits: [['quota?.addBytes(bytes.length);', '']],
  },
  {
    id: 'frames-beyond-the-place',
    about: 'a reader that joined earlier receives entries twice, from frames of a later reader',
    witness: 'test/transports/broadcast.test.ts',
    edits: [['frames.first === first && frames.next <= end', 'frames.first === first']],
  },
  {
    id: 'wait-after-an-event',
    about: 'a client waits longer with each lost connection, although events came in between',
    witness: 'test/client/retryAfter.test.ts',
    edits: [['this.#target.take(name, value);\n    this.#attempts = 0;', 'this.#target.take(name, value);']],
  },
  {
    id: 'answer-timer-left',
    about: 'the time limit of a body stays for a minute after the answer of a server',
    witness: 'test/client/releasedAnswers.test.ts',
    edits: [
      [
        'return await bodyText(body, ANSWER_BYTES, ANSWER_MS);\n  } finally {\n    body.close();',
        'return await bodyText(body, ANSWER_BYTES, ANSWER_MS);\n  } finally {',
      ],
    ],
  },
  {
    id: 'deltas-of-two-runs',
    about: 'text of two runs that waits for a slow reader is joined',
    witness: 'test/transports/joinedSignals.test.ts',
    edits: [['|| first.runId !== second.runId', '']],
  },
  {
    id: 'edit-id-too-long',
    about: 'an edit of a message with a long id has an id that the conversation refuses',
    witness: 'test/transports/pageMessageIds.test.ts',
    edits: [['beginning(id, 190)', 'id']],
  },
];
