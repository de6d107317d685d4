/**
 * Defects in permissions, hooks, MCP tools and the inspector's observer that simulated lives must detect. The agent of
 * these lives has the equipment of `test/simulation/equipment`.
 */
const lives = [
  {
    id: 'hook-answers-late',
    about: 'an answer of a hook counts after its time limit',
    edits: [
      [
        'readOutput(await within(ms, { setTimer, signal }, act)) };',
        'readOutput(await within(ms * 1_000, { setTimer, signal }, act)) };',
      ],
    ],
  },
  {
    id: 'required-hook-passes',
    about: 'a call runs although a required hook has failed',
    edits: [
      ['if (failed !== undefined) return { block: `A required hook failed, so the call was not run: ${failed}` };', ''],
    ],
  },
  {
    id: 'hook-cannot-ask',
    about: 'an allow rule overrides a hook that requires approval',
    edits: [["if (hook === 'ask') return findingWith('ask', 'hook');", '']],
  },
  {
    id: 'plan-mode-writes',
    about: 'a tool that changes something runs in plan mode',
    edits: [["if (mode === 'plan' && !reads) return findingWith('deny', 'mode plan');", '']],
  },
  {
    id: 'nobody-asked-in-dont-ask',
    about: 'a call that needs approval runs if nobody can be asked',
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
    about: 'an MCP server does not receive the cancel of a call',
    edits: [['const end = (): void => call.abort.abort(signal.reason);', 'const end = (): void => undefined;']],
  },
  {
    id: 'connection-left-open',
    about: 'closing the MCP tools leaves the connection to the server open',
    edits: [['await connection?.close();', 'await connection?.ready;']],
  },
  {
    id: 'first-detach-ends-all',
    about: 'the first observer that leaves a conversation ends the observation of the others',
    edits: [['if (observed.holders === 0) this.#end(observed);', 'this.#end(observed);']],
  },
  {
    id: 'told-again-from-the-start',
    about: 'a conversation that is observed again is reported from its first entry',
    edits: [
      [
        'let next = position && position.began === began ? Math.min(position.next, log.entries.length) : 0;',
        'let next = 0;',
      ],
    ],
  },
  {
    id: 'told-after-detach',
    about: 'entries are recorded after all observers have left',
    edits: [['following.take = undefined;', '']],
  },
];

export const equipment = lives.map((defect) => ({ ...defect, fault: 'equipment', equipped: true }));
