/**
 * Tests the rules of several plugins for one call: the strictest applies, and the judged arguments are the executed
 * ones.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type Plugin, type ToolContext } from '../../src/index.ts';
import { CALL_CHECKS, type CallChecks, type RuleVerdict } from '../../src/plugins/callChecks.ts';
import { bench, only } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

/** Returns a plugin like the library's own, whose checks judge a call. */
const checks = (name: string, callChecks: CallChecks): Plugin =>
  ({ name, beforeToolExecute: () => undefined, [CALL_CHECKS]: callChecks }) as Plugin;
const permits = (name: string, verdict: (m: string) => Omit<RuleVerdict, 'by'>): Plugin =>
  checks(name, { permit: async ({ args }) => ({ by: name, ...verdict((args as { m: string }).m) }) });

async function run(plugins: Plugin[]) {
  const ran: [string, ToolContext['grant']][] = [];
  const tool = defineTool({
    ...{ name: 'act', description: '', parameters: z.object({ m: z.string() }) },
    execute: ({ m }, { grant }) => void ran.push([m, grant]),
  });
  const on = await bench({ tools: [tool], replies: [[call('c1', 'act', { m: 'a' })], 'done'], plugins });
  await on.conversation.send('go').result;
  const { conversation } = on;
  const results = () => only(conversation.log(), 'tool-result', 'tool-suspended');
  return { ...on, ran, results };
}

describe('of two verdicts', () => {
  const strict = ['allow', 'ask', 'deny'] as const;
  it.each(strict.flatMap((one) => strict.map((other) => [one, other] as const)))(
    '%s and %s, the stricter one counts',
    async (one, other) => {
      const { results } = await run([
        permits('one', () => ({ outcome: one })),
        permits('other', () => ({ outcome: other })),
      ]);
      const expected = {
        allow: 'tool-result c1 succeeded',
        ask: 'tool-suspended c1',
        deny: 'tool-result c1 failed denied',
      }[strict[Math.max(strict.indexOf(one), strict.indexOf(other))] ?? 'deny'];
      expect(results()).toEqual([expect.stringContaining(expected)]);
    },
  );
});

describe('the place that a call was judged for', () => {
  /** The deciding person sees the place, which may differ when the call is judged again. */
  const asking = (place: (m: string) => string) =>
    permits('rules', (m) => ({ outcome: 'ask', payload: { place: place(m) }, grant: { place: place(m) } }));

  it('is the place that an approval was for, or the call does not run', async () => {
    for (const moves of [false, true]) {
      let place = '/one';
      const { conversation, ran, results } = await run([asking(() => place)]);
      if (moves) place = '/two';
      await conversation.decide({ callId: 'c1', action: 'approve' });
      await conversation.resume().result;
      expect(ran).toEqual(moves ? [] : [['a', { place: '/one' }]]);
      expect(results().at(-1)).toContain(moves ? 'failed moved' : 'succeeded');
    }
  });

  it('is that of the new arguments where a person changed them', async () => {
    const { conversation, ran } = await run([asking((m) => `/${m}`)]);
    await conversation.decide({ callId: 'c1', action: 'edit', args: { m: 'b' } });
    await conversation.resume().result;
    expect(ran).toEqual([['b', { place: '/b' }]]);
  });

  it('is not that of arguments which a plugin has changed since', async () => {
    const rules = checks('rules', {
      permit: async ({ args }) =>
        (args as { m: string }).m === 'c'
          ? { outcome: 'allow', by: 'rules' }
          : { outcome: 'ask', by: 'rules', grant: { place: '/b' } },
      requested: async () => ({ decision: 'allow', by: 'hook', args: { m: 'b' } }),
    });
    const rewrites: Plugin = {
      name: 'rewrites',
      beforeToolExecute: (c) => ((c.call.args as { m: string }).m === 'b' ? { args: { m: 'c' } } : undefined),
    };
    const { ran } = await run([rules, rewrites]);
    expect(ran).toEqual([['c', undefined]]);
  });
});

describe('a call that is decided about', () => {
  const decided = async (decision: { action: 'approve' } | { action: 'edit'; args: { m: string } }) => {
    const asked: unknown[] = [];
    const before = async ({ args }: { args: unknown }) => void asked.push(args);
    const waits: Plugin = {
      name: 'waits',
      beforeToolExecute: (c) => (c.decision ? undefined : { suspend: { reason: 'wait' } }),
    };
    const { conversation } = await run([
      checks('hook', { before }),
      permits('rules', () => ({ outcome: 'allow' })),
      waits,
    ]);
    await conversation.decide({ callId: 'c1', ...decision });
    await conversation.resume().result;
    return { asked, allowed: conversation.log().filter(({ type }) => type === 'tool-allowed') };
  };

  it('is asked of hooks again where a person changed its arguments, and not after an approval', async () => {
    expect((await decided({ action: 'approve' })).asked).toEqual([{ m: 'a' }]);
    expect((await decided({ action: 'edit', args: { m: 'b' } })).asked).toEqual([{ m: 'a' }, { m: 'b' }]);
  });

  it('is allowed by the person, and by no rule', async () => {
    const { allowed } = await decided({ action: 'approve' });
    expect(allowed).toMatchObject([{ by: 'decision' }]);
  });
});
