/** What was asked for before a conversation closes is answered, and the answer is true (run-lifecycle, RESUME_TOOL_CALL). */
import { expect, it } from 'vitest';
import { bench, only } from '../support/agent.ts';
import { call } from '../support/model.ts';
import { troubledStore } from '../support/store.ts';
import { asks, echoTool } from '../support/tools.ts';

it.each([{ synchronous: true }, { synchronous: false }])(
  'decisions that are on their way when a conversation closes are durable before it is closed (%o)',
  async (how) => {
    const on = await bench({
      replies: [['c1', 'c2', 'c3'].map((callId) => call(callId, 'ask', { m: 'a' }))],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
      store: troubledStore(how),
    });
    await on.conversation.send('hi').result;
    const decisions = ['c1', 'c2', 'c3'].map((callId) => on.conversation.decide({ callId, action: 'approve' }));
    const closed = on.conversation.close();
    // Whoever closes it too waits for the same end.
    await on.conversation.close();
    await closed;
    expect(await Promise.all(decisions)).toEqual(['applied', 'applied', 'applied']);
    expect(only(on.conversation.log(), 'decision')).toEqual(['decision c1 1', 'decision c2 1', 'decision c3 1']);
    await expect(on.conversation.decide({ callId: 'c1', action: 'approve' })).rejects.toThrow(/closed/);
  },
);
