/** The tools of the tutorial: one reads, one acts after an approval. */
// #region tools
import { defineTool } from 'runchart';
import * as z from 'zod';

const account = { euros: 1_500 };

export const balance = defineTool({
  name: 'balance',
  description: 'Returns the balance of the account.',
  parameters: z.object({}),
  readOnly: true,
  execute: () => `${account.euros} euros`,
});
// #endregion

// #region approval
export const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ to: z.string(), euros: z.number().positive() }),
  needsApproval: ({ euros }) => euros > 100,
  execute({ to, euros }) {
    account.euros -= euros;
    return `sent ${euros} euros to ${to}`;
  },
});
// #endregion
