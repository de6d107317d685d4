/**
 * How the host's word on an unknown outcome is taken. Rule: it is about one call, of this conversation or of a
 * sub-agent within it, and is durable where the call is when it is answered.
 */
import type { Settlement } from '../machines/internal.ts';
import type { Runtime } from './runtime/runtime.ts';
import { nestedIn } from './subAgents/nested.ts';

export type Settled = 'applied' | 'unknown';

export async function settleAt(runtime: Runtime, callId: string, how: Settlement): Promise<Settled> {
  const nested = runtime.known.calls.has(callId) ? undefined : nestedIn(runtime.known);
  if (nested) return nested.settle(callId, how);
  const act = { type: 'settlement.proposed', callId, how } as const;
  return (await runtime.tickets.turns.take(callId, () => runtime.act(act))) as Settled;
}
