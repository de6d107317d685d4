/** Defects of views: projector, streams, the program. Each has the test file that must detect it. */
export const views = [
  {
    id: 'order-window',
    about: 'a gap in the log is awaited for one entry less',
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
    id: 'rewind-keeps-messages',
    about: 'after a rewind the model still receives the superseded messages',
    witness: 'test/scenarios/rewind.test.ts',
    edits: [
      ["if (entry.type === 'rewound') return this.#rewind(entry.toSeq);", "if (entry.type === 'rewound') return;"],
    ],
  },
  {
    id: 'rewind-drops-results',
    about: 'a rewind drops a late result of a call that still counts',
    witness: 'test/scenarios/rewind.test.ts',
    edits: [
      [
        'if (entry.seq > toSeq) return isCallEnd(entry) && callIds.has(entry.callId);',
        'if (entry.seq > toSeq) return false;',
      ],
    ],
  },
  {
    id: 'rewind-unmarked',
    about: 'a view does not mark superseded cycles that were read before',
    witness: 'test/scenarios/rewind.test.ts',
    edits: [
      [
        'count: Math.min(settled.count, first), own: false };\n}\n\nexport function outdateRound',
        'own: false };\n}\n\nexport function outdateRound',
      ],
    ],
  },
  {
    id: 'rewind-continues',
    about: 'a resumption continues a request that was rewound',
    witness: 'test/scenarios/rewind.test.ts',
    edits: [["logState.cycle = 'none';\n  logState.asked = false;\n", '']],
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
  {
    id: 'same-line-again',
    about: 'Down in a prompt shows the same earlier line again',
    witness: 'test/cli/interactive/earlierLines.test.ts',
    edits: [['history.at(1 - line.back)', 'history.at(-line.back)']],
  },
  {
    id: 'lost-output-is-ctrl-c',
    about: 'an output that is lost after Ctrl-C ends the program before its run has stopped',
    witness: 'test/cli/interrupts.test.ts',
    edits: [["stream.on('error', () => controller.abort());", "stream.on('error', () => ask('SIGTERM'));"]],
  },
];
