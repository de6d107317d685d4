/** Many short logs for the benches. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The time of the first log. */
export const STARTED = 1_700_000_000_000;

/** Writes short logs, as `jsonlStore` does, with 50 owners. */
export function makeLogs(directory, count) {
  for (let at = 0; at < count; at += 1) {
    const id = `c${at}`;
    const lines = [
      { format: 'runchart-log', version: 1, conversationId: id },
      {
        seq: 0,
        at: STARTED + at,
        type: 'conversation',
        schema: 1,
        cwd: '/srv/app',
        createdAt: STARTED + at,
        owner: `u${at % 50}`,
      },
      {
        seq: 1,
        at: STARTED + at,
        type: 'user-message',
        messageId: 'm',
        kind: 'direct',
        onlyText: 'Pay the rent, please.',
      },
      { seq: 2, at: STARTED + at, type: 'run-stop', runId: 'run', reason: 'completed', cause: 'end_turn' },
    ];
    writeFileSync(join(directory, `${id}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    mkdirSync(join(directory, `${id}.jsonl.lock`));
  }
}
