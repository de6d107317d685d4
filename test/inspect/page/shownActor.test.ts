/** The actor whose chart is shown, the actors around it, its state in words, and the coverage of its chart. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { logOf, pageBench, waitingLog } from './pageBench.ts';

afterEach(() => vi.unstubAllGlobals());

async function openPage() {
  const page = await pageBench();
  const shown = await import('../../../inspector/state/shownActor.ts');
  const coverage = await import('../../../inspector/state/chartCoverage.ts');
  page.server.greet();
  page.server.conversation('a');
  page.server.entries('a', waitingLog('a'));
  page.openConversation('a');
  const path = () => shown.crumbs.value.map(({ label, mark }) => [label, mark]);
  return { ...page, ...shown, coverageOf: coverage, path };
}

describe('the actors above the shown one', () => {
  it('are those of the selected row: a run, its round, a call, a model call, the conversation', async () => {
    const { chosen, path } = await openPage();
    const top = ['CONVERSATION', 'waiting'];
    const run = ['RUN 1', 'waiting'];
    const round = ['TOOL_ROUND', 'waiting'];
    const paths: Record<string, unknown> = {};
    for (const key of ['run 0', 'round 0', 'call call_0', 'model 0', 'conversation']) {
      chosen.value = key;
      paths[key] = path();
    }
    expect(paths).toEqual({
      'run 0': [top, run],
      'round 0': [top, run, round],
      'call call_0': [top, run, round, ['note', 'waiting']],
      // The run waits, so its model call is over.
      'model 0': [top, run],
      conversation: [top, run],
    });
  });

  it('are none for a row that the log does not have', async () => {
    const { chosen, crumbs, subject } = await openPage();
    for (const key of ['run 5', 'call other', 'actor a9']) {
      chosen.value = key;
      expect([key, crumbs.value, subject.value]).toEqual([key, [], undefined]);
    }
  });

  it('are the parents of an actor of an app, by the name of its machine if it has none itself', async () => {
    const { server, openConversation, path, chosen, defaultKey } = await openPage();
    const chart = { name: 'light', root: { id: 'light', key: 'light', type: 'atomic', states: [], transitions: [] } };
    let n = 100;
    const actor = (id: string, name: string, parent?: string) =>
      ({
        ...{ n: n++, at: 0, type: 'actor', actor: id, conversation: 'app', name },
        ...(parent && { parent }),
      }) as const;
    server.say(
      { n: n++, at: 0, type: 'chart', chart: 'light#0', drawn: chart as never },
      { n: n++, at: 0, type: 'conversation', conversation: 'app', of: 'xstate' },
      actor('a0', 'promise'),
      { ...actor('a1', 'x:0'), chart: 'light#0' },
      { ...actor('a2', 'lamp', 'a1'), chart: 'light#0' },
      { n: n++, at: 0, type: 'stopped', actor: 'a2', status: 'error', error: 'broken' },
    );
    openConversation('app');
    expect([defaultKey.value, path()]).toEqual(['actor a1', [['light', 'running']]]);
    chosen.value = 'actor a2';
    expect(path()).toEqual([
      ['light', 'running'],
      ['lamp', 'failed'],
    ]);
  });
});

describe('the state in words', () => {
  it('is the phase of a run, and how it ended at its end', async () => {
    const { chosen, subject, stateWord, outcomeOf, activeMark, moveTo, last } = await openPage();
    chosen.value = 'run 0';
    const wordsAt = (index: number) => {
      moveTo(index);
      const one = subject.value;
      return one && [stateWord(one), outcomeOf(one)?.mark, activeMark(one)];
    };
    expect(wordsAt(3)).toEqual(['CommitUser', undefined, 'running']);
    expect(wordsAt(5)).toEqual(['AfterInference', undefined, 'running']);
    expect(wordsAt(last.value)).toEqual(['Suspended', 'waiting', 'running']);
  });

  it('of a call that waited and then ran is that of its result', async () => {
    const { server, chosen, subject, outcomeOf } = await openPage();
    const more = [
      { type: 'decision', callId: 'call_0', suspension: 1, decision: { callId: 'call_0', action: 'approve' } },
      { type: 'run-resumed', of: 'run', runId: 'next' },
      { type: 'tool-started', callId: 'call_0', idempotencyKey: 'k', runId: 'next' },
      { type: 'tool-result', callId: 'call_0', outcome: 'failed', code: 'error', content: [], runId: 'next' },
      { type: 'checkpoint', boundary: 'ToolResultsCommitted', runId: 'next' },
    ];
    server.entries('a', logOf('a', [...waitingLog('a'), ...more] as never).slice(8));
    chosen.value = 'call call_0';
    expect(subject.value && outcomeOf(subject.value)?.mark).toBe('failed');
  });

  it('names a run that failed and one that was cancelled by their ends', async () => {
    const { server, openConversation, subject, outcomeOf, activeMark } = await openPage();
    const ends = { error: 'failed', interrupted: 'cancelled', completed: 'done' };
    for (const [reason, mark] of Object.entries(ends)) {
      server.conversation(reason);
      const stop = { type: 'run-stop', reason, cause: reason === 'completed' ? 'end_turn' : 'model' } as never;
      const boundary = { type: 'checkpoint', boundary: 'RunFinished' } as const;
      server.entries(reason, logOf(reason, [...waitingLog(reason).slice(0, 4), stop, boundary] as never));
      openConversation(reason);
      expect([reason, subject.value?.mark]).toEqual([reason, mark]);
      const active = mark === 'done' ? 'running' : mark;
      expect([reason, subject.value && activeMark(subject.value)]).toEqual([reason, active]);
      expect([reason, subject.value && outcomeOf(subject.value)?.mark]).toEqual([reason, mark]);
    }
  });
});

describe('the coverage of a chart', () => {
  it('counts the states and transitions of all open logs, while it is shown', async () => {
    const { server, coverage, coverageOf } = await openPage();
    const { covered, coverageWords } = coverageOf;
    expect([covered.value, coverageWords([{ id: 'RUN' }], [])]).toEqual([undefined, '']);
    coverage.value = true;
    const entered = (): number => [...(covered.value?.entered.values() ?? [])].reduce((sum, count) => sum + count, 0);
    const [one, states] = [entered(), covered.value?.entered.size ?? 0];
    expect(one).toBeGreaterThan(0);
    server.conversation('b');
    server.entries('b', waitingLog('b'));
    expect([entered(), covered.value?.entered.size]).toEqual([2 * one, states]);
    const [state = ''] = covered.value?.entered.keys() ?? [];
    const [transition = ''] = covered.value?.taken ?? [];
    const arrows = [{ transitions: ['other', transition] }, { transitions: [] }, { transitions: ['other'] }];
    expect(coverageWords([{ id: state }, { id: 'other' }], arrows)).toBe('1 of 2 states, 1 of 2 edges');
  });
});

describe('an actor of an app that has ended', () => {
  const state = (key: string, type = 'atomic') => ({ id: `job.${key}`, key, type, states: [], transitions: [] });
  const root = { id: 'job', key: 'job', type: 'compound', initial: 'on', transitions: [] };
  const chart = { name: 'job', root: { ...root, states: [state('on'), state('done', 'final')] } };

  it.each([
    ['done', 'done', 'done', 'job.done'],
    ['error', 'on', 'failed', undefined],
    ['stopped', 'on', 'done', undefined],
  ] as const)('with %s no longer runs in its last state', async (status, value, mark, outcome) => {
    const { server, openConversation, subject, activeMark, outcomeOf } = await openPage();
    const at = { at: 0, actor: 'a0' };
    server.say(
      { n: 100, at: 0, type: 'chart', chart: 'job#0', drawn: chart as never },
      { n: 101, at: 0, type: 'conversation', conversation: 'app', of: 'xstate' },
      { n: 102, ...at, type: 'actor', conversation: 'app', name: 'job', chart: 'job#0' },
    );
    openConversation('app');
    const marks = () => subject.value && [activeMark(subject.value), outcomeOf(subject.value)?.id];
    expect(marks()).toEqual(['running', undefined]);
    server.say(
      { n: 103, ...at, type: 'settled', event: 'END', value, status },
      { n: 104, ...at, type: 'stopped', status },
    );
    expect(marks()).toEqual([mark, outcome]);
  });
});

describe('a conversation that is observed again', () => {
  it('has the state of its log, not that of actors whose end nobody saw', async () => {
    const { server, conversations, chosen, subject, isAsking, stateWord } = await openPage();
    const walked = await import('../../../inspector/state/chartLayouts.ts');
    const drawn = walked.charts.value.get('RUN')?.chart as never;
    const value = { active: { LlmCall: 'attempting' } };
    server.say(
      { n: 100, at: 4, type: 'chart', chart: 'RUN#0', drawn },
      { n: 101, at: 4, type: 'actor', actor: 'a0', conversation: 'a', name: 'run', chart: 'RUN#0' },
      { n: 102, at: 4, type: 'settled', actor: 'a0', event: '', value, status: 'active' },
    );
    chosen.value = 'run 0';
    expect(isAsking.value).toBe(true);
    server.say(
      { n: 103, at: 9, type: 'closed', conversation: 'a' },
      { n: 104, at: 10, type: 'conversation', conversation: 'a', of: 'runchart' },
    );
    expect([isAsking.value, subject.value && stateWord(subject.value)]).toEqual([false, 'Suspended']);
    expect(conversations.value.get('a')?.observed?.actors.size).toBe(0);
  });
});
