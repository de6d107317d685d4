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
