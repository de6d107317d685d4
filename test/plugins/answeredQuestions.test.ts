/** Arguments that a hook writes in answer to a question: the other plugins check these too, before the call runs. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type Plugin } from '../../src/index.ts';
import { CALL_CHECKS, type CallChecks } from '../../src/plugins/callChecks.ts';
import { bench, only, resultText } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

type Args = { m: string };
const textOf = (args: unknown): string => (args as Args).m;
/** Asks about `a`, and denies `d`. A hook then allows the call with other arguments. */
const answersWith = (m: string): Plugin => {
  const checks: CallChecks = {
    permit: async ({ args }) => ({
      by: 'rules',
      outcome: textOf(args) === 'a' ? 'ask' : textOf(args) === 'd' ? 'deny' : 'allow',
    }),
    requested: async () => ({ decision: 'allow', by: 'hook', args: { m } }),
  };
  return { name: 'rules', beforeToolExecute: () => undefined, [CALL_CHECKS]: checks } as Plugin;
};
type Verdict = { block: string } | { suspend: { reason: string } } | { args: Args };
const onArguments = (name: string, verdicts: { [m: string]: Verdict }): Plugin => ({
  name,
  beforeToolExecute: (c) => (c.decision ? undefined : verdicts[textOf(c.call.args)]),
});

async function run(...plugins: Plugin[]) {
  const ran: string[] = [];
  const tool = defineTool({
    ...{ name: 'act', description: '', parameters: z.object({ m: z.string() }) },
    execute: ({ m }) => void ran.push(m),
  });
  const on = await bench({ tools: [tool], replies: [[call('c1', 'act', { m: 'a' })], 'done'], plugins });
  await on.conversation.send('go').result;
  const log = on.conversation.log();
  return { ran, log, results: only(log, 'tool-result', 'tool-suspended'), conversation: on.conversation };
}

describe('a call whose question a hook answers with other arguments', () => {
  it('runs with these if no other plugin objects', async () => {
    const { ran, log } = await run(answersWith('b'), onArguments('other', {}));
    expect(ran).toEqual(['b']);
    expect(log.find(({ type }) => type === 'tool-started')).toMatchObject({ args: { m: 'b' } });
  });

  it('is blocked if another plugin blocks these, wherever it is in the list', async () => {
    const blocks = onArguments('other', { b: { block: 'not b' } });
    for (const plugins of [
      [answersWith('b'), blocks],
      [blocks, answersWith('b')],
    ]) {
      const { ran, results, log } = await run(...plugins);
      expect([ran, results]).toEqual([[], ['tool-result c1 failed blocked']]);
      expect(resultText(log, 'c1')).toContain('not b');
    }
  });

  it('waits if another plugin suspends these, and runs with them after the approval', async () => {
    const { ran, conversation } = await run(
      answersWith('b'),
      onArguments('other', { b: { suspend: { reason: 'b?' } } }),
    );
    expect(ran).toEqual([]);
    expect(conversation.pending).toMatchObject([{ callId: 'c1', reason: 'b?', args: { m: 'b' } }]);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
    expect(ran).toEqual(['b']);
  });

  it('waits for the reason of a plugin that suspended its first arguments', async () => {
    const suspends = onArguments('other', { a: { suspend: { reason: 'a?' } } });
    const { ran, conversation } = await run(answersWith('b'), suspends);
    expect(ran).toEqual([]);
    expect(conversation.pending).toMatchObject([{ callId: 'c1', reason: 'a?', args: { m: 'b' } }]);
  });

  it.each([
    ['c', ['c'], 'tool-result c1 succeeded'],
    ['d', [], 'tool-result c1 failed denied'],
  ])('is judged by the rules again if another plugin rewrites these to %j', async (m, expected, result) => {
    const { ran, results, log } = await run(answersWith('b'), onArguments('other', { b: { args: { m } } }));
    expect([ran, results]).toEqual([expected, [result]]);
    if (m === 'd') expect(resultText(log, 'c1')).toBe('act was not allowed (rules), and was not run.');
  });

  it('is allowed by the rules that allow these, also with the arguments that another plugin made of them', async () => {
    for (const others of [[], [onArguments('other', { b: { args: { m: 'c' } } })]]) {
      const { log } = await run(answersWith('b'), ...others);
      expect(log.filter(({ type }) => type === 'tool-allowed')).toMatchObject([{ by: 'rules' }]);
    }
  });

  it('still asks if the hook only changed the arguments, also with those that another plugin made of them', async () => {
    const checks: CallChecks = {
      permit: async () => ({ by: 'rules', outcome: 'ask' }),
      requested: async () => ({ by: 'hook', args: { m: 'b' } }),
    };
    const changes = { name: 'rules', beforeToolExecute: () => undefined, [CALL_CHECKS]: checks } as Plugin;
    for (const [m, others] of [
      ['b', []],
      ['c', [onArguments('other', { b: { args: { m: 'c' } } })]],
    ] as const) {
      const { ran, conversation } = await run(changes, ...others);
      expect(ran).toEqual([]);
      expect(conversation.pending).toMatchObject([{ callId: 'c1', reason: 'permission', args: { m } }]);
    }
  });

  it('is refused if another plugin rewrites these to invalid ones', async () => {
    const breaks = onArguments('other', { b: { args: { m: 7 } as never } });
    const { ran, results } = await run(answersWith('b'), breaks);
    expect([ran, results]).toEqual([[], ['tool-result c1 failed invalid_arguments']]);
  });
});
