/** Defects of stores, each with the test file that must detect it. */
export const stores = [
  {
    id: 'no-fsync',
    about: 'durability power: nothing is synced after an append',
    witness: 'test/stores/jsonlFullDisk.test.ts',
    edits: [["if (this.#durability === 'power') await this.#file.datasync();", '']],
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
      ['const { at = format.begins && 0 } = record;', 'const { at = 0 } = record;'],
      [
        "if (isRecord(value) && lacksHeader(value, format)) return { kind: 'gap', why: 'the header of its run is missing' };",
        'void lacksHeader;',
      ],
    ],
  },
  {
    id: 'torn-cut',
    about: 'a failed append is not rolled back',
    witness: 'test/stores/jsonlFullDisk.test.ts',
    edits: [['await this.#cut().catch(async () => {', 'await Promise.resolve().catch(async () => {']],
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
];
