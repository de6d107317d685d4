/** A call that waits for a person: the run suspends, the process may end, another one takes the decision and goes on. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, defineTool, type Model } from 'runchart';
import { jsonlStore } from 'runchart/node';
import * as z from 'zod';

/** Asks for the transfer, then quotes what came of it. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') {
      const [said] = last.content;
      yield { type: 'text-delta', text: said?.type === 'text' ? `Done: ${said.text}.` : '' };
      yield { type: 'finish', reason: 'stop' };
    } else {
      yield { type: 'tool-call', callId: 'call_1', name: 'transfer', args: '{"to":"landlord","euros":900}' };
      yield { type: 'finish', reason: 'tool-calls' };
    }
  },
};
const sessions = await mkdtemp(join(tmpdir(), 'runchart-approval-'));

// #region suspend
const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ to: z.string(), euros: z.number().positive() }),
  needsApproval: ({ euros }) => euros > 100,
  execute: ({ to, euros }) => `sent ${euros} euros to ${to}`,
});
const start = () => createAgent({ model, tools: [transfer], store: jsonlStore(sessions) });

const today = start();
const conversation = await today.open('rent');
const result = await conversation.send('Pay the rent').result;
console.log(result.termination, result.pending[0]?.args);
await today.close();
// #endregion

// #region resume
const later = start(); // days later, in another process
const again = await later.open('rent');
console.log(again.status);
for (const { callId, suspension } of again.pending) {
  console.log(await again.decide({ callId, suspension, action: 'approve', by: 'ada' }));
}
console.log(await again.resume().text);
await later.close();
// #endregion

await rm(sessions, { recursive: true });
