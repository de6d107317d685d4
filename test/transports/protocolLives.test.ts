/**
 * Random lives as events of AG-UI and as chunks of UI messages: with live signals, and as the stored log alone.
 * Invariant: the protocols' own packages judge the events, and nothing is filtered.
 */
import { verifyEvents } from '@ag-ui/client';
import { EventSchemas } from '@ag-ui/core/schemas';
import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from 'ai';
import { from, lastValueFrom, toArray } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  type Conversation,
  createAgent,
  defineTool,
  type Live,
  type LogEntry,
  subAgents,
  toolResult,
} from '../../src/index.ts';
import type { AgentWorld } from '../../src/testing/index.ts';
import { toAgUi, toUiMessages } from '../../src/transports/index.ts';
import { simulate } from '../simulation/checkedLife.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { sourceSeed } from '../support/sourceSeed.ts';
import { volume } from '../support/tier.ts';

type Item = LogEntry | Live;
type Event = {
  type: string;
  runId?: string;
  outcome?: { type: string; interrupts?: Interrupt[] };
  toolCallId?: string;
};
type Interrupt = { id: string; toolCallId: string; metadata?: { path?: string[] } };

/** The events that one process of a life showed to a subscriber from its first entry. */
interface Watched {
  items: Item[];
  /** `conversation.pending` when a run of this process was suspended, as ids of interrupts with their paths. */
  pending: Map<string, string[]>;
  /** Calls that a person decided: the root's log may not contain a decision of a sub-agent's call yet. */
  decided: Set<string>;
}

const parameters = z.object({ text: z.string().max(4) });
const toolsOf = () => {
  const tool = (name: string, more: object = {}) =>
    defineTool({ name, description: name, parameters, ...more, execute: ({ text }) => text });
  const ask = defineTool({
    name: 'ask',
    description: 'ask',
    parameters,
    execute: (_, { decision }) => (decision ? 'answered' : toolResult.pending({ reason: 'which?', payload: { n: 1 } })),
  });
  return [tool('pay', { needsApproval: true }), tool('look', { idempotent: true }), ask];
};

function policiesOf({ one }: Chance) {
  return {
    toolExecution: one(['parallel', 'sequential'] as const),
    onPartialSuspend: one(['continue', 'wait'] as const),
    decisionsDuringRound: one(['immediate', 'atGate'] as const),
    whileSuspended: one(['followUp', 'denyAndRun'] as const),
    whileActive: one(['followUp', 'steer'] as const),
    onRestart: one(['idle', 'replayDecided', 'resume'] as const),
    partialReply: one(['discard', 'keep'] as const),
  };
}

const named = ({ suspension, callId, path }: Conversation['pending'][number]): string =>
  `${suspension}/${callId} in ${path.join('/')}`;

function watch(conversation: Conversation): Watched {
  const watched: Watched = { items: [], pending: new Map(), decided: new Set() };
  const decide = conversation.decide.bind(conversation);
  conversation.decide = (decision) => {
    watched.decided.add(decision?.callId);
    return decide(decision);
  };
  let suspended = '';
  const logLength = conversation.log().length;
  conversation.live$.subscribe((signal) => void watched.items.push(signal));
  conversation.log$().subscribe((entry) => {
    watched.items.push(entry);
    if (entry.type === 'run-suspended' && entry.seq >= logLength) suspended = entry.runId ?? '';
    if (entry.type !== 'checkpoint' || suspended === '') return;
    watched.pending.set(suspended, conversation.pending.map(named));
    suspended = '';
  });
  return watched;
}

async function life(seed: number): Promise<{ log: readonly LogEntry[]; processes: readonly Watched[] }> {
  const processes: Watched[] = [];
  const policies = policiesOf(chance(seed));
  const report = await simulate({
    seed,
    agent({ inspect: _, ...world }: AgentWorld) {
      const tools = toolsOf();
      const spawn = subAgents({ tools, limits: { turns: 3 }, maxSubAgents: 2 });
      const agent = createAgent({ tools: [...tools, spawn], policies, ...world });
      const open = agent.open.bind(agent);
      agent.open = async (id, options) => {
        const conversation = await open(id, options);
        processes.push(watch(conversation));
        return conversation;
      };
      return agent;
    },
  });
  return { log: report.log, processes };
}

const eventsOf = async (source: readonly Item[]) =>
  (await lastValueFrom(toAgUi(from(source)).pipe(toArray<object>()))) as Event[];
const chunksOf = async (source: readonly Item[]) =>
  (await lastValueFrom(toUiMessages(from(source)).pipe(toArray<object>()))) as UIMessageChunk[];

const interruptsOf = (events: readonly Event[]): Interrupt[][] =>
  events.flatMap(({ outcome }) => (outcome?.type === 'interrupt' ? [outcome.interrupts ?? []] : []));

/** The places where the interrupts of a process differ from its pending calls. */
function faultsOfInterrupts(events: readonly Event[], { pending, decided }: Watched): string[] {
  const faults: string[] = [];
  for (const [runId, names] of pending) {
    const end = events.find((event) => event.type === 'RUN_FINISHED' && event.runId === runId);
    const interrupts = end?.outcome?.interrupts ?? [];
    const interruptNames = interrupts.map(
      ({ id, toolCallId, metadata }) => `${id} in ${(metadata?.path ?? [toolCallId]).join('/')}`,
    );
    const overtaken = interrupts.filter(({ toolCallId, metadata }) => metadata?.path && decided.has(toolCallId));
    const areListed = end !== undefined && names.every((name) => interruptNames.includes(name));
    if (!areListed || interruptNames.length > names.length + overtaken.length)
      faults.push(`${runId}: pending ${names}, sent ${interruptNames}`);
  }
  return faults;
}

/** The faults in the events of a source. */
async function faultsOfEvents(source: readonly Item[]): Promise<string[]> {
  const events = await eventsOf(source);
  const faults: string[] = [];
  for (const event of events) {
    const { success, error } = EventSchemas.safeParse(event);
    if (!success) faults.push(`${event.type} is no event: ${error.message}`);
  }
  await lastValueFrom(from(events).pipe(verifyEvents(false) as never, toArray())).catch((error: Error) =>
    faults.push(`verifyEvents: ${error.message}`),
  );
  if (interruptsOf(events).some((interrupts) => interrupts.length === 0)) faults.push('an interrupt without a call');
  const results = source.flatMap((item) => (item.type === 'tool-result' ? [item.callId] : []));
  const resultIds = events.flatMap(({ type, toolCallId = '' }) => (type === 'TOOL_CALL_RESULT' ? [toolCallId] : []));
  const own = new Set(results);
  if (resultIds.filter((callId) => own.has(callId)).join() !== results.join())
    faults.push(`results ${results.join()}, sent ${resultIds.join()}`);
  return faults;
}

async function messagesOf(chunks: readonly UIMessageChunk[]): Promise<UIMessage[]> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const messages: UIMessage[] = [];
  const onError = (error: unknown): void => {
    throw error;
  };
  for await (const next of readUIMessageStream({ stream, onError, terminateOnError: true })) messages.push(next);
  return messages;
}

/** Calls that a message mentions although another one shows them: a page that reads this message alone refuses it. */
function strayCalls(chunks: readonly UIMessageChunk[]): string[] {
  const shown = new Set<string>();
  return chunks.flatMap((chunk) => {
    // A start with an id begins a message; one without an id continues it.
    if (chunk.type === 'start' && chunk.messageId !== undefined) shown.clear();
    if (!('toolCallId' in chunk)) return [];
    if (chunk.type.startsWith('tool-input-')) shown.add(chunk.toolCallId);
    return shown.has(chunk.toolCallId) ? [] : [chunk.toolCallId];
  });
}

/**
 * The faults in the chunks of a source. A failed run sends an error, which ends the reader of the AI SDK. So each run
 * is read separately.
 */
async function faultsOfChunks(source: readonly Item[]): Promise<string[]> {
  const chunks = await chunksOf(source);
  const { validate } = uiMessageChunkSchema();
  const faults: string[] = [];
  for (const chunk of chunks) {
    const judged = await validate?.(chunk);
    if (!judged?.success) faults.push(`${chunk.type} is no chunk`);
  }
  const errors = chunks.flatMap((chunk) => (chunk.type === 'error' ? [chunk.errorText] : []));
  const readable = chunks.filter(({ type }) => type !== 'error' && type !== 'abort');
  await messagesOf(readable).catch((error: Error) => faults.push(`the AI SDK: ${error.message}`));
  faults.push(...strayCalls(chunks).map((callId) => `${callId} is mentioned in a message that does not show it`));
  const ends = source.filter((item) => item.type === 'run-stop' && 'seq' in item && item.reason === 'error').length;
  if (errors.length < ends) faults.push(`${ends} runs failed, ${errors.length} errors are sent`);
  return faults;
}

/** Half of the subscribers stay, so that enough events are seen. */
const half = volume.protocolLives / 2;
const seeds = [1, sourceSeed()].flatMap((first) => Array.from({ length: half }, (_, index) => first + index));
const BATCH = 20;

describe('a random life', () => {
  const seen = { interrupts: 0, within: 0, several: 0, stored: 0, errors: 0, cancelled: 0, outside: 0, processes: 0 };

  const batches = seeds.flatMap((first, index) =>
    index % BATCH === 0 ? [{ first, all: seeds.slice(index, index + BATCH) }] : [],
  );
  it.each(batches)(
    'it passes the verifiers of AG-UI and the AI SDK, live and stored, and its interrupts are the pending calls, seeds from $first on',
    async ({ all }) => {
      for (const seed of all) {
        const { log, processes } = await life(seed);
        for (const items of [log, ...processes.map((process) => process.items)]) {
          expect([seed, await faultsOfEvents(items), await faultsOfChunks(items)]).toEqual([seed, [], []]);
        }
        for (const process of processes)
          expect([seed, faultsOfInterrupts(await eventsOf(process.items), process)]).toEqual([seed, []]);
        const events = await eventsOf(log);
        for (const interrupts of interruptsOf(events)) {
          seen.interrupts += 1;
          if (interrupts.length > 1) seen.several += 1;
          if (interrupts.some(({ metadata }) => metadata?.path)) seen.within += 1;
        }
        seen.stored += 1;
        seen.processes += processes.length;
        seen.errors += events.filter(({ type }) => type === 'RUN_ERROR').length;
        seen.cancelled += events.filter(({ outcome }) => outcome?.type === 'cancelled').length;
        const begun = log.filter(({ type }) => type === 'run-started' || type === 'run-resumed').length;
        seen.outside += events.filter(({ type }) => type === 'RUN_STARTED').length - begun;
      }
    },
  );

  it('it is suspended in every way, fails, is cancelled, and has results outside of its runs, over all these seeds', () => {
    for (const [what, count] of Object.entries(seen)) expect([what, count > 0]).toEqual([what, true]);
  });

  afterAll(() => console.log(`protocol lives: ${JSON.stringify(seen)}`));
});
