/** The parts of an agent that thinks for a moment, asks to pay, and says that it has paid. For a page and for its server. */

export const payment = {
  name: 'pay',
  description: 'Pays.',
  parameters: { '~standard': { version: 1, vendor: 'page', validate: (value) => ({ value }) } },
  needsApproval: true,
  execute: () => 'paid',
};

export function payingModel() {
  let calls = 0;
  return {
    id: 'scripted',
    async *stream({ messages }) {
      if (messages.at(-1)?.role === 'tool') {
        yield { type: 'text-delta', text: 'paid' };
        yield { type: 'finish', reason: 'stop' };
        return;
      }
      calls += 1;
      yield { type: 'text-delta', text: 'thinking' };
      await new Promise((resolve) => setTimeout(resolve, 100));
      yield { type: 'tool-call', callId: `c${calls}`, name: 'pay', args: '{}' };
      yield { type: 'finish', reason: 'tool-calls' };
    },
  };
}
