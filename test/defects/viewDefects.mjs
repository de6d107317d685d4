/** Defects of views: projector, streams, the program. Each has the test file that must detect it. */
export const views = [
  {
    id: 'order-window',
    about: 'a gap in the log is given up one entry early',
    witness: 'test/projector/order.test.ts',
    edits: [['if (this.waiting.size <= WINDOW) return;', 'if (this.waiting.size < WINDOW) return;']],
  },
  {
    id: 'stop-word-lost',
    about: 'the diagnostic of a run-stop with an unknown reason loses the reason',
    witness: 'test/projector/hostile.test.ts',
    edits: [['unknownReason: wordOf(reason) }', "unknownReason: 'unknown' }"]],
  },
  {
    id: 'outdate-round',
    about: 'a late result leaves the view of its round unchanged',
    witness: 'test/projector/properties.test.ts',
    edits: [['records.rounds = outdated(rounds, owner, holder(rounds, call, callsOf));', '']],
  },
  {
    id: 'reset-run',
    about: 'a reset of another run drops the text in flight',
    witness: 'test/projector/operators.test.ts',
    edits: [
      [
        "return typeof runId === 'string' && inFlight !== null && runId !== inFlight.runId ? inFlight : null;",
        "return typeof runId === 'string' && runId === '' ? inFlight : null;",
      ],
    ],
  },
  {
    id: 'view-start',
    about: 'an entry that arrives while the first view is shown is missed',
    witness: 'test/scenarios/streams.test.ts',
    edits: [
      [
        'const from = log.entries.length;\n      subscriber.next(this.view());\n      return log.stream(from,',
        'subscriber.next(this.view());\n      return log.stream(log.entries.length,',
      ],
    ],
  },
  {
    id: 'reset-not-shown',
    about: 'the program does not report that a shown reply was dropped',
    witness: 'test/cli/render.test.ts',
    edits: [["if (shown) this.#screen.line(['yellow'", "if (!shown) this.#screen.line(['yellow'"]],
  },
  {
    id: 'unknown-price-is-nothing',
    about: 'a reply without a price costs nothing in a replay',
    witness: 'test/cli/replay.test.ts',
    edits: [
      ['before === null || !isPrice ? null : (before ?? 0) + costUsd', '(before ?? 0) + (isPrice ? costUsd : 0)'],
    ],
  },
];
