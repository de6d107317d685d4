/**
 * The parts of a remote conversation, without a connection: its log after a reset, the text of a reply over lost
 * connections, the waits between repetitions, and promises that nobody awaits.
 */
import { expect, it } from 'vitest';
import * as z from 'zod';
import { ServerCalls } from '../../src/client/serverCalls.ts';
import { defineTool, type LogEntry, RunchartError, subAgents, toolResult } from '../../src/index.ts';
import type { Live } from '../../src/live.ts';
import { RedactedReply } from '../../src/log/redactedReply.ts';
import { RemoteLog } from '../../src/remote/remoteLog.ts';
import { RemoteRuns } from '../../src/remote/remoteRuns.ts';
import { StreamedReply } from '../../src/remote/streamedReply.ts';
import { bench } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';
import { textOf } from './places.ts';

/** A log with state, a queue, a waiting call, a sub-agent and a stop. */
async function richLog(): Promise<readonly LogEntry[]> {
  const remember = defineTool({
    name: 'remember',
    description: 'Writes state.',
    parameters: z.object({}),
    execute: () => toolResult.success('ok', { state: { seen: 1 } }),
  });
  const spawn = call('c2', 'spawn_agents', { tasks: [{ id: 'one', task: 'look' }] });
  const on = await bench({
    tools: [remember, echoTool('ask').tool, subAgents({})],
    plugins: [asks().plugin],
    replies: [[call('c1', 'remember'), spawn, call('c3', 'ask', { m: '' })], 'child', 'done'],
  });
  await on.conversation.send('go').result;
  on.conversation.followUp('later');
  await expect.poll(() => on.conversation.queue.length).toBe(1);
  return on.conversation.log();
}

const inner = { callId: 'x', name: 'ask', args: {}, suspension: 1, reason: 'r', path: ['c2', 'x'] };
function remoteLog(): RemoteLog {
  const raise = (error: unknown): never => {
    throw error;
  };
  return new RemoteLog('c', raise, (expected) => new RunchartError('network', expected));
}
/** The log of a connection: overview, entries, and the beginning of a reply. */
function connected(log: RemoteLog, entries: readonly LogEntry[], createdAt: number): void {
  const status = entries.length > 5 ? 'waiting' : 'idle';
  const calls = entries.length > 5 ? [inner as never] : [];
  const overview = { createdAt, entries: entries.length, status, pending: calls, unsettled: calls } as const;
  log.takeOverview(overview, log.statusChanges);
  for (const entry of entries) log.takeEntry(JSON.parse(JSON.stringify(entry)));
}

/** All values of a conversation that come from the log. */
function fieldsOf(log: RemoteLog): object {
  const { owner, status, state, pending, unsettled, queue, inFlight, runId, hasSubAgents, entries } = log;
  const [view, messages] = [log.view(), log.messages()];
  return { owner, status, state, pending, unsettled, queue, inFlight, runId, hasSubAgents, entries, view, messages };
}

it('a log after a reset shows what a new one shows that receives the same, field by field', async () => {
  const rich = await richLog();
  const bare = await bench({ replies: ['one'] });
  await bare.conversation.send('hi').result;
  const plain = bare.conversation.log();
  for (const later of [plain, rich, plain.slice(0, 1)]) {
    const [used, unused] = [remoteLog(), remoteLog()];
    connected(used, rich, 1);
    used.takeSignal({ type: 'text-delta', runId: 'r', text: 'half' });
    used.takeSignal({ type: 'reset', runId: '' });
    for (const log of [used, unused]) {
      for (const entry of later) log.takeEntry(JSON.parse(JSON.stringify(entry)));
      log.takeSignal({ type: 'text-delta', runId: 'next', text: 'a' });
    }
    expect(fieldsOf(used)).toEqual(fieldsOf(unused));
  }
});

type Step = 'text' | 'other' | 'lost' | 'reset' | 'entry';
const STEPS: readonly Step[] = ['text', 'other', 'lost', 'reset', 'entry'];
const LENGTH = 5;

/** By hand: the streamed text of a reply after these steps; null between replies. */
function expectedText(steps: readonly Step[]): string | null {
  let text: string | null = null;
  let isCut = false;
  for (const [index, step] of steps.entries()) {
    if (step === 'lost') isCut = text !== null;
    else if (step === 'reset' || step === 'entry') [text, isCut] = [null, false];
    else {
      text = (isCut ? '' : (text ?? '')) + (step === 'text' ? index : '');
      isCut = false;
    }
  }
  return text;
}

it(`the text in flight is that of the current reply, whatever ${LENGTH} things happen to the connection and the reply`, () => {
  const wrong: string[] = [];
  for (let number = 0; number < STEPS.length ** LENGTH; number += 1) {
    const steps = Array.from(
      { length: LENGTH },
      (_, at) => STEPS[Math.floor(number / STEPS.length ** at) % STEPS.length],
    );
    const reply = new StreamedReply();
    const signals: Live[] = [];
    reply.signals$.subscribe((signal) => void signals.push(signal));
    for (const [index, step] of steps.entries()) {
      if (step === 'text') reply.takeSignal({ type: 'text-delta', runId: 'r', text: `${index}` });
      else if (step === 'other') reply.takeSignal({ type: 'reasoning-delta', runId: 'r', text: 'why' });
      else if (step === 'lost') reply.interrupt();
      else if (step === 'reset') reply.takeSignal({ type: 'reset', runId: 'r' });
      else {
        reply.takeEntry({ type: 'model-reply', runId: 'r' } as LogEntry);
        signals.length = 0;
      }
    }
    const expected = expectedText(steps as Step[]);
    const found = reply.inFlight?.text ?? null;
    if (found !== expected || (expected !== null && textOf(signals) !== expected)) wrong.push(steps.join(' '));
  }
  expect(wrong).toEqual([]);
});

it.each<Live>([
  { type: 'text-delta', runId: 'r', text: 'inner', path: ['c'] },
  { type: 'text-delta', runId: 'of a child', text: 'inner', path: ['c'] },
  { type: 'reasoning-delta', runId: 'of a child', text: 'inner', path: ['c', 'd'] },
  { type: 'tool-input-delta', runId: 'of a child', index: 0, text: 'inner', path: ['c'] },
  { type: 'reset', runId: 'of a child', path: ['c'] },
])('the signal $type of a sub-agent passes, and changes nothing of the reply in flight', (signal) => {
  const reply = new StreamedReply();
  const signals: Live[] = [];
  reply.signals$.subscribe((each) => void signals.push(each));
  reply.takeSignal(signal);
  expect(reply.inFlight).toBeNull();
  reply.takeSignal({ type: 'text-delta', runId: 'r', text: 'own' });
  const before = reply.inFlight;
  reply.takeSignal(signal);
  expect(reply.inFlight).toBe(before);
  expect(signals.filter((each) => each === signal)).toHaveLength(2);
});

it('a reply that a server streams is in flight as in the process that runs it: texts, and inputs with their names and ids', () => {
  const parts: { [key: string]: string | undefined }[] = [{}, { name: 'a' }, { name: 'b' }, { callId: 'x' }];
  const inputs = parts.flatMap((part) =>
    [0, 1].map((index) => ({ type: 'tool-input-delta', index, text: 'i', ...part })),
  );
  const deltas = [...inputs, { type: 'text-delta', text: 't' }, { type: 'reasoning-delta', text: 'r' }];
  const kinds = deltas.map((delta) => ({ ...delta, runId: 'r' }) as Extract<Live, { text: string }>);
  for (const first of kinds)
    for (const second of kinds)
      for (const third of kinds) {
        const embedded = new RedactedReply({
          secrets: () => [],
          redact: (text) => text,
          isTool: () => true,
          live: () => undefined,
        });
        const remote = new StreamedReply();
        for (const signal of [first, second, third]) {
          embedded.take(signal);
          remote.takeSignal(signal);
        }
        expect(remote.inFlight).toEqual(embedded.inFlight);
      }
});

it('a repetition waits longer after each attempt, never beyond 10 s by itself, and never less than the server asks', async () => {
  const waits: number[] = [];
  for (const random of [0, 0.5, 0.999])
    for (let attempt = 1; attempt <= 12; attempt += 1)
      for (const least of [undefined, 0, 100, 1_000, 60_000]) {
        const setTimer = (ms: number, fire: () => void) => {
          waits.push(ms);
          queueMicrotask(fire);
          return () => undefined;
        };
        const calls = new ServerCalls({ baseURL: 'http://x', random: () => random, setTimer });
        await calls.wait(attempt, new AbortController().signal, least);
        const own = Math.min(10_000, 250 * 2 ** (attempt - 1)) * (0.5 + random / 2);
        expect([attempt, least, waits.at(-1)]).toEqual([attempt, least, Math.max(own, least ?? 0)]);
      }
  expect(waits).toHaveLength(180);
});

it('a refusal that nobody awaits ends no process: receipts, runs, texts and cancels', async () => {
  const refused = (): Promise<never> => Promise.reject(new RunchartError('limit', 'no'));
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    const log = remoteLog();
    const server = { cancel: async () => undefined, errorOf: async () => undefined };
    const runs = new RemoteRuns(log, () => () => undefined, server);
    const receipts = [runs.receipt('a', refused()), runs.receipt('b', new Promise(() => undefined))];
    const run = runs.begin('run-c', refused());
    runs.begin('run-d', new Promise(() => undefined));
    runs.end(new RunchartError('closed', 'over'));
    expect((await run.result).error).toMatchObject({ code: expect.stringMatching(/limit|closed/) });
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(unhandled).toEqual([]);
    await expect(receipts[0]?.delivered).rejects.toMatchObject({ code: expect.stringMatching(/limit|closed/) });
  } finally {
    process.off('unhandledRejection', note);
  }
});

it('the end of one run leaves the streamed text of another one', () => {
  const reply = new StreamedReply();
  reply.takeSignal({ type: 'text-delta', runId: 'two', text: 'half' });
  for (const type of ['agent-output', 'model-reply', 'run-stop', 'run-suspended'] as const)
    reply.takeEntry({ type, runId: 'one' } as LogEntry);
  expect(reply.inFlight).toMatchObject({ runId: 'two', text: 'half' });
  reply.takeEntry({ type: 'run-stop', runId: 'two' } as LogEntry);
  expect(reply.inFlight).toBeNull();
});

it('the unsettled calls of the server are added where they are of sub-agents', () => {
  const log = remoteLog();
  const own = { ...inner, callId: 'c2', path: ['c2'] };
  const unsettled = [own, inner] as never;
  log.takeOverview({ createdAt: 1, entries: 0, status: 'idle', pending: [], unsettled }, log.statusChanges);
  expect(log.unsettled).toEqual([inner]);
});
