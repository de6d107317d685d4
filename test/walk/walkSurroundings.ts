/**
 * The random setting of a walk: policies, tools and a hook. Invariant: a tool ends by itself, and every possible answer
 * of a tool or hook occurs.
 */
import { z } from 'zod';
import { type DeepPartial, defineTool, type Plugin, type Policies, toolResult } from '../../src/index.ts';
import type { Chance } from '../support/seededChance.ts';

export function randomPolicies({ one, odds }: Chance): DeepPartial<Policies> {
  return {
    whileActive: one(['followUp', 'steer', 'reject']),
    queueDrain: one(['one', 'all']),
    steerAt: one(['afterRound', 'afterTool']),
    promoteFollowUpOn: one([['completed', 'interrupted', 'error'], ['completed']]),
    whileSuspended: one(['followUp', 'denyAndRun']),
    toolExecution: one(['parallel', 'sequential']),
    onPartialSuspend: one(['continue', 'wait']),
    decisionsDuringRound: one(['immediate', 'atGate']),
    onToolFailure: odds(0.9) ? 'tellModel' : 'failRun',
    partialReply: one(['discard', 'keep']),
    onRestart: one(['idle', 'replayDecided']),
    onEmptyReply: one(['notice', 'retry', 'accept']),
    modelRetry: { attempts: 3, jitter: 0 },
    limits: { turns: 12, identicalCalls: 5, toolCallsPerTurn: 3 },
  };
}

/** `perhaps`: called while a call runs, so that a walker can act at that moment. */
export function walkTools(chance: Chance, perhaps: () => void) {
  const args = z.object({ m: z.string() });
  const any = z.looseObject({});
  const result = () => chance.one<unknown>(['', 'ok', { deep: [1] }, null, 'x'.repeat(2_000)]);
  const tell = (name: string) => ({ name, description: name });
  const echo = ({ m }: { m: string }): string => {
    perhaps();
    return m;
  };
  return [
    defineTool({ ...tell('echo'), parameters: args, readOnly: true, execute: echo }),
    defineTool({ ...tell('fail'), parameters: any, execute: () => Promise.reject(new Error('it broke')) }),
    defineTool({ ...tell('ask'), parameters: any, needsApproval: true, idempotent: true, execute: result }),
    defineTool({
      ...tell('hold'),
      parameters: any,
      execute: (_, { decision }) => (!decision || chance.odds(0.2) ? toolResult.pending({ reason: 'held' }) : result()),
    }),
    defineTool({
      ...tell('slow'),
      parameters: any,
      execute: async (_, { signal }) => {
        for (let turn = 0; turn < 3 && !signal.aborted; turn++) await new Promise((resolve) => setImmediate(resolve));
        perhaps();
        return result();
      },
    }),
  ];
}

/** A hook that sometimes returns an answer. */
export function walkPlugin({ odds }: Chance): Plugin {
  return {
    name: 'walker',
    beforeInference: () => (odds(0.1) ? { context: 'said by a hook' } : undefined),
    beforeToolExecute: ({ decision }) => {
      if (odds(0.05)) return { block: 'not this one' };
      if (odds(0.05) && !decision) return { suspend: { reason: 'looked at first' } };
      return odds(0.05) ? { args: { m: 'rewritten' } } : undefined;
    },
    afterToolExecute: () => (odds(0.05) ? { result: 'seen' } : undefined),
  };
}
