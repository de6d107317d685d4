/**
 * The resources of a line transport after its streams end, break or fill up: no listener, no held conversation, no
 * endless wait.
 */
import { type EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { type Outgoing, route, sessions, stdioTransport } from '../../src/transports/index.ts';
import { deaf, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

const EVENTS = ['drain', 'close', 'error', 'data', 'end', 'readable'] as const;
const listenersOn = (emitter: EventEmitter): number =>
  EVENTS.reduce((sum, event) => sum + emitter.listenerCount(event), 0);
const line = (message: object): string => `${JSON.stringify({ conversation: 'a', ...message })}\n`;
const HI = line({ type: 'user-message', content: 'hi' });

/** `highWaterMark` of the output: 1 makes every line wait until it is read. */
function lines(replies: readonly Reply[], { highWaterMark = 1_000_000 } = {}) {
  const clock = new VirtualClock();
  const { now, setTimer } = clock;
  const agent = createAgent({ model: scripted(replies), ports: { now, setTimer } });
  onTestFinished(() => agent.close());
  const input = new PassThrough();
  const output = new PassThrough({ highWaterMark, readableHighWaterMark: highWaterMark });
  for (const stream of [input, output]) stream.on('error', () => undefined);
  const before = listenersOn(output);
  const shared = sessions(agent, { setTimer, idleMs: 1_000 });
  const ended = route(agent, stdioTransport({ input, output }), { multiTurn: true, sessions: shared });
  return { agent, clock, input, output, before, ended };
}

const ENDS = {
  'ends between two lines': (input: PassThrough) => input.end(),
  'ends in the middle of a line': (input: PassThrough) => input.end('{"type":"cancel","conver'),
  breaks: (input: PassThrough) => input.destroy(new Error('the pipe broke')),
} as const;
it.each(Object.entries(ENDS))('an input that %s releases its conversation, and the run continues', async (_, end) => {
  const { agent, clock, input, output, before, ended } = lines([deaf(t('a'))]);
  input.write(HI);
  await flush();
  await expect(agent.open('a')).rejects.toMatchObject({ code: 'session_busy' });
  end(input);
  await ended.catch((error: Error) => expect(error.message).toBe('the pipe broke'));
  await flush();
  expect(listenersOn(output)).toBe(before);
  expect(input.destroyed).toBe(true);
  // The run is not ended. The conversation is closed after the run has ended and it has been idle.
  await expect(agent.open('a')).rejects.toMatchObject({ code: 'session_busy' });
  await clock.advance(1_000_000);
  await (await agent.open('a')).close();
});

it('an output that fills up repeatedly has at most one listener of each kind, and none in the end', async () => {
  const { input, output, before, ended } = lines(['one', 'two', 'three', 'four'], { highWaterMark: 1 });
  const outgoing: Outgoing[] = [];
  let most = 0;
  let text = '';
  for (const _ of [1, 2, 3, 4]) {
    const turns = (): number => outgoing.filter(({ type }) => type === 'turn-result').length;
    const { length } = outgoing.filter(({ type }) => type === 'turn-result');
    input.write(HI);
    while (turns() === length) {
      most = Math.max(most, output.listenerCount('drain'), output.listenerCount('close'));
      text += String(output.read() ?? '');
      const whole = text.split('\n');
      text = whole.pop() ?? '';
      outgoing.push(...whole.map((each) => JSON.parse(each) as Outgoing));
      await flush(1);
    }
  }
  expect(outgoing.length).toBeGreaterThan(20);
  // One listener of the transport beside the stream's own.
  expect(most).toBeLessThanOrEqual(2);
  input.end();
  output.resume();
  await ended;
  await flush();
  expect(listenersOn(output)).toBe(before);
});

it.each(['before the first line', 'while a line waits for it to drain'] as const)(
  'an output that breaks %s delays nothing',
  async (moment) => {
    const { input, output, ended } = lines(['one'], { highWaterMark: 1 });
    if (moment === 'before the first line') {
      output.destroy();
      await once(output, 'close');
      input.write(HI);
    } else {
      input.write(HI);
      await flush();
      expect(output.listenerCount('drain')).toBe(1);
      output.destroy();
    }
    await flush();
    input.end(line({ type: 'list', requestId: 'r1' }));
    await ended;
    expect(output.listenerCount('drain')).toBe(0);
  },
);
