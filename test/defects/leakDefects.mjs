/** Defects of what outlives its end: hooks, streams, subscriptions, questions, readers; each with the test file that has to find it. */
export const released = [
  {
    id: 'command-hook-runs-on',
    about: 'a command hook that timed out runs on',
    witness: 'test/hostile/released.test.ts',
    edits: [['} finally { ended.abort(); }', '} finally { void ended; }']],
  },
  {
    id: 'live-not-completed',
    about: 'who watches live signals does not hear that the conversation is closed',
    witness: 'test/hostile/released.test.ts',
    edits: [['this.#signals.complete();', '']],
  },
  {
    id: 'silent-stream-open',
    about: 'the stream of a model that ignores its signal stays open behind its time-out',
    witness: 'test/hostile/released.test.ts',
    edits: [['close().catch(() => undefined); void nextTurn()', 'void close; void nextTurn()']],
  },
  {
    id: 'reader-never-given-back',
    about: 'a reader of events that goes away holds its conversation for ever',
    witness: 'test/hostile/released.test.ts',
    edits: [['this.#feed.close(); this.#options.over();', 'this.#feed.close();']],
  },
  {
    id: 'question-kept',
    about: 'a call that waits for a person stays open at its server when it is denied',
    witness: 'test/mcp/released.test.ts',
    edits: [["if (type === 'tool-result') this.#tools?.resultLanded(entry.callId);", '']],
  },
  {
    id: 'clock-set-back',
    about: 'a clock that is set back makes a silent model hang',
    witness: 'test/hostile/released.test.ts',
    edits: [['passed < 0 || passed > ms + 1_000', 'passed > ms + 1_000']],
  },
  {
    id: 'slow-page-held',
    about: 'a page of a chat that never reads holds its conversation for ever',
    witness: 'test/transports/releasedReaders.test.ts',
    edits: [['else if (this.#isStalled) {', 'else if (this.#isStalled && this.#isOver) {']],
  },
  {
    id: 'left-page-subscribed',
    about: 'a page of a chat that went away stays subscribed until the run says something',
    witness: 'test/transports/releasedReaders.test.ts',
    edits: [['chat.leave();', '']],
  },
  {
    id: 'drain-listeners-kept',
    about: 'each time that standard output is full one more listener stays on it',
    witness: 'test/transports/releasedLines.test.ts',
    edits: [["output.off?.('close', leave);", '']],
  },
  {
    id: 'broken-output-waited-for',
    about: 'a line transport waits for ever for an output that was destroyed to drain',
    witness: 'test/transports/releasedLines.test.ts',
    edits: [
      ['if (isClosed || output.destroyed) return;', 'if (isClosed) return;'],
      ['|| !output.once || output.destroyed) return;', '|| !output.once) return;'],
    ],
  },
  {
    id: 'refused-socket-held',
    about: 'a client of the inspector that was refused and keeps its side open holds up the close',
    witness: 'test/inspect/releasedSockets.test.ts',
    edits: [["socket.once('finish', () => socket.destroy());", '']],
  },
  {
    id: 'connecting-server-kept',
    about: 'the close of an MCP server waits for a connection that is never made',
    witness: 'test/mcp/secondConnections.test.ts',
    edits: [['await connection?.client.close()', 'await connection?.ready.then((client) => client.close())']],
  },
  {
    id: 'closed-server-reconnects',
    about: 'a call that waited for its turn connects to an MCP server again after the close',
    witness: 'test/mcp/secondConnections.test.ts',
    edits: [['if (closes !== this.#closes) throw', 'if (closes < 0) throw']],
  },
  {
    id: 'old-connection-ends-new',
    about: 'the end of an older connection to an MCP server makes the next one be forgotten',
    witness: 'test/mcp/secondConnections.test.ts',
    edits: [['if (this.#connection?.client === client) this.#connection', 'this.#connection']],
  },
  {
    id: 'saved-rule-lost',
    about: 'of two rules that are always allowed and saved at once one is lost',
    witness: 'test/scenarios/secondTimesOfAdapters.test.ts',
    edits: [['await inTurn(path, async () => {', 'await ((_, act) => act())(path, async () => {']],
  },
  {
    id: 'closed-lines-read',
    about: 'a line transport that is closed reads its input once more',
    witness: 'test/scenarios/secondTimesOfAdapters.test.ts',
    edits: [['async *read() { if (isClosed) return;', 'async *read() {']],
  },
  {
    id: 'closed-handle-releases',
    about: 'a handle of a log in memory that is closed again takes the log from its new holder',
    witness: 'test/scenarios/secondTimesOfAdapters.test.ts',
    edits: [['if (open) release();', 'release();']],
  },
];
