/** The states of actors whose moves a page does not receive: too many at once, or no longer kept when it connects. */
import { expect, it, onTestFinished } from 'vitest';
import { createActor, createMachine } from 'xstate';
import { Arrivals, type Fact, type GrowingConversation } from '../../inspector/model/observedActors.ts';
import type { Chart } from '../../src/inspect/chart.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { PageConnection } from '../../src/inspect/page.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { readFrame } from '../../src/inspect/wire.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const machine = createMachine({
  id: 'two',
  initial: 'a',
  states: { a: { on: { GO: 'b' } }, b: { on: { GO: 'c' } }, c: { on: { GO: 'b', STAY: {} } } },
});

function observing(limits?: ConstructorParameters<typeof RecordLog>[1]) {
  const clock = new VirtualClock(0, 1);
  const records = new RecordLog(() => 0, limits);
  const observed = new Observed(records);
  const frames: string[] = [];
  const channel = { send: (text: string) => void frames.push(text), waiting: 0, drop: () => undefined };
  const connection = new PageConnection(channel, {
    ...{ records, observed, session: 's', version: '1', control: false, stallMs: 10_000 },
    ...{ appContext: () => null, appStates: () => [], now: clock.now, setTimer: clock.setTimer },
  });
  onTestFinished(() => {
    connection.close();
    observed.close();
  });
  /** The states of all actors as a page shows them. */
  const shown = (): Record<string, readonly string[]> => {
    const charts = new Map<string, Chart>();
    let app: GrowingConversation = { entries: [] };
    const arrivals = new Arrivals(() => app);
    for (const message of frames.flatMap(readFrame)) {
      if (message.type === 'chart') charts.set(message.chart, message.drawn);
      else if (message.type === 'states') {
        for (const state of message.states)
          arrivals.fact('app', { n: 0, at: 0, type: 'settled', event: '', ...state }, charts);
      } else if ('actor' in message) arrivals.fact('app', message as Fact, charts);
    }
    app = arrivals.result().get('app') ?? app;
    return Object.fromEntries([...(app.observed?.actors.values() ?? [])].map(({ name, leaves }) => [name, leaves]));
  };
  return { clock, records, observed, connection, frames, shown };
}

it('are sent when the moves become fewer than a page can receive', async () => {
  const { clock, observed, connection, shown, frames } = observing();
  connection.receive(JSON.stringify({ type: 'subscribe', from: 0 }));
  const actors = ['one', 'two'].map((id) => createActor(machine, { id, inspect: observed.observe }).start());
  for (let times = 0; times < 3001; times++) for (const actor of actors) actor.send({ type: 'GO' });
  await clock.advance(1_000);
  expect(frames.flatMap(readFrame).some(({ type }) => type === 'dropped')).toBe(true);
  expect(shown()).toEqual({ one: ['two.b'], two: ['two.b'] });
  expect(clock.waiting).toBe(0);
});

it('are sent to a page that connects when the moves are no longer kept', async () => {
  const { clock, observed, connection, shown } = observing({ moves: 10, events: 5, rest: 100 });
  const [first, second] = ['one', 'two'].map((id) => createActor(machine, { id, inspect: observed.observe }).start());
  first?.send({ type: 'GO' });
  for (let times = 0; times < 21; times++) second?.send({ type: 'GO' });
  connection.receive(JSON.stringify({ type: 'subscribe', from: 0 }));
  await clock.advance(1_000);
  expect(shown()).toEqual({ one: ['two.b'], two: ['two.b'] });
});

it('are not sent to a page that misses nothing', async () => {
  const { clock, observed, connection, frames } = observing();
  connection.receive(JSON.stringify({ type: 'subscribe', from: 0 }));
  createActor(machine, { inspect: observed.observe }).start().send({ type: 'GO' });
  await clock.advance(1_000);
  expect(frames.flatMap(readFrame).map(({ type }) => type)).not.toContain('states');
});
