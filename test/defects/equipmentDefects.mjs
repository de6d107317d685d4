/**
 * Defects in permissions, hooks, MCP tools and the inspector's observer that simulated lives have to find: those in which the
 * agent has what `test/simulation/equipment` gives it.
 */
const lives = [
  {
    id: 'hook-answers-late',
    about: 'an answer of a hook counts though its time was up',
    edits: [
      [
        'readOutput(await within(ms, { setTimer, signal }, act)) };',
        'readOutput(await within(ms * 1_000, { setTimer, signal }, act)) };',
      ],
    ],
  },
  {
    id: 'required-hook-passes',
    about: 'a call runs though a required hook has failed',
    edits: [
      ['if (failed !== undefined) return { block: `A required hook failed, so the call was not run: ${failed}` };', ''],
    ],
  },
  {
    id: 'hook-cannot-ask',
    about: 'a hook that wants a person to be asked is overruled by an allow rule',
    edits: [["if (hook === 'ask') return findingWith('ask', 'hook');", '']],
  },
  {
    id: 'plan-mode-writes',
    about: 'a tool that changes something runs in plan mode',
    edits: [["if (mode === 'plan' && !reads) return findingWith('deny', 'mode plan');", '']],
  },
  {
    id: 'nobody-asked-in-dont-ask',
    about: 'what has to be asked about runs where nobody is asked',
    edits: [["return { ...confined, outcome: 'deny' };", "return { ...confined, outcome: 'allow' };"]],
  },
  {
    id: 'silent-host-allows',
    about: 'a host that answers neither allow nor deny allows the call',
    edits: [
      [
        "if (answer === 'deny') return { decision: 'deny', reason: 'decide' };",
        "return { decision: 'allow', by: 'decide' };",
      ],
    ],
  },
  {
    id: 'cancelled-call-goes-on-at-server',
    about: 'an MCP server is not told that a call was cancelled',
    edits: [['const end = (): void => call.abort.abort(signal.reason);', 'const end = (): void => undefined;']],
  },
  {
    id: 'connection-left-open',
    about: 'closing the MCP tools leaves the connection to the server open',
    edits: [['await connection?.client.close().catch(() => undefined);', 'await connection?.ready;']],
  },
  {
    id: 'first-detach-ends-all',
    about: 'the first who lets go of a conversation ends what others observe',
    edits: [['if (observed.holders === 0) this.#end(observed);', 'this.#end(observed);']],
  },
  {
    id: 'told-again-from-the-start',
    about: 'a conversation that is observed again is told from its first entry',
    edits: [
      [
        'let next = position && position.began === began ? Math.min(position.next, log.entries.length) : 0;',
        'let next = 0;',
      ],
    ],
  },
  {
    id: 'told-after-detach',
    about: 'entries are recorded after everybody has let go',
    edits: [['following.take = undefined;', '']],
  },
];

export const equipment = lives.map((defect) => ({ ...defect, fault: 'equipment', equipped: true }));
