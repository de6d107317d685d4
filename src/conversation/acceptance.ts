/** Whether a conversation accepts a message at this moment. Invariant: asking changes nothing. */
import { acceptMessage, type Refusal } from '../../machines/internal.ts';
import { AgentBusyError, LimitError } from '../errors.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SendOptions } from './sendOptions.ts';

/** The kind of a message that is sent now. Throws AgentBusyError or LimitError if it is refused. */
export function acceptedAs(
  { commands: { standing }, queue, queueLength }: Runtime,
  kind: SendOptions['kind'] | undefined,
  whileSuspended: SendOptions['whileSuspended'] | undefined,
): 'direct' | 'steer' | 'followUp' {
  // The log may not contain the delivery or return of a queued message yet.
  const current = { ...standing, queued: standing.queued - queue.length + queueLength };
  const accepted = acceptMessage(current, { kind, whileSuspended });
  if (!('refused' in accepted)) return accepted.kind;
  if (accepted.refused !== 'full') throw new AgentBusyError(...BUSY[accepted.refused]);
  throw new LimitError(`the queue holds ${standing.policies.limits.queue} messages (policies.limits.queue)`);
}

const BUSY: { readonly [refusal in Exclude<Refusal, 'full'>]: readonly [code: AgentBusyError['code'], why: string] } = {
  busy: ['agent_busy', 'agent is busy: cancel() the run, or use steer() or followUp()'],
  cancelling: ['cancellation_in_progress', 'cancellation in progress: wait for cancel() to resolve'],
  suspended: ['agent_busy', 'agent is busy: a call waits for a decision; decide() it and resume(), or cancel()'],
};
