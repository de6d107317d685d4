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
    about: 'a reader of events that disconnects takes the place of a client forever',
    witness: 'test/transports/quotas.test.ts',
    edits: [['this.#feed.close();\n    this.#options.over(reason);', 'this.#feed.close();']],
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
    edits: [['begun?.chat.disconnect();', '']],
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
    edits: [['await connection?.close();', 'await connection?.ready.then(() => connection.close());']],
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
    edits: [
      ['if (this.#connection !== connection) return;', ''],
      ['if (this.#hasEnded) return;', ''],
    ],
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
    edits: [['closing ??= blobsPut ?', 'closing = blobsPut ?']],
  },
  {
    id: 'refused-write-leaves-file',
    about: 'a write that is refused at its end leaves its temporary file',
    witness: 'test/tools/coding/ownLeftovers.test.ts',
    edits: [['await unlink(made).catch(() => undefined);', '']],
  },
  {
    id: 'search-leaves-thread',
    about: 'each search of Grep leaves its thread running',
    witness: 'test/tools/coding/ownLeftovers.test.ts',
    edits: [
      [
        'return answer(result, scope.cut); } finally { await matcher.end(); }',
        'return answer(result, scope.cut); } finally { void matcher; }',
      ],
    ],
  },
  {
    id: 'rejected-while-servers-close',
    about: 'the rejection of mcpTools comes before the connected servers have closed',
    witness: 'test/mcp/foreignTools.test.ts',
    edits: [['} catch (error) { await close(); throw error; }', '} catch (error) { void close(); throw error; }']],
  },
  {
    id: 'sandbox-held-after-cancel',
    about: 'a cancelled command does not release its place in the sandbox',
    witness: 'test/tools/coding/sandbox.test.ts',
    edits: [
      ['} finally { await launcher?.release(); }', '} finally { if (!signal.aborted) await launcher?.release(); }'],
    ],
  },
  {
    id: 'broadcast-without-readers',
    about: 'the sessions keep the broadcast of a conversation that is closed and has no readers',
    witness: 'test/transports/parkedReaders.test.ts',
    edits: [['subscription.unsubscribe(); this.#abandoned(); }', 'subscription.unsubscribe(); }']],
  },
  {
    id: 'prepared-call-kept',
    about: 'a prepared call that never runs is kept while its conversation is open',
    witness: 'test/hostile/released.test.ts',
    edits: [['if (!open.has(callId)) this.#ready.delete(callId);', 'void open.has(callId);']],
  },
  {
    id: 'mask-of-a-new-command',
    about: 'a placeholder is removed although a command has begun to use it',
    witness: 'test/tools/coding/sandboxPlaces.test.ts',
    edits: [['!mounted.has(place) && !users.has(place)', '!mounted.has(place)']],
  },
  {
    id: 'channel-without-pages-timed',
    about: 'a channel inspector that is closed without a page keeps its timer',
    witness: 'test/inspect/channel.test.ts',
    edits: [
      [
        'clearInterval(this.#timer);\n    for (const { connection }',
        'if (this.#pages.size > 0) clearInterval(this.#timer);\n    for (const { connection }',
      ],
    ],
  },
  {
    id: 'refused-stream-keeps-its-place',
    about: 'an event stream that was refused keeps its place among the clients',
    witness: 'test/transports/refusals.test.ts',
    edits: [['    } catch (error) {\n      leave();\n', '    } catch (error) {\n']],
  },
  {
    id: 'listening-connection-too-late',
    about: 'a connection that opens for hints after the close of its store is never released',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [['if (this.#isClosed) this.#drop();', '']],
  },
];
