/** Defects of stores, each with the test file that must detect it. */
export const stores = [
  {
    id: 'row-of-changed-file',
    about: 'a row is listed although its file has changed',
    witness: 'test/stores/jsonlRows.test.ts',
    edits: [['if (!stats || !isSameStamp(stampOf(stats), recorded.stamp)) return true;', 'if (!stats) return true;']],
  },
  {
    id: 'row-unannounced',
    about: 'a store does not note which logs it opens',
    witness: 'test/stores/jsonlRows.test.ts',
    edits: [["await this.#notes.add([{ id, state: 'opened' }]);", '']],
  },
  {
    id: 'owner-after-lease',
    about: "another owner's open conversation is busy in place of not found",
    witness: 'test/stores/memory.test.ts',
    edits: [
      [
        'refuseOtherOwner(entries[0], owner);\n    this.#refuseLeased(id);',
        'this.#refuseLeased(id);\n    refuseOtherOwner(entries[0], owner);',
      ],
    ],
  },
  {
    id: 'claimed-sub-agent',
    about: 'a delete removes a log that another log only claims as its sub-agent',
    witness: 'test/stores/jsonl.test.ts',
    edits: [['if (isSubAgentOf(await firstEntryIn(root, child), id)) children.push(child);', 'children.push(child);']],
  },
  {
    id: 'no-fsync',
    about: 'durability power: nothing is synced after an append',
    witness: 'test/stores/jsonlFullDisk.test.ts',
    edits: [["if (this.#durability === 'power') await file.datasync();", '']],
  },
  {
    id: 'changed-file',
    about: 'an append does not check whether the file is still the one that was opened',
    witness: 'test/stores/jsonlRefusals.test.ts',
    edits: [['this.#refuseChanged();\n    const written', 'const written']],
  },
  {
    id: 'lease-kept',
    about: 'if the close of the file fails, the lease is not released',
    witness: 'test/stores/jsonlRefusals.test.ts',
    edits: [
      [
        'await this.#file.close().finally(() => this.#lease.release());',
        'await this.#file.close();\n      await this.#lease.release();',
      ],
    ],
  },
  {
    id: 'pid-reuse',
    about: 'a reused process id counts as the holder',
    witness: 'test/stores/jsonlLease.test.ts',
    edits: [
      [
        'return state.started === identity.started && !state.ended;\n}\n\n/** The initial namespace',
        'return !state.ended;\n}\n\n/** The initial namespace',
      ],
    ],
  },
  {
    id: 'lease-race',
    about: 'a taker does not check again whether it is alone',
    witness: 'test/stores/jsonlRaces.test.ts',
    edits: [['if (alone && lease.holds()) {', 'if (lease.holds() || alone) {']],
  },
  {
    id: 'blob-hash',
    about: 'a blob whose bytes changed is returned',
    witness: 'test/stores/jsonl.test.ts',
    edits: [['if (hashOf(bytes) === hash) return bytes;', 'if (bytes.length >= 0) return bytes;']],
  },
  {
    id: 'blob-name',
    about: 'a blob appears under its name before it is complete',
    witness: 'test/stores/jsonl.test.ts',
    edits: [
      [
        'const draft = join(folder, `${hash}.${randomUUID()}`);',
        'const draft = join(folder, `${hash}`);\n  void randomUUID;',
      ],
    ],
  },
  {
    id: 'lost-header',
    about: 'the lines of a run with a missing header are read as those of the previous run',
    witness: 'test/stores/jsonlDamage.test.ts',
    edits: [
      ['at: since = format.begins && 0,', 'at: since = 0,'],
      ['if (lacksHeader(value, format)) {', 'if (lacksHeader(value, format) && format.begins) {'],
    ],
  },
  {
    id: 'torn-cut',
    about: 'a failed append is not rolled back',
    witness: 'test/stores/jsonlFullDisk.test.ts',
    edits: [['await this.#cut(file).catch(async () => {', 'await Promise.resolve().catch(async () => {']],
  },
  {
    id: 'bytes-not-synced',
    about: "durability 'power': a reference exists to bytes that may not be on the disk",
    witness: 'test/stores/jsonlRefusals.test.ts',
    edits: [['if (durable) await file.datasync();', '']],
  },
  {
    id: 'bytes-without-a-name',
    about: "durability 'power': a reference exists to bytes whose name may not be on the disk",
    witness: 'test/stores/jsonlRefusals.test.ts',
    edits: [['if (durable) await syncDirectory(folder);', '']],
  },
  {
    id: 'failed-append-in-the-row',
    about: 'a failed append to IndexedDB counts in the row of the list',
    witness: 'test/stores/indexedDb.test.ts',
    edits: [
      [
        'let row = this.#row && { ...this.#row };\n      for (const entry of copies)',
        'let row = this.#row;\n      for (const entry of copies)',
      ],
    ],
  },
  {
    id: 'listening-connection-returned',
    about: 'a connection of PostgreSQL goes back to the pool while it listens',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [['connection.release?.(true)', 'connection.release?.()']],
  },
  {
    id: 'lease-from-the-answer',
    about: 'a process counts its lease from the answer, and keeps it longer than the database',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [
      [
        `    const at = this.#database.time.now();
    try {
      const renewed = await this.#ask(this.#statements.renew, asked, [this.leaseMs]);
`,
        `    try {
      const renewed = await this.#ask(this.#statements.renew, asked, [this.leaseMs]);
      const at = this.#database.time.now();
`,
      ],
    ],
  },
  {
    id: 'second-following-cut',
    about: 'the time-out of an earlier following ends a later one',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [
      [
        `  follow(ms: number, isNew: boolean): void {
    this.#stopEnd?.();
`,
        `  follow(ms: number, isNew: boolean): void {
`,
      ],
    ],
  },
  {
    id: 'follower-waits-for-an-item',
    about: 'a follower that stops ends with the next entry',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [
      [
        `        follower.isStopped = true;
        follower.wake();
`,
        `        follower.isStopped = true;
`,
      ],
    ],
  },
  {
    id: 'old-handle-ends-acts',
    about: 'the end of an earlier handle ends the acts of the next one',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [
      [
        'if (this.#takers.get(taker.id)?.taker === taker) this.#takers.delete(taker.id);',
        'this.#takers.delete(taker.id);',
      ],
    ],
  },
  {
    id: 'second-follower-in-a-reply',
    about: 'a follower that joins during a reply of another process does not get its text so far',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [['if (this.#subscription && !isNew) return;', 'if (this.#subscription) return;']],
  },
  {
    id: 'lease-numbered-anew-lost',
    about: 'a lease is lost if its number changed while it was renewed',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [
      [
        '!held.has(holder.id) && holder.epoch === epoch && !holder.isFencing',
        '!held.has(holder.id) && !holder.isFencing',
      ],
    ],
  },
  {
    id: 'blobs-before-the-first-entry',
    about: 'blobs that were stored before the first entry stay when the conversation is deleted',
    witness: 'test/stores/postgres/postgres.test.ts',
    edits: [['arrayText([id, ...rows.map((row) => String(row.id))])', 'arrayText(rows.map((row) => String(row.id)))']],
  },
  {
    id: 'long-entry-without-a-page',
    about: 'the page of an engine that begins with a very long entry is empty',
    witness: 'test/restate/engineObjects.test.ts',
    edits: [['return index > 0 && characters > PAGE_CHARACTERS;', 'return characters > PAGE_CHARACTERS;']],
  },
];
