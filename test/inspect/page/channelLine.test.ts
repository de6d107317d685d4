/** The connection of the page to an app over a BroadcastChannel. */
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { pageBench } from './pageBench.ts';

afterEach(() => vi.unstubAllGlobals());

it('ends for the page itself when the app has lost it, and for each page when an app begins or ends', async () => {
  await pageBench();
  const { dialChannel } = await import('../../../inspector/state/serverConnection.ts');
  const app = new BroadcastChannel('runchart-inspector:test');
  onTestFinished(() => app.close());
  const pages: string[] = [];
  app.onmessage = ({ data }) => void pages.push(data.page);
  for (const sent of [(page: string) => ({ lost: page }), () => ({ begun: 's' }), () => ({ over: 's' })]) {
    const frames: string[] = [];
    let closedTimes = 0;
    pages.length = 0;
    const line = dialChannel('test')({
      open: () => line.send('hello'),
      frame: (text) => void frames.push(text),
      closed: () => {
        closedTimes += 1;
      },
    });
    onTestFinished(() => line.close());
    await expect.poll(() => pages.length).toBe(1);
    const page = pages[0] as string;
    app.postMessage({ lost: 'another page' });
    app.postMessage({ to: 'another page', frame: 'not for this one' });
    app.postMessage({ to: page, frame: '[]' });
    await expect.poll(() => frames).toEqual(['[]']);
    expect(closedTimes).toBe(0);
    app.postMessage(sent(page));
    await expect.poll(() => closedTimes).toBe(1);
  }
});

it('is lost when the app no longer answers heartbeats, as after its tab was closed', async () => {
  await pageBench();
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { dialChannel } = await import('../../../inspector/state/serverConnection.ts');
  const app = new BroadcastChannel('runchart-inspector:silent');
  onTestFinished(() => app.close());
  const heartbeats: string[] = [];
  let answers = true;
  app.onmessage = ({ data }) => {
    heartbeats.push(data.page);
    if (answers) app.postMessage({ to: data.page, frame: '[]' });
  };
  let [frames, closedTimes] = [0, 0];
  const line = dialChannel('silent')({
    open: () => undefined,
    frame: () => {
      frames += 1;
    },
    closed: () => {
      closedTimes += 1;
    },
  });
  onTestFinished(() => line.close());
  for (let times = 1; times <= 4; times++) {
    vi.advanceTimersByTime(5000);
    await expect.poll(() => frames).toBe(times);
  }
  expect(closedTimes).toBe(0);
  answers = false;
  for (let times = 5; closedTimes === 0 && times < 10; times++) {
    vi.advanceTimersByTime(5000);
    if (closedTimes === 0) await expect.poll(() => heartbeats.length).toBe(times);
  }
  expect([closedTimes, vi.getTimerCount()]).toEqual([1, 0]);
});
