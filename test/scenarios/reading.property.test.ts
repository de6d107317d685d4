/** Reading an open conversation: a read agrees with the log, and changes nothing (S004: the log is the only source). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTranscript, modelMessages } from '../../machines/index.ts';
import { prunableOf, sizeOfTranscript } from '../../machines/internal.ts';
import type { Conversation, LogEntry, Policies } from '../../src/index.ts';
import { project } from '../../src/projector/index.ts';
import { bench, story } from '../support/agentBench.ts';
import { type Act, type Answer, MessageLife } from '../support/messageLife.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, lines, t } from '../support/scriptedReplies.ts';
import { HANG_MS, volume } from '../support/tier.ts';
import { troubledStore } from '../support/troubledStore.ts';

/** Reads everything, at each entry, each signal and each view; returns the differences from the log. */
function reader(faults: string[]) {
  return (conversation: Conversation): void => {
    const look = (where: string): void => {
      const log = conversation.log();
      const shown = JSON.stringify(conversation.messages());
      if (shown !== JSON.stringify(modelMessages(log))) faults.push(`messages at ${where}`);
      if (JSON.stringify(conversation.view()) !== JSON.stringify(project(log))) faults.push(`view at ${where}`);
      const { status, state, pending, unsettled, queue } = conversation;
      JSON.stringify({ status, state, pending, unsettled, queue });
    };
    conversation.log$().subscribe(({ seq, type }) => look(`${seq} ${type}`));
    conversation.live$.subscribe(({ type }) => look(`a ${type}`));
    conversation.view$.subscribe(({ state }) => look(`a view, ${state}`));
  };
}

/** The messages after each entry, from one fold that computes everything each time. */
function foldFaults(log: readonly LogEntry[]): string[] {
  const read = createTranscript();
  const unread = createTranscript();
  const faults: string[] = [];
  for (const [index, entry] of log.entries()) {
    read.push(entry);
    unread.push(entry);
    const shown = { messages: read.messages(), prunable: prunableOf(read), last: read.endsWithAssistant() };
    const wanted = modelMessages(log.slice(0, index + 1));
    if (JSON.stringify(shown.messages) !== JSON.stringify(wanted)) faults.push(`${entry.seq} ${entry.type}: messages`);
    if (shown.last !== (wanted.at(-1)?.role === 'assistant')) faults.push(`${entry.seq} ${entry.type}: last`);
    sizeOfTranscript(read);
  }
  if (JSON.stringify(sizeOfTranscript(read)) !== JSON.stringify(sizeOfTranscript(unread))) faults.push('size');
  return faults;
}

describe('a conversation that is read while an append is reported', () => {
  const replies = [[t('let me see'), call('c1', 'echo', { m: 'a' }), call('c2', 'echo', { m: 'b' })], 'done'];

  it.each([{ synchronous: true }, { synchronous: false }])(
    'INV-1: the next request contains the complete reply, with the results of its calls (%o)',
    async (how) => {
      const on = await bench({ replies, tools: [echoTool().tool], store: troubledStore(how) });
      on.conversation.log$().subscribe(() => void on.conversation.messages());
      await on.conversation.send('hi').result;
      expect(lines(on.model.calls[1]?.messages ?? [])).toEqual([
        'user hi',
        'assistant let me see +c1 +c2',
        'c1 {"m":"a"}',
        'c2 {"m":"b"}',
      ]);
    },
  );

  it('a subscriber receives an append after all of it is in the log and in the folds of the log', async () => {
    const store = troubledStore();
    const on = await bench({ replies, tools: [echoTool().tool], store });
    const ends = new Set<number>();
    const heard: [number, number][] = [];
    on.conversation.log$(1).subscribe(({ seq }) => heard.push([seq, on.conversation.log().length]));
    await on.conversation.send('hi').result;
    for (const entries of store.tried) ends.add((entries.at(-1)?.seq ?? -1) + 1);
    const endOf = (seq: number): number => Math.min(...[...ends].filter((end) => end > seq));
    expect(heard).toEqual(heard.map(([seq]) => [seq, endOf(seq)]));
  });

  it('a subscriber that arrives in the middle of an append receives each of its entries once', async () => {
    const on = await bench({ replies, tools: [echoTool().tool], store: troubledStore() });
    const late: LogEntry[][] = [];
    on.conversation.log$().subscribe(() => {
      const seen: LogEntry[] = [];
      late.push(seen);
      on.conversation.log$().subscribe((entry) => seen.push(entry));
    });
    await on.conversation.send('hi').result;
    await on.clock.advance(1);
    for (const seen of late) expect(seen).toEqual(on.conversation.log());
  });
});

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.constantFrom<Act>({ do: 'send' }, { do: 'send', kind: 'steer' }, { do: 'followUp' }, { do: 'resume' }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 1, 60, 200) }) },
  fc.record({ do: fc.constantFrom('decide' as const, 'deny' as const, 'settle' as const), which: fc.nat({ max: 3 }) }),
  fc.constantFrom<Act>({ do: 'cancel' }, { do: 'cancel' }, { do: 'release' }, { do: 'close' }, { do: 'crash' }),
  fc.record({
    do: fc.constant('trouble' as const),
    how: fc.constantFrom('failed' as const, 'slow' as const),
    appends: fc.integer({ min: 1, max: 3 }),
  }),
);
const answer = fc.constantFrom<Answer>('text', 'ask', 'asks', 'echo', 'gate', 'mixed', 'error', 'halfSaid', 'empty');
const policies: fc.Arbitrary<Partial<Policies>> = fc.record({
  whileActive: fc.constantFrom('steer' as const, 'followUp' as const),
  whileSuspended: fc.constantFrom('followUp' as const, 'denyAndRun' as const),
  onPartialSuspend: fc.constantFrom('continue' as const, 'wait' as const),
  toolExecution: fc.constantFrom('parallel' as const, 'sequential' as const),
  partialReply: fc.constantFrom('keep' as const, 'discard' as const),
});

it('a reader of everything at every moment agrees with the log, and changes neither log nor requests', {
  timeout: HANG_MS,
}, async () => {
  const life = fc.record({
    policies,
    answers: fc.array(answer, { minLength: 1, maxLength: 5 }),
    synchronous: fc.boolean(),
    acts: fc.array(act, { maxLength: 20, size: 'max' }),
  });
  await fc.assert(
    fc.asyncProperty(life, async ({ acts, ...options }) => {
      const live = async (watch?: (conversation: Conversation) => void) => {
        const on = new MessageLife({ ...options, ...(watch && { watch }) });
        await on.open();
        for (const each of acts) await on.act(each);
        await on.end();
        return { log: on.conversation.log(), story: story(on.conversation.log()), requests: on.requests.map(lines) };
      };
      const faults: string[] = [];
      const watched = await live(reader(faults));
      const alone = await live();
      expect(faults).toEqual([]);
      expect(watched).toEqual(alone);
      expect(foldFaults(alone.log)).toEqual([]);
    }),
    { seed: Number(process.env.SEED ?? 4), numRuns: Number(process.env.RUNS ?? volume.readers) },
  );
});
