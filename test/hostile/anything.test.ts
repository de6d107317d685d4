import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Conversation, type Decision, defineTool, type ModelPart, toolResult } from '../../src/index.ts';
import { volume } from '../support/tier.ts';
import {
  askedTool,
  call,
  calls,
  entriesOf,
  opened,
  pairedCalls,
  plainTool,
  play,
  scripted,
  settle,
  stillClock,
} from './hostileAgent.ts';
import { watchEachTest, watched } from './hostileChecks.ts';

watchEachTest();

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withObjectString: true,
  withTypedArray: true,
  withSparseArray: true,
  withBoxedValues: true,
  maxDepth: 4,
});
const SEED = 20261121;
const many = { seed: SEED, numRuns: volume.anything };

describe('arbitrary input: each call has one result and the run ends', () => {
  test('with a tool that returns anything, directly or inside a result', async () => {
    const wraps = [
      (value: unknown) => value,
      async (value: unknown) => value,
      (value: unknown) => Promise.reject(value),
      (value: unknown) => toolResult.success(value as never),
      (value: unknown) => toolResult.error('x', value as never),
      (value: unknown) => toolResult.success('x', { state: value as never }),
      (value: unknown) => {
        throw value;
      },
    ];
    await fc.assert(
      fc.asyncProperty(anything, fc.constantFrom(...wraps), async (value, wrap) => {
        const { result, log } = await play({
          model: scripted([calls(call('c1', 't'))]),
          tools: [plainTool('t', () => wrap(value))],
        });
        expect(result.termination).toBe('NaturalEnd');
        expect(entriesOf(log, 'tool-result')).toHaveLength(1);
        expect(JSON.parse(JSON.stringify(log))).toEqual(log);
      }),
      many,
    );
  });

  test('with a model that writes any arguments', async () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.json().map((text) => text.slice(0, -1)),
    );
    const parameters = z.looseObject({});
    await fc.assert(
      fc.asyncProperty(texts, fc.string({ unit: 'binary' }), fc.string(), async (args, callId, name) => {
        const seen: unknown[] = [];
        const tool = defineTool({ name: 't', description: '', parameters, execute: (input) => seen.push(input) });
        const { result, log, conversation } = await play({
          model: scripted([calls(call(callId, 't', args), call(callId, name, args))]),
          tools: [tool],
        });
        expect(result.termination).toBe('NaturalEnd');
        expect(entriesOf(log, 'tool-result')).toHaveLength(2);
        expect(pairedCalls(conversation.messages())).toBe(true);
        const item = entriesOf(log, 'agent-output')[0]?.item;
        if (item?.type === 'tool-call' && seen.length > 0) expect(seen[0]).toEqual(item.args);
      }),
      many,
    );
  });

  test('with a model that yields anything', async () => {
    const types = fc.constantFrom(
      'text-delta',
      'reasoning-delta',
      'tool-call',
      'tool-call-delta',
      'finish',
      'diagnostic',
    );
    const part = fc.oneof(
      anything,
      fc.record({ type: types, text: anything, name: anything, args: anything, reason: anything }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 5 }), async (parts) => {
        const clock = stillClock();
        const conversation = await opened({
          model: scripted([parts as ModelPart[]]),
          tools: [plainTool('t', () => 'ok')],
          ports: { now: clock.now, setTimer: clock.setTimer },
        });
        const { result } = conversation.send('go');
        await settle();
        await clock.advance(1_000_000);
        expect((await result).termination).toBe('NaturalEnd');
      }),
      many,
    );
  });
});

async function asking(): Promise<Conversation> {
  const conversation = await opened({ model: scripted([calls(call('a', 'ask'))]), tools: [askedTool('ask')] });
  await conversation.send('go').result;
  return conversation;
}

test('any value as a decision is refused or answered, and a refused one changes nothing', async () => {
  const conversation = await asking();
  const base = { callId: fc.constantFrom('a', 'x'), action: fc.constantFrom('approve', 'edit', 'answer', 'no') };
  const decision = fc.oneof(
    anything,
    fc.record({ ...base, args: anything, payload: anything, suspension: anything, by: anything }),
  );
  await fc.assert(
    fc.asyncProperty(decision, async (value) => {
      const before = conversation.log().length;
      const receipt = await conversation.decide(value as Decision).catch((error: { code: string }) => error.code);
      const applied = receipt === 'applied' || receipt === 'held';
      expect(['applied', 'duplicate', 'conflict', 'unknown', 'invalid_decision']).toContain(receipt);
      expect(conversation.log().length).toBe(before + (applied ? 1 : 0));
    }),
    { ...many, numRuns: 5 * volume.anything },
  );
  await conversation.resume().result;
  expect(entriesOf(conversation.log(), 'decision').length).toBeLessThanOrEqual(1);
  watched(conversation);
});

test('any value as a settlement is refused', async () => {
  const conversation = await asking();
  await fc.assert(
    fc.asyncProperty(anything, async (value) => {
      const receipt = await conversation.settle('a', value as never).catch((error: { code: string }) => error.code);
      expect(['unknown', 'invalid_decision']).toContain(receipt);
    }),
    { ...many, numRuns: 3 * volume.anything },
  );
});
