/** The output of a cancelled command is kept in its result. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AgentOptions, createAgent, memoryStore } from '../../../src/index.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { only, resultText } from '../../support/agentBench.ts';
import { call, scripted } from '../../support/scriptedReplies.ts';
import { gone, hasProc, numberIn } from './liveProcesses.ts';

let cwd = '';
beforeEach(async () => {
  cwd = await realpath(await mkdtemp(join(tmpdir(), 'partial-')));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const CANCELLED = 'This call was cancelled before its result was known. It may have had an effect.';

/** A run that is cancelled after the command has printed and written its number. */
async function cancelledAfter(printing: string, options: Partial<AgentOptions> = {}) {
  const command = `${printing}; echo $$ > g; trap '' TERM; sleep 1000`;
  const model = scripted([[call('c1', 'Bash', { command })], 'next']);
  const agent = createAgent({ model, tools: codingTools({ sandbox: 'off' }), cwd, ...options });
  const conversation = await agent.open('c');
  conversation.send('go');
  const group = await numberIn(join(cwd, 'g'));
  await conversation.cancel();
  return { agent, conversation, model, group };
}

describe.skipIf(!hasProc)('a command that is cancelled', () => {
  it('INV-6 has what it printed in its result, after the words about the cancel, and the model receives it', async () => {
    const { agent, conversation, model, group } = await cancelledAfter('echo one; echo two >&2');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
    expect(resultText(conversation.log(), 'c1')).toBe(`${CANCELLED}What it had printed until then:\none\ntwo`);
    await conversation.send('again').result;
    const toolMessage = model.calls[1]?.messages.find((message) => message.role === 'tool');
    expect(JSON.stringify(toolMessage?.content)).toContain('until then:\\none\\ntwo');
    await gone(group);
    await agent.close();
  });

  it('and that printed nothing has only the words about the cancel', async () => {
    const { agent, conversation } = await cancelledAfter('true');
    expect(resultText(conversation.log(), 'c1')).toBe(CANCELLED);
    await agent.close();
  });

  it('has no secrets in it, and no more than the limit of a result', async () => {
    const { agent, conversation } = await cancelledAfter('echo a-secret-value; seq 100000', {
      secrets: ['a-secret-value'],
      policies: { limits: { resultBytes: 2_000 } },
    });
    const text = resultText(conversation.log(), 'c1');
    expect(text).not.toContain('a-secret-value');
    expect(text.length).toBeLessThan(2_200);
    expect(text).toMatch(/99999\n100000$/);
    await agent.close();
  });

  it('keeps it over a restart', async () => {
    const store = memoryStore();
    const { agent } = await cancelledAfter('echo one', { store });
    await agent.close();
    const next = createAgent({ model: scripted([]), tools: codingTools({ sandbox: 'off' }), cwd, store });
    expect(resultText((await next.open('c')).log(), 'c1')).toContain('until then:\none');
    await next.close();
  });
});
