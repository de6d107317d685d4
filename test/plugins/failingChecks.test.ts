/**
 * Checks, phases and questions of a call that fail or hang, at every place: the call does not run, and its entries are redacted and
 * bounded.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Decision, defineTool, type LogEntry, type Plugin } from '../../src/index.ts';
import { CALL_CHECKS, type CallChecks } from '../../src/plugins/callChecks.ts';
import { bench } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

const SECRET = 'secret-98765';
const LONG = `no: ${SECRET} ${'é'.repeat(40_000)}`;
const RESULT_BYTES = 2_000;
const hang = () => new Promise<never>(() => undefined);
const fail = async (): Promise<never> => {
  throw new Error(LONG);
};
type Fault = () => Promise<never>;
const FAULTS: readonly (readonly [string, Fault, number])[] = [
  ['throws', fail, 0],
  ['hangs', hang, 120_000],
];

/** The places where a plugin may fail, and the required events before each. */
const PLACES: readonly (readonly [string, (fault: Fault) => CallChecks])[] = [
  ['a hook before the rules', (fault) => ({ before: fault })],
  ['a rule', (fault) => ({ permit: fault })],
  ['a hook about a question', (fault) => ({ permit: async () => ({ outcome: 'ask', by: 'rules' }), requested: fault })],
];

/** A plugin like the library's own, whose checks judge a call. */
const checking = (name: string, checks: object): Plugin =>
  ({ name, beforeInference: () => undefined, beforeToolExecute: () => undefined, [CALL_CHECKS]: checks }) as Plugin;

async function run(plugins: readonly Plugin[], { needsApproval = false, reply = { m: 'a' } } = {}) {
  const ran: unknown[] = [];
  const tool = defineTool({
    ...{ name: 'act', description: '', parameters: z.object({ m: z.string() }), needsApproval },
    execute: ({ m }) => void ran.push(m),
  });
  const on = await bench({
    ...{ tools: [tool], replies: [[call('c1', 'act', reply)], 'done', 'done'], plugins: [...plugins] },
    secrets: [SECRET],
    policies: { limits: { resultBytes: RESULT_BYTES } },
  });
  const { result } = on.conversation.send('go');
  const took = await on.clock.until(result, 1_000_000);
  return { ...on, ran, took, log: on.conversation.log(), end: await result };
}

const resultsIn = (log: readonly LogEntry[]) => log.flatMap((entry) => (entry.type === 'tool-result' ? [entry] : []));

function isBlocked(log: readonly LogEntry[], code: string): void {
  const [result, ...others] = resultsIn(log);
  expect([result?.outcome, result?.code, others]).toEqual(['failed', code, []]);
  const text = JSON.stringify(result?.content);
  expect(text).not.toContain(SECRET);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(RESULT_BYTES + 200);
  expect(JSON.stringify(log)).not.toContain(SECRET);
}

describe.each(FAULTS)('a check that %s', (_, fault, ms) => {
  it.each(PLACES)('as %s blocks its call, whatever other plugins and the tool answer', async (_place, make) => {
    const broken = checking('broken', make(fault));
    const allows = checking('allows', { before: async () => ({ decision: 'allow' }) });
    for (const plugins of [[broken], [allows, broken], [broken, allows]])
      for (const needsApproval of [false, true]) {
        const { log, ran, took, end } = await run(plugins, { needsApproval });
        isBlocked(log, 'plugin_error');
        expect([ran, took, end.termination]).toEqual([[], ms, 'NaturalEnd']);
        const details = log.flatMap((entry) => (entry.type === 'diagnostic' ? [entry.detail] : []));
        expect(details).toMatchObject([{ plugin: 'broken', phase: 'beforeToolExecute' }]);
      }
  });

  it('as a phase before the call blocks it, and after the call keeps its result', async () => {
    const before = await run([{ name: 'broken', beforeToolExecute: fault }]);
    isBlocked(before.log, 'plugin_error');
    expect([before.ran, before.took]).toEqual([[], ms === 0 ? 0 : 30_000]);
    const after = await run([{ name: 'broken', afterToolExecute: fault }]);
    expect([after.ran, after.took, resultsIn(after.log).map(({ outcome }) => outcome)]).toEqual([
      ['a'],
      ms === 0 ? 0 : 30_000,
      ['succeeded'],
    ]);
    expect(JSON.stringify(after.log)).not.toContain(SECRET);
  });

  it('as a question of the tool asks a person', async () => {
    const { log, ran, conversation } = await run([], { needsApproval: fault as never });
    expect([conversation.pending.map(({ callId, reason }) => [callId, reason]), ran]).toEqual([
      [['c1', 'permission']],
      [],
    ]);
    expect(JSON.stringify(log)).not.toContain(SECRET);
    expect(log.flatMap((entry) => (entry.type === 'diagnostic' ? [entry.code] : []))).toEqual(['approval_error']);
  });
});

describe('words of a check about a call', () => {
  const asks: CallChecks = { permit: async () => ({ outcome: 'ask', by: 'rules' }) };
  it.each<[string, CallChecks, string]>([
    ['that a hook blocks', { before: async () => ({ block: LONG }) }, 'blocked'],
    ['at which a hook stops the run', { before: async () => ({ block: LONG, stop: true }) }, 'denied'],
    ['that a hook denies', { ...asks, requested: async () => ({ decision: 'deny', reason: LONG }) }, 'denied'],
    [
      'at whose question a hook stops the run',
      { ...asks, requested: async () => ({ decision: 'deny', reason: LONG, stop: true }) },
      'denied',
    ],
    ['that a rule denies', { permit: async () => ({ outcome: 'deny', by: LONG }) }, 'denied'],
  ])('%s are redacted and bounded', async (name, checks, code) => {
    const { log, ran, end, model } = await run([checking('own', checks)]);
    isBlocked(log, code);
    const isStopped = name.includes('stops the run');
    expect([ran, end.termination, model.calls.length]).toEqual([
      [],
      isStopped ? 'Stopped' : 'NaturalEnd',
      isStopped ? 1 : 2,
    ]);
  });

  it('that a plugin blocks are redacted and bounded', async () => {
    const { log, ran } = await run([{ name: 'own', beforeToolExecute: () => ({ block: LONG }) }]);
    isBlocked(log, 'blocked');
    expect(ran).toEqual([]);
  });
});

describe('arguments that a check rewrites', () => {
  const asks: CallChecks = { permit: async () => ({ outcome: 'ask', by: 'rules' }) };
  const rewrites = (args: unknown): readonly (readonly [string, Plugin])[] => [
    ['a hook', checking('own', { before: async () => ({ args }) })],
    ['a phase', { name: 'own', beforeToolExecute: () => ({ args }) as never }],
    [
      'a hook that answers the question',
      checking('own', { ...asks, requested: async () => ({ decision: 'allow', by: 'hook', args }) }),
    ],
  ];

  it('run where they are valid, and are in the log', async () => {
    for (const [name, plugin] of rewrites({ m: 'b' })) {
      const { ran, log } = await run([plugin]);
      const started = log.flatMap((entry) => (entry.type === 'tool-started' ? [entry.args] : []));
      expect([name, ran, started]).toEqual([name, ['b'], [{ m: 'b' }]]);
    }
  });

  it.each([[{ m: 7 }], [{}], ['a'], [null], [[1]]])(
    '%j are validated like those of the model, and do not run',
    async (args) => {
      for (const [name, plugin] of rewrites(args)) {
        const { ran, conversation, log } = await run([plugin]);
        expect([name, ran]).toEqual([name, []]);
        // A hook's answer with such arguments is none, so a person is asked.
        if (name === 'a hook that answers the question') {
          expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
          const details = log.flatMap((entry) => (entry.type === 'diagnostic' ? [entry.detail] : []));
          expect(details).toEqual([
            {
              ...{ plugin: 'own', phase: 'beforeToolExecute' },
              message: expect.stringContaining('it allowed the call with arguments that cannot be applied'),
            },
          ]);
        } else
          expect(resultsIn(log).map(({ outcome, code }) => [outcome, code])).toEqual([['failed', 'invalid_arguments']]);
      }
    },
  );
});

describe('a decision of a person', () => {
  const DECISIONS: readonly (readonly [Omit<Decision, 'callId'>, readonly unknown[], string])[] = [
    [{ action: 'approve' } as never, ['a'], 'succeeded'],
    [{ action: 'edit', args: { m: 'b' } } as never, ['b'], 'succeeded'],
    [{ action: 'deny', reason: 'no' } as never, [], 'failed'],
  ];
  it.each(DECISIONS)('%j holds beside hooks that allow, and beside none', async (decision, ran, outcome) => {
    const allows = checking('allows', {
      before: async () => ({ decision: 'allow' }),
      permit: async () => ({ outcome: 'ask', by: 'rules' }),
    });
    for (const plugins of [[], [allows]]) {
      const on = await run(plugins, { needsApproval: true });
      expect(on.conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
      await on.conversation.decide({ callId: 'c1', ...decision } as Decision);
      await on.conversation.resume().result;
      expect([on.ran, resultsIn(on.conversation.log()).map((each) => each.outcome)]).toEqual([ran, [outcome]]);
    }
  });
});
