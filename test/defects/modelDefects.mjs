/** Defects of models: attempts, the OpenAI adapter, prices. Each has the test file that must detect it. */
export const models = [
  {
    id: 'clock-idle',
    about: 'between parts the model has the time limit of its first part',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['this.#restartSilence(this.#timeouts.idleMs);', 'this.#restartSilence(this.#timeouts.firstPartMs);']],
  },
  {
    id: 'odd-part-alive',
    about: 'a part of an unknown form resets the silence limit',
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
    about: 'a failed attempt leaves its partial text in the live stream, and the retry appends to it',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['this.reset();\n      return { ...failureOf(error)', 'return { ...failureOf(error)']],
  },
  {
    id: 'reset-tools',
    about: 'no reset after streamed tool input alone',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['this.#addInput(index, named, text);\n        this.#streams();', 'this.#addInput(index, named, text);']],
  },
  {
    id: 'reset-after-text',
    about: 'no reset after streamed reasoning alone',
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
    about: 'bytes of a character that is split over two chunks are decoded separately',
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
    about: 'a piece of a call without index and id opens a new call',
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
    about: 'usage in several chunks is kept from the first chunk that has one',
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
    about: 'Retry-After in seconds is read as milliseconds',
    witness: 'test/models/openaiErrors.test.ts',
    edits: [['Math.ceil(seconds * 1000)', 'Math.ceil(seconds)']],
  },
  {
    id: 'key-after-401',
    about: 'after a 401 the old key is sent again',
    witness: 'test/models/openaiRequest.test.ts',
    edits: [['if (response.status === 401) prepared = undefined;', '']],
  },
  {
    id: 'header-secret',
    about: 'a credential in a header is a secret only together with its scheme',
    witness: 'test/models/openaiRequest.test.ts',
    edits: [["value.replace(/^\\s*(bearer|basic|token)\\s+/i, '').trim()", 'value.trim()']],
  },
  {
    id: 'late-response',
    about: 'a response after the abort is not closed',
    witness: 'test/models/openaiAbort.test.ts',
    edits: [['(late) => responseBody(late).close()', '() => {}']],
  },
  {
    id: 'diagnostics-without-end',
    about: 'each invalid part of a reply is reported, however many there are',
    witness: 'test/models/aiSdk.test.ts',
    edits: [['if (count > DIAGNOSTICS_OF_A_KIND) return;', '']],
  },
  {
    id: 'closed-object-ends-a-call',
    about: 'a piece that repeats the name of its call starts another one after a complete object in the arguments',
    witness: 'test/models/openaiOddCalls.test.ts',
    edits: [
      ['return delta.index === undefined && open.closed ? undefined : open;', 'return open.closed ? undefined : open;'],
    ],
  },
  {
    id: 'cut-before-arguments-runs',
    about: 'a call that was cut before its arguments runs with empty ones',
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
    about: 'tokens written to a cache cost nothing without a price of their own',
    witness: 'test/models/money.test.ts',
    edits: [['(prices.cacheWrite ?? prices.input)', '(prices.cacheWrite ?? 0)']],
  },
  {
    id: 'price-of-zero-is-none',
    about: 'cached tokens with a price of 0 cost the normal price',
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
    about: 'a model whose stream() is an async function is refused as one that returns no stream',
    witness: 'test/hostile/eagerModels.test.ts',
    edits: [['const stream: unknown = await model.stream(request', 'const stream: unknown = model.stream(request']],
  },
  {
    id: 'defect-retried',
    about: "a mistake in the model's code is retried like a network error",
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
    about: 'a model that never waits is read without a turn of the event loop',
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
    about: 'a cut reply of a server that sends max_tokens counts as complete',
    witness: 'test/models/finishTable.test.ts',
    edits: [["['max_tokens', 'length'],\n  ['model_length', 'length'],", "['model_length', 'length'],"]],
  },
  {
    id: 'sdk-pause-is-an-end',
    about: 'a pause of a provider of the AI SDK ends the turn',
    witness: 'test/models/finishTable.test.ts',
    edits: [["if (raw === 'pause_turn') return 'pause';", '']],
  },
  {
    id: 'missing-price-is-0',
    about: 'a model without a listed price of its output has the price 0',
    witness: 'test/models/prices.test.ts',
    edits: [['const output = priceOf(list.output_mtok);', 'const output = priceOf(list.output_mtok) ?? 0;']],
  },
  {
    id: 'signature-elsewhere',
    about: "signed thinking of one of Anthropic's models goes to another one",
    witness: 'test/models/anthropicReply.test.ts',
    edits: [['`anthropic/${modelName.replace(', '`anthropic/${modelName.slice(0, 6).replace(']],
  },
  {
    id: 'thinking-without-signature',
    about: 'thinking that was cut before its signature goes back',
    witness: 'test/models/anthropicReply.test.ts',
    edits: [["if (block.signature === '' && isSigned)", "if (block.thinking === '' && isSigned)"]],
  },
  {
    id: 'cache-not-counted',
    about: 'the input of a Messages reply lacks the tokens from the cache',
    witness: 'test/models/anthropicReply.test.ts',
    edits: [['inputTokens: input + cachedInputTokens + cacheWriteTokens', 'inputTokens: input + cacheWriteTokens']],
  },
  {
    id: 'results-apart',
    about: 'the results of one reply are sent in several messages',
    witness: 'test/models/anthropicRequest.test.ts',
    edits: [['if (last?.role === role) last.content', "if (last?.role === role && role === 'assistant') last.content"]],
  },
  {
    id: 'unknown-cost-is-zero-in-spans',
    about: 'a span has the cost 0 for a model without prices',
    witness: 'test/models/unknownPrices.test.ts',
    edits: [['...(costUsd !== null && { [COST]: costUsd }),', '[COST]: costUsd ?? 0,']],
  },
  {
    id: 'unpriced-summary-costs-nothing',
    about: 'a replay counts a summary without a price as free',
    witness: 'test/models/unknownPrices.test.ts',
    edits: [['(usage !== undefined || costUsd !== undefined)', 'costUsd !== undefined']],
  },
  {
    id: 'items-in-order-of-arrival',
    about: 'items of the Responses API go back in the order in which they ended',
    witness: 'test/models/wireOrders.test.ts',
    edits: [['[...this.#items].sort(([a], [b]) => a - b).flatMap(', '[...this.#items].flatMap(']],
  },
  {
    id: 'fallback-cannot-see-the-request',
    about: 'a fallback that accepts no image receives the images of a request that a person has steered since',
    witness: 'test/content/attachmentPreparer.test.ts',
    edits: [["if (entry.kind !== 'steer') break;", 'break;']],
  },
  {
    id: 'free-model-without-prices',
    about: 'a model whose listed price is 0 has no prices',
    witness: 'test/models/listedPrices.test.ts',
    edits: [
      [
        'if (input === undefined || output === undefined) return undefined;',
        'if (!input || !output) return undefined;',
      ],
    ],
  },
  {
    id: 'cache-write-needs-read',
    about: 'the price of writing to the cache is dropped where the list has no price of reading it',
    witness: 'test/models/listedPrices.test.ts',
    edits: [
      [
        '...(cacheWrite !== undefined && { cacheWrite }),',
        '...(cachedInput !== undefined && cacheWrite !== undefined && { cacheWrite }),',
      ],
    ],
  },
];
