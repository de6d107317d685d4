/**
 * Defects of resources that outlive their end: hooks, streams, subscriptions, questions, readers. Each has the test
 * file that must detect it.
 */
export const released = [
  {
    id: 'command-hook-runs-on',
    about: 'a command hook continues to run after its time-out',
    witness: 'test/hostile/released.test.ts',
    edits: [['} finally { ended.abort(); }', '} finally { void ended; }']],
  },
  {
    id: 'live-not-completed',
    about: 'a subscriber of live signals is not notified of the end of the conversation',
    witness: 'test/hostile/released.test.ts',
    edits: [['this.#signals.complete();', '']],
  },
  {
    id: 'silent-stream-open',
    about: 'the stream of a model that ignores its signal stays open after its time-out',
    witness: 'test/hostile/released.test.ts',
    edits: [['close().catch(() => undefined); void nextTurn()', 'void close; void nextTurn()']],
  },
  {
    id: 'reader-never-given-back',
    about: 'a reader of events that disconnects holds its conversation forever',
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
    about: 'a page of a chat that never reads holds its conversation forever',
    witness: 'test/transports/releasedReaders.test.ts',
    edits: [['else if (this.#isStalled) {', 'else if (this.#isStalled && this.#isOver) {']],
  },
  {
    id: 'left-page-subscribed',
    about: 'a page of a chat that disconnected stays subscribed until the run emits something',
    witness: 'test/transports/releasedReaders.test.ts',
    edits: [['chat.disconnect();', '']],
  },
  {
    id: 'drain-listeners-kept',
    about: 'each time that standard output is full, one more listener stays on it',
    witness: 'test/transports/releasedLines.test.ts',
    edits: [["output.off?.('close', stopWriting);", '']],
  },
  {
    id: 'broken-output-waited-for',
    about: 'a line transport waits forever for the drain of a destroyed output',
    witness: 'test/transports/releasedLines.test.ts',
    edits: [
      ['if (isClosed || output.destroyed) return;', 'if (isClosed) return;'],
      ['|| !output.once || output.destroyed) return;', '|| !output.once) return;'],
    ],
  },
  {
    id: 'refused-socket-held',
    about: 'a refused client of the inspector that keeps its side open delays the close',
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
    about: 'the end of an older connection to an MCP server removes the next one',
    witness: 'test/mcp/secondConnections.test.ts',
    edits: [['if (this.#connection?.client === client) this.#connection', 'this.#connection']],
  },
  {
    id: 'saved-rule-lost',
    about: 'of two permanent rules that are saved at once one is lost',
    witness: 'test/scenarios/secondTimesOfAdapters.test.ts',
    edits: [['await inTurn(path, async () => {', 'await ((_, act) => act())(path, async () => {']],
  },
  {
    id: 'closed-lines-read',
    about: 'a closed line transport reads its input once more',
    witness: 'test/scenarios/secondTimesOfAdapters.test.ts',
    edits: [['async *read() { if (isClosed) return;', 'async *read() {']],
  },
  {
    id: 'closed-handle-releases',
    about: 'a second close of a handle of a log in memory takes the log from its new holder',
    witness: 'test/scenarios/secondTimesOfAdapters.test.ts',
    edits: [['if (open) release();', 'release();']],
  },
];
