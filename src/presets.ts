/** Named bundles of policies. A preset is a starting point: spread it and change what differs. */
import type { DeepPartial, Policies } from './options.ts';

export const presets: {
  conversation: DeepPartial<Policies>;
  coding: DeepPartial<Policies>;
  requestLoop: DeepPartial<Policies>;
} = {
  /** One thing at a time: busy means busy, tools in order, nothing half-said is kept. */
  conversation: { whileActive: 'reject', toolExecution: 'sequential', partialReply: 'discard' },
  /** A coding agent: messages queue up, reading runs in parallel, writing does not. */
  coding: { whileActive: 'followUp', toolExecution: 'parallelIfReadOnly', promoteFollowUpOn: ['completed'] },
  /** A request loop with callbacks: failing tools are tried again, calls may stand in the text. */
  requestLoop: {
    toolExecution: 'parallel',
    toolRetry: { attempts: 3, baseMs: 500, factor: 2, capMs: 5000, jitter: 0.1 },
    partialReply: 'keep',
    observerErrors: 'propagate',
    textToolCalls: ['tool_call', 'function', 'fence', 'json'],
  },
};
