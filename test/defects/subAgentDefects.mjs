/** Defects of sub-agents, each with the test file that must detect it. */
export const subAgents = [
  {
    id: 'place-lost',
    about: 'a sub-agent that leaves the queue still receives a slot',
    witness: 'test/subAgents/cancel.test.ts',
    edits: [['const leave = (): void => {\n        this.#waiting.delete(begin);', 'const leave = (): void => {']],
  },
  {
    id: 'counted-twice',
    about: 'a sub-agent that waited is counted from its start again',
    witness: 'test/subAgents/crashes.test.ts',
    edits: [['this.#entries.slice(this.#upTo).flatMap(', 'this.#entries.slice(0).flatMap(']],
  },
  {
    id: 'waiting-not-counted',
    about: 'a parent learns the usage of a waiting sub-agent only at its end',
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
    about: 'after a restart the recorded usage of a sub-agent is counted again',
    witness: 'test/subAgents/crashes.test.ts',
    edits: [
      ['if (record) record.upTo = counted.upTo;', 'if (record) record.upTo = Math.min(record.upTo, counted.upTo);'],
    ],
  },
  {
    id: 'closed-not-counted',
    about: 'the usage of a sub-agent is lost when its parent releases it before its end',
    witness: 'test/subAgents/cost.test.ts',
    edits: [['this.#opened = undefined;\n    if', 'this.#opened = undefined;\n    this.#entries = [];\n    if']],
  },
  {
    id: 'budget',
    about: 'the usage of working sub-agents does not count for the budget',
    witness: 'test/subAgents/cost.test.ts',
    edits: [['const since = uncounted.reduce(addUsage, zeroUsage);', 'const since = zeroUsage;\n  void uncounted;']],
  },
  {
    id: 'report-order',
    about: 'results of sub-agents are in the order of their tasks',
    witness: 'test/subAgents/restarts.test.ts',
    edits: [['const ended = this.#ended.flatMap(', 'const ended = this.children.flatMap(']],
  },
  {
    id: 'place-kept',
    about: 'the slot of a sub-agent whose work failed is not released',
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
    about: 'a report is measured in characters, and exceeds its limit',
    witness: 'test/subAgents/spawning.test.ts',
    edits: [
      ['while (bytesOf(report) > bytesMax && share > LEAST) {', 'while (report.length > bytesMax && share > LEAST) {'],
    ],
  },
  {
    id: 'empty-success',
    about: 'a sub-agent that was ended before any text has succeeded with an empty result',
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
    about: 'the output of sub-agents does not count for the remaining tokens',
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
    about: 'tasks with another text and the same ids are accepted as the started ones',
    witness: 'test/subAgents/approvals.test.ts',
    edits: [['tasks[i]?.id === id && tasks[i]?.task === task)', 'tasks[i]?.id === id)']],
  },
];
