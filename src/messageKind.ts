/** What a plain message is, by state and policy (request-cycle-model, User Message Kinds). */
import { AgentBusyError } from './errors.ts';
import type { ConversationStatus } from './live.ts';
import type { Policies } from './options.ts';
import { checkOptionsOf, choice, object, withMethods } from './validation.ts';

const sendForm = object({
  kind: choice('steer', 'followUp'),
  signal: { wanted: 'an AbortSignal', takes: (value) => withMethods(value, 'addEventListener'), secret: true },
});

/** What the caller asked for. Throws ConfigurationError for an option that is unknown, or is no kind or no signal: it would reach the log. */
export function kindAsked(options: {
  signal?: AbortSignal;
  kind?: 'steer' | 'followUp';
}): 'steer' | 'followUp' | undefined {
  checkOptionsOf('send', options, sendForm);
  return options.kind;
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
