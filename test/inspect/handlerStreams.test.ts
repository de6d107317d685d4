/** The streams of `inspectorHandler`: their signs of life, and their state after the end of a page, of the last page or of the agent. */
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { inspectorHandlerOf } from '../../src/inspect/inspectorHandler.ts';
import { scripted } from '../support/scriptedReplies.ts';

const BEAT_MS = 15_000;
const GRACE_MS = 60_000;
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

function served() {
  const agent = createAgent({ model: scripted([]) });
  onTestFinished(() => agent.close());
  const handler = inspectorHandlerOf(agent, { authorize: () => true }, { files: () => new Map(), graceMs: GRACE_MS });
  const events = () => handler(new Request('http://test/events'));
  const openPage = async () => {
    const response = await events();
    const reader = response.body?.getReader();
    if (!reader) throw new Error('expected a stream');
    const read = async () => new TextDecoder().decode((await reader.read()).value);
    return { reader, read, id: /data: (.*)/.exec(await read())?.[1] ?? '' };
  };
  const ask = (id: string) =>
    handler(
      new Request(`http://test/requests?page=${id}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"type":"subscribe","from":0}',
      }),
    );
  return { agent, events, openPage, ask };
}

it('a page that waits gets a sign of life every 15 seconds, and one that reads nothing gets no second one', async () => {
  const { openPage } = served();
  const { reader, read } = await openPage();
  for (const _ of [1, 2]) {
    const next = read();
    let isRead = false;
    void next.then(() => {
      isRead = true;
    });
    await vi.advanceTimersByTimeAsync(BEAT_MS - 1);
    expect(isRead).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await next).toBe(': still connected\n\n');
  }
  await vi.advanceTimersByTimeAsync(4 * BEAT_MS);
  expect(await read()).toBe(': still connected\n\n');
  const next = read();
  await vi.advanceTimersByTimeAsync(BEAT_MS - 1);
  await reader.cancel();
  expect(await next).toBe('');
});

it('a page that leaves takes its timer with it, and the last one leaves the grace alone', async () => {
  const { openPage, ask } = served();
  const [one, two] = [await openPage(), await openPage()];
  expect(vi.getTimerCount()).toBe(2);
  await one.reader.cancel();
  expect([vi.getTimerCount(), (await ask(one.id)).status, (await ask(two.id)).status]).toEqual([1, 404, 204]);
  await two.reader.cancel();
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(GRACE_MS);
  expect(vi.getTimerCount()).toBe(0);
});

it.each([
  [GRACE_MS - 1, true],
  [GRACE_MS, false],
])('a page that comes %i ms after the last one is in the same session: %s', async (ms, isSame) => {
  const { openPage, ask } = served();
  const sessionOf = async ({ id, read }: Awaited<ReturnType<typeof openPage>>) => {
    await ask(id);
    return /"session":"([^"]+)"/.exec(await read())?.[1];
  };
  const first = await openPage();
  const session = await sessionOf(first);
  await first.reader.cancel();
  await vi.advanceTimersByTimeAsync(ms);
  const second = await openPage();
  const next = await sessionOf(second);
  expect([session === undefined, next === session]).toEqual([false, isSame]);
  // The grace of the first one does not end the second one.
  await vi.advanceTimersByTimeAsync(BEAT_MS - 1);
  expect((await ask(second.id)).status).toBe(204);
  await second.reader.cancel();
});

it('the end of the agent ends each page, and leaves no timer', async () => {
  const { agent, events, openPage } = served();
  const pages = [await openPage(), await openPage()];
  const ends = pages.map(({ reader }) => reader.read());
  await agent.close();
  expect(await Promise.all(ends)).toEqual(Array(2).fill({ done: true, value: undefined }));
  expect(vi.getTimerCount()).toBe(0);
  expect(await (await events()).text()).toContain('"closed"');
  expect(vi.getTimerCount()).toBe(0);
});
