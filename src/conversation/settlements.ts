/**
 * Reads and routes settlements of a host for calls with an unknown outcome. Invariant: nothing from outside reaches a chart
 * unparsed. The answer is sent after the settlement is durable.
 */
import type { Settlement } from '../../machines/internal.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { fieldsOf, readCallId, refuse } from './hostInput.ts';

type Settled = 'applied' | 'unknown';

/** Rejects with InvalidDecisionError for an invalid call id or settlement. */
export async function settle(runtime: Runtime, id: unknown, settlement: unknown): Promise<Settled> {
  const callId = readCallId(id, 'a settlement');
  const how = readSettlement(settlement);
  const subAgents = runtime.logState.calls.has(callId) ? undefined : runtime.subAgents;
  if (subAgents) return subAgents.settle(callId, how);
  const command = { type: 'settlement.proposed', callId, how } as const;
  const { outcome } = await runtime.commands.decisions.run(callId, () => runtime.submit(command));
  return outcome as Settled;
}

/** The settlement as it may be logged. Throws InvalidDecisionError. */
function readSettlement(input: unknown): Settlement {
  const what = 'a settlement';
  const fields = fieldsOf(input, what);
  const keys = Object.keys(fields);
  const [key] = keys;
  if (keys.length === 1 && key === 'ran') return Object.freeze({ ran: fields.ran ?? null });
  if (keys.length === 1 && key === 'didNotRun' && fields.didNotRun === true) return Object.freeze({ didNotRun: true });
  if (keys.length === 1 && key === 'retry' && fields.retry === true) return Object.freeze({ retry: true });
  return refuse('one of { ran: result }, { didNotRun: true } and { retry: true }', what);
}
