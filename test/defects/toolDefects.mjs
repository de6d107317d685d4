/** Defects of tools and the coding tools, each with the test file that must detect it. */
export const tools = [
  {
    id: 'timeout-no-abort',
    about: 'a tool that timed out is abandoned and its signal is not aborted',
    witness: 'test/hostile/toolTiming.test.ts',
    edits: [["abort.abort(new DOMException('the tool call timed out', 'TimeoutError'));", '']],
  },
  {
    id: 'timeout-always-repeated',
    about: 'a time-out is retried although the tool is not idempotent',
    witness: 'test/scenarios/toolRetry.test.ts',
    edits: [["kind === 'timeout' ? isIdempotent : ", "kind === 'timeout' || "]],
  },
  {
    id: 'idempotent-overrides-host',
    about: "an idempotent tool is executed again against the host's decision",
    witness: 'test/scenarios/toolRetry.test.ts',
    edits: [
      [
        'if (!retryable || (answer === true && refusals.has(retryable)))',
        "if (!retryable || (isIdempotent && kind === 'timeout') || (answer === true && refusals.has(retryable)))",
      ],
    ],
  },
  {
    id: 'cut-over',
    about: 'a cut result exceeds its limit by its mark',
    witness: 'test/hostile/toolOutput.test.ts',
    edits: [['Math.floor((bytesMax - MARK_BYTES) / 2)', 'Math.floor(bytesMax / 2)']],
  },
  {
    id: 'cut-surrogate',
    about: 'a surrogate pair is split at the cut',
    witness: 'test/hostile/toolOutput.test.ts',
    edits: [['[...words.slice(-half - 1)].reverse()', "words.slice(-half - 1).split('').reverse()"]],
  },
  {
    id: 'cut-before-redact',
    about: 'parts are cut before secrets are redacted',
    witness: 'test/scenarios/pluginAnswers.test.ts',
    edits: [["(part.type === 'text' ? [redact(part.text)] : [])", "(part.type === 'text' ? [part.text] : [])"]],
  },
  {
    id: 'kill-leader',
    about: 'only the shell receives the signal, not its process group',
    witness: 'test/tools/coding/processTree.test.ts',
    edits: [['process.kill(-group, signal);', 'process.kill(group, signal);']],
  },
  {
    id: 'symlink',
    about: 'a path is inside by its spelling, not by the targets of its links',
    witness: 'test/tools/coding/workspace.test.ts',
    edits: [['const isOutside = !isInside(root, target);', 'const isOutside = !isInside(root, resolve(root, path));']],
  },
  {
    id: 'opened-check',
    about: 'the opened file is not compared with the checked one',
    witness: 'test/tools/coding/workspace.test.ts',
    edits: [['if (opened === place.path) return undefined;', "if (opened !== '') return undefined;"]],
  },
  {
    id: 'ring',
    about: 'the ring of the tail of an output is off by one after its first turn',
    witness: 'test/tools/coding/bashOutput.test.ts',
    edits: [
      [
        'tailBytes.copy(this.#tail, 0, tailBytes.copy(this.#tail, at));',
        'tailBytes.copy(this.#tail, 0, Math.max(0, tailBytes.copy(this.#tail, at) - 1));',
      ],
    ],
  },
  {
    id: 'read-limit',
    about: 'Read returns one line more than requested',
    witness: 'test/tools/coding/read.test.ts',
    edits: [['if (lines.length === count || bytes > BYTES_MAX)', 'if (lines.length > count || bytes > BYTES_MAX)']],
  },
  {
    id: 'exit-listener',
    about: 'the exit listener of process trees remains',
    witness: 'test/tools/coding/processTree.test.ts',
    edits: [
      ["if (liveTrees.delete(tree) && liveTrees.size === 0) process.off('exit', endAll);", 'liveTrees.delete(tree);'],
    ],
  },
  {
    id: 'env-mark',
    about: 'a process that left group, session and parents is not found by its mark',
    witness: 'test/tools/coding/processTree.test.ts',
    edits: [['row.marked ? [row.process.pid] : []', 'row.marked && row.process.pid < 0 ? [row.process.pid] : []']],
  },
  {
    id: 'escaped-secret-in-arguments',
    about: 'a tool receives a secret that the model has written with escapes, although the log contains none',
    witness: 'test/hostile/secrets.test.ts',
    edits: [['args: deepFreeze(redact(call.args)),', 'args: deepFreeze(call.args),']],
  },
  {
    id: 'webp-result-in-the-log',
    about: 'an image of WebP in the result of a tool stays in the log as base64',
    witness: 'test/content/content.test.ts',
    edits: [['fromBase64(text.slice(0, 16))', 'fromBase64(text.slice(0, 12))']],
  },
  {
    id: 'doubled-carriage-returns',
    about: 'a text with CR LF for a file with CR LF gets every CR twice',
    witness: 'test/tools/coding/lineEnds.test.ts',
    edits: [["text.replace(/\\r?\\n/g, '\\r\\n')", "text.replaceAll('\\n', '\\r\\n')"]],
  },
  {
    id: 'change-while-reading-unseen',
    about: 'a file that changes while it is read counts as seen in its new version',
    witness: 'test/tools/coding/otherPrograms.test.ts',
    edits: [
      [
        `        const hash = await hashOfFile(opened.file);
        if (hash !== undefined) knownFiles.markSeen(context.conversationId, place.path, hash);
        return await answer(opened.file, place, { first: offset, count: limit }, context);
`,
        `        const result = await answer(opened.file, place, { first: offset, count: limit }, context);
        const hash = await hashOfFile(opened.file);
        if (hash !== undefined) knownFiles.markSeen(context.conversationId, place.path, hash);
        return result;
`,
      ],
    ],
  },
  {
    id: 'change-in-the-same-second',
    about: 'a change of another program in the same second is overwritten',
    witness: 'test/tools/coding/otherPrograms.test.ts',
    edits: [['`${ino}/${size}/${mtimeMs}`', '`${ino}/${size}/${Math.trunc(mtimeMs / 1_000)}`']],
  },
  {
    id: 'write-marks-twice',
    about: 'a file gets a second byte order mark if the text of the model begins with one',
    witness: 'test/tools/coding/lineEnds.test.ts',
    edits: [["text.replace(/^\\uFEFF/, '')", 'text']],
  },
  {
    id: 'redirect-to-plain-text',
    about: 'WebFetch follows a redirect from https to http',
    witness: 'test/tools/coding/webFetch.test.ts',
    edits: [[" &&\n  !(from.protocol === 'https:' && to.protocol === 'http:')", '']],
  },
  {
    id: 'newest-command-forgotten',
    about: 'of the commands that ended in the background the newest are forgotten, not the oldest',
    witness: 'test/tools/coding/background.test.ts',
    edits: [['.slice(0, -ENDED_MAX)', '.slice(ENDED_MAX)']],
  },
  {
    id: 'cut-page-waited-for',
    about: 'a compressed page that the server cuts is waited for until the time limit',
    witness: 'test/tools/coding/webFetch.test.ts',
    edits: [["message.once('error', (error) => inflater.destroy(error));", '']],
  },
  {
    id: 'launcher-of-one-too-many',
    about: 'a command that is one too many in the background keeps its sandbox',
    witness: 'test/tools/coding/launchers.test.ts',
    edits: [['if (!started) await launcher?.release();', '']],
  },
  {
    id: 'listener-kept',
    about: "a listener on a tool's signal stays although a signal of its own has fired",
    witness: 'test/tools/executeTool.test.ts',
    edits: [['guards.set(made, made);', '']],
  },
  {
    id: 'sleep-after-the-call',
    about: 'a tool that sleeps after its call has ended sleeps, and keeps a timer',
    witness: 'test/tools/executeTool.test.ts',
    edits: [['if (why) return reject(why());', '']],
  },
  {
    id: 'nothing-for-null',
    about: 'a generator that returns null has its last value as its result',
    witness: 'test/tools/executeTool.test.ts',
    edits: [['return value === undefined ? last : value;', 'return value ?? last;']],
  },
  {
    id: 'removed-tool-unknown',
    about: 'a tool that its server removed is reported as one that never existed',
    witness: 'test/tools/toolbox.test.ts',
    edits: [['for (const { name } of list) this.#names.add(name);', '']],
  },
  {
    id: 'rest-of-the-line',
    about: 'the text after a rule of a page stands on the line of the rule',
    witness: 'test/tools/coding/htmlText.test.ts',
    edits: [["this.#write('---'); this.#break(1);", "this.#write('---');"]],
  },
  {
    id: 'notebook-markdown-lost',
    about: 'an output of a notebook that has Markdown alone is left out',
    witness: 'test/tools/coding/readFormats.test.ts',
    edits: [["forms['text/plain'] ?? forms['text/markdown']", "forms['text/plain']"]],
  },
  {
    id: 'last-line-counted-twice',
    about: 'the line end of the last line counts as one line more',
    witness: 'test/tools/coding/writing.test.ts',
    edits: [["content.replace(/\\n$/, '').split('\\n').length", "content.split('\\n').length"]],
  },
  {
    id: 'left-running-untold',
    about: 'the result of a killed command does not mention that it left something running',
    witness: 'test/tools/coding/commandResults.test.ts',
    edits: [['return [...left, `killed by ${end.by}`];', 'return [`killed by ${end.by}`];']],
  },
  {
    id: 'words-of-a-picture-read-twice',
    about: 'the references in the words for a picture of a page are decoded twice',
    witness: 'test/tools/coding/htmlText.test.ts',
    edits: [["this.#words(attributeOf(attributes, 'alt') ?? '')", "this.text(attributeOf(attributes, 'alt') ?? '')"]],
  },
  {
    id: 'charset-in-quotes',
    about: 'the charset of a page is ignored if it is in quotes in the header',
    witness: 'test/tools/coding/webPages.test.ts',
    edits: [['const named = /charset\\s*=\\s*"?([\\w.:-]+)/i', 'const named = /charset\\s*=\\s*([\\w.:-]+)/i']],
  },
  {
    id: 'plural-of-one-step',
    about: 'a list of one step is described as 1 steps',
    witness: 'test/tools/coding/planTools.test.ts',
    edits: [["todos.length === 1 ? '1 step' : `${todos.length} steps`", '`${todos.length} steps`']],
  },
];
