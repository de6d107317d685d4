/** A decision changes one call and nothing else (docs/internals/lifecycle.md, Decision Replay). */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  type Decision,
  defineTool,
  type Json,
  type LogStore,
  memoryStore,
  SessionBusyError,
  toolResult,
} from '../../src/index.ts';
import { bench, entry, only, restart, resultText, storeWith } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });

/** Three waiting calls. */
async function threeWait(clock = new VirtualClock()) {
  const ask = echoTool('ask');
  const calls = ['c1', 'c2', 'c3'].map((callId) => call(callId, 'ask', args));
  const on = await bench({
    clock,
    replies: [calls, 'one', 'two', 'three'],
    tools: [ask.tool],
    plugins: [asks().plugin],
  });
  await on.conversation.send('hi').result;
  return { ...on, ask };
}

const ORDERS = ['123', '132', '213', '231', '312', '321'];
const ACTIONS: readonly ((callId: string) => Decision)[] = [
  approve,
  (callId) => ({ callId, action: 'deny', reason: 'no' }),
  (callId) => ({ callId, action: 'edit', args: { m: 'edited' } }),
  (callId) => ({ callId, action: 'answer', payload: 'yes' }),
];

describe('B07: each of three waiting calls is decided separately', () => {
  it.each(ORDERS)('in the order %s, with each action first, second and third', async (order) => {
    for (let shift = 0; shift < ACTIONS.length; shift++) {
      const { conversation, ask } = await threeWait();
      const ran: string[] = [];
      for (const [at, digit] of [...order].entries()) {
        const decision = ACTIONS[(at + shift) % ACTIONS.length]?.(`c${digit}`) ?? approve(`c${digit}`);
        expect(await conversation.decide(decision)).toBe('applied');
        const { pending } = await conversation.resume().result;
        if (decision.action !== 'deny') ran.push(`c${digit}`);
        expect(ask.ran).toEqual(ran);
        expect(pending.map(({ callId }) => callId)).toEqual(
          ['c1', 'c2', 'c3'].filter((callId) => ![...order].slice(0, at + 1).includes(callId.slice(1))),
        );
      }
      const outcomes = only(conversation.log(), 'tool-result').sort();
      expect(outcomes.map((line) => line.split(' ')[1])).toEqual(['c1', 'c2', 'c3']);
      expect(conversation.status).toBe('idle');
    }
  });
});

it('B06: an approved call starts at once, while its sibling still runs', async () => {
  const [ask, gate] = [echoTool('ask'), gateTool()];
  const on = await bench({
    replies: [[call('a', 'ask', args), call('b', 'gate')], 'done'],
    tools: [ask.tool, gate.tool],
    plugins: [asks().plugin],
  });
  const run = on.conversation.send('hi');
  await entry(on.conversation, 'tool-suspended');
  const from = on.clock.now();
  expect(await on.conversation.decide(approve('a'))).toBe('applied');
  await entry(on.conversation, 'tool-result', ({ callId }) => callId === 'a');
  expect(on.clock.now() - from).toBeLessThanOrEqual(50);
  expect(ask.ran).toEqual(['a']);
  expect(gate.started).toEqual(['b']);
  gate.release('b');
  expect((await run.result).text).toBe('done');
});

describe('B08: a decision is bound to its call and suspension, and starts no other call', () => {
  it('a wrong call or suspension, a repetition, a conflict and a late decision have different errors', async () => {
    const { conversation, ask } = await threeWait();
    const receipts = [
      await conversation.decide(approve('c9')),
      await conversation.decide({ ...approve('c1'), suspension: 2 }),
      await conversation.decide({ ...approve('c1'), suspension: 1 }),
      await conversation.decide(approve('c1')),
      await conversation.decide({ callId: 'c1', action: 'deny' }),
      await conversation.decide({ callId: 'c1', action: 'edit', args: { m: 'other' } }),
    ];
    expect(receipts).toEqual(['unknown', 'unknown', 'applied', 'duplicate', 'conflict', 'conflict']);
    expect(ask.ran).toEqual([]);
    await conversation.resume().result;
    expect(ask.ran).toEqual(['c1']);
    expect(await conversation.decide(approve('c1'))).toBe('duplicate');
    expect(await conversation.decide({ callId: 'c1', action: 'deny' })).toBe('conflict');
    await conversation.cancel();
    expect(await conversation.decide(approve('c2'))).toBe('stale');
    await conversation.resume().result;
    expect(ask.ran).toEqual(['c1']);
  });

  /** One call that is approved and suspends again. */
  async function askedAgain(store?: LogStore, clock?: VirtualClock) {
    let asked = 0;
    const again = {
      name: 'again',
      beforeToolExecute: ({ decision }: { decision?: Decision }) => {
        asked += 1;
        return decision && asked === 2 ? { suspend: { reason: 'once more' } } : undefined;
      },
    };
    const ask = echoTool('ask');
    const { conversation } = await bench({
      ...{ replies: [[call('c1', 'ask', args)], 'done'], tools: [ask.tool], plugins: [asks().plugin, again] },
      ...(store && { store }),
      ...(clock && { clock }),
    });
    await conversation.send('hi').result;
    await conversation.decide(approve('c1'));
    return { conversation, ask };
  }

  it('a decision without a number that arrives while the next suspension is stored is applied to that suspension', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const { conversation, ask } = await askedAgain(store, clock);
    store.trouble(() => ({ afterMs: 1_000 }));
    conversation.resume();
    await clock.advance(1_500);
    const edited = conversation.decide({ callId: 'c1', action: 'edit', args: { m: 'b' } });
    await clock.advance(10_000);
    expect(await edited).toBe('applied');
    await conversation.resume().result;
    expect(ask.ran).toEqual(['c1']);
  });

  it.each([
    ['the same', 'b', 'duplicate'],
    ['another', 'c', 'conflict'],
  ])(
    'a decision with %s answer after one that the store rejected and then stored with the stop gets the true receipt',
    async (_, later, answer) => {
      const clock = new VirtualClock();
      const store = troubledStore({ clock });
      let refusals = 0;
      const receipts: Promise<string>[] = [];
      const edit = (by: string, m: string) => conversation.decide({ callId: 'c1', by, action: 'edit', args: { m } });
      const { conversation } = await bench({
        ...{ clock, store, replies: [[call('c1', 'ask', args)]], tools: [echoTool('ask').tool] },
        plugins: [
          asks().plugin,
          {
            name: 'late',
            runEnd() {
              receipts.push(edit('ann', 'b'), edit('ben', later));
              for (const each of receipts) each.catch(() => undefined);
            },
          },
        ],
      });
      store.trouble((entries) => {
        if (!entries.some(({ type }) => type === 'decision')) return 'stored';
        refusals += 1;
        return refusals === 1 ? 'failed' : { afterMs: 70 };
      });
      conversation.send('hi');
      await expect.poll(() => refusals).toBe(2);
      await expect(receipts[0]).rejects.toThrow('full');
      // The second decision reaches its call when the cancel stops waiting for the store.
      await clock.until(conversation.cancel());
      expect(await receipts[1]).toBe(answer);
    },
  );

  it('a decision whose arguments contain a secret is applied, and stored without it', async () => {
    const { conversation } = await bench({
      ...{ replies: [[call('c1', 'ask', args)]], tools: [echoTool('ask').tool], plugins: [asks().plugin] },
      secrets: ['hunter2'],
    });
    await conversation.send('hi').result;
    expect(await conversation.decide({ callId: 'c1', action: 'edit', args: { m: 'hunter2' } })).toBe('applied');
    expect(JSON.stringify(conversation.log())).not.toContain('hunter2');
  });

  it('an approval of one suspension does not approve the next', async () => {
    const { conversation, ask } = await askedAgain();
    await conversation.resume().result;
    expect(conversation.pending.map(({ suspension }) => suspension)).toEqual([2]);
    expect(await conversation.decide({ ...approve('c1'), suspension: 1 })).toBe('stale');
    expect(ask.ran).toEqual([]);
    expect(await conversation.decide(approve('c1'))).toBe('applied');
    await conversation.resume().result;
    expect(ask.ran).toEqual(['c1']);
  });
});

it('B09: of two agents that resume one run, exactly one opens the conversation; the call runs once', async () => {
  const store = memoryStore();
  const ask = echoTool('ask');
  const options = { store, tools: [ask.tool], plugins: [asks().plugin] };
  const first = await bench({ ...options, replies: [[call('c1', 'ask', args)]] });
  await first.conversation.send('hi').result;
  await first.conversation.decide(approve('c1'));
  await first.agent.close();
  const opened = await Promise.allSettled([
    bench({ ...options, replies: ['done'] }),
    bench({ ...options, replies: ['done'] }),
  ]);
  const won = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const lost = opened.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  expect(won).toHaveLength(1);
  expect(lost).toEqual([expect.any(SessionBusyError)]);
  expect((await won[0]?.conversation.resume().result)?.text).toBe('done');
  expect(ask.ran).toEqual(['c1']);
});

it.each<[string, Json]>([
  ['false', false],
  ['0', 0],
  ['an empty text', ''],
  ['null', null],
])('B10: %s is an answer', async (_, payload) => {
  const seen: (Decision | undefined)[] = [];
  const survey = defineTool({
    name: 'survey',
    description: 'Asks a question.',
    parameters: z.object({}),
    execute: (_args, { decision }) => {
      if (!decision) return toolResult.pending({ reason: 'question' });
      seen.push(decision);
      return { answer: decision.action === 'answer' ? decision.payload : 'nothing' };
    },
  });
  const { conversation } = await bench({ replies: [[call('c1', 'survey')], 'ok'], tools: [survey] });
  await conversation.send('hi').result;
  expect(await conversation.decide({ callId: 'c1', action: 'answer', payload })).toBe('applied');
  expect((await conversation.resume().result).text).toBe('ok');
  expect(seen).toEqual([{ callId: 'c1', action: 'answer', payload }]);
  expect(resultText(conversation.log(), 'c1')).toBe(JSON.stringify({ answer: payload }));
});

describe('B11: edited arguments', () => {
  it('edited arguments pass validation and the permission of the tool again; the log contains the proposed and the executed ones', async () => {
    const checked: string[] = [];
    const ask = echoTool('ask', {
      needsApproval: ({ m }) => {
        checked.push(m);
        return true;
      },
    });
    const gate = {
      name: 'gate',
      beforeToolExecute: ({ call: { args: callArgs } }: { call: { args: Json } }) =>
        JSON.stringify(callArgs).includes('secret') ? { block: 'not that one' } : undefined,
    };
    const calls = [call('c1', 'ask', args), call('c2', 'ask', args), call('c3', 'ask', args)];
    const on = await bench({ replies: [calls, 'ok'], tools: [ask.tool], plugins: [gate] });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'edit', args: { m: 'b' } });
    await on.conversation.decide({ callId: 'c2', action: 'edit', args: { m: 'secret' } });
    await on.conversation.decide({ callId: 'c3', action: 'edit', args: { wrong: 1 } });
    expect((await on.conversation.resume().result).text).toBe('ok');
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 failed blocked',
      'tool-result c3 failed invalid_arguments',
    ]);
    expect(ask.ran).toEqual(['c1']);
    const log = on.conversation.log();
    expect(log.find((each) => each.type === 'agent-output' && each.item.type === 'tool-call')).toMatchObject({
      item: { args },
    });
    expect(log.find(({ type }) => type === 'tool-started')).toMatchObject({ callId: 'c1', args: { m: 'b' } });
    expect(lines(on.model.calls[1]?.messages ?? [])[2]).toMatch(/^c1 .*"m":"b".*changed the arguments/s);
  });
});

describe('B15: waiting for a person', () => {
  it('a wait uses no time limit, no attempt and no part of the duration of a run, however long it is', async () => {
    const clock = new VirtualClock();
    const policies = { limits: { runMs: 60_000 }, modelTimeout: { totalMs: 60_000 } };
    const ask = echoTool('ask');
    const options = { clock, tools: [ask.tool], plugins: [asks().plugin], policies };
    const on = await bench({ ...options, replies: [[call('c1', 'ask', args)]] });
    await on.conversation.send('hi').result;
    expect(clock.waiting).toBe(0);
    await clock.advance(40 * 24 * 3_600_000);
    expect(on.conversation.status).toBe('waiting');
    const later = await restart(on, { ...options, replies: ['done'] });
    await clock.advance(40 * 24 * 3_600_000);
    await later.conversation.decide(approve('c1'));
    expect(await later.conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(only(later.conversation.log(), 'model-retry', 'run-stop')).toEqual(['run-stop completed end_turn']);
    expect(clock.waiting).toBe(0);
  });
});

describe('B23: a call whose tool changed before its decision', () => {
  const waitingLog = async () => {
    const { conversation } = await bench({
      replies: [[call('c1', 'ask', args)]],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
    });
    await conversation.send('hi').result;
    return storeWith(conversation.log());
  };

  it('it is not run with arguments that the tool no longer accepts', async () => {
    const ran: string[] = [];
    const other = defineTool({
      name: 'ask',
      description: 'Takes something else now.',
      parameters: z.object({ path: z.string() }),
      execute: ({ path }) => ran.push(path),
    });
    const { conversation } = await bench({ store: await waitingLog(), replies: ['told'], tools: [other] });
    await conversation.decide(approve('c1'));
    expect((await conversation.resume().result).text).toBe('told');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed invalid_arguments']);
    expect(ran).toEqual([]);
  });

  it('it is not run if the tool no longer exists', async () => {
    const { conversation } = await bench({ store: await waitingLog(), replies: ['told'], tools: [] });
    await conversation.decide(approve('c1'));
    expect((await conversation.resume().result).text).toBe('told');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed unknown_tool']);
  });
});
