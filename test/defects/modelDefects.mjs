/** Defects of models: attempts, the OpenAI adapter, prices, each with the test file that has to find it. */
export const models = [
  {
    id: 'clock-idle',
    about: 'between parts the model has the time of its first part',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['this.#restartSilence(this.#timeouts.idleMs);', 'this.#restartSilence(this.#timeouts.firstPartMs);']],
  },
  {
    id: 'odd-part-alive',
    about: 'a part of no known form counts as a sign of life',
    witness: 'test/scenarios/retries.test.ts',
    edits: [
      [
        'const read = readPart(part);\n    if (read) {\n      clock.notePart();',
        'const read = readPart(part);\n    clock.notePart();\n    if (read) {',
      ],
    ],
  },
  {
    id: 'reset-not-said',
    about: 'a failed attempt leaves its partial text in the live stream, the retry appends to it',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['this.reset();\n      return { ...failureOf(error)', 'return { ...failureOf(error)']],
  },
  {
    id: 'reset-tools',
    about: 'no reset where only tool input was streamed',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['this.#addInput(index, name, text);\n        this.#streams();', 'this.#addInput(index, name, text);']],
  },
  {
    id: 'reset-after-text',
    about: 'no reset where reasoning alone was streamed',
    witness: 'test/scenarios/retries.test.ts',
    edits: [
      [
        'part.text);\n        this.#streams();',
        "part.text);\n        if (part.type === 'text-delta') this.#streams();",
      ],
    ],
  },
  {
    id: 'gate-leak',
    about: 'the listener on the signal of the caller of a model stays',
    witness: 'test/models/openaiAbort.test.ts',
    edits: [["caller.removeEventListener('abort', abort);", '']],
  },
  {
    id: 'body-open',
    about: 'the body of a response is not closed at the end',
    witness: 'test/models/openaiAbort.test.ts',
    edits: [['this.#abortable.end();\n    this.#body?.close();', 'this.#abortable.end();']],
  },
  {
    id: 'utf8',
    about: 'bytes of a character split over two chunks are decoded apart',
    witness: 'test/models/openaiStream.test.ts',
    edits: [['decoder.decode(slice, { stream: true })', 'decoder.decode(slice)']],
  },
  {
    id: 'crlf',
    about: 'CR at the end of a chunk and LF at the start of the next are two line ends',
    witness: 'test/models/openaiSplits.test.ts',
    edits: [["afterCr = rest.endsWith('\\r');", 'afterCr = false;']],
  },
  {
    id: 'no-index',
    about: 'a piece of a call without index and id opens a call of its own',
    witness: 'test/models/openaiOddCalls.test.ts',
    edits: [
      [
        'return delta.index === undefined && open.closed ? undefined : open;',
        'return delta.index === undefined ? undefined : open;',
      ],
    ],
  },
  {
    id: 'usage-sum',
    about: 'usage of several chunks is kept from the first chunk that has one',
    witness: 'test/models/openaiStream.test.ts',
    edits: [
      [
        'if (chunk.usage !== undefined) this.#usage = chunk.usage;',
        'if (chunk.usage !== undefined) this.#usage ??= chunk.usage;',
      ],
    ],
  },
  {
    id: 'cached-twice',
    about: 'cached tokens cost their own price and the full one',
    witness: 'test/models/prices.test.ts',
    edits: [
      [
        'Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens)',
        'Math.max(0, inputTokens - cacheWriteTokens)',
      ],
    ],
  },
  {
    id: 'retry-after-seconds',
    about: 'Retry-After in seconds is taken for milliseconds',
    witness: 'test/models/openaiErrors.test.ts',
    edits: [['Math.ceil(seconds * 1000)', 'Math.ceil(seconds)']],
  },
  {
    id: 'key-after-401',
    about: 'after a 401 the old key is sent again',
    witness: 'test/models/openaiRequest.test.ts',
    edits: [['if (response.status === 401) client = prepared = undefined;', '']],
  },
  {
    id: 'header-secret',
    about: 'a credential in a header counts as a secret together with its scheme only',
    witness: 'test/models/openaiRequest.test.ts',
    edits: [["value.replace(/^\\s*(bearer|basic|token)\\s+/i, '').trim()", 'value.trim()']],
  },
  {
    id: 'late-response',
    about: 'a response that comes after the abort is not closed',
    witness: 'test/models/openaiAbort.test.ts',
    edits: [['(late) => responseBody(late).close()', '() => {}']],
  },
  {
    id: 'diagnostics-without-end',
    about: 'each odd part of a reply is told, however many there are',
    witness: 'test/models/aiSdk.test.ts',
    edits: [['if (count > DIAGNOSTICS_OF_A_KIND) return;', '']],
  },
  {
    id: 'closed-object-ends-a-call',
    about:
      'a piece that repeats the name of its call begins another one behind an object in the arguments that is closed',
    witness: 'test/models/openaiOddCalls.test.ts',
    edits: [
      ['return delta.index === undefined && open.closed ? undefined : open;', 'return open.closed ? undefined : open;'],
    ],
  },
  {
    id: 'cut-before-arguments-runs',
    about: 'a call that was cut off before its arguments runs without any',
    witness: 'test/scenarios/limits.test.ts',
    edits: [
      [
        "const incomplete = call.argsText !== undefined || raw.args.trim() === '';",
        'const incomplete = call.argsText !== undefined;',
      ],
    ],
  },
  {
    id: 'cache-write-free',
    about: 'tokens written to a cache cost nothing where they have no price of their own',
    witness: 'test/models/money.test.ts',
    edits: [['(prices.cacheWrite ?? prices.input)', '(prices.cacheWrite ?? 0)']],
  },
  {
    id: 'price-of-zero-is-none',
    about: 'cached tokens whose price is 0 cost what others do',
    witness: 'test/models/money.test.ts',
    edits: [['(prices.cachedInput ?? prices.input)', '(prices.cachedInput || prices.input)']],
  },
  {
    id: 'unknown-cost-is-unspent',
    about: 'a budget over a log with an unknown price is not counted as spent',
    witness: 'test/models/money.test.ts',
    edits: [['unpriced + (spent.costUsd === null ? times : 0)', 'unpriced']],
  },
  {
    id: 'stream-not-awaited',
    about: 'a model whose stream() is an async function is taken for one that returns no stream',
    witness: 'test/hostile/eagerModels.test.ts',
    edits: [['const stream: unknown = await model.stream(request', 'const stream: unknown = model.stream(request']],
  },
  {
    id: 'defect-retried',
    about: "a mistake in the model's code is repeated like a network error",
    witness: 'test/hostile/eagerModels.test.ts',
    edits: [['retryable: line.code !== DEFECT', 'retryable: true']],
  },
  {
    id: 'fetch-failure-final',
    about: 'the TypeError of a lost connection counts as a mistake of the model',
    witness: 'test/hostile/eagerModels.test.ts',
    edits: [['!NETWORK_CODE.test(causeCode) && ', '']],
  },
  {
    id: 'no-turn-given',
    about: 'a model that never waits is read without a turn for anything else',
    witness: 'test/hostile/eagerModels.test.ts',
    edits: [['return this.#parts % PARTS_A_TURN === 0;', 'return false;']],
  },
  {
    id: 'read-after-finish',
    about: 'a stream is read on after its finish',
    witness: 'test/hostile/eagerModels.test.ts',
    edits: [['return this.#finish === undefined;', 'return true;']],
  },
  {
    id: 'close-awaited',
    about: 'a reply waits until its stream is closed',
    witness: 'test/hostile/eagerModels.test.ts',
    edits: [
      [
        'if (!this.#processPart(part, clock)) return complete(); if (this.#turnIsDue) await nextTurn(); } return;',
        'if (!this.#processPart(part, clock)) return; if (this.#turnIsDue) await nextTurn(); } return;',
      ],
    ],
  },
  {
    id: 'synonym-of-length',
    about: 'a server that says max_tokens has its cut reply taken for a whole one',
    witness: 'test/models/finishTable.test.ts',
    edits: [["['max_tokens', 'length'],", '']],
  },
  {
    id: 'sdk-pause-is-an-end',
    about: 'a pause of a provider of the AI SDK ends the turn',
    witness: 'test/models/finishTable.test.ts',
    edits: [["if (raw === 'pause_turn') return 'pause';", '']],
  },
];
