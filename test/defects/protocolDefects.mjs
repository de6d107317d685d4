/** Defects of what stands between the library and others: transports, loops of requests, servers of tools; each with the test file that has to find it. */
export const outside = [
  {
    id: 'overrun-drops-said',
    about: 'what a transport says itself is dropped with the live signals that a slow client cannot take',
    witness: 'test/transports/router.test.ts',
    edits: [["this.#waiting = this.#waiting.filter(({ item }) => !('signal' in item));", 'this.#waiting = [];']],
  },
  {
    id: 'page-arguments-dropped',
    about: 'an approval of a page loses the new arguments that stand beside it, and the old ones run',
    witness: 'test/transports/interfaceHandlers.test.ts',
    edits: [["return { ...others, action: 'approve' };", "return { action: 'approve' };"]],
  },
  {
    id: 'taken-counts-as-waiting',
    about: 'live signals that a client has taken go on counting as waiting, until it is cut off',
    witness: 'test/transports/gone.test.ts',
    edits: [["if ('signal' in first.item) this.#size -= sizeOf(first.item.signal);", '']],
  },
  {
    id: 'client-names-itself',
    about: 'a client that decides may give itself another name',
    witness: 'test/transports/handlers.test.ts',
    edits: [['{ ...given, by };\n  return', '{ by, ...given };\n  return']],
  },
  {
    id: 'working-conversation-closed',
    about: 'a conversation that works is closed when nobody has held it for a while',
    witness: 'test/transports/sessions.test.ts',
    edits: [
      [
        'return isWorking(conversation) ? this.#rest(session, conversation) : this.#end(session);',
        'return this.#end(session);',
      ],
    ],
  },
  {
    id: 'answer-of-another',
    about: 'a message that comes with others is answered as soon as any of them is stored',
    witness: 'test/transports/ownAnswers.test.ts',
    edits: [
      ["=== 'message-queued') && entry.messageId === messageId)", "=== 'message-queued') || entry.type === messageId)"],
    ],
  },
  {
    id: 'body-without-length',
    about: 'a body that does not tell its length may be as long as it likes',
    witness: 'test/transports/interfaceHandlers.test.ts',
    edits: [['if (size > most) {\n      await reader', 'if (size < 0) {\n      await reader']],
  },
  {
    id: 'content-type-anywhere',
    about: 'a content type counts as JSON where it names JSON somewhere',
    witness: 'test/transports/handlers.test.ts',
    edits: [['/^application\\/json\\s*(;|$)/i', '/application\\/json/i']],
  },
  {
    id: 'told-again',
    about: 'a client that is followed anew is told the entries again that it has',
    witness: 'test/transports/router.test.ts',
    edits: [['this.#next.set(id, item.entry.seq + 1);\n', '']],
  },
  {
    id: 'full-output',
    about: 'of many that write to a full output all write as soon as it has drained once',
    witness: 'test/transports/router.test.ts',
    edits: [['while (drained) await drained;', '']],
  },
  {
    id: 'agent-closed-under-requests',
    about: 'an agent that is replaced is closed under the requests that it serves',
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
    about: 'a tool that failed in a callback is not run again when it is asked for again',
    witness: 'test/requestLoop/callbacks.test.ts',
    edits: [['running.catch(() => this.#ran.delete(callId));', 'running.catch(() => undefined);']],
  },
  {
    id: 'request-log-kept',
    about: 'the log of a request is kept when it is over',
    witness: 'test/requestLoop/requestEnds.test.ts',
    edits: [['await conversation.close();\n        await store.delete(id);', 'await conversation.close();']],
  },
  {
    id: 'second-question-replaces',
    about: 'a second question in one call takes the place of the first, which nobody answers',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [["if (!call || call.asked) return { action: 'cancel' };", "if (!call) return { action: 'cancel' };"]],
  },
  {
    id: 'held-calls-left',
    about: 'calls that wait for a person are left at the server when the connection is closed',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [
      [
        '[...this.#held.values(), ...this.#running.keys()]) abort.abort();',
        '[...this.#running.keys()]) abort.abort();',
      ],
    ],
  },
  {
    id: 'held-without-bound',
    about: 'the question of a call that is given up is never called off',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [["oldest[1].asked?.answer({ action: 'cancel' });", '']],
  },
  {
    id: 'two-tools-one-name',
    about: 'two tools of a server have one name',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [['if (names.has(name)) throw new Error(`another tool is named ${name} too`);', '']],
  },
  {
    id: 'changing-calls-at-once',
    about: 'calls that may change something run at the same time, so that a question belongs to any of them',
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
    about: 'a server that has ended is called, and not connected to anew',
    witness: 'test/mcp/mcpServer.test.ts',
    edits: [['client.onclose = forget;', 'client.onclose = () => {};']],
  },
  {
    id: 'question-to-another-call',
    about: 'a question of one MCP call is put to the call that began first',
    witness: 'test/mcp/questions.test.ts',
    edits: [
      [
        'return changing?.[0] ?? (running.length === 1 ? running[0]?.[0] : undefined);',
        'return running[0]?.[0] ?? changing?.[0];',
      ],
    ],
  },
];
