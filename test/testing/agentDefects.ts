/**
 * Agents with one realistic mistake each: in a tool, an approval, a plugin, a hook, a permission rule or a policy.
 * Invariant: each agent names the oracle that must find its mistake. The agent without the mistake passes everything.
 */
import * as z from 'zod';
import { defineTool, toolResult } from '../../src/index.ts';
import { hooks, permissions } from '../../src/node.ts';

import {
  type Changes,
  commands,
  counting,
  type DefectiveAgent,
  defect,
  deployRule,
  guarded,
  pay,
  payRule,
  payRuled,
  search,
  searching,
  shell,
  wait,
} from './defectiveAgent.ts';

const approvals: readonly DefectiveAgent[] = [
  defect(
    'approval above 1000 in place of 100',
    'rule',
    payRuled({ needsApproval: ({ euros }: { euros: number }) => euros > 1000 }),
  ),
  defect('approval from 100 on', 'rule', payRuled({ needsApproval: ({ euros }: { euros: number }) => euros >= 100 })),
  defect(
    'approval by a field that is not there',
    'rule',
    payRuled({ needsApproval: ({ amount = 0 }: { amount?: number }) => amount > 100 }),
  ),
  defect('no approval', 'rule', payRuled({ needsApproval: undefined })),
  defect('approval switched off', 'rule', payRuled({ needsApproval: false })),
  defect('approval for everything', 'rule', payRuled({ needsApproval: true })),
  defect(
    'approval the wrong way round',
    'rule',
    payRuled({ needsApproval: ({ euros }: { euros: number }) => euros <= 100 }),
  ),
  defect(
    'approval that answers a word',
    'rule',
    payRuled({ needsApproval: ({ euros }: { euros: number }) => (euros > 100 ? 'yes' : 'no') }),
  ),
  defect(
    'approval that throws on a long text',
    'rule',
    payRuled({
      needsApproval: ({ to, euros }: { to: string; euros: number }) => {
        if (to.length > 500) throw new Error('too long');
        return euros > 100;
      },
    }),
  ),
  defect(
    'approval that compares texts',
    'rule',
    payRuled({ needsApproval: ({ euros }: { euros: number }) => String(euros) > '100' }),
  ),
  defect(
    'approval that counts cents',
    'rule',
    payRuled({ needsApproval: ({ euros }: { euros: number }) => euros * 100 > 100 }),
  ),
  defect('approval that is forgotten for one payee', 'rule', () => ({
    tools: (ledger) => [
      pay(ledger, {
        needsApproval: ({ to, euros }: { to: string; euros: number }) => to !== 'landlord' && euros > 100,
      }),
    ],
    expect: { pay: payRule },
    // biome-ignore lint/suspicious/noThenProperty: what follows from the arguments; nobody awaits an example.
    examples: { pay: [{ args: { to: 'landlord', euros: 900 }, then: 'asks' }] },
  })),
];

const declarations: readonly DefectiveAgent[] = [
  defect(
    'idempotent and counts',
    'declaration',
    counting({ idempotent: true }, (ledger) => ledger.add('again')),
  ),
  defect(
    'readOnly and writes',
    'declaration',
    counting({ readOnly: true }, (ledger) => ledger.add('read')),
  ),
  defect(
    'readOnly and writes later',
    'declaration',
    counting({ readOnly: true }, async (ledger) => {
      await wait(5);
      ledger.add('read');
    }),
  ),
  defect(
    'deaf to its signal',
    'declaration',
    counting({}, () => wait(600)),
  ),
  defect(
    'acts after a cancel',
    'declaration',
    counting({}, async (ledger) => {
      await wait(20);
      ledger.add('late');
    }),
  ),
  defect('heeds its signal, and writes all the same', 'declaration', () => ({
    tools: (ledger) => [
      defineTool({
        name: 'act',
        description: '',
        parameters: z.object({}),
        execute: async (_, { signal, sleep }) => {
          await sleep(10).catch(() => undefined);
          if (signal.aborted) ledger.add('cancelled');
          ledger.add('done');
        },
      }),
    ],
  })),
];

const schemas: readonly DefectiveAgent[] = [
  defect(
    'throws above 20 where the schema takes 50',
    'schema',
    searching({
      execute: ({ limit = 1 }: { limit?: number }) => {
        if (limit > 20) throw new RangeError('at most 20');
        return [];
      },
    }),
  ),
  defect(
    'reads an optional field that is missing',
    'schema',
    searching({ execute: ({ sort }: { sort: string }) => sort.toUpperCase() }),
  ),
  defect(
    'cannot take an empty text',
    'schema',
    searching({ execute: ({ text }: { text: string }) => (text[0] as string).toUpperCase() }),
  ),
  defect(
    'puts a text into JSON by hand',
    'schema',
    searching({ execute: ({ text }: { text: string }) => JSON.parse(`{"q":"${text}"}`) }),
  ),
  defect(
    'cannot take a long text',
    'schema',
    searching({
      execute: ({ text }: { text: string }) => {
        if (text.length > 1000) throw new Error('too long');
        return [];
      },
    }),
  ),
  defect(
    'forgets a member of an enum',
    'schema',
    searching({
      execute: ({ sort = 'new' }: { sort?: string }) => ({ new: () => [] })[sort as 'new']() as unknown,
    }),
  ),
  defect(
    'cannot take an empty list',
    'schema',
    searching({
      execute: ({ tags = ['a'] }: { tags?: string[] }) => tags.reduce((one, other) => one + other),
    }),
  ),
  defect(
    'changes its arguments',
    'schema',
    searching({
      execute: (args: { limit: number }) => {
        args.limit = 5;
        return [];
      },
    }),
  ),
  defect('gives a BigInt', 'schema', searching({ execute: () => ({ found: 10n }) })),
  defect(
    'gives a circle',
    'schema',
    searching({
      execute: () => {
        const found: Changes = {};
        found.self = found;
        return found;
      },
    }),
  ),
  defect('gives more than fits', 'schema', searching({ execute: () => 'x'.repeat(300_000) })),
  defect('works once only', 'charts', () => {
    let used = 0;
    return searching({
      execute: () => {
        used += 1;
        if (used > 12) throw new Error('out of connections');
        return [];
      },
    })();
  }),
];

const suspensions: readonly DefectiveAgent[] = [
  defect(
    'waits for ever',
    'suspension',
    counting({}, () => toolResult.pending({ reason: 'form' })),
  ),
  defect(
    'a plugin asks again on replay',
    'suspension',
    guarded(
      () => ({
        name: 'window',
        beforeToolExecute: () => ({ suspend: { reason: 'window' } }),
      }),
      {},
    ),
  ),
  defect(
    'a plugin remembers who was asked in memory only',
    'charts',
    guarded(() => {
      const asked = new Set<string>();
      return {
        name: 'window',
        beforeToolExecute({ call }) {
          if (asked.has(call.callId)) return undefined;
          asked.add(call.callId);
          return { suspend: { reason: 'window' } };
        },
      };
    }, {}),
  ),
];

const plugins: readonly DefectiveAgent[] = [
  defect(
    'a guard that throws for one environment',
    'rule',
    guarded(() => ({
      name: 'guard',
      beforeToolExecute({ call }) {
        const limits: Record<string, { max: number }> = { test: { max: 1 }, production: { max: 2 } };
        if ((limits[(call.args as { environment: string }).environment] as { max: number }).max > 3)
          return { block: 'no' };
        return undefined;
      },
    })),
  ),
  defect(
    'a guard for a tool of another name',
    'rule',
    guarded(
      () => ({
        name: 'guard',
        beforeToolExecute: ({ call, decision }) =>
          call.name === 'Deploy' && !decision && (call.args as { environment: string }).environment === 'production'
            ? { suspend: { reason: 'release' } }
            : undefined,
      }),
      { deploy: deployRule },
    ),
  ),
  defect(
    'a guard that blocks in place of asking',
    'rule',
    guarded(
      () => ({
        name: 'guard',
        beforeToolExecute: ({ call }) =>
          (call.args as { environment: string }).environment === 'production' ? { block: 'ask first' } : undefined,
      }),
      { deploy: deployRule },
    ),
  ),
  defect(
    'a guard that rewrites arguments into none',
    'rule',
    guarded(() => ({ name: 'guard', beforeToolExecute: () => ({ args: { env: 'test' } }) })),
  ),
  defect(
    'a guard that lets one call a process through',
    'charts',
    guarded(
      () => {
        let used = 0;
        return {
          name: 'guard',
          beforeToolExecute() {
            used += 1;
            return used > 1 ? { block: 'enough' } : undefined;
          },
        };
      },
      undefined,
      { calls: 2, decisions: 0, resumes: 0 },
    ),
  ),
  defect(
    'a required plugin that throws after failed tools',
    'charts',
    guarded(() => ({
      name: 'audit',
      required: true,
      afterToolExecute({ outcome }) {
        if (outcome === 'failed') throw new Error('no place for failures');
      },
    })),
  ),
  defect(
    'a plugin that ends the run before the result is read',
    'snapshot',
    guarded(() => ({
      name: 'budget',
      beforeInference: ({ turn }) => (turn > 0 ? { terminate: 'enough' } : undefined),
    })),
  ),
];

const guards: readonly DefectiveAgent[] = [
  defect('a permission rule with a slip of the pen', 'rule', () => ({
    tools: () => [shell()],
    plugins: [permissions({ deny: ['Bash(rmdir *)'], allow: ['Bash(*)'] })],
    examples: commands(['npm test', 'runs'], ['rm -rf build', 'blocked']),
  })),
  defect('a permission rule for another command', 'rule', () => ({
    tools: () => [shell()],
    plugins: [permissions({ allow: ['Bash(npm run test)'] })],
    examples: commands(['npm test', 'runs']),
  })),
  defect('a permission rule that allows too much', 'rule', () => ({
    tools: () => [shell()],
    plugins: [permissions({ allow: ['Bash(git *)'] })],
    examples: commands(['git status', 'runs'], ['git push --force', 'asks']),
  })),
  defect('a hook for another tool', 'rule', () => ({
    tools: () => [shell()],
    plugins: [hooks({ PreToolUse: [{ matcher: 'shell', run: () => ({ decision: 'block', reason: 'no' }) }] })],
    examples: commands(['rm x', 'blocked']),
  })),
  defect('a hook that denies whatever comes', 'rule', () => ({
    tools: () => [shell()],
    plugins: [hooks({ PreToolUse: [{ run: () => ({ decision: 'block' }) }] })],
    examples: commands(['ls', 'runs']),
  })),
  defect('a hook that is broken', 'rule', () => ({
    tools: () => [shell()],
    plugins: [
      hooks({
        PreToolUse: [
          {
            run: () => {
              throw new Error('broken');
            },
          },
        ],
      }),
    ],
    examples: commands(['ls', 'runs']),
  })),
];

const policies: readonly DefectiveAgent[] = [
  defect('one turn only: results are never read', 'snapshot', () => ({
    tools: () => [search()],
    policies: { limits: { turns: 1 } },
  })),
  defect('a failure of a tool ends the run', 'snapshot', () => ({
    tools: () => [search()],
    policies: { onToolFailure: 'failRun' },
  })),
  defect('a message while a call waits is turned away', 'snapshot', () => ({
    tools: (ledger) => [pay(ledger)],
    policies: { whileSuspended: 'reject' },
  })),
  defect('a run continues by itself after a crash', 'snapshot', () => ({
    tools: (ledger) => [pay(ledger)],
    policies: { onRestart: 'resume' },
  })),
  defect('pays more than was approved', 'check', () => ({
    tools: (ledger) => [
      pay(ledger, { execute: ({ to, euros }: { to: string; euros: number }) => ledger.add(to, euros * 2) }),
    ],
    check: ({ log }) => {
      const callArgs = log.flatMap((entry) =>
        entry.type === 'agent-output' && entry.item.type === 'tool-call' ? [entry.item.args] : [],
      );
      const paid = log.some((entry) => entry.type === 'tool-result' && entry.outcome === 'succeeded');
      if (paid && callArgs.length > 0) throw new Error('check: the paid amount is not the announced amount');
    },
  })),
];

export const DEFECTS: readonly DefectiveAgent[] = [
  ...approvals,
  ...declarations,
  ...schemas,
  ...suspensions,
  ...plugins,
  ...guards,
  ...policies,
];

/** The agents of which the defective ones are copies. */
export const HEALTHY: readonly DefectiveAgent[] = [
  defect('pays', 'rule', payRuled({})),
  defect('searches', 'schema', searching({})),
  defect(
    'deploys',
    'rule',
    guarded(() => ({ name: 'quiet', beforeToolExecute: () => undefined })),
  ),
  defect('a shell', 'rule', () => ({
    tools: () => [shell()],
    plugins: [permissions({ deny: ['Bash(rm *)'], allow: ['Bash(npm test)'] })],
    examples: commands(['npm test', 'runs'], ['rm -rf build', 'blocked']),
  })),
];
