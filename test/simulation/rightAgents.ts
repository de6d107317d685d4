/**
 * Correct agents, each with other abilities. Invariant: every violation that a simulation reports for one of them is
 * false.
 */
import { z } from 'zod';
import { type Agent, createAgent, defineTool, subAgents } from '../../src/index.ts';
import { hooks, permissions } from '../../src/node.ts';
import type { AgentWorld } from '../../src/testing/index.ts';

const look = defineTool({
  name: 'look',
  description: 'Looks at something.',
  parameters: z.object({ what: z.string().min(1).max(20) }),
  readOnly: true,
  execute: ({ what }) => `there is ${what}`,
});

const book = defineTool({
  name: 'book',
  description: 'Books a table.',
  parameters: z.object({ people: z.number().int().min(2).max(8) }),
  needsApproval: true,
  execute: ({ people }) => `a table for ${people}`,
});

const pay = defineTool({
  name: 'pay',
  description: 'Pays somebody.',
  parameters: z.object({ to: z.enum(['ada', 'bob']), euros: z.number().int().min(1).max(900) }),
  needsApproval: ({ euros }) => euros > 100,
  execute: ({ to, euros }) => `${to} has ${euros} euros`,
});

const wait = defineTool({
  name: 'wait',
  description: 'Waits.',
  parameters: z.object({ ms: z.number().int().min(1).max(500) }),
  idempotent: true,
  execute: async ({ ms }, { sleep }) => {
    await sleep(ms);
    return 'the time is over';
  },
});

const output = z.object({ city: z.string().min(1), degrees: z.number() });

const rules = () =>
  permissions({
    allow: ['look', 'wait', 'spawn_agents'],
    ask: ['pay'],
    decide: ({ args }) => (JSON.stringify(args).includes('bob') ? 'deny' : 'ask'),
  });

const hooked = () =>
  hooks({
    SessionStart: [{ run: () => ({ additionalContext: 'the shop is open' }) }],
    PreToolUse: [
      { matcher: 'look', run: () => ({ updatedInput: { what: 'the sky' } }) },
      { matcher: 'wait', run: () => ({ decision: 'ask' }) },
    ],
    PermissionRequest: [{ matcher: 'book', run: () => ({ decision: 'allow' }) }],
    PostToolUse: [{ run: () => ({ additionalContext: 'a tool ran' }) }],
    Stop: [{ run: async () => undefined }],
  });

export const rightAgents: Readonly<Record<string, (world: AgentWorld) => Agent>> = {
  output: (world) => createAgent({ tools: [look, pay], output, ...world }),
  'output alone': (world) => createAgent({ output, ...world }),
  'sub-agents with approvals': (world) =>
    createAgent({ tools: [book, subAgents({ tools: [book, pay, wait] })], ...world }),
  'sub-agents and output': (world) =>
    createAgent({ tools: [look, subAgents({ tools: [look, book], limits: { turns: 4 } })], output, ...world }),
  permissions: (world) => createAgent({ tools: [look, pay, wait, book], plugins: [rules()], ...world }),
  hooks: (world) => createAgent({ tools: [look, pay, wait, book], plugins: [hooked()], ...world }),
  'all of them': (world) =>
    createAgent({
      tools: [look, book, wait, subAgents({ tools: [look, book, pay] })],
      plugins: [rules(), hooked()],
      output,
      ...world,
    }),
};
