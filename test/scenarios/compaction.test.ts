/** A summary replaces earlier messages before a model call: the time, the range, the model, the cost, and failures. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { modelMessages } from '../../machines/index.ts';
import {
  defineTool,
  forkConversation,
  type LogEntry,
  type Message,
  ModelError,
  type ModelPart,
  toolResult,
} from '../../src/index.ts';
import { summaryCut } from '../../src/runtime/contextWindow.ts';
import { type Bench, type BenchOptions, bench, entry, only, restart, storeWith } from '../support/agentBench.ts';
import { call, deaf, during, finish, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';

const text = (tokens: number): string => 'x'.repeat(tokens * 4);
const noRoom = { contextWindow: 1_000, maxOutputTokens: 0 };
const SUMMARY = 'Summary of the conversation so far: all is well.';
const prices = { input: 1_000_000, output: 1_000_000 };
const summed = (tokens = 0): ModelPart[] => [t(SUMMARY), finish('stop', tokens)];
const on = (replies: readonly Reply[], options: BenchOptions = {}, window: object = noRoom): Promise<Bench> =>
  bench({ model: scripted(replies, window), ...options });
const say = (to: Bench, words: string) => to.conversation.send(words).result;
const compactions = (to: Bench) => to.conversation.log().flatMap((each) => (each.type === 'compaction' ? [each] : []));
const notices = (to: Bench) => to.conversation.log().flatMap((each) => (each.type === 'notice' ? [each.code] : []));
const roomy = { contextWindow: 100_000 };
/** Two turns that leave no room for a third. */
const full = [text(300), text(300)] as const;

async function filled(replies: readonly Reply[], options: BenchOptions = {}, window: object = noRoom) {
  const to = await on([...full, ...replies], options, window);
  await say(to, `first ${text(50)}`);
  await say(to, `second ${text(50)}`);
  return to;
}

describe('the time and the range', () => {
  it('TRC-6: above 80 %, older messages become a summary before the call, and the newest are sent unchanged', async () => {
    const to = await filled([summed(), 'ok']);
    const { termination, text: reply, turns } = await say(to, `third ${text(150)}`);
    expect([termination, reply, turns]).toEqual(['NaturalEnd', 'ok', 1]);
    expect(to.model.calls).toHaveLength(4);
    const [, , asked, sent] = to.model.calls;
    expect(asked?.tools).toEqual([]);
    expect(asked?.messages).toHaveLength(1);
    expect(JSON.stringify(asked?.messages)).toContain('first');
    expect(lines(sent?.messages ?? []).map((line) => line.slice(0, 30))).toEqual([
      `user ${SUMMARY}`.slice(0, 30),
      `assistant ${text(300)}`.slice(0, 30),
      `user third ${text(150)}`.slice(0, 30),
    ]);
    expect(compactions(to)).toMatchObject([{ summary: SUMMARY, model: to.model.id }]);
    expect(modelMessages(to.conversation.log())).toEqual(to.conversation.messages());
  });

  it('S002-25: at exactly 80 % nothing is summarized, and just above it is', async () => {
    for (const [tokens, asked] of [
      [100, 3],
      [101, 4],
    ] as const) {
      const to = await on([text(300), text(300), summed(), 'ok']);
      await say(to, text(50));
      await say(to, text(50));
      await say(to, text(tokens));
      expect(to.model.calls).toHaveLength(asked === 3 ? 3 : 4);
    }
  });

  it('a restored conversation shows the model the same messages, and summarizes nothing twice', async () => {
    const to = await filled([summed(), 'ok']);
    await say(to, text(150));
    const living = to.conversation.messages();
    const again = await restart(to, { model: scripted(['fine'], noRoom) });
    expect(again.conversation.messages()).toEqual(living);
    expect(await say(again, 'more')).toMatchObject({ termination: 'NaturalEnd', text: 'fine' });
    expect(compactions(again)).toHaveLength(1);
  });

  it('the message of a summary is frozen like every other', async () => {
    const to = await filled([summed(), 'ok']);
    await say(to, text(150));
    const parts = to.conversation.messages().flatMap((message) => [message, message.content, ...message.content]);
    expect([compactions(to).length, parts.every((part) => Object.isFrozen(part))]).toEqual([1, true]);
  });

  it('the summary is durable before the request that contains it', async () => {
    const seen: unknown[] = [];
    const look = () => seen.push(to.conversation.log().at(-1)?.type);
    const to: Bench = await filled([summed(), during(look, 'ok')]);
    await say(to, text(150));
    expect(only(to.conversation.log(), 'compaction', 'model-reply').slice(2)).toMatchObject([
      expect.stringMatching(/^compaction/),
      expect.stringMatching(/^model-reply/),
    ]);
    expect(seen).toEqual(['extension']);
  });

  it('streamed text of a summary is not text of the run', async () => {
    const to = await filled([summed(), 'ok']);
    const live: unknown[] = [];
    to.conversation.live$.subscribe((signal) => 'text' in signal && live.push(signal.text));
    const { text: reply } = await say(to, text(150));
    expect([live, reply]).toEqual([['ok'], 'ok']);
  });

  it('the user’s last message is kept word for word in a long run that fills the window', async () => {
    const big = defineTool({
      name: 'big',
      description: 'Says much.',
      parameters: z.object({}),
      execute: () => text(300),
    });
    const replies = [[call('a', 'big')], [call('b', 'big')], [call('c', 'big')], summed(), 'ok'];
    const to = await on(replies, { tools: [big] });
    expect(await say(to, 'Do what I say')).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    const [first, ...rest] = lines(to.model.calls.at(-1)?.messages ?? []);
    expect(first).toContain(SUMMARY);
    expect(first).toContain('Do what I say');
    expect(rest.map((line) => line.slice(0, 12))).toEqual(['assistant +c', expect.stringMatching(/^c x+/)]);
  });

  it('a waiting call keeps its place in the unfinished round; its result follows a summary that contains the call', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Asks.',
      parameters: z.object({}),
      execute: (_, { decision }) => (decision ? 'yes' : toolResult.pending({ reason: 'form' })),
    });
    const big = defineTool({
      name: 'big',
      description: 'Says much.',
      parameters: z.object({}),
      execute: () => text(450),
    });
    const both: Reply = [call('w', 'ask'), call('b', 'big'), finish('tool-calls')];
    const to = await on([text(300), both, summed(), 'later', 'so'], { tools: [ask, big] });
    await say(to, text(150));
    expect(await say(to, 'go')).toMatchObject({ termination: 'Suspended' });
    expect(compactions(to)).toHaveLength(1);
    expect(lines(to.model.calls[3]?.messages ?? []).map((line) => line.slice(0, 12))).toEqual([
      expect.stringMatching(/^user Summary/),
      expect.stringMatching(/^assistant \+w/),
      expect.stringMatching(/^w This call/),
      expect.stringMatching(/^b x+/),
    ]);
    await to.conversation.decide({ callId: 'w', action: 'answer', payload: 1 });
    expect(await to.conversation.resume().result).toMatchObject({ termination: 'NaturalEnd' });
  });

  it('nothing is summarized without a window, without a step `compact` in the policy, or if the conversation fits', async () => {
    const without = [{ kind: 'warn', at: 0.8 }] as const;
    for (const [options, window] of [
      [{}, {}],
      [{ policies: { context: without } }, noRoom],
      [{}, { contextWindow: 2_000, maxOutputTokens: 0 }],
    ] as const) {
      const to = await on([...full, 'ok'], options, window);
      await say(to, text(50));
      await say(to, text(50));
      expect(await say(to, text(150))).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
      expect(compactions(to)).toEqual([]);
    }
  });
});

describe('S002-26: the end of the range', () => {
  const message = (characters: number, role: 'user' | 'assistant' = 'user'): Message =>
    role === 'user'
      ? { role, content: [{ type: 'text', text: 'x'.repeat(characters) }] }
      : { role, content: [{ type: 'text', text: 'x'.repeat(characters) }], toolCalls: [] };
  const result = (callId: string, characters: number): Message => ({
    role: 'tool',
    callId,
    content: [{ type: 'text', text: 'x'.repeat(characters) }],
    isError: false,
  });
  const cut = (messages: Message[], window: number, seqs = messages.map((_, index) => index)) =>
    summaryCut({ messages: () => messages, seqs }, window);

  it('of four messages of 104 tokens, a limit of 250 keeps two; if all fit, there is nothing to summarize', () => {
    const four = [message(400), message(400, 'assistant'), message(400), message(400, 'assistant')];
    const users = [400, 400, 400, 400].map((each) => message(each));
    expect(cut(users, 250 / 0.4)).toEqual({ upToSeq: 1 });
    expect(cut(four, 250 / 0.4)).toEqual({ upToSeq: 1 });
    expect(cut(four, 416 / 0.4)).toBeUndefined();
  });

  it('a cut between a call and its result moves back, so that both are kept', () => {
    const messages = [message(2_000), message(40, 'assistant'), result('c', 40), message(40), message(4, 'assistant')];
    expect(cut(messages, 100, [0, 5, 5, 6, 9])).toEqual({ upToSeq: 0 });
  });

  it('the model’s last reply is kept with everything after it, whatever its length', () => {
    const messages = [message(400), message(400), message(8_000, 'assistant'), result('c', 8_000)];
    expect(cut(messages, 1_000, [0, 1, 5, 5])).toEqual({ upToSeq: 1 });
  });

  it('messages that a conversation was opened with are one entry, and are summarized together', () => {
    const messages = [message(900), message(900, 'assistant'), message(900), message(9, 'assistant'), message(8)];
    expect(cut(messages, 1_000, [1, 1, 1, 1, 4])).toEqual({ upToSeq: 1 });
    expect(cut(messages.slice(0, 4), 1_000, [1, 1, 1, 1])).toBeUndefined();
  });

  it('a summary is not summarized again alone: the reply after it is included, but never the last one', () => {
    const rounds = [
      message(400),
      message(40, 'assistant'),
      result('c', 400),
      message(40, 'assistant'),
      result('d', 900),
    ];
    const again = (messages: Message[], seqs: number[]) =>
      summaryCut({ messages: () => messages, seqs }, 1_000, [], { kept: 0.3, least: 0.05 }, 2);
    expect(again(rounds, [2, 8, 8, 19, 19])).toEqual({ upToSeq: 8 });
    expect(again(rounds.slice(0, 3), [2, 8, 8])).toBeUndefined();
    expect(again(rounds.slice(0, 1), [2])).toBeUndefined();
    expect(again([message(400), message(4_000), message(40)], [2, 8, 9])).toEqual({ upToSeq: 8 });
  });

  it('a very small range is not summarized', () => {
    expect(cut([message(4), message(8_000, 'assistant'), message(4)], 1_000)).toBeUndefined();
  });
});

describe('the cost of a summary', () => {
  it('it counts in the run and the conversation, also after a restart', async () => {
    const window = { ...noRoom, prices };
    const to = await filled([summed(5), [t('ok'), finish('stop', 1)]], {}, window);
    const { usage, costUsd, turns } = await say(to, text(150));
    expect([usage.inputTokens, usage.outputTokens, costUsd, turns]).toEqual([6, 6, 12, 1]);
    expect(compactions(to)).toMatchObject([{ usage: { inputTokens: 5, outputTokens: 5 }, costUsd: 10 }]);
    expect((await to.agent.list())[0]?.costUsd).toBe(12);
  });

  it('a budget that the summary spent ends the run before its call, also after a restart', async () => {
    const policies = { limits: { costUsd: 10 } };
    const window = { ...noRoom, prices };
    const to = await filled([summed(5)], { policies }, window);
    expect(await say(to, text(150))).toMatchObject({ termination: 'Stopped', cause: 'max_budget', turns: 0 });
    expect(to.model.calls).toHaveLength(3);
    const again = await restart(to, { policies, model: scripted([], window) });
    expect(await say(again, 'more')).toMatchObject({ cause: 'max_budget', turns: 0 });
  });
});

describe('failures of a summary', () => {
  it('S002-28: if the summary model throws, the old part is dropped, the newest is kept, and the run continues with a diagnostic', async () => {
    const to = await filled([new ModelError({ code: 'bad-request' }), 'ok']);
    expect(await say(to, text(150))).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    expect(notices(to)).toEqual(['compaction_failed']);
    const [first, ...rest] = lines(to.model.calls.at(-1)?.messages ?? []);
    expect(first).toMatch(/^user \[Earlier messages were removed/);
    expect(rest.map((line) => line.slice(0, 9))).toEqual(['assistant', 'user xxxx']);
  });

  it('a retryable attempt is repeated visibly, and then a fallback model is asked', async () => {
    const down = new ModelError({ code: 'server' });
    const other = scripted([summed()], { id: 'other', maxOutputTokens: 9 });
    const modelRetry = { attempts: 2, baseMs: 100, jitter: 0, fallbackModels: [other] };
    const to = await filled([down, down, 'ok'], { policies: { modelRetry } });
    const run = say(to, text(150));
    await entry(to.conversation, 'model-retry');
    await to.clock.advance(100);
    expect(await run).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    expect(compactions(to)).toMatchObject([{ summary: SUMMARY, model: 'other' }]);
    expect(other.calls.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([9]);
  });

  it.each([
    ['empty', ' '],
    ['as long as its range', text(300)],
  ])('a summary that is %s is rejected, and its tokens are counted', async (_, summary) => {
    const to = await filled([[t(summary), finish('stop', 3)], 'ok']);
    expect(await say(to, text(150))).toMatchObject({ termination: 'NaturalEnd', usage: { inputTokens: 3 } });
    expect(notices(to)).toEqual(['compaction_failed']);
  });

  it('summaries contain no secrets', async () => {
    const to = await filled([[t('the key is hunter22')], 'ok'], { secrets: ['hunter22'] });
    await say(to, text(150));
    expect(compactions(to)[0]?.summary).toBe('the key is [redacted]');
  });

  it.each([
    ['the summary', {}, [deaf(t('so f'))]],
    ['the hook', { plugins: [{ name: 'slow', preCompact: () => new Promise<never>(() => undefined) }] }, []],
  ])('a cancel during %s ends the run at once, and nothing is summarized', async (_, options, replies) => {
    const to = await filled([...replies, 'ok'], options);
    const asked = to.model.calls.length;
    const run = to.conversation.send(text(150));
    for (let turn = 0; turn < 40; turn++) await Promise.resolve();
    expect(to.alive()).toContain('compaction');
    expect(to.model.calls.length).toBe(asked + replies.length);
    await run.cancel();
    expect(await run.result).toMatchObject({ termination: 'Cancelled', cause: 'cancelled' });
    expect([compactions(to), to.alive()]).toEqual([[], []]);
  });

  it('if the store rejects a summary, the run ends, and the next run asks again', async () => {
    let refuses = true;
    const isSummary = (each: { type: string }): boolean => each.type === 'compaction';
    const fates = (entries: readonly LogEntry[]) => (refuses && entries.some(isSummary) ? 'failed' : 'stored');
    const store = troubledStore({ fates });
    const to = await filled([summed(), summed(), 'ok'], { store });
    expect(await say(to, text(150))).toMatchObject({ termination: 'Error', cause: 'store' });
    refuses = false;
    expect(compactions(to)).toEqual([]);
    expect(to.conversation.messages()).toEqual(modelMessages(to.conversation.log()));
    expect(await to.conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    expect(compactions(to)).toHaveLength(1);
  });

  it('if a summary frees too little room, the run ends as context_exhausted', async () => {
    const to = await filled([summed()]);
    expect(await say(to, text(900))).toMatchObject({ termination: 'Stopped', cause: 'context_exhausted' });
    expect(compactions(to)).toHaveLength(1);
  });
});

describe('the death of a process', () => {
  /** The log after this many entries of the last run were durable. */
  const cutAt = async (type: LogEntry['type'], replies: readonly Reply[]) => {
    const to = await filled([summed(), 'ok']);
    await say(to, text(150));
    const log = to.conversation.log();
    const at = log.map((each) => each.type).lastIndexOf(type);
    const store = await storeWith(log.slice(0, at + 1));
    return bench({ store, model: scripted(replies, noRoom) });
  };

  it('during the summary: no part of it is stored, and the resumed run asks again', async () => {
    const to = await cutAt('user-message', [summed(), 'ok']);
    expect(compactions(to)).toEqual([]);
    expect(await to.conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    expect(compactions(to)).toHaveLength(1);
  });

  it('after the summary: it is kept, and the resumed run calls the model with it', async () => {
    const to = await cutAt('compaction', ['ok']);
    expect(await to.conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    expect(lines(to.model.calls[0]?.messages ?? [])[0]).toBe(`user ${SUMMARY}`);
    expect(compactions(to)).toHaveLength(1);
  });

  it('a fork of a log with a summary shows the model the same messages', async () => {
    const to = await filled([summed(), 'ok']);
    await say(to, text(150));
    const messages = to.conversation.messages();
    await to.conversation.close();
    await forkConversation(to.store, 'c', 'fork');
    const fork = await to.agent.open('fork');
    expect(fork.messages()).toEqual(messages);
  });
});

describe('plugins', () => {
  it('the request of the summary contains the instructions of plugins', async () => {
    const plugins = [
      { name: 'a', preCompact: () => ({ instructions: 'Keep the file names.' }) },
      { name: 'b', preCompact: () => undefined },
      { name: 'c', preCompact: () => ({ instructions: 'Be brief.' }) },
    ];
    const to = await filled([summed(), 'ok'], { plugins });
    await say(to, text(150));
    expect(to.model.calls[2]?.system).toMatch(/Keep the file names\.\nBe brief\.$/);
    expect(to.model.calls[3]?.system).toBe('');
  });

  it('a plugin receives the turn before which the summary is made', async () => {
    const turns: number[] = [];
    const plugins = [{ name: 'counts', preCompact: ({ turn }: { turn: number }) => void turns.push(turn) }];
    const to = await filled([summed(), 'ok'], { plugins });
    await say(to, text(150));
    expect(turns).toEqual([1]);
  });

  it('a plugin that blocks a summary is named, and the run continues with all its messages', async () => {
    const plugins = [{ name: 'guard', preCompact: () => ({ block: 'not now' }) }];
    const to = await filled(['ok'], { plugins });
    expect(await say(to, text(150))).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    expect(to.model.calls.at(-1)?.messages).toHaveLength(5);
    expect(notices(to)).toEqual(['compaction_blocked']);
  });

  it('a plugin that fails is a diagnostic, and the summary is made without it', async () => {
    const failing = () => {
      throw new Error('broken');
    };
    const to = await filled([summed(), 'ok'], { plugins: [{ name: 'bad', preCompact: failing }] });
    expect(await say(to, text(150))).toMatchObject({ termination: 'NaturalEnd' });
    expect(compactions(to)).toHaveLength(1);
    expect(to.conversation.log()).toContainEqual(expect.objectContaining({ type: 'diagnostic', code: 'plugin_error' }));
  });
});

describe('a summary on request', () => {
  const asking = (compact: true | string) => {
    let isAsked = false;
    const stepStart = () => {
      const wanted = isAsked ? { compact } : undefined;
      isAsked = false;
      return wanted;
    };
    return {
      plugins: [{ name: 'now', stepStart }],
      ask: () => {
        isAsked = true;
      },
    };
  };

  it('a plugin may request one summary before the next call at any fill level, with instructions', async () => {
    const { plugins, ask } = asking('Keep the names.');
    const to = await on(['one', 'two', summed(), 'three', 'four'], { plugins }, roomy);
    await say(to, 'first');
    await say(to, 'second');
    ask();
    expect(await say(to, 'third')).toMatchObject({ termination: 'NaturalEnd', text: 'three' });
    expect(to.model.calls[2]?.system).toMatch(/Keep the names\.$/);
    expect(lines(to.model.calls[3]?.messages ?? [])).toEqual([`user ${SUMMARY}`, 'assistant two', 'user third']);
    await say(to, 'fourth');
    expect(compactions(to)).toHaveLength(1);
  });

  it('an empty text is a request without instructions', async () => {
    const requestFor = async (compact: true | string) => {
      const { plugins, ask } = asking(compact);
      const to = await on(['one', 'two', summed(), 'three'], { plugins }, roomy);
      for (const words of ['first', 'second']) await say(to, words);
      ask();
      await say(to, 'third');
      return [compactions(to).length, to.model.calls[2]?.system];
    };
    expect(await requestFor('')).toEqual(await requestFor(true));
  });

  it('the request is a no-op if there is nothing to summarize or the policy has no step `compact`', async () => {
    for (const context of [undefined, [{ kind: 'warn', at: 0.8 }] as const]) {
      const { plugins, ask } = asking(true);
      const to = await on(['one', 'two', 'three'], { plugins, policies: context ? { context } : {} }, roomy);
      if (context) await say(to, 'first');
      ask();
      expect(await say(to, 'only')).toMatchObject({ termination: 'NaturalEnd' });
      expect(compactions(to)).toEqual([]);
    }
  });
});

describe('a reply that its length limit cut', () => {
  const cut: Reply = [t(text(260)), finish('length')];

  it('above the threshold its text is kept, earlier messages are summarized, and the model continues', async () => {
    const to = await on([text(300), cut, summed(), 'the rest']);
    await say(to, text(200));
    expect(await say(to, text(50))).toMatchObject({ termination: 'NaturalEnd', text: 'the rest', turns: 2 });
    const sent = lines(to.model.calls.at(-1)?.messages ?? []);
    expect(sent.map((line) => line.slice(0, 14))).toEqual([
      'user Summary o',
      'user xxxxxxxxx',
      'assistant xxxx',
      'user Your last',
    ]);
    expect(only(to.conversation.log(), 'continuation')).toHaveLength(1);
  });

  it('below the threshold the run is Stopped, max_tokens', async () => {
    const to = await on([cut], {}, { contextWindow: 100_000, maxOutputTokens: 0 });
    expect(await say(to, 'hi')).toMatchObject({ termination: 'Stopped', cause: 'max_tokens' });
  });
});

it('a result that comes after its call was summarized follows the summary as a message of its own', () => {
  const of = { conversationId: 'c', at: 0, runId: 'r' };
  const entries = [
    { type: 'run-started' },
    { type: 'user-message', messageId: 'm', kind: 'direct', content: [{ type: 'text', text: 'pay' }] },
    { type: 'agent-output', item: { type: 'tool-call', callId: 'c1', name: 'pay', args: {} } },
    { type: 'model-reply', turn: 1, model: 'm', finish: 'tool-calls', usage: {}, costUsd: 0 },
    { type: 'compaction', upToSeq: 3, summary: SUMMARY, model: 'm', usage: {}, costUsd: 0 },
    { type: 'tool-result', callId: 'c1', outcome: 'succeeded', content: [{ type: 'text', text: 'it is paid' }] },
  ].map((fields, seq) => ({ ...of, seq, ...fields }) as unknown as LogEntry);
  const [summary, late, ...rest] = modelMessages(entries);
  expect(summary).toEqual({ role: 'user', content: [{ type: 'text', text: SUMMARY }] });
  expect(late?.role).toBe('user');
  expect(JSON.stringify(late)).toContain('it is paid');
  expect(rest).toEqual([]);
});

it('messages that are too long for the own request of a summary are cut, and the request contains how much', async () => {
  const room = { contextWindow: 4_000, maxOutputTokens: 600 };
  const to = await on(['read', 'heard', summed(), 'ok'], {}, room);
  for (const tokens of [3_000, 150, 300]) await say(to, text(tokens));
  const request = to.model.calls.find(({ messages }) => JSON.stringify(messages).includes('characters more]'));
  expect(request?.tools).toEqual([]);
  expect(JSON.stringify(request?.messages).length).toBeLessThan(room.contextWindow * 4);
});
