/** What a plain message is, by state and policy (request-cycle-model, User Message Kinds). */
import { AgentBusyError, ConfigurationError } from './errors.ts';
import type { ConversationStatus } from './live.ts';
import type { Policies } from './options.ts';

/** What the caller asked for. Throws ConfigurationError for what is no kind or no signal: it would reach the log. */
export function kindAsked(options: {
  signal?: AbortSignal;
  kind?: 'steer' | 'followUp';
}): 'steer' | 'followUp' | undefined {
  const { kind, signal } = options;
  if (kind !== undefined && kind !== 'steer' && kind !== 'followUp') {
    throw new ConfigurationError(`send: kind must be 'steer' or 'followUp' or left out, got ${String(kind)}`);
  }
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new ConfigurationError(`send: signal must be an AbortSignal, got ${String(signal)}`);
  }
  return kind;
}

/** Throws AgentBusyError where the policy is to reject. */
export function kindNow(
  status: ConversationStatus,
  { whileActive, whileSuspended }: Pick<Policies, 'whileActive' | 'whileSuspended'>,
): 'direct' | 'steer' | 'followUp' {
  switch (status) {
    case 'active':
      if (whileActive !== 'reject') return whileActive;
      throw new AgentBusyError('agent_busy', 'agent is busy: cancel() the run, or use steer() or followUp()');
    case 'cancelling':
      if (whileActive !== 'reject') return whileActive;
      throw new AgentBusyError('cancellation_in_progress', 'cancellation in progress: wait for cancel() to resolve');
    case 'waiting':
      if (whileSuspended === 'denyAndRun') return 'direct';
      if (whileSuspended === 'followUp') return 'followUp';
      throw new AgentBusyError(
        'agent_busy',
        'agent is busy: a call waits for a decision; decide() it and resume(), or cancel()',
      );
    default:
      return 'direct';
  }
}
