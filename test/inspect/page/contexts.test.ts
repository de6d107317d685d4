/** The two contexts that the page compares: at entries of a log, and at the moves of an app's actor. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { pageBench, waitingLog } from './pageBench.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function openPage() {
  const page = await pageBench();
  const contexts = await import('../../../inspector/state/comparedContexts.ts');
  page.server.greet();
  const names = () => {
    const { before, after } = contexts.compared.value ?? {};
    return [before?.name, after?.name];
  };
  return { ...page, ...contexts, names };
}

describe('the contexts of a log', () => {
  async function openLog() {
    const page = await openPage();
    page.server.conversation('a');
    page.server.entries('a', waitingLog('a'));
    page.openConversation('a');
    page.tab.value = 'context';
    return page;
  }

  it('are those at the cursor and before it, while the tab is open', async () => {
    const { names, moveTo, tab, compared } = await openLog();
    expect(names()).toEqual(['entry 6', 'entry 7']);
    moveTo(5);
    expect(names()).toEqual(['entry 4', 'entry 5']);
    const { before, after } = compared.value ?? {};
    expect([before, after].map((moment) => Object(Object(moment?.context).calls).call_0?.reason)).toEqual([
      '',
      'permission',
    ]);
    moveTo(0);
    expect(names()).toEqual(['nothing', 'entry 0']);
    expect(compared.value?.before.context).toEqual({});
    tab.value = 'steps';
    expect(compared.value).toBeUndefined();
  });

  it('may be compared with a moment that is kept, the earlier one first, until another conversation is open', async () => {
    const { names, moveTo, toggleComparison, openConversation, server, openId } = await openLog();
    moveTo(4);
    toggleComparison();
    expect(names()).toEqual(['entry 4', 'entry 4']);
    moveTo(6);
    expect(names()).toEqual(['entry 4', 'entry 6']);
    moveTo(1);
    expect(names()).toEqual(['entry 1', 'entry 4']);
    toggleComparison();
    expect(names()).toEqual(['entry 0', 'entry 1']);
    toggleComparison();
    server.conversation('b');
    server.entries('b', waitingLog('b'));
    openConversation('b');
    expect([openId.value, names()]).toEqual(['b', ['entry 6', 'entry 7']]);
  });
});

/** An app with one actor, and its contexts. */
async function openApp() {
  const page = await openPage();
  const { server } = page;
  const chart = {
    name: 'app',
    root: { id: 'app', key: 'app', type: 'atomic', states: [], transitions: [] },
  } as const;
  let n = 0;
  const at = { at: 0 };
  server.say(
    { n: n++, ...at, type: 'chart', chart: 'app#0', drawn: chart },
    { n: n++, ...at, type: 'conversation', conversation: 'app-1', of: 'xstate' },
    { n: n++, ...at, type: 'actor', actor: 'a0', conversation: 'app-1', name: 'x:0', chart: 'app#0' },
  );
  page.openConversation('app-1');
  page.tab.value = 'context';
  server.take();
  const events = (count: number): void =>
    server.say(
      ...Array.from(
        { length: count },
        () => ({ n: n++, ...at, type: 'event', actor: 'a0', event: { type: 'GO' } }) as const,
      ),
    );
  const event = (): void => events(1);
  /** Waits for a request, and answers it. */
  const answer = async (context: object | null): Promise<unknown> => {
    vi.advanceTimersByTime(150);
    const [request] = server.take();
    if (request) server.say({ type: 'answer', ask: request.ask, value: context as never });
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    return request && { type: request.type, actor: request.actor };
  };
  return { ...page, event, events, answer };
}

describe('the contexts of an app', () => {
  it('are requested after each move of its actor, soon after the last of several, while the tab is open', async () => {
    const { answer, event, names, sampleCount, isOfSamples, tab, server } = await openApp();
    expect(isOfSamples.value).toBe(true);
    expect(names()).toEqual([undefined, undefined]);
    vi.advanceTimersByTime(149);
    expect(server.take()).toEqual([]);
    expect(await answer({ count: 0 })).toEqual({ type: 'context', actor: 'a0' });
    expect(names()).toEqual(['nothing', 'its start']);
    event();
    vi.advanceTimersByTime(100);
    event();
    expect(await answer({ count: 2 })).toBeDefined();
    expect(await answer({ count: 2 })).toBeUndefined();
    // The events have their numbers in the panel of events.
    expect(names()).toEqual(['its start', 'event 4']);
    tab.value = 'steps';
    event();
    expect(await answer({ count: 3 })).toBeUndefined();
    expect(sampleCount.value).toBe(2);
  });

  it('are kept only if they differ, and not of an actor that is gone', async () => {
    const { answer, event, sampleCount } = await openApp();
    await answer({ count: 0 });
    event();
    await answer({ count: 0 });
    event();
    await answer(null);
    expect(sampleCount.value).toBe(1);
    event();
    await answer({ count: 1 });
    expect(sampleCount.value).toBe(2);
  });

  it('may be walked through, and follow the last one again at the end', async () => {
    const { answer, event, names, place, showSample } = await openApp();
    for (let count = 0; count < 3; count++) {
      await answer({ count });
      event();
    }
    showSample(-1);
    expect([place.value, names()]).toEqual([1, ['its start', 'event 3']]);
    showSample(-1);
    showSample(-1);
    expect([place.value, names()]).toEqual([0, ['nothing', 'its start']]);
    showSample(1);
    showSample(1);
    await answer({ count: 3 });
    expect([place.value, names()]).toEqual([3, ['event 4', 'event 5']]);
  });

  it('begin anew with another conversation', async () => {
    const { answer, sampleCount, server, openConversation } = await openApp();
    await answer({ count: 0 });
    server.conversation('b');
    openConversation('b');
    expect(sampleCount.value).toBe(0);
  });
});

describe('the contexts of an app with many events', () => {
  it('are requested after more events than the page keeps', async () => {
    const { events, answer, names } = await openApp();
    for (let times = 0; times < 3; times++) events(2000);
    expect(await answer({ count: 6000 })).toBeDefined();
    events(1);
    expect(await answer({ count: 6001 })).toBeDefined();
    expect(names()).toEqual(['event 6002', 'event 6003']);
  });

  it('are requested while events come at shorter intervals than the page waits', async () => {
    const { events, server } = await openApp();
    for (let times = 0; times < 10; times++) {
      events(1);
      vi.advanceTimersByTime(100);
    }
    expect(server.take().length).toBeGreaterThan(3);
  });

  it('stay those that are compared when older ones are dropped', async () => {
    const { events, answer, names, sampleCount, toggleComparison, showSample } = await openApp();
    for (let count = 0; count < 298; count++) {
      await answer({ count });
      events(1);
    }
    toggleComparison();
    showSample(-1);
    const compared = names();
    for (let count = 298; count < 310; count++) {
      await answer({ count });
      events(1);
    }
    expect([names(), sampleCount.value]).toEqual([compared, 300]);
  });

  it('take a limited amount of memory', async () => {
    const { events, answer, sampleCount, names } = await openApp();
    for (let count = 0; count < 40; count++) {
      await answer({ count, text: 'x'.repeat(1_000_000) });
      events(1);
    }
    expect(sampleCount.value).toBeLessThan(35);
    expect(names()[1]).toBe('event 41');
  });
});
