/**
 * Parallel regions in the inspector's page: every region's state is active, counted when it is entered, and accepts its
 * events.
 */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { type AnyMachineSnapshot, type AnyStateMachine, createActor, createMachine } from 'xstate';
import { activeStatesAt } from '../../inspector/model/chart/activeStates.ts';
import { walker } from '../../inspector/model/chart/inferredPath.ts';
import { Arrivals, type GrowingConversation } from '../../inspector/model/observedActors.ts';
import type { Chart } from '../../src/inspect/chart.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';

const apps: { stop(): unknown }[] = [];
afterEach(() => {
  for (const app of apps.splice(0)) app.stop();
});

/**
 * A player: sound and picture in parallel, inside picture the size and the pause in parallel, and a history of both.
 */
const player = createMachine({
  id: 'player',
  initial: 'on',
  states: {
    on: {
      type: 'parallel',
      on: { OFF: 'off', RESET: { target: '.', reenter: true } },
      states: {
        sound: { initial: 'loud', states: { loud: { on: { MUTE: 'quiet' } }, quiet: { on: { MUTE: 'loud' } } } },
        picture: {
          type: 'parallel',
          states: {
            size: { initial: 'small', states: { small: { on: { GROW: 'large', BOTH: 'large' } }, large: {} } },
            pace: {
              initial: 'plays',
              states: {
                plays: { on: { PAUSE: 'paused', BOTH: 'paused' } },
                paused: { on: { PLAY: 'brief' } },
                brief: { always: 'plays' },
              },
            },
          },
        },
        before: { type: 'history', history: 'deep' },
      },
    },
    off: { on: { ON: 'on.before', FRESH: 'on', PICK: { target: ['on.sound.quiet', 'on.picture.size.large'] } } },
  },
});

/** The page's model of an app after these events. */
function watched(machine: AnyStateMachine, events: readonly string[], at = Number.POSITIVE_INFINITY) {
  let time = 0;
  const records = new RecordLog(() => time++);
  const app = createActor(machine, { inspect: new Observed(records).observe }).start();
  apps.push(app);
  const values = [innermost(app.getSnapshot())];
  for (const type of events) {
    app.send({ type });
    values.push(innermost(app.getSnapshot()));
  }
  const charts = new Map<string, Chart>();
  const arrivals = new Arrivals<GrowingConversation>(() => ({ entries: [] }));
  for (const record of records.since(0)) {
    if (record.type === 'chart') charts.set(record.chart, record.drawn);
    else if (
      record.type !== 'conversation' &&
      record.type !== 'entry' &&
      record.type !== 'status' &&
      record.type !== 'closed'
    )
      arrivals.fact('c', record, charts);
  }
  const [actor] = [...(arrivals.result().get('c')?.observed?.actors.values() ?? [])];
  const chart = charts.get(actor?.chart ?? '');
  if (!actor || !chart) throw new Error('expected an actor with a chart');
  const activeStates = activeStatesAt(walker(chart), actor.path, at, time);
  return { activeStates, actor, values, chart };
}

/** The value of XState: the active states that contain no other active one. */
const innermost = ({
  _nodes,
}: AnyMachineSnapshot & { _nodes: { id: string; parent?: { id: string } }[] }): string[] => {
  const parents = new Set(_nodes.map(({ parent }) => parent?.id));
  return _nodes.flatMap(({ id }) => (parents.has(id) ? [] : [id])).sort();
};

const EVENTS = ['MUTE', 'GROW', 'PAUSE', 'PLAY', 'BOTH', 'OFF', 'ON', 'FRESH', 'PICK', 'RESET'];

describe('an app with parallel regions, nested ones too', () => {
  it('it starts with the first state of every region', () => {
    const { activeStates } = watched(player, []);
    expect([...activeStates.leaves.keys()].sort()).toEqual([
      'player.on.picture.pace.plays',
      'player.on.picture.size.small',
      'player.on.sound.loud',
    ]);
  });

  it('it has the same active states as XState, after every event', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 12 }), (events) => {
        const { activeStates, actor, values } = watched(player, events);
        expect([...activeStates.leaves.keys()].sort()).toEqual(values.at(-1));
        expect([...actor.leaves].sort()).toEqual(values.at(-1));
        // Every state of XState was entered, and no other except those passed at once.
        const leaves = new Set([...activeStates.entered].flatMap(([id]) => (isLeaf(id) ? [id] : [])));
        expect(leaves).toEqual(new Set([...values.flat(), ...(leaves.has(BRIEF) ? [BRIEF] : [])]));
      }),
      { numRuns: 60 },
    );
  });
  const BRIEF = 'player.on.picture.pace.brief';
  const isLeaf = (id: string): boolean => /\.(loud|quiet|small|large|plays|paused|brief|off)$/.test(id);

  it('it counts the entries of each region, and those of one event in two of them', () => {
    const { entered } = watched(player, ['MUTE', 'MUTE', 'BOTH', 'PLAY']).activeStates;
    expect(Object.fromEntries([...entered].filter(([id]) => isLeaf(id)))).toEqual({
      'player.on.sound.loud': 2,
      'player.on.sound.quiet': 1,
      'player.on.picture.size.small': 1,
      'player.on.picture.size.large': 1,
      'player.on.picture.pace.plays': 2,
      'player.on.picture.pace.paused': 1,
      'player.on.picture.pace.brief': 1,
    });
    expect([entered.get('player'), entered.get('player.on'), entered.get('player.on.picture')]).toEqual([1, 1, 1]);
  });

  it('it returns by its history, which is passed and never active', () => {
    const { activeStates } = watched(player, ['MUTE', 'GROW', 'OFF', 'ON']);
    expect([...activeStates.leaves.keys()].sort()).toEqual([
      'player.on.picture.pace.plays',
      'player.on.picture.size.large',
      'player.on.sound.quiet',
    ]);
    expect(activeStates.entered.get('player.on.before')).toBe(1);
    expect(activeStates.entered.get('player.on.sound.loud')).toBe(1);
  });

  it('it lights every transition of the last event, also into two regions at once', () => {
    const lit = (...events: string[]) => watched(player, events).activeStates.lastStep.map(({ target }) => target);
    expect(lit('BOTH')).toEqual(['player.on.picture.size.large', 'player.on.picture.pace.paused']);
    expect(lit('OFF', 'PICK')).toEqual(['player.on.sound.quiet', 'player.on.picture.size.large']);
    expect(lit('BOTH', 'MUTE')).toEqual(['player.on.sound.quiet']);
  });

  it("it keeps the time of each region's entry into its state", () => {
    const { leaves } = watched(player, ['MUTE', 'PAUSE']).activeStates;
    const [sound, size, pace] = ['sound.quiet', 'picture.size.small', 'picture.pace.paused'].map((id) =>
      leaves.get(`player.on.${id}`),
    );
    expect(size).toBeLessThan(sound ?? 0);
    expect(sound).toBeLessThan(pace ?? 0);
  });

  it('it does not join an event without a transition with the previous one', () => {
    const machine = createMachine({
      id: 'm',
      initial: 'a',
      context: { isReady: false },
      states: {
        a: { on: { NEXT: 'b' } },
        b: { on: { READY: { actions: () => undefined } }, always: { guard: () => ready, target: 'c' } },
        c: {},
      },
    });
    let ready = false;
    const early = watched(machine, ['NEXT']).actor.path.length;
    ready = false;
    const records = new RecordLog(() => 0);
    const app = createActor(machine, { inspect: new Observed(records).observe }).start();
    apps.push(app);
    app.send({ type: 'NEXT' });
    ready = true;
    app.send({ type: 'READY' });
    const charts = new Map<string, Chart>();
    const arrivals = new Arrivals<GrowingConversation>(() => ({ entries: [] }));
    for (const record of records.since(0)) {
      if (record.type === 'chart') charts.set(record.chart, record.drawn);
      else if (record.type === 'actor' || record.type === 'transition' || record.type === 'settled')
        arrivals.fact('c', record, charts);
    }
    const [actor] = [...(arrivals.result().get('c')?.observed?.actors.values() ?? [])];
    expect(actor?.leaves).toEqual(['m.c']);
    expect(actor?.path).toHaveLength(early + 1);
  });
});
