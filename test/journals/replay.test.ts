import { expect, test } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, ModelError, memoryStore, type Plugin, toolResult } from '../../src/index.ts';
import {
  type RecordedDelivery,
  recordingJournal,
  replayingJournal,
  replayRecording,
  replayUntil,
} from '../../src/journals/index.ts';
import {
  askedTool,
  call,
  calls,
  entriesOf,
  plainTool,
  say,
  scripted,
  settle,
  stillClock,
  until,
} from '../hostile/hostileAgent.ts';
import { expectSame, faultyStore, recorded } from './recordedRun.ts';

const ports = (clock = stillClock()) => ({ now: clock.now, setTimer: clock.setTimer, random: () => 0.5 });

test('a recorded run with parallel tools that end out of order replays to the same log', async () => {
  const gates: (() => void)[] = [];
  const slow = (name: string) => plainTool(name, () => new Promise((resolve) => gates.push(() => resolve(name))));
  const reply = calls({ type: 'text-delta', text: 'hm' }, call('a', 'one'), call('b', 'two'), call('c', 'nobody'));
  const run = await recorded({ model: scripted([reply]), tools: [slow('one'), slow('two')], ports: ports() });
  const { result } = run.conversation.send('go');
  await until(() => gates.length === 2);
  gates[1]?.();
  await settle();
  gates[0]?.();
  expect((await result).termination).toBe('NaturalEnd');
  expect(entriesOf(run.conversation.log(), 'tool-result').map(({ callId }) => callId)).toEqual(['c', 'b', 'a']);
  expectSame(run);
});

test('a recorded run with retries replays without waiting', async () => {
  const clock = stillClock();
  let attempts = 0;
  const model = scripted([]);
  model.stream = async function* () {
    attempts += 1;
    if (attempts < 3) throw new ModelError({ code: 'server', message: 'busy' });
    yield* say('at last');
  };
  const run = await recorded({ model, ports: ports(clock) });
  const { result } = run.conversation.send('go');
  await settle();
  await clock.advance(60_000);
  expect((await result).text).toBe('at last');
  expect(entriesOf(run.conversation.log(), 'model-retry')).toHaveLength(2);
  expectSame(run);
});

test('a suspension, its decision and the resumption replay to the same log', async () => {
  const run = await recorded({ model: scripted([calls(call('a', 'ask'))]), tools: [askedTool('ask')], ports: ports() });
  const { conversation } = run;
  expect((await conversation.send('go').result).termination).toBe('Suspended');
  expect(await conversation.decide({ callId: 'a', action: 'edit', args: { path: 'b' } })).toBe('applied');
  expect(await conversation.decide({ callId: 'a', action: 'approve' })).toBe('conflict');
  expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('unknown');
  expect((await conversation.resume().result).termination).toBe('NaturalEnd');
  expectSame(run);
});

test('steers, followUps and a withdrawn message replay to the same log', async () => {
  const gates: (() => void)[] = [];
  const wait = plainTool('wait', () => new Promise((resolve) => gates.push(() => resolve('ok'))));
  const run = await recorded({ model: scripted([calls(call('a', 'wait'))]), tools: [wait], ports: ports() });
  const { conversation } = run;
  const first = conversation.send('go');
  await until(() => gates.length === 1);
  conversation.steer('hurry');
  const next = conversation.send('then this', { kind: 'followUp' });
  await conversation.send('not this', { kind: 'followUp' }).cancel();
  gates[0]?.();
  await first.result;
  expect((await next.result).termination).toBe('NaturalEnd');
  expectSame(run);
});

test('a run that was cancelled in the middle of a tool replays to the same log', async () => {
  const clock = stillClock();
  const deaf = plainTool('deaf', () => new Promise(() => undefined));
  const run = await recorded({ model: scripted([calls(call('a', 'deaf'))]), tools: [deaf], ports: ports(clock) });
  const sent = run.conversation.send('go');
  await until(() => entriesOf(run.conversation.log(), 'tool-started').length === 1);
  await sent.cancel();
  expect((await sent.result).termination).toBe('Cancelled');
  expectSame(run);
});

test('the state writes of plugins and tools come from the recording', async () => {
  const plugin: Plugin = {
    name: 'p',
    runStart: () => ({ state: { began: true } }),
    beforeInference: () => ({ context: 'be kind' }),
    beforeToolExecute: () => undefined,
    afterToolExecute: ({ result }) => ({ result: [...result, { type: 'text', text: 'seen' }] }),
    runEnd: () => undefined,
  };
  const noted = defineTool({
    name: 'note',
    description: '',
    parameters: z.object({}),
    execute: () => toolResult.success('noted', { state: { note: [1, 2] } }),
  });
  const model = scripted([calls(call('a', 'note'))]);
  const run = await recorded({ model, tools: [noted], plugins: [plugin], ports: ports() });
  await run.conversation.send('go').result;
  expect(run.conversation.state).toEqual({ began: true, note: [1, 2] });
  expectSame(run);
});

test('a conversation that is opened again has a recording of its own, which starts from the earlier entries', async () => {
  const store = faultyStore({ append: () => undefined, atOnce: true });
  const options = { tools: [askedTool('ask')], store, ports: ports() };
  const first = await recorded({ ...options, model: scripted([calls(call('a', 'ask'))]) });
  await first.conversation.send('go').result;
  await first.conversation.close();
  const second = await recorded({ ...options, model: scripted([]) });
  await second.conversation.decide({ callId: 'a', action: 'approve' });
  await second.conversation.resume().result;
  expect(second.entries.length).toBe(first.conversation.log().length);
  expectSame(first);
  expectSame(second);
});

test.each(['replayDecided', 'resume'] as const)(
  'a run that the opening continues by itself (%s) replays from the log right after the opening, up to any line',
  async (onRestart) => {
    const store = memoryStore();
    const options = { tools: [askedTool('ask')], store, policies: { onRestart }, ports: ports() };
    const first = await recorded({ ...options, model: scripted([calls(call('a', 'ask'))]) });
    await first.conversation.send('go').result;
    await first.conversation.decide({ callId: 'a', action: 'approve' });
    await first.conversation.close();
    const second = await recorded({ ...options, model: scripted([]) });
    await until(() => second.conversation.status === 'idle');
    expect(entriesOf(second.entries, 'run-resumed')).toHaveLength(1);
    expectSame(second);
    const { entries } = second;
    const recording = second.recording();
    let length = 0;
    for (let line = 0; line <= recording.length; line++) {
      const { log } = replayUntil({ recording, entries, model: { id: 'm' }, policies: { onRestart } }, line);
      expect(log).toEqual(second.conversation.log().slice(0, log.length));
      expect(log.length).toBeGreaterThanOrEqual(length);
      length = log.length;
    }
    expect(length).toBe(second.conversation.log().length);
  },
);

test('a recording that begins with the repair of an interrupted run replays with its times, up to any line', async () => {
  const clock = stillClock();
  const deaf = plainTool('deaf', () => new Promise(() => undefined));
  const model = scripted([calls(call('a', 'deaf'))]);
  const first = await recorded({ model, tools: [deaf], ports: ports(clock) });
  first.conversation.send('go');
  await until(() => entriesOf(first.conversation.log(), 'tool-started').length === 1);
  const store = memoryStore();
  const handle = await store.open('c');
  await handle.append(first.conversation.log(), 0);
  await handle.close();
  await clock.advance(5_000);
  const again = await recorded({ model: scripted([]), tools: [deaf], store, ports: ports(clock) });
  await clock.advance(5_000);
  await again.conversation.send('and now').result;
  expectSame(again);
});

test('a recording contains no secret, and still replays to the same log', async () => {
  const secrets = ['s3cr3t-value'];
  const tell = plainTool('tell', () => 'the key is s3cr3t-value');
  const model = scripted([calls({ type: 'text-delta', text: 's3cr3t-value!' }, call('a', 'tell'))]);
  const run = await recorded({ model, tools: [tell], secrets, ports: ports() });
  await run.conversation.send('use s3cr3t-value').result;
  expect(JSON.stringify(run.recording())).not.toContain('s3cr3t');
  expect(run.logged()).not.toContain('s3cr3t');
  expectSame(run);
});

test('a recording with a secret replays to the log without it, with the secrets of its agent', async () => {
  const secrets = ['s3cr3t-value'];
  const recording: RecordedDelivery[] = [];
  const journal = recordingJournal((line) => void recording.push(line));
  const tell = plainTool('tell', () => 'the key is s3cr3t-value');
  const model = scripted([calls(call('a', 'tell'))]);
  const agent = createAgent({ model, tools: [tell], secrets, ports: { ...ports(), journal } });
  const conversation = await agent.open('c');
  const entries = conversation.log();
  await conversation.send('use s3cr3t-value').result;
  const replayed = replayRecording({ recording, entries, model, secrets });
  expect(JSON.stringify(replayed)).toBe(JSON.stringify(conversation.log()));
  expect(JSON.stringify(replayed)).not.toContain('s3cr3t');
  await agent.close();
});

test('an incomplete recording replays up to its last line', async () => {
  const model = scripted([calls(call('a', 'echo'))]);
  const run = await recorded({ model, tools: [plainTool('echo', () => 'hi')], ports: ports() });
  await run.conversation.send('go').result;
  const whole = run.conversation.log();
  const recording = run.recording();
  for (let length = 0; length <= recording.length; length++) {
    const log = replayRecording({ recording: recording.slice(0, length), entries: run.entries, model });
    expect(JSON.stringify(log)).toBe(JSON.stringify(whole.slice(0, log.length)));
    if (length === recording.length) expect(log).toHaveLength(whole.length);
  }
});

test('a replay up to a line contains the lines before it, and the first replay only the entries at the start', async () => {
  const model = scripted([calls(call('a', 'ask'))]);
  const run = await recorded({ model, tools: [askedTool('ask')], ports: ports() });
  await run.conversation.send('go').result;
  await run.conversation.decide({ callId: 'a', action: 'approve' });
  await run.conversation.resume().result;
  const options = { recording: run.recording(), entries: run.entries, model };
  const living = (until: number) => replayUntil(options, until).charts.map(({ chart, actor }) => `${chart} ${actor}`);
  expect(replayUntil(options, 0).log).toEqual(run.entries);
  for (let until = 0; until <= options.recording.length; until++) {
    expect(replayUntil(options, until)).toEqual(
      replayUntil({ ...options, recording: options.recording.slice(0, until) }),
    );
    // Finished charts are not included. There is one state for each actor, and at most one run.
    expect(new Set(living(until)).size).toBe(living(until).length);
    expect(living(until).filter((chart) => chart.startsWith('RUN ')).length).toBeLessThanOrEqual(1);
  }
  expect(living(0)).toEqual(living(options.recording.length));
  expect(living(0)).toHaveLength(1);
});

test.each([
  ['no entries', []],
  ['entries from a later one on', [1]],
])('a replay of %s is refused', async (_, from) => {
  const run = await recorded({ model: scripted([]), ports: ports() });
  await run.conversation.send('go').result;
  const entries = from.flatMap((seq) => run.conversation.log().slice(seq));
  const replay = () => replayRecording({ recording: run.recording(), entries, model: { id: 'scripted' } });
  expect(replay).toThrow(expect.objectContaining({ code: 'replay' }));
});

test('a replay with the options of another agent is refused', async () => {
  const plugin: Plugin = { name: 'p', runStart: () => undefined };
  const run = await recorded({ model: scripted([]), plugins: [plugin], ports: ports() });
  await run.conversation.send('go').result;
  const { entries } = run;
  const replay = () => replayRecording({ recording: run.recording(), entries, model: { id: 'scripted' } });
  expect(replay).toThrow(/not asked for/);
});

test('an agent with a replaying journal runs the same run and calls no model, tool or plugin', async () => {
  const ask = askedTool('ask');
  const first = await recorded({ model: scripted([calls(call('a', 'ask'))]), tools: [ask], ports: ports() });
  await first.conversation.send('go').result;
  await first.conversation.decide({ callId: 'a', action: 'approve' });
  await first.conversation.resume().result;

  const store = memoryStore();
  const handle = await store.open('c');
  await handle.append(first.entries, 0);
  await handle.close();
  const ran: unknown[] = [];
  const model = scripted([]);
  const journal = replayingJournal(first.recording());
  const agent = createAgent({ model, tools: [askedTool('ask', ran)], store, ports: { journal } });
  const conversation = await agent.open('c');
  expect(JSON.stringify(conversation.log())).toBe(first.logged());
  expect(conversation.view()).toEqual(first.conversation.view());
  expect([model.requests, ran, conversation.status]).toEqual([[], [], 'idle']);
  await agent.close();
});

test('a sink that throws ends the recording and not the run', async () => {
  let lines = 0;
  const journal = recordingJournal(() => {
    lines += 1;
    if (lines === 2) throw new Error('disk full');
  });
  const agent = createAgent({ model: scripted([]), ports: { journal } });
  expect((await agent.run('go')).termination).toBe('NaturalEnd');
  expect(lines).toBe(2);
});

test('a run whose message was withdrawn before it began replays to the same log', async () => {
  const run = await recorded({ model: scripted([say('done')]), ports: ports() });
  expect((await run.conversation.send('no', { signal: AbortSignal.abort() }).result).termination).toBe('Cancelled');
  expect(entriesOf(run.conversation.log(), 'run-stop')).toMatchObject([{ reason: 'interrupted' }]);
  expectSame(run);
});
