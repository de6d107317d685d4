/** Reports of XState apps that connect with the inspector of `@statelyai/inspect`, and the records that a page receives of each. */
import { describe, expect, it } from 'vitest';
import type { ChartState } from '../../src/inspect/chart.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { AppConnection, chartOfConfig } from '../../src/inspect/xstateApps.ts';

function connectedApp() {
  const records = new RecordLog(() => 0);
  const app = new AppConnection(records, new Observed(records));
  let next = 0;
  return {
    receive: (message: object): boolean => app.receive(JSON.stringify(message)),
    contextOf: (actor: string) => app.contextOf(actor),
    close: () => app.close(),
    /** The records since the last look. */
    records: () => {
      const fresh = [...records.since(next)].map(({ n: _, at: __, ...fact }) => fact);
      next = records.next;
      return fresh;
    },
  };
}

const actor = (sessionId: string, more: object = {}) => ({
  type: '@xstate.actor',
  sessionId,
  name: sessionId,
  ...more,
});
const event = (sessionId: string, type: string, more: object = {}) => ({
  ...{ type: '@xstate.event', sessionId },
  ...{ event: { type }, ...more },
});
const snapshot = (sessionId: string, fields: object, type?: string) => ({
  ...{ type: '@xstate.snapshot', sessionId, snapshot: fields },
  ...(type !== undefined && { event: { type } }),
});

describe('the actors of an app', () => {
  it('are of one conversation with their root, below their parent, and each is added once', () => {
    const { receive, records } = connectedApp();
    receive(actor('x:0', { rootId: 'x:0' }));
    receive(actor('x:1', { rootId: 'x:0', parentId: 'x:0' }));
    receive(actor('x:2', { rootId: 'x:0' }));
    receive(actor('x:1', { rootId: 'x:0', parentId: 'x:0' }));
    receive(actor('y:0', { rootId: 'y:0' }));
    expect(records()).toEqual([
      { type: 'conversation', conversation: 'x:0-1', of: 'xstate' },
      { type: 'actor', actor: 'a0', conversation: 'x:0-1', name: 'x:0' },
      { type: 'actor', actor: 'a1', conversation: 'x:0-1', name: 'x:1', parent: 'a0' },
      { type: 'actor', actor: 'a2', conversation: 'x:0-1', name: 'x:2' },
      { type: 'conversation', conversation: 'y:0-2', of: 'xstate' },
      { type: 'actor', actor: 'a3', conversation: 'y:0-2', name: 'y:0' },
    ]);
  });

  it('are added by their first report if nobody announced them', () => {
    const { receive, records } = connectedApp();
    expect(receive(event('x:7', 'GO', { sourceId: 'x:8' }))).toBe(true);
    expect(receive(snapshot('x:8', { value: 'b', context: { n: 1 } }))).toBe(true);
    expect(receive(event('x:8', 'ON', { sourceId: 'x:7' }))).toBe(true);
    expect(records()).toMatchObject([
      { type: 'conversation', conversation: 'x:7-1' },
      { type: 'actor', actor: 'a0', name: 'x:7' },
      { type: 'event', actor: 'a0', event: { type: 'GO' } },
      { type: 'conversation', conversation: 'x:8-2' },
      { type: 'actor', actor: 'a1', name: 'x:8' },
      { type: 'settled', actor: 'a1', value: 'b' },
      { type: 'event', actor: 'a1', event: { type: 'ON' }, from: 'a0' },
    ]);
  });

  it('have their state recorded when it differs, and after each event', () => {
    const { receive, records } = connectedApp();
    receive(actor('x:0'));
    records();
    const states: [object, string?][] = [
      [{ value: 'a' }],
      [{ value: 'a' }],
      [{ value: 'a' }, 'GO'],
      [{ value: { p: 'a', q: 'b' } }],
      [{ value: { p: 'a', q: 'b' } }],
    ];
    for (const [fields, type] of states) receive(snapshot('x:0', fields, type));
    expect(records().map((record) => (record.type === 'settled' ? [record.value, record.event] : record))).toEqual([
      ['a', ''],
      ['a', 'GO'],
      [{ p: 'a', q: 'b' }, ''],
    ]);
  });

  it.each(['done', 'error', 'stopped'])('are over with the status %s, and have no context then', (status) => {
    const { receive, records, contextOf } = connectedApp();
    receive(actor('x:0', { snapshot: { value: 'a', context: { n: 1 } } }));
    expect(contextOf('a0')).toEqual({ n: 1 });
    records();
    receive(snapshot('x:0', { value: 'a', context: { n: 2 }, status, error: 'broken' }));
    expect(records()).toEqual([
      { type: 'settled', actor: 'a0', event: '', value: 'a', status },
      { type: 'stopped', actor: 'a0', status, ...(status === 'error' && { error: 'broken' }) },
    ]);
    expect([contextOf('a0'), contextOf('a9')]).toEqual([null, null]);
    receive(event('x:0', 'GO'));
    expect(records()).toEqual([]);
    receive(actor('x:0'));
    receive(event('x:0', 'GO'));
    expect(records()).toMatchObject([
      { type: 'actor', actor: 'a1' },
      { type: 'event', actor: 'a1' },
    ]);
  });

  it('are at most 2000 at a time', () => {
    const { receive, records } = connectedApp();
    for (let index = 0; index < 2001; index++) receive(actor(`x:${index}`, { rootId: 'x:0' }));
    expect(records().filter(({ type }) => type === 'actor')).toHaveLength(2000);
    expect([receive(event('x:2000', 'GO')), receive(event('x:1999', 'GO'))]).toEqual([false, true]);
    receive(snapshot('x:1', { value: 'a', status: 'done' }));
    expect(receive(event('x:2000', 'GO'))).toBe(true);
  });

  it('are gone with their app: each conversation once, and no context remains', () => {
    const { receive, records, contextOf, close } = connectedApp();
    receive(actor('x:0', { snapshot: { value: 'a', context: { n: 1 } } }));
    receive(actor('x:1', { parentId: 'x:0' }));
    receive(actor('y:0'));
    records();
    close();
    const gone = { type: 'status', status: 'gone' };
    expect(records()).toEqual([
      { ...gone, conversation: 'x:0-1' },
      { ...gone, conversation: 'y:0-2' },
    ]);
    expect(contextOf('a0')).toBeNull();
  });
});

it.each([
  {},
  { type: '@xstate.actor' },
  { type: '@xstate.actor', sessionId: '' },
  { type: '@xstate.microstep', sessionId: 'x:0' },
  { type: '@xstate.event', sessionId: 'x:0' },
  { type: '@xstate.event', sessionId: 'x:0', event: { type: 5 } },
  { type: '@xstate.snapshot', sessionId: 'x:0', snapshot: 'a' },
])('the report %j of an app is invalid', (message) => {
  expect(connectedApp().receive(message)).toBe(false);
});

describe('a text that an app reports', () => {
  it('has at most 500 units, and never half a character at its end', () => {
    const { receive, records } = connectedApp();
    const long = `${'a'.repeat(499)}😀`;
    receive({ type: '@xstate.actor', sessionId: 'x:0', name: long, snapshot: { value: long } });
    const [, actor, settled] = records();
    expect(actor).toMatchObject({ type: 'actor', name: 'a'.repeat(499) });
    expect(settled).toMatchObject({ type: 'settled', value: 'a'.repeat(499) });
  });

  it.each([{ message: 'refused: Bearer abcdefghijklmnopqrst' }, 'refused: Bearer abcdefghijklmnopqrst'])(
    'has no credential as the error of a stopped actor: %j',
    (error) => {
      const { receive, records } = connectedApp();
      receive({
        type: '@xstate.actor',
        sessionId: 'x:0',
        name: 'app',
        snapshot: { value: 'a', status: 'error', error },
      });
      expect(records().at(-1)).toMatchObject({ type: 'stopped', status: 'error', error: 'refused: [redacted]' });
    },
  );

  it('has no cut before a credential is removed from it', () => {
    const { receive, records } = connectedApp();
    const error = `${'a '.repeat(245)}sk-proj-abcdefghijklmnop1234`;
    receive({ type: '@xstate.actor', sessionId: 'x:0', name: 'app', snapshot: { value: 'a', status: 'error', error } });
    expect(records().at(-1)).toMatchObject({ error: `${'a '.repeat(245)}[redacted]` });
  });
});

describe('an actor that has stopped', () => {
  it('does not come back with an event that is sent to it later', () => {
    const { receive, records } = connectedApp();
    receive(actor('x:0', { rootId: 'x:0' }));
    receive(actor('x:1', { rootId: 'x:0', parentId: 'x:0' }));
    receive(snapshot('x:1', { value: 'end', status: 'done' }));
    records();
    expect(receive(event('x:1', 'LATE', { sourceId: 'x:0' }))).toBe(true);
    expect(receive(snapshot('x:1', { value: 'end', status: 'done' }))).toBe(true);
    expect(receive(event('x:0', 'GO', { sourceId: 'x:1' }))).toBe(true);
    expect(records()).toEqual([{ type: 'event', actor: 'a0', event: { type: 'GO' } }]);
  });
});

describe('a machine whose states share an id', () => {
  it('is drawn with an id for each state, because a state would be its own parent', () => {
    const inner = { states: { inner: { id: 'order' }, other: { id: 'order.inner' } } };
    const { root } = chartOfConfig({ id: 'order', states: { open: { id: 'order', ...inner }, closed: {} } });
    const idsOf = (state: ChartState): string[] => [state.id, ...state.states.flatMap(idsOf)];
    const ids = idsOf(root);
    expect([ids.length, new Set(ids).size, ids[0]]).toEqual([5, 5, 'order']);
    expect(ids).toContain('order.closed');
  });
});
