/** Reports of XState apps that connect with the inspector of `@statelyai/inspect`: what a page receives of each. */
import { describe, expect, it } from 'vitest';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { AppConnection } from '../../src/inspect/xstateApps.ts';

function connectedApp() {
  const records = new RecordLog(() => 0);
  const app = new AppConnection(records, new Observed(records));
  return {
    receive: (message: object): boolean => app.receive(JSON.stringify(message)),
    records: () => [...records.since(0)].map(({ n: _, at: __, ...fact }) => fact),
  };
}

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
