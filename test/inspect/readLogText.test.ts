/** Log files whose lines are JSON and no entries of this library: damaged ones, and those of other backends. */
import { describe, expect, it } from 'vitest';
import { contextsAt } from '../../inspector/model/contextAt.ts';
import { foldLog } from '../../inspector/model/logFacts.ts';
import { readLog } from '../../inspector/model/readLogText.ts';
import { sequenceOf } from '../../inspector/model/sequence.ts';
import { cyclesAt } from '../../inspector/model/stepRows.ts';
import { lanesOf } from '../../inspector/model/timeLanes.ts';
import { runRows } from '../../inspector/model/treeRows.ts';
import { sampleEntries } from '../../machines/log/entryKinds.ts';
import { eventRow } from '../../src/words/entryWords.ts';

describe('a log file', () => {
  it('an entry without what its readers need is shown as a damaged line, and every panel shows the others', async () => {
    const kinds = sampleEntries('c').map(({ type }) => type);
    const call = { type: 'agent-output', runId: 'r', item: { type: 'tool-call', callId: 'c', name: 't', args: {} } };
    for (const type of kinds) {
      const log = [{ type: 'run-started', runId: 'r' }, call, { type, runId: 'r' }, { type, runId: 'r', callId: 'c' }];
      const { entries, broken } = await readLog(log.map((event) => JSON.stringify(event)).join('\n'), 'c.jsonl');
      expect(entries.length + broken.length).toBe(4);
      const index = entries.length - 1;
      const moment = { entries, facts: foldLog(entries), index, now: 0 };
      cyclesAt(moment);
      contextsAt(entries, [index]);
      expect(lanesOf(entries, moment.facts).length).toBeGreaterThan(0);
      expect(sequenceOf(entries, moment.facts, 1, index).length).toBeGreaterThan(0);
      expect(runRows(moment, () => true, true).length).toBeGreaterThan(0);
      expect(entries.map(eventRow)).toHaveLength(entries.length);
    }
    const { broken } = await readLog('{"type":"agent-output"}', 'c.jsonl');
    expect(broken.map(({ why }) => why)).toEqual(['its item cannot be used']);
  });

  it('entries without a number follow the last numbered one, and a number that comes again is a damaged line', async () => {
    const numbers = [0, 3, undefined, 4, 9, undefined];
    const lines = numbers.map((seq) => JSON.stringify({ type: 'notice', code: 'n', text: 't', runId: null, seq }));
    const { entries, broken } = await readLog(lines.join('\n'), 'c.jsonl');
    expect(entries.map(({ seq }) => seq)).toEqual([0, 3, 4, 9, 10]);
    expect(broken.map(({ line, why }) => [line, why])).toEqual([[4, 'its seq is 4, and 5 comes next']]);
  });

  it('a reply of another backend that is one event is shown item by item', async () => {
    const items = [
      { type: 'reasoning', text: 'He greets me.' },
      { type: 'assistant', text: 'Hello.' },
    ];
    for (const event of [{ items }, { item: items }]) {
      const lines = [
        { type: 'user-message', messageId: 'm', content: [] },
        { type: 'agent-output', ...event },
      ];
      const { entries, broken } = await readLog(lines.map((line) => JSON.stringify(line)).join('\n'), 'wire.jsonl');
      expect(broken).toEqual([]);
      expect(entries.map(({ seq }) => seq)).toEqual([0, 1, 2]);
      expect(entries.flatMap((entry) => (entry.type === 'agent-output' ? [entry.item] : []))).toEqual(items);
    }
  });
});
