/** Defects of sub-agents, each with the test file that has to find it. */
export const subAgents = [
  {
    id: 'place-lost',
    about: 'a sub-agent that leaves the queue is given a place all the same',
    witness: 'test/subAgents/cancel.test.ts',
    edits: [['const leave = (): void => {\n        this.#waiting.delete(begin);', 'const leave = (): void => {']],
  },
  {
    id: 'counted-twice',
    about: 'a sub-agent that waited is counted from its beginning again',
    witness: 'test/subAgents/crashes.test.ts',
    edits: [['this.#entries.slice(this.#upTo).flatMap(', 'this.#entries.slice(0).flatMap(']],
  },
  {
    id: 'waiting-not-counted',
    about: 'what a sub-agent that waits has used is not told to its parent until it ends',
    witness: 'test/subAgents/approvals.test.ts',
    edits: [
      [
        "if (conversation.status === 'waiting') return this.#count();",
        "if (conversation.status === 'waiting') return;",
      ],
    ],
  },
  {
    id: 'restart-counted',
    about: 'after a restart what was counted of a sub-agent is counted again',
    witness: 'test/subAgents/crashes.test.ts',
    edits: [
      ['if (record) record.upTo = counted.upTo;', 'if (record) record.upTo = Math.min(record.upTo, counted.upTo);'],
    ],
  },
  {
    id: 'closed-not-counted',
    about: 'what a sub-agent used is forgotten when its parent lets go of it before it has ended',
    witness: 'test/subAgents/cost.test.ts',
    edits: [['this.#opened = undefined;\n    if', 'this.#opened = undefined;\n    this.#entries = [];\n    if']],
  },
  {
    id: 'budget',
    about: 'what sub-agents use while they work does not count for the budget',
    witness: 'test/subAgents/cost.test.ts',
    edits: [
      [
        'const since = uncounted().reduce(addUsage, zeroUsage);',
        'const since = zeroUsage;\n  void [uncounted, together];',
      ],
    ],
  },
  {
    id: 'report-order',
    about: 'results of sub-agents come in the order of their tasks',
    witness: 'test/subAgents/restarts.test.ts',
    edits: [['const ended = this.#ended.flatMap(', 'const ended = this.children.flatMap(']],
  },
  {
    id: 'place-kept',
    about: 'the place of a sub-agent whose work failed is not given back',
    witness: 'test/subAgents/cancel.test.ts',
    edits: [
      [
        '} finally {\n        releaseSlot();\n      }',
        'releaseSlot();\n      } finally {\n        void releaseSlot;\n      }',
      ],
    ],
  },
  {
    id: 'report-in-characters',
    about: 'a report is measured in characters, and is longer than it may be',
    witness: 'test/subAgents/spawning.test.ts',
    edits: [
      ['while (bytesOf(report) > bytesMax && share > LEAST) {', 'while (report.length > bytesMax && share > LEAST) {'],
    ],
  },
  {
    id: 'empty-success',
    about: 'a sub-agent that was ended before it said anything has succeeded with an empty result',
    witness: 'test/subAgents/spawning.test.ts',
    edits: [
      [
        "if (reason === 'completed' && cause !== SUBMIT && (cause === 'end_turn' || words !== '')) {",
        "if (reason === 'completed' && cause !== SUBMIT) {",
      ],
    ],
  },
  {
    id: 'budget-without-output',
    about: 'what sub-agents write does not count for the tokens that are left',
    witness: 'test/subAgents/cost.test.ts',
    edits: [
      [
        'const spentTokens = counted.tokens + since.usage.inputTokens + since.usage.outputTokens;',
        'const spentTokens = counted.tokens + since.usage.inputTokens;',
      ],
    ],
  },
  {
    id: 'other-words-same-tasks',
    about: 'tasks with other words and the same ids pass for those that were begun',
    witness: 'test/subAgents/approvals.test.ts',
    edits: [['tasks[i]?.id === id && tasks[i]?.task === task)', 'tasks[i]?.id === id)']],
  },
];
