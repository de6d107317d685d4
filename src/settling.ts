/**
 * How the host's word on an unknown outcome is taken. Rule: it is about one call, of this conversation or of a
 * sub-agent within it, and is durable where the call is when it is answered.
 */
import type { Settlement } from '../machines/index.ts';
import type { Runtime } from './runtime.ts';
import { nestedIn } from './subAgents/nested.ts';

export type Settled = 'applied' | 'unknown';

/** The last one of a conversation that is on its way into the log. */
const underWay = new WeakMap<Runtime, Promise<unknown>>();

export async function settleAt(runtime: Runtime, callId: string, how: Settlement): Promise<Settled> {
  const nested = runtime.known.calls.has(callId) ? undefined : nestedIn(runtime.known);
  if (nested) return nested.settle(callId, how);
  const settle = (): Promise<unknown> => runtime.act({ type: 'settlement.proposed', callId, how });
  // The first word on a call counts: the next one is judged when the log has it.
  const answered = underWay.get(runtime)?.then(settle, settle) ?? settle();
  underWay.set(runtime, answered);
  try {
    return (await answered) as Settled;
  } finally {
    if (underWay.get(runtime) === answered) underWay.delete(runtime);
  }
}
