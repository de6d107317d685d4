/** Entries of a call that a damaged log contains twice: what ran does not run again (docs/internals/model.md, Effect Records). */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { modelMessages } from '../../machines/index.ts';
import { defineTool, type LogEntry, type Tool } from '../../src/index.ts';
import { project } from '../../src/projector/index.ts';
import { bench, entry, storeWith } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';

const args = { m: 'a' };

/** The log with one more copy of the first entry that matches, at its end. */
function withCopy(log: readonly LogEntry[], matches: (entry: LogEntry) => boolean): LogEntry[] {
  const copy = log.find(matches);
  return [...log, ...(copy ? [copy] : [])].map((each, seq) => ({ ...each, seq }));
}

/** The log of a process that died while it executed a call of `pay`. */
async function diedPaying() {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    execute: () => new Promise(() => undefined),
  });
  const before = await bench({ replies: [[call('c1', 'pay')]], tools: [pay] });
  before.conversation.send('hi');
  await entry(before.conversation, 'tool-started');
  return before.conversation.log();
}
const paying = (keys: string[]): Tool =>
  defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    execute: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return 'paid';
    },
  });

describe('a repeated entry', () => {
  it('a suspension after the start of its call does not make the call wait, or start, again', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Hangs.',
      parameters: z.object({ m: z.string() }),
      execute: () => new Promise(() => undefined),
    });
    const plugins = [asks().plugin];
    const before = await bench({ replies: [[call('c1', 'ask', args)]], tools: [ask], plugins });
    await before.conversation.send('hi').result;
    await before.conversation.decide({ callId: 'c1', action: 'approve' });
    before.conversation.resume();
    await entry(before.conversation, 'tool-started');
    const log = withCopy(before.conversation.log(), ({ type }) => type === 'tool-suspended');
    const { tool, ran } = echoTool('ask');
    const { conversation } = await bench({ replies: ['done'], tools: [tool], plugins, store: await storeWith(log) });
    expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    await conversation.resume().result;
    expect(ran).toEqual([]);
  });

  it('a settlement does not repeat a call that was repeated', async () => {
    const keys: string[] = [];
    const tools = [paying(keys)];
    const on = await bench({ replies: ['done'], tools, store: await storeWith(await diedPaying()) });
    await on.conversation.settle('c1', { retry: true });
    await on.conversation.resume().result;
    expect(keys).toHaveLength(1);
    const log = withCopy(on.conversation.log(), ({ type }) => type === 'call-settled');
    const { conversation } = await bench({ tools, store: await storeWith(log) });
    await conversation.resume().result;
    expect(keys).toHaveLength(1);
    expect(conversation.log()).toEqual(log);
  });

  it.each([
    ['another outcome', { ran: 'paid twice' }],
    ['that nothing ran', { didNotRun: true }],
    ['a retry', { retry: true }],
  ] as const)(
    'of two settlements the first counts for the model, as in the views, if the second says %s',
    async (_, how) => {
      const on = await bench({ replies: ['done'], tools: [paying([])], store: await storeWith(await diedPaying()) });
      await on.conversation.settle('c1', { ran: 'paid once' });
      const log = withCopy(on.conversation.log(), ({ type }) => type === 'call-settled');
      log.push({ ...(log.pop() as Extract<LogEntry, { type: 'call-settled' }>), how });
      const [result] = modelMessages(log).filter(({ role }) => role === 'tool');
      expect(result?.content).toEqual([{ type: 'text', text: '"paid once"' }]);
      const [view] = project(log).cycles.flatMap(({ rounds }) => rounds.flatMap(({ output }) => output.calls));
      expect(view?.result).toMatchObject({ outcome: 'succeeded' });
    },
  );
});
