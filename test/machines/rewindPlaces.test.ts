/**
 * The place before a message, in logs of which processes that ended left out any of the runs' starts. Invariant: a rewind
 * keeps everything before the message and its run, and nothing from there on.
 */
import { expect, it } from 'vitest';
import { type LogEntry, placeBefore } from '../../machines/internal.ts';
import { bench } from '../support/agentBench.ts';

const MESSAGES = ['a', 'b', 'c', 'd'];

it('is before the start of its run, or before the message where that start is missing, and in no earlier request', async () => {
  const { conversation } = await bench({ replies: MESSAGES });
  for (const messageId of MESSAGES) await conversation.send('hi', { messageId }).result;
  const whole = conversation.log();
  const starts = whole.filter(({ type }) => type === 'run-started');
  expect(starts).toHaveLength(MESSAGES.length);
  for (let missing = 0; missing < 2 ** starts.length; missing += 1) {
    const isMissing = (entry: LogEntry): boolean =>
      ((missing >> starts.indexOf(entry)) & 1) === 1 && starts.includes(entry);
    const log = whole.filter((entry) => !isMissing(entry)).map((entry, seq) => ({ ...entry, seq }));
    for (const messageId of MESSAGES) {
      const at = log.findIndex((entry) => entry.type === 'user-message' && entry.messageId === messageId);
      const { runId } = log[at] ?? {};
      const first = log.findIndex((entry) => entry.runId === runId);
      expect([missing, messageId, placeBefore(log, messageId)]).toEqual([missing, messageId, { toSeq: first - 1 }]);
    }
  }
});
