/** Defects of conversations that several processes share, each with the test file that must detect it. */
const LIVES = 'test/simulation/shared/sharedLives.test.ts';
const DATABASE = 'test/stores/postgres/postgres.test.ts';

export const shared = [
  {
    id: 'lost-answer-taken-as-stored',
    about: 'an append whose answer was lost counts as stored, whatever the log holds',
    witness: LIVES,
    isSlow: true,
    edits: [['if (length === this.#next + batch.texts.length) return;', 'if (length >= this.#next) return;']],
  },
  {
    id: 'refused-append-taken-as-stored',
    about: 'an append that the database refuses counts as stored',
    witness: LIVES,
    isSlow: true,
    edits: [['if (!stored) throw await this.#refused();', 'if (!stored) return;']],
  },
  {
    id: 'append-without-its-epoch',
    about: 'an append does not prove its epoch, so a process that lost its lease still appends',
    witness: DATABASE,
    edits: [
      [
        'where id = $1 and epoch = $2::bigint and length = $3::integer and lease_until > ${NOW}',
        'where id = $1 and length = $3::integer and lease_until > ${NOW} and $2::bigint > 0',
      ],
    ],
  },
  {
    id: 'renewal-after-the-lease',
    about: 'a lease that is over is renewed',
    witness: DATABASE,
    edits: [
      ['where c.lease_until > ${NOW} for update of c skip locked', 'for update of c skip locked'],
      ['where c.id = held.id and c.lease_until > ${NOW} returning c.id', 'where c.id = held.id returning c.id'],
    ],
  },
  {
    id: 'wedged-after-late-judgement',
    about: 'a handle continues although the append that was rejected had been stored',
    witness: DATABASE,
    edits: [
      [
        'if (this.#mustFence && (await this.#fence()) !== this.#next) throw this.#loseForOthers();',
        'if (this.#mustFence) await this.#fence();',
      ],
      [
        'return this.#loseForOthers();\n  }\n\n  /** No append can follow',
        'return this.#conflict();\n  }\n\n  /** No append can follow',
      ],
    ],
  },
  {
    id: 'acts-after-close',
    about: 'a closed handle takes acts until its lease is released',
    witness: DATABASE,
    edits: [
      [
        'this.#end.complete();\n    try {\n      await Promise.all([this.#appends.drained(), this.#blobsPut]);',
        'try {\n      await Promise.all([this.#appends.drained(), this.#blobsPut]);',
      ],
    ],
  },
  {
    id: 'entry-of-a-takeover-again',
    about: 'a reader that comes to another process receives the last entry that it has once more',
    witness: LIVES,
    isSlow: true,
    edits: [['return Number(last) + 1;', 'return Number(last);']],
  },
  {
    id: 'judged-as-stored-after-a-takeover',
    about: 'an append whose answer was lost before a takeover counts as stored',
    witness: LIVES,
    isSlow: true,
    edits: [
      ['if (row && Number(row.count) === count) return this.#next + count;', 'if (row) return this.#next + count;'],
    ],
  },
  {
    id: 'dead-holder-not-replaced',
    about: 'a follower waits for ever for a holder that died in the middle of a run',
    witness: LIVES,
    isSlow: true,
    edits: [['if (this.#options.takesOver && row?.cut_off === true) follower.isOver = true;', '']],
  },
  {
    id: 'message-waits-for-its-run',
    about: 'a request for a message in the queue of a dead holder is answered only when the message counts',
    witness: LIVES,
    isSlow: true,
    edits: [
      [
        'await untilStored(conversation, isIt, ownRun ? Promise.race([isDelivered, ownRun]) : isDelivered);',
        'await (ownRun ? Promise.race([isDelivered, ownRun]) : isDelivered);',
      ],
    ],
  },
  {
    id: 'repeated-message-after-cancel',
    about: 'a message whose run a cancel abandoned is sent again before the store has answered',
    witness: 'test/scenarios/repeatedMessages.test.ts',
    edits: [
      ['if (!commands.isIdle) await commands.allAnswered();', ''],
      ['if (log.hasPendingAppend) await this.#runtime.settled();', ''],
    ],
  },
  {
    id: 'lost-conversation-answers',
    about: 'a process answers from a conversation that it has lost without noticing',
    witness: DATABASE,
    edits: [
      ['return isHeld ? undefined : new SessionBusyError', 'return isHeld || id ? undefined : new SessionBusyError'],
    ],
  },
  {
    id: 'failed-following-kept',
    about: 'after one failure of the database, a process answers every request for a conversation with it',
    witness: 'test/transports/failingDatabase.test.ts',
    edits: [['beginning.catch(() => this.#end(followed));', 'beginning.catch(() => undefined);']],
  },
  {
    id: 'lease-kept-without-database',
    about: 'a lease is kept beyond its end while the database is silent',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [
      [
        'const ms = Math.max(1, oldest + this.leaseMs - now);',
        'const ms = Math.max(1, oldest + 9 * this.leaseMs - now);',
      ],
    ],
  },
  {
    id: 'lease-trusted-too-long',
    about: 'a lease that may be over is taken for held without a question',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [['const SURE_PART = 0.9;', 'const SURE_PART = 2;']],
  },
  {
    id: 'readers-kept-without-database',
    about: 'a process that cannot reach the database keeps its readers',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [['      this.#endWithoutDatabase();\n', '']],
  },
  {
    id: 'act-answered-by-the-last-holder',
    about: 'a holder that has lost its lease answers an act with which the next holder has begun',
    witness: DATABASE,
    edits: [[' and claimed = any(($3::text)::bigint[])', '']],
  },
  {
    id: 'readers-left-alone',
    about: 'readers of a conversation that was idle here wait for ever if it cannot be followed',
    witness: 'test/transports/failingDatabase.test.ts',
    edits: [['.catch(() => this.#broadcasts.get(id)?.end());', '.catch(() => undefined);']],
  },
  {
    id: 'engine-reader-gives-up',
    about: 'a reader of a conversation on Restate ends where the server restarts',
    witness: 'test/restate/engineObjects.test.ts',
    edits: [['if (!isKnown || this.#isStopped || !RunchartError', 'if (true || !RunchartError']],
  },
  {
    id: 'engine-contents-not-kept',
    about: 'restateAgent() ignores its store of large contents',
    witness: 'test/restate/serveAgent.test.ts',
    edits: [['hub: liveHub, store: blobStoreOf(contents)', 'hub: liveHub']],
  },
  {
    id: 'lease-longer-than-renewed',
    about: 'a lease that a renewal left out counts as renewed',
    witness: 'test/stores/postgres/storeParts.test.ts',
    edits: [
      ['if (renewed.has(holder.id)) this.renewed', 'if (renewed.has(holder.id) || held.has(holder.id)) this.renewed'],
    ],
  },
];
