/** The observations of an inspector: conversations, apps of XState, and slow pages. */
import { createInspector, createWebSocketInspector } from '@statelyai/inspect';
import { Observable, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { assign, createActor, createMachine, fromPromise } from 'xstate';
import { ConfigurationError, createAgent, subAgents } from '../../src/index.ts';
import { chartOf } from '../../src/inspect/chart.ts';
import { startInspector, statelyInspector } from '../../src/inspect/index.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { type Channel, PageConnection } from '../../src/inspect/page.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import type { Recorded, ToPage } from '../../src/inspect/wire.ts';
import { chartOfConfig } from '../../src/inspect/xstateApps.ts';
import { faultyStore } from '../journals/recordedRun.ts';
import { call, during, scripted, t } from '../support/scriptedReplies.ts';
import { VirtualClock } from '../support/virtualClock.ts';
import { approvedTool, SECRET } from './approvalTool.ts';
import { kept } from './kept.ts';
import { Watcher } from './pageWatcher.ts';

const all = (records: RecordLog): Recorded[] => [...records.since(0)];
type Of<Type extends Recorded['type']> = Extract<Recorded, { type: Type }>;
const of = <Type extends Recorded['type']>(records: RecordLog, type: Type): Of<Type>[] =>
  (JSON.parse(JSON.stringify(all(records))) as Recorded[]).filter((each): each is Of<Type> => each.type === type);

/** The taken arrows, with the names of the actors. */
function arrows(records: RecordLog): string[] {
  const names = new Map(of(records, 'actor').map(({ actor, name, parent }) => [actor, parent ? name : 'root']));
  return of(records, 'transition').flatMap(({ actor, event, step, taken }) =>
    taken.map(
      ({ source, targets, guard, index }) =>
        `${names.get(actor)} ${step} ${event}: ${source}/${index} -> ${targets} ${guard ?? ''}`,
    ),
  );
}

const observing = (): { records: RecordLog; observed: Observed } => {
  const records = new RecordLog(() => 0);
  return { records, observed: kept(new Observed(records)) };
};

describe('an observer of conversations', () => {
  it('it observes the same arrows with either interpreter', async () => {
    const seen = async (interpreter: 'compiled' | 'xstate'): Promise<string[]> => {
      const { records, observed } = observing();
      const model = scripted([[t('I note it.'), call('c1', 'note', { text: 'x' })], 'Noted.']);
      const agent = kept(createAgent({ model, interpreter, tools: [approvedTool], inspect: observed.observe }));
      const conversation = await agent.open('same');
      await conversation.send('Go.').result;
      await conversation.decide({ callId: 'c1', suspension: 1, action: 'approve' });
      await conversation.resume().result;
      return arrows(records);
    };
    const arrowsOf = await seen('compiled');
    // XState settles a parent before its child's first signals. The acts of each actor are the same.
    expect((await seen('xstate')).sort()).toEqual([...arrowsOf].sort());
    expect(arrowsOf.length).toBeGreaterThan(40);
    expect(arrowsOf).toContainEqual(
      expect.stringMatching(/^run \d+ .*RUN\.active\.LlmCall.* -> RUN\.active\.AfterInf/),
    );
  });

  it('it may connect during a run, receives the running actors, and may disconnect', async () => {
    const { records, observed } = observing();
    let detach = (): void => {};
    const attach = (): void => {
      detach = observed.attach(conversation);
    };
    const model = scripted([during(attach, [call('c1', 'note', { text: 'x' })]), 'Later.']);
    const agent = kept(createAgent({ model, tools: [approvedTool] }));
    const conversation = await agent.open('late');
    await conversation.send('Go.').result;
    const actors = of(records, 'actor').map(({ name, late, parent }) => [parent ? name : 'root', late ?? false]);
    expect(actors).toEqual([
      ['root', true],
      ['run', true],
      ['round', false],
      ['call-0', false],
    ]);
    expect(of(records, 'entry').map(({ entry }) => entry)).toEqual(conversation.log());
    expect(of(records, 'status').at(-1)).toMatchObject({ status: 'waiting' });
    detach();
    detach();
    const { next } = records;
    await conversation.cancel();
    expect(records.next).toBe(next);
    expect(of(records, 'closed')).toHaveLength(1);
    // Again, and its log continues from its last entry.
    observed.attach(conversation);
    expect(of(records, 'entry').map(({ entry }) => entry)).toEqual(conversation.log());
  });

  it('it observes the conversations of sub-agents below their call', async () => {
    const { records, observed } = observing();
    const model = scripted([
      [call('s1', 'spawn_agents', { tasks: [{ id: 'one', task: 'Look.' }] })],
      during(() => observed.attach(conversation), [call('done', 'submit_result', { result: 'seen' })]),
      'It was seen.',
    ]);
    const agent = kept(createAgent({ model, tools: [subAgents()] }));
    const conversation = await agent.open('above');
    await conversation.send('Have it looked at.').result;
    const [first, child] = of(records, 'conversation');
    expect(first).toMatchObject({ conversation: 'above' });
    expect(child).toMatchObject({ parent: { conversation: 'above', callId: 's1' } });
    const ofChild = of(records, 'actor').filter(({ conversation: id }) => id === child?.conversation);
    expect(ofChild.map(({ name }) => name)).toContain('run');
    expect(of(records, 'entry').some(({ conversation: id }) => id === child?.conversation)).toBe(true);
    expect(of(records, 'closed')).toMatchObject([{ conversation: child?.conversation }]);
    await expect(observed.control({ type: 'cancel', conversation: child?.conversation ?? '' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  it('it keeps its limits, drops moves first, and reports the number of dropped records', async () => {
    const records = new RecordLog(() => 0, { moves: 100, events: 100, rest: 100 });
    records.add({ type: 'conversation', conversation: 'c', of: 'xstate' });
    for (let index = 0; index < 1000; index++)
      records.add({ type: 'settled', actor: 'a', event: 'tick', value: `${index}`, status: 'active' });
    expect(all(records).length).toBeLessThan(130);
    expect(all(records)[0]).toMatchObject({ type: 'conversation' });
    expect(all(records).at(-1)).toMatchObject({ n: 1000, value: '999' });
    expect(records.dropped).toBe(1001 - all(records).length);
    for (let index = 0; index < 1000; index++)
      records.add({ type: 'status', conversation: 'c', status: index % 2 ? 'idle' : 'active' });
    expect(all(records).length).toBeLessThan(260);
    expect(all(records)[0]).toMatchObject({ type: 'conversation' });
    expect([...records.since(records.next - 1)]).toHaveLength(1);
    expect([...records.since(records.next)]).toHaveLength(0);
  });
});

class TestChannel implements Channel {
  readonly frames: string[] = [];
  waiting = 0;
  dropped = false;
  reads = true;
  send(text: string): void {
    this.frames.push(text);
    if (!this.reads) this.waiting += text.length;
  }
  drop(): void {
    this.dropped = true;
  }
  get messages(): ToPage[] {
    return this.frames.flatMap((frame) => JSON.parse(frame) as ToPage[]);
  }
}

describe('a page that observes', () => {
  const watching = (observed: Observed, records: RecordLog) => {
    const clock = new VirtualClock();
    const channel = new TestChannel();
    const { now, setTimer } = clock;
    const options = { records, observed, session: 's', version: '0', control: false, stallMs: 10_000, now, setTimer };
    const page = kept(new PageConnection(channel, { ...options, appContext: () => null }));
    return { clock, channel, page };
  };

  it('H-307 one that never reads costs at most its buffer, and is disconnected', async () => {
    const { records, observed } = observing();
    const { clock, channel, page } = watching(observed, records);
    channel.reads = false;
    page.receive('{"type":"subscribe","from":0}');
    const value = 'x'.repeat(10_000);
    for (let second = 0; second < 30 && !channel.dropped; second++) {
      for (let index = 0; index < 100; index++)
        records.add({ type: 'settled', actor: 'a', event: 'tick', value, status: 'active' });
      await clock.advance(1000);
    }
    expect(channel.dropped).toBe(true);
    expect(channel.frames.join('').length).toBeLessThan(2.5 * 1024 * 1024);
    expect(Math.max(...channel.frames.map(({ length }) => length))).toBeLessThan(1024 * 1024);
    const { length } = channel.frames;
    records.add({ type: 'settled', actor: 'a', event: 'tick', value, status: 'active' });
    await clock.advance(1000);
    expect(channel.frames).toHaveLength(length);
  });

  it('it receives streamed text joined, in its place among the records, and complete if it connects late', async () => {
    const { records, observed } = observing();
    const { clock, channel, page } = watching(observed, records);
    page.receive('{"type":"subscribe","from":0}');
    const later = watching(observed, records);
    const model = scripted([
      during(() => undefined, [t('one '), t('two '), t('three')]),
      async function* () {
        yield t('four ');
        await Promise.resolve();
        later.page.receive('{"type":"subscribe","from":0}');
        yield t('five');
        yield { type: 'finish', reason: 'stop' };
      },
    ]);
    const agent = kept(createAgent({ model, inspect: observed.observe }));
    const conversation = await agent.open('live');
    await conversation.send('Go.').result;
    await conversation.send('On.').result;
    await clock.advance(1000);
    await later.clock.advance(1000);
    const shown = (messages: readonly ToPage[]): string[] =>
      messages.flatMap((message) => {
        if (message.type === 'live') return 'text' in message.signal ? [message.signal.text] : [message.signal.type];
        return message.type === 'entry' && message.entry.type === 'agent-output' ? ['entry'] : [];
      });
    expect(shown(channel.messages)).toEqual(['one two three', 'entry', 'four five', 'entry']);
    expect(shown(later.channel.messages)).toEqual(['entry', 'reset', 'four ', 'five', 'entry']);
  });

  it('it may request a complete event, and receives it without secrets', async () => {
    const { records, observed } = observing();
    const { channel, page } = watching(observed, records);
    const agent = kept(
      createAgent({ model: scripted(['Done.']), inspect: observed.observe, secrets: ['hush-hush-secret'] }),
    );
    const conversation = await agent.open('asked');
    await conversation.send('Keep it: hush-hush-secret.').result;
    page.receive('{"type":"subscribe","from":0}');
    const sent = of(records, 'event').find(({ event }) => event.type === 'message.sent');
    expect(sent).toMatchObject({ isPart: true, event: { type: 'message.sent' } });
    page.receive(JSON.stringify({ type: 'payload', ask: 1, n: sent?.n }));
    page.receive(JSON.stringify({ type: 'payload', ask: 2, n: records.next }));
    page.receive(JSON.stringify({ type: 'payload', ask: 3, n: '0' }));
    await Promise.resolve();
    const answers = channel.messages.filter(({ type }) => type === 'answer');
    expect(answers).toMatchObject([{ ask: 1 }, { ask: 2, value: null }]);
    expect(JSON.stringify(answers)).toContain('Keep it: [redacted].');
    expect(page.ignored).toBe(1);
  });

  it('it receives the complete past, and of a flood every entry and as many moves as are readable', async () => {
    const records = new RecordLog(() => 0);
    const observed = kept(new Observed(records));
    const tick = (count: number): void => {
      for (let index = 0; index < count; index++) records.settled('a', 'tick', `${index}`, 'active');
    };
    tick(8000);
    const { clock, channel, page } = watching(observed, records);
    page.receive('{"type":"subscribe","from":0}');
    await clock.advance(1000);
    const shown = (): number => channel.messages.filter(({ type }) => type === 'settled').length;
    expect(shown()).toBe(8000);
    tick(9000);
    records.add({ type: 'status', conversation: 'c', status: 'idle' });
    tick(9000);
    await clock.advance(100);
    expect(shown()).toBe(13_000);
    const gaps = channel.messages.filter((message) => message.type === 'dropped');
    expect(gaps.map(({ count }) => count)).toEqual([4000, 9000]);
    expect(channel.messages.filter(({ type }) => type === 'status')).toHaveLength(1);
    await clock.advance(1000);
    tick(10);
    await clock.advance(100);
    expect(shown()).toBe(13_010);
  });

  it('it releases an ended conversation, and catches up with running ones', async () => {
    const { records } = observing();
    const followed = (id: string) => {
      const signals = new Subject<object>();
      const seen = { id, signals, subscribed: 0, inFlight: null };
      const live$ = new Observable<object>((subscriber) => {
        seen.subscribed += 1;
        return signals.subscribe(subscriber);
      });
      return Object.assign(seen, { live$ });
    };
    const [living, over] = [followed('living'), followed('over')];
    const open = { conversations: () => ({ now: [living, over], stop: () => {} }) };
    const { clock, channel, page } = watching(open as unknown as Observed, records);
    page.receive('{"type":"subscribe","from":0}');
    over.signals.complete();
    const text = 'x'.repeat(300_000);
    living.signals.next({ type: 'text-delta', runId: 'r', text });
    await clock.advance(1000);
    expect([living.subscribed, over.subscribed]).toEqual([2, 1]);
    living.signals.next({ type: 'text-delta', runId: 'r', text: 'on' });
    await clock.advance(1000);
    const live = channel.messages.filter(({ type }) => type === 'live');
    expect(live).toMatchObject([{ conversation: 'living', signal: { text: 'on' } }]);
  });

  it('it receives the number of records that were dropped before it connected', async () => {
    const records = new RecordLog(() => 0, { moves: 10, events: 10, rest: 10 });
    const observed = kept(new Observed(records));
    const { clock, channel, page } = watching(observed, records);
    page.receive('{"type":"subscribe","from":0}');
    for (let index = 0; index < 40; index++)
      records.add({ type: 'settled', actor: 'a', event: 'tick', value: `${index}`, status: 'active' });
    await clock.advance(100);
    const dropped = channel.messages.find(({ type }) => type === 'dropped');
    expect(dropped).toMatchObject({ from: 0, count: records.dropped });
  });
});

const light = createMachine({
  id: 'light',
  initial: 'red',
  context: { count: 0, apiKey: SECRET },
  states: {
    red: { on: { NEXT: { target: 'green', guard: 'mayGo', actions: assign({ count: 1 }) } } },
    green: { initial: 'steady', states: { steady: { on: { BLINK: 'blinking' } }, blinking: {} }, on: { NEXT: '#end' } },
    end: { id: 'end', type: 'final' },
  },
}).provide({ guards: { mayGo: () => true } });

describe('apps of XState', () => {
  it('they connect with the inspector of @statelyai/inspect and are shown live', async () => {
    const inspector = kept(await startInspector());
    const page = kept(await Watcher.open(inspector.url));
    const url = inspector.url.replace('http', 'ws').replace('/?', '/app?');
    const stately = createWebSocketInspector({ url });
    kept({ close: () => stately.stop() });
    const parent = createMachine({
      id: 'crossing',
      invoke: { id: 'north', src: 'light' },
      initial: 'on',
      states: { on: {} },
    });
    const app = createActor(parent.provide({ actors: { light } }), { inspect: stately.inspect }).start();
    const root = await page.see('actor', ({ name, parent: above }) => name === 'crossing' && above === undefined);
    const child = await page.see('actor', ({ name }) => name === 'north');
    expect(child).toMatchObject({ parent: root.actor, conversation: root.conversation });
    const chart = await page.see('chart', ({ drawn }) => drawn.name === 'light');
    expect(chart.chart).toBe(child.chart);
    // That inspector sorts the keys of its messages.
    expect(chart.drawn.root.states.map(({ id }) => id)).toEqual(['end', 'light.green', 'light.red']);
    (app.getSnapshot().children.north as { send(event: object): void }).send({ type: 'NEXT', password: SECRET });
    await page.see(
      'settled',
      ({ actor, value }) => actor === child.actor && JSON.stringify(value) === '{"green":"steady"}',
    );
    const [event] = page.all('event').filter(({ event: { type } }) => type === 'NEXT');
    expect(event).toMatchObject({ actor: child.actor, event: { password: '[redacted]' } });
    const context = await page.ask({ type: 'context', actor: child.actor });
    expect(context).toMatchObject({ value: { count: 1, apiKey: '[redacted]' } });
    expect(JSON.stringify(page.messages)).not.toContain(SECRET);
    app.stop();
    stately.stop();
    await page.see('status', ({ conversation, status }) => conversation === root.conversation && status === 'gone');
  });

  it('they are observed in the same process, with their transitions', async () => {
    const { records, observed } = observing();
    const loads = createMachine({
      id: 'loads',
      initial: 'busy',
      states: { busy: { invoke: { id: 'work', src: 'work', onDone: 'ready' } }, ready: { type: 'final' } },
    }).provide({ actors: { work: fromPromise(async () => 'done') } });
    const app = createActor(loads, { inspect: observed.observe }).start();
    await new Promise<void>((resolve) => void app.subscribe({ complete: resolve }));
    expect(of(records, 'conversation')).toMatchObject([{ conversation: 'loads-1', of: 'xstate' }]);
    const [root, work] = of(records, 'actor');
    expect(work).toMatchObject({ name: 'work', parent: root?.actor });
    expect(work?.chart).toBeUndefined();
    expect(arrows(records)).toEqual(['root 0 xstate.done.actor.work: loads.busy/0 -> loads.ready ']);
    expect(of(records, 'stopped').map(({ actor }) => actor)).toEqual([work?.actor, root?.actor]);
    expect(of(records, 'stopped').at(-1)).toMatchObject({ status: 'done' });
  });

  it('they accept the events of their current state, and no others; actors of a conversation accept none', async () => {
    const { records, observed } = observing();
    const app = createActor(light, { inspect: observed.observe }).start();
    const agent = kept(createAgent({ model: scripted([]), inspect: observed.observe }));
    await agent.open('c');
    const [root, conversation] = ['x', 'c'].map((name) =>
      of(records, 'actor').find((each) => (name === 'c') === (each.conversation === 'c')),
    );
    const send = (actor = '', type = '') =>
      observed.control({ type: 'event', conversation: '', actor, event: { type } });
    expect(await send(root?.actor, 'NEXT')).toEqual({ sent: true });
    expect(app.getSnapshot().value).toEqual({ green: 'steady' });
    await expect(send(root?.actor, 'STEADY')).rejects.toThrow('an event that the actor takes now, got STEADY');
    await expect(send(root?.actor, 'xstate.stop')).rejects.toThrow('got xstate.stop');
    expect(app.getSnapshot().status).toBe('active');
    await expect(send(conversation?.actor, 'cancel.requested')).rejects.toThrow('of an XState app of this process');
    await expect(send('a99', 'GO')).rejects.toThrow('of an XState app of this process');
    expect(
      of(records, 'conversation')
        .filter(({ takesEvents }) => takesEvents)
        .map((each) => each.of),
    ).toEqual(['xstate']);
  });

  it('they end as without an observer, even if their outputs have getters with effects', () => {
    const records = new RecordLog(() => 0);
    const odd = {
      get end(): never {
        throw new Error('not now');
      },
    };
    const brief = createMachine({
      initial: 'on',
      states: { on: { on: { GO: 'off' } }, off: { type: 'final' } },
      output: () => odd,
    });
    const app = createActor(brief, { inspect: new Observed(records).observe }).start();
    app.send({ type: 'GO' });
    expect(app.getSnapshot().status).toBe('done');
    expect(of(records, 'stopped').map(({ status }) => status)).toEqual(['done']);
  });

  it('a configuration from JSON is drawn like the machine itself', () => {
    const drawn = chartOfConfig(JSON.parse(JSON.stringify(light.config)));
    expect(drawn).toEqual(chartOf(light));
  });

  it('invalid messages have no effect', () => {
    for (const config of [null, 7, [], { states: { a: { on: { X: [null, 3, { target: {} }] } } } }, { states: [1] }])
      expect(chartOfConfig(config).root.states).toBeInstanceOf(Array);
  });
});

describe('the inspector of @statelyai/inspect', () => {
  it.each([
    ['the inspector itself', (inspector: object) => inspector],
    ['its observer', (inspector: { inspect: object }) => inspector.inspect],
    ['the adapter around it', (inspector: object) => statelyInspector(inspector as never)],
  ])('it is accepted as inspect: %s', async (_, inspectOf) => {
    const inspectionEvents: { type: string; sessionId: string; name?: string; snapshot?: { context?: object } }[] = [];
    const inspector = createInspector({ send: (event) => void inspectionEvents.push(event as never) });
    const warned: unknown[] = [];
    const { warn } = console;
    console.warn = (warning) => void warned.push(warning);
    try {
      const inspect = inspectOf(inspector as never) as never;
      const model = scripted(['One.', 'Two.']);
      const agent = kept(createAgent({ model, inspect }));
      for (const id of ['first', 'second']) await (await agent.open(id)).send(SECRET).result;
      await new Promise((resolve) => setTimeout(resolve, 20));
    } finally {
      console.warn = warn;
    }
    expect(warned).toEqual([]);
    const roots = inspectionEvents.filter((each) => each.type === '@xstate.actor' && each.name !== 'run');
    expect(roots.map((each) => each.name)).toEqual(['first', 'second']);
    expect(new Set(roots.map(({ sessionId }) => sessionId)).size).toBe(2);
    expect(inspectionEvents.some(({ type, snapshot }) => type === '@xstate.snapshot' && snapshot?.context)).toBe(true);
  });

  it('it receives contexts without credentials through the adapter', async () => {
    const inspectionEvents: object[] = [];
    const inspector = createInspector({ send: (event) => void inspectionEvents.push(event) });
    const app = createActor(light, { inspect: statelyInspector(inspector) as never }).start();
    app.send({ type: 'NEXT', password: SECRET } as never);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const eventText = JSON.stringify(inspectionEvents.map((each) => ({ ...each, definition: undefined })));
    expect(eventText).toContain('[redacted]');
    expect(eventText).toContain('"count":1');
    expect(eventText).not.toContain(SECRET);
  });

  it('it receives no secret of the agent through an adapter that has them, in messages or errors', async () => {
    const secret = 'hush hush';
    const inspectionEvents: object[] = [];
    const inspector = createInspector({ send: (event) => void inspectionEvents.push(event) });
    const inspect = statelyInspector(inspector, { secrets: [secret] });
    const append = (): never => {
      throw new Error(`no disk for ${secret}`);
    };
    const store = faultyStore({ append, atOnce: false });
    const agent = kept(createAgent({ model: scripted(['One.']), store, inspect, secrets: [secret] }));
    const { error } = await (await agent.open('c')).send(`${'x'.repeat(497)}${secret}`).result;
    expect(error?.message).toContain('no disk for [redacted]');
    await new Promise((resolve) => setTimeout(resolve, 20));
    const eventText = JSON.stringify(inspectionEvents.map((each) => ({ ...each, definition: undefined })));
    expect(eventText).toContain('no disk for [redacted]');
    expect(eventText).not.toContain(secret);
    expect(eventText).not.toContain('xhu');
  });

  it('an option of the adapter that does not exist, or is none, is refused', () => {
    const made = (options: unknown) => () => statelyInspector({ next: () => undefined }, options as never);
    expect(made({ secret: ['hush'] })).toThrow('statelyInspector: the option secret is unknown; known are secrets');
    expect(made({ secrets: 'hush' })).toThrow('statelyInspector: secrets must be a list of strings');
    expect(made(null)).toThrow(ConfigurationError);
  });

  it('a value that cannot observe is refused', () => {
    for (const none of [{ inspect: {} }, {}, undefined, null, 'x'])
      expect(() => statelyInspector(none as never)).toThrow(/needs an inspector/);
    expect(() => createAgent({ model: scripted([]), inspect: {} as never })).toThrow(/inspect/);
  });
});
