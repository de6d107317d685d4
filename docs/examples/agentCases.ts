/** Cases for one's own agent, generated from the charts; vitest runs them as printed in docs/testing.md. */
import { createAgent, defineTool } from 'runchart';
import { agentPaths } from 'runchart/testing';
import * as z from 'zod';

const bank = {
  paid: [] as { to: string; euros: number }[],
};
const transfer = defineTool({
  name: 'transfer',
  description: 'Transfers money.',
  parameters: z.object({ to: z.string().min(1), euros: z.number().min(0.01) }),
  needsApproval: ({ euros }) => euros > 100,
  execute: async ({ to, euros }, { signal, sleep }) => {
    await sleep(10);
    signal.throwIfAborted();
    bank.paid.push({ to, euros });
    return 'done';
  },
});
const balance = defineTool({
  name: 'balance',
  description: 'Says what is left.',
  readOnly: true,
  parameters: z.object({}),
  execute: () => ({ euros: 1000 - bank.paid.reduce((sum, { euros }) => sum + euros, 0) }),
});

// #region cases
const paths = await agentPaths((world) => createAgent({ tools: [transfer, balance], ...world }), {
  examples: { transfer: [{ args: { to: 'landlord', euros: 900 }, then: 'asks' }] },
  expect: { transfer: ({ euros }: { euros: number }) => (euros > 100 ? 'asks' : 'runs') },
  outside: {
    reset: () => {
      bank.paid = [];
    },
    state: () => bank.paid.map((each) => ({ ...each })),
  },
  check({ log }) {
    const approved = log.some((entry) => entry.type === 'decision' && entry.decision.action !== 'deny');
    if (!approved && bank.paid.some(({ euros }) => euros > 100)) throw new Error('paid without an approval');
  },
});
// #endregion

let failed = 0;
for (const path of paths.cases) {
  await path.run().catch((error: Error) => {
    failed += 1;
    console.log(path.name, error.message);
  });
}
console.log(failed, 'failed');

// #region verdicts
for (const { tool, args, verdict, edge } of paths.verdicts) if (edge) console.log(tool, JSON.stringify(args), verdict);
console.log(paths.report().missed.length, 'missed');
// #endregion
