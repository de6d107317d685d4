/** What an inspector keeps of what it was told, and how a page of the inspector takes it. */
import { describe, expect, it } from 'vitest';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { SECRET } from './approved.ts';

describe('what an inspector was told', () => {
  it('is neither read nor copied until somebody asks for it', () => {
    let reads = 0;
    const event = {
      type: 'told',
      get payload() {
        reads += 1;
        return { password: SECRET, text: 'kept' };
      },
    };
    const redacted: object[] = [];
    const redact = (value: object): object => {
      redacted.push(value);
      return value;
    };
    const records = new RecordLog(() => 0, { moves: 10, rest: 10 });
    records.event('a0', undefined, event, redact);
    expect([...records.since(0)]).toEqual([
      { n: 0, at: 0, type: 'event', actor: 'a0', event: { type: 'told' }, isPart: true },
    ]);
    expect([reads, redacted]).toEqual([0, []]);
    const whole = records.eventOf(0);
    expect(whole).toEqual({ type: 'told', payload: { password: '[redacted]', text: 'kept' } });
    expect([reads, redacted]).toEqual([1, [event]]);
    for (let index = 0; index < 10; index++) records.settled('a0', 'tick', `${index}`, 'active');
    expect([records.eventOf(0), records.eventOf(1), records.eventOf(99)]).toEqual([null, null, null]);
  });

  it('makes only the records that are read, in their order, whichever list they are kept in', () => {
    const records = new RecordLog(() => 0, { moves: 10, rest: 10 });
    records.add({ type: 'conversation', conversation: 'c', of: 'runchart' });
    for (let index = 0; index < 4; index++) {
      records.settled('a0', 'tick', `${index}`, 'active');
      records.add({ type: 'status', conversation: 'c', status: 'idle' });
    }
    expect([...records.since(0)].map(({ n }) => n)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(records.countSince(4)).toBe(5);
    const asked: number[] = [];
    const wanted = [...records.since(2, (n) => asked.push(n) < 2)].map(({ n }) => n);
    expect(wanted).toEqual([2, 3, 4, 6, 8]);
    expect(asked).toEqual([3, 5, 7]);
    for (const record of records.since(3)) {
      expect(record.n).toBe(3);
      break;
    }
  });
});
