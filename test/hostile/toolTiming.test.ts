import { expect, test } from 'vitest';
import type { Tool, ToolContext } from '../../src/index.ts';
import {
  call,
  calls,
  codesOf,
  entriesOf,
  opened,
  outcomeOf,
  plainTool,
  playTool,
  resultOf,
  resultText,
  scripted,
  settle,
  stillClock,
  thenable,
  until,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

type Settle = (value: unknown) => void;

/** A tool that settles when the test permits it, and its arguments. */
function held(name = 'slow') {
  const started: { resolve: Settle; reject: Settle; context: ToolContext }[] = [];
  const tool = plainTool(
    name,
    (_, context: ToolContext) => new Promise((resolve, reject) => void started.push({ resolve, reject, context })),
  );
  return { tool, started };
}

async function running(tool: Tool, clock = stillClock()) {
  const ports = { now: clock.now, setTimer: clock.setTimer, random: () => 0 };
  const model = scripted([calls(call('c1', tool.name))]);
  const conversation = await opened({ model, tools: [tool], ports, policies: { limits: { toolMs: 1_000 } } });
  const run = conversation.send('go');
  await until(() => entriesOf(conversation.log(), 'tool-started').length === 1);
  return { conversation, run, clock };
}

test('H-071 a tool that never settles times out, its signal is aborted, and the run continues', async () => {
  const { tool, started } = held();
  const { conversation, run, clock } = await running(tool);
  await clock.advance(999);
  expect(conversation.status).toBe('active');
  await clock.advance(1);
  expect((await run.result).termination).toBe('NaturalEnd');
  expect(outcomeOf(conversation.log())).toBe('failed timeout');
  expect(resultText(conversation.log())).toContain('1000 ms');
  expect(started[0]?.context.signal.aborted).toBe(true);
  expect(clock.waiting).toBe(0);
});

test.each([
  ['after its time is up', 'failed timeout'],
  ['after the run was cancelled', 'cancelled cancelled'],
])('H-071 a result %s is one diagnostic and never a second result', async (when, outcome) => {
  const { tool, started } = held();
  const { conversation, run, clock } = await running(tool);
  if (when.includes('time')) await clock.advance(1_000);
  else await conversation.cancel();
  await run.result;
  started[0]?.resolve('too late');
  started[0]?.resolve('and again');
  await settle();
  const log = conversation.log();
  expect([outcomeOf(log), codesOf(log)]).toEqual([outcome, ['late_result']]);
  expect(JSON.stringify(log)).not.toContain('too late');
});

test.each(['after its time is up', 'after the run was cancelled'])('a failure %s is ignored', async (when) => {
  const { tool, started } = held();
  const { conversation, run, clock } = await running(tool);
  if (when.includes('time')) await clock.advance(1_000);
  else await conversation.cancel();
  await run.result;
  started[0]?.reject(new Error('aborted'));
  await settle();
  expect(codesOf(conversation.log())).toEqual([]);
});

test('H-071 a tool that obeys its signal by throwing has still timed out', async () => {
  const tool = plainTool(
    'slow',
    (_, { signal }: ToolContext) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  const { conversation, run, clock } = await running(tool);
  await clock.advance(1_000);
  await run.result;
  expect(outcomeOf(conversation.log())).toBe('failed timeout');
});

const twice: [string, (resolve: Settle, reject: Settle) => void][] = [
  ['resolves twice', (resolve) => [resolve('first'), resolve('second')]],
  ['resolves and then rejects', (resolve, reject) => [resolve('first'), reject(new Error('second'))]],
  [
    'resolves and then throws',
    (resolve) => {
      resolve('first');
      throw new Error('second');
    },
  ],
  ['resolves, and again in a timer', (resolve) => [resolve('first'), setImmediate(() => resolve('second'))]],
  [
    'resolves, and rejects in a timer',
    (resolve, reject) => [resolve('first'), setImmediate(() => reject(new Error()))],
  ],
];
test.each(twice)(
  'H-072 of a promise that %s the first value counts, and the other is a diagnostic',
  async (_, then) => {
    const { log, conversation } = await playTool(plainTool('t', () => thenable(then)));
    await settle();
    await settle();
    expect([outcomeOf(log), resultText(log)]).toEqual(['succeeded', 'first']);
    expect(codesOf(conversation.log())).toEqual(['late_result']);
  },
);

test('H-072 of a promise that rejects twice the first error counts', async () => {
  const then = (_: Settle, reject: Settle) => [reject(new Error('first')), reject(new Error('second'))];
  const { log, conversation } = await playTool(plainTool('t', () => thenable(then)));
  await settle();
  expect([outcomeOf(log), resultText(log)]).toEqual(['failed error', 'Error: first']);
  expect(codesOf(conversation.log())).toEqual(['late_result']);
});

test('a promise that never settles times out', async () => {
  const { conversation, run, clock } = await running(plainTool('t', () => thenable(() => undefined)));
  await clock.advance(1_000);
  await run.result;
  expect(outcomeOf(conversation.log())).toBe('failed timeout');
});

test('a nested promise is awaited to its end', async () => {
  const inner = thenable((resolve: Settle) => resolve('deep'));
  const { log } = await playTool(plainTool('t', async () => thenable((resolve: Settle) => resolve(inner))));
  expect(resultText(log)).toBe('deep');
});

test('a real promise settles only once, whatever the tool tries', async () => {
  const tool = plainTool(
    't',
    () =>
      new Promise((resolve, reject) => {
        resolve('first');
        resolve('second');
        reject(new Error('third'));
        throw new Error('fourth');
      }),
  );
  const { log } = await playTool(tool);
  expect([outcomeOf(log), resultText(log), codesOf(log)]).toEqual(['succeeded', 'first', []]);
});

const listeners: [string, (signal: AbortSignal) => void][] = [
  [
    'throws',
    (signal) =>
      signal.addEventListener('abort', () => {
        throw new Error('listener');
      }),
  ],
  ['rejects', (signal) => signal.addEventListener('abort', async () => Promise.reject(new Error('listener')))],
  [
    'is an object that throws',
    (signal) =>
      signal.addEventListener('abort', {
        handleEvent() {
          throw new Error('listener');
        },
      }),
  ],
  [
    'is set as onabort and throws',
    (signal) => {
      signal.onabort = () => {
        throw new Error('listener');
      };
    },
  ],
];
test.each(listeners)('an abort listener of a tool that %s is a diagnostic', async (_, listen) => {
  const tool = plainTool('t', (_args, { signal }: ToolContext) => {
    listen(signal);
    return new Promise(() => undefined);
  });
  const { conversation, run } = await running(tool);
  await run.cancel();
  await settle();
  expect((await run.result).termination).toBe('Cancelled');
  expect(codesOf(conversation.log())).toEqual(['listener_error']);
});

test('abort listeners of a tool work as usual', async () => {
  const heard: string[] = [];
  const tool = plainTool('t', (_, { signal }: ToolContext) => {
    const removed = () => heard.push('removed');
    signal.addEventListener('abort', removed);
    signal.removeEventListener('abort', removed);
    signal.addEventListener('abort', (event) => heard.push(event.type), { once: true });
    signal.addEventListener('abort', null as never);
    signal.onabort = () => heard.push('replaced');
    signal.onabort = () => heard.push(String(signal.reason instanceof DOMException));
    AbortSignal.any([signal]).addEventListener('abort', () => heard.push('any'));
    return new Promise(() => undefined);
  });
  const { conversation, run } = await running(tool);
  await run.cancel();
  expect(heard.sort()).toEqual(['abort', 'any', 'true']);
  expect(codesOf(conversation.log())).toEqual([]);
});

test('a running tool may cancel its own run, send to it, and decide', async () => {
  const { tool, started } = held();
  const { conversation, run } = await running(tool);
  conversation.steer('from inside');
  expect(await conversation.decide({ callId: 'c1', action: 'approve' })).toBe('held');
  await conversation.cancel();
  started[0]?.resolve('late');
  expect((await run.result).termination).toBe('Cancelled');
  expect(resultOf(conversation.log())?.outcome).toBe('cancelled');
});

test('progress may be anything, at any time, and is never stored', async () => {
  const contexts: ToolContext[] = [];
  const ring: unknown[] = [];
  ring.push(ring);
  const tool = plainTool('t', (_, context: ToolContext) => {
    contexts.push(context);
    for (const update of [undefined, null, 1n, ring, () => 1, Symbol('s')]) context.progress(update as never);
    return 'done';
  });
  const { conversation, log } = await playTool(tool);
  contexts[0]?.progress('after the end');
  await settle();
  expect(outcomeOf(log)).toBe('succeeded');
  expect(conversation.log()).toEqual(log);
});
