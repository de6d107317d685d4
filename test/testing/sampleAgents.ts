/** Agents as users write them, for the tests of generated cases: their tools act on a world in memory. */
import * as z from 'zod';
import { type Agent, createAgent, defineTool, type Plugin, type Tool } from '../../src/index.ts';
import type { AgentWorld } from '../../src/testing/index.ts';

/** A bank in memory, which the tools of the bank agent change. */
export class Bank {
  transfers: { to: string; euros: number }[] = [];
  plans = new Map<string, number>();

  readonly outside = {
    reset: (): void => {
      this.transfers = [];
      this.plans = new Map();
    },
    state: () => ({ transfers: this.transfers.map((each) => ({ ...each })), plans: Object.fromEntries(this.plans) }),
  };

  readonly transfer = defineTool({
    name: 'transfer',
    description: 'Transfers money.',
    parameters: z.object({ to: z.string().min(1), euros: z.number().min(0.01) }),
    needsApproval: ({ euros }) => euros > 100,
    execute: async ({ to, euros }, { sleep }) => {
      await sleep(5);
      this.transfers.push({ to, euros });
      return { left: 1000 - euros };
    },
  });

  readonly balance = defineTool({
    name: 'balance',
    description: 'Says how much there is.',
    readOnly: true,
    parameters: z.object({}),
    execute: () => ({ euros: 1000 - this.transfers.reduce((sum, { euros }) => sum + euros, 0) }),
  });

  readonly plan = defineTool({
    name: 'plan',
    description: 'Plans a budget.',
    idempotent: true,
    parameters: z.object({ name: z.enum(['rent', 'food']), euros: z.number().int().min(0).max(500).optional() }),
    execute: ({ name, euros = 0 }) => {
      this.plans.set(name, euros);
      return 'planned';
    },
  });

  readonly tools: readonly Tool[] = [this.transfer, this.balance, this.plan];

  agent(changes: { tools?: readonly Tool[]; plugins?: readonly Plugin[] } = {}): (world: AgentWorld) => Agent {
    return (world) => createAgent({ tools: this.tools, ...changes, ...world });
  }
}
