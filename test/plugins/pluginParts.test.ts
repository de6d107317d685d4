/** Parts of plugins, each alone: refused fields, called phases, observers of work, and the runs that a hook stopped. */
import { describe, expect, it } from 'vitest';
import type { LogEntry, Phase } from '../../machines/internal.ts';
import { ConfigurationError } from '../../src/index.ts';
import { checkPlugin, PHASES, type Plugin, phasesOf } from '../../src/plugins/plugin.ts';
import { RunStops } from '../../src/plugins/runStops.ts';
import { OBSERVES_WORK, type WorkObserver, workObserverOf } from '../../src/plugins/workObserver.ts';

describe('a plugin', () => {
  const phase = (): undefined => undefined;

  it.each(PHASES)('with the phase %s has a function there, and that phase alone is called', (name) => {
    const plugin = { name: 'p', [name]: phase } as Plugin;
    expect(() => checkPlugin(plugin)).not.toThrow();
    const called = Object.entries(phasesOf([{ name: 'q' }, plugin])).filter(([, isCalled]) => isCalled);
    expect(called).toEqual([[name, true]]);
    expect(Object.keys(phasesOf([]))).toEqual([...PHASES]);
    for (const value of [1, 'x', {}, null, true])
      expect(() => checkPlugin({ name: 'p', [name]: value } as never)).toThrow(new RegExp(`plugin "p".*${name}`));
    expect(() => checkPlugin({ name: 'p', [`${name}s`]: phase } as never)).toThrow(new RegExp(`${name}s`));
  });

  it.each([undefined, null, 7, {}, { name: '' }, { name: 7 }, { runStart: phase }])(
    '%o is refused, since it has no name',
    (plugin) => {
      expect(() => checkPlugin(plugin as never)).toThrow(ConfigurationError);
    },
  );

  it.each([
    [true, true],
    [false, true],
    [undefined, true],
    ['yes', false],
    [1, false],
    [null, false],
  ])('may be required: %j is accepted: %s', (required, isAccepted) => {
    const check = () => checkPlugin({ name: 'p', required } as never);
    if (isAccepted) expect(check).not.toThrow();
    else expect(check).toThrow(/plugin "p".*required/);
  });

  it('of a class may have members of its own, and a literal may have values of its own', () => {
    class Own {
      name = 'own';
      helper(): void {}
      runStart(): void {}
    }
    expect(() => checkPlugin(new Own())).not.toThrow();
    expect(() => checkPlugin({ name: 'p', mode: 'plan' } as never)).not.toThrow();
    expect(phasesOf([new Own()]).runStart).toBe(true);
    expect(() => checkPlugin({ name: 'p', helper: phase } as never)).toThrow(/helper/);
  });
});

describe('observers of work', () => {
  type ObserverCall = [observer: string, ...unknown[]];
  const conversation = { id: 'c' } as never;

  function plugin(name: string, calls: ObserverCall[]): Plugin {
    const observer: WorkObserver = {
      requested: (runId) => void calls.push([name, 'requested', runId]),
      withdrawn: (runId) => void calls.push([name, 'withdrawn', runId]),
      logged: (entry) => void calls.push([name, 'logged', entry]),
      ended: (run) => void calls.push([name, 'ended', run]),
      async around(work, act) {
        calls.push([name, 'begins', work]);
        const value = await act();
        calls.push([name, 'ends', value]);
        return value;
      },
    };
    const observe = (observed: unknown): WorkObserver => {
      calls.push([name, 'observes', observed]);
      return observer;
    };
    return { name, [OBSERVES_WORK]: observe } as Plugin;
  }

  it.each([0, 1, 2, 3])(
    '%i of them receive everything, in the order of the plugins, the first around all others',
    async (count) => {
      const calls: ObserverCall[] = [];
      const names = ['a', 'b', 'c'].slice(0, count);
      const plugins = names.flatMap((name): Plugin[] => [{ name: 'other' }, plugin(name, calls)]);
      const observer = workObserverOf(plugins, conversation);
      expect(calls.splice(0)).toEqual(names.map((name) => [name, 'observes', conversation]));
      if (count === 0) return expect(observer).toBeUndefined();
      const [entry, run, work, value] = [{ seq: 1 }, { runId: 'r' }, { kind: 'tool' }, { kind: 'reply' }];
      observer?.requested('r');
      observer?.withdrawn('s');
      observer?.logged(entry as never);
      observer?.ended(run as never);
      const expected = [
        ['requested', 'r'],
        ['withdrawn', 's'],
        ['logged', entry],
        ['ended', run],
      ];
      expect(calls.splice(0)).toEqual(expected.flatMap((each) => names.map((name) => [name, ...each])));
      let acts = 0;
      const act = async () => {
        acts += 1;
        return value as never;
      };
      expect(await observer?.around(work as never, act)).toBe(value);
      expect([acts, calls]).toEqual([
        1,
        [...names.map((name) => [name, 'begins', work]), ...[...names].reverse().map((name) => [name, 'ends', value])],
      ]);
    },
  );
});

describe('a run that a hook stopped', () => {
  const CODE = 'hook_stopped';
  const entry = (fields: object): LogEntry => ({ seq: 0, at: 0, conversationId: 'c', ...fields }) as LogEntry;
  const stopped = (runId: string, reason: unknown = `because of ${runId}`) =>
    entry({ type: 'diagnostic', code: CODE, runId, detail: { runId, reason } });
  const started = (runId: string) => entry({ type: 'run-started', runId });
  const resumed = (runId: string, of: string) => entry({ type: 'run-resumed', runId, of });

  it.each<[string, LogEntry[], string | undefined]>([
    ['no run', [started('r')], undefined],
    ['itself, in another process', [started('r'), stopped('r')], undefined],
    ['the run that it resumes', [started('a'), stopped('a'), resumed('r', 'a')], 'because of a'],
    ['the first run of several', [started('a'), stopped('a'), resumed('b', 'a'), resumed('r', 'b')], 'because of a'],
    ['the last run of several', [started('a'), resumed('b', 'a'), stopped('b'), resumed('r', 'b')], 'because of b'],
    ['a run of another cycle', [started('a'), stopped('a'), started('b'), resumed('r', 'b')], undefined],
    ['a run that another one resumes', [started('a'), stopped('a'), resumed('b', 'a'), started('r')], undefined],
    ['one whose reason is lost', [started('a'), stopped('a', 7), resumed('r', 'a')], 'a hook stopped it'],
    [
      'one with another diagnostic',
      [
        started('a'),
        entry({ type: 'diagnostic', code: 'other', detail: { runId: 'a', reason: 'x' } }),
        resumed('r', 'a'),
      ],
      undefined,
    ],
    ['one without a detail', [started('a'), entry({ type: 'diagnostic', code: CODE }), resumed('r', 'a')], undefined],
  ])('inherits the stop of %s', (_, entries, reason) => {
    const stops = new RunStops({ entries, diagnose: () => undefined });
    expect([stops.of('r'), stops.of('r'), stops.ofItself('r')]).toEqual([reason, reason, undefined]);
  });

  it('has its first reason, in the log once, until it is forgotten, and no other run has it', () => {
    const diagnostics: unknown[] = [];
    const stops = new RunStops({ entries: [], diagnose: (...each) => void diagnostics.push(each) });
    for (const reason of ['one', 'two']) stops.stop('r', reason);
    stops.stop('s', 'three');
    expect(['r', 's', 't'].map((id) => [stops.of(id), stops.ofItself(id)])).toEqual([
      ['one', 'one'],
      ['three', 'three'],
      [undefined, undefined],
    ]);
    expect(diagnostics).toEqual([
      [CODE, { runId: 'r', reason: 'one' }],
      [CODE, { runId: 's', reason: 'three' }],
    ]);
    stops.forget('r');
    stops.forget('r');
    expect([stops.of('r'), stops.of('s')]).toEqual([undefined, 'three']);
    stops.stop('r', 'again');
    expect([stops.of('r'), diagnostics.length]).toEqual(['again', 3]);
  });

  it('has its own reason before that of the run that it resumes', () => {
    const stops = new RunStops({ entries: [started('a'), stopped('a'), resumed('r', 'a')], diagnose: () => undefined });
    expect(stops.of('r')).toBe('because of a');
    stops.stop('r', 'own');
    expect([stops.of('r'), stops.ofItself('r')]).toEqual(['own', 'own']);
    stops.forget('r');
    expect([stops.of('r'), stops.ofItself('r')]).toEqual(['because of a', undefined]);
  });
});

it('every phase is listed once', () => {
  expect(new Set<Phase>(PHASES).size).toBe(PHASES.length);
});
