/**
 * The calls that a gate would process now (docs/internals/lifecycle.md, Resume Gate). Invariant: decided calls come in call-id order,
 * each followed by the calls that kept their turn after it. A decision matches a suspended call by call id and
 * suspension.
 */
import type { HeldDecision, KeptCall, OpenCalls, Replay, SuspendedCall, ToolCallOutput } from '../calls.ts';

const byCallId = (a: Replay, b: Replay): number => (a.call.callId < b.call.callId ? -1 : 1);

export const matches = (held: HeldDecision, waiting: SuspendedCall): boolean =>
  held.callId === waiting.call.callId && held.suspension === waiting.suspension;

function decided(open: OpenCalls): Replay[] {
  const replays: Replay[] = [];
  for (const waiting of open.suspended) {
    const held = open.decisions.find((candidate) => matches(candidate, waiting));
    if (held) replays.push({ ...waiting, decision: held.decision });
  }
  return replays;
}

/** The calls after `callId`, in order, each after the one before. */
export function followers(kept: readonly KeptCall[], callId: string): Replay[] {
  const next = kept.find((candidate) => candidate.behind === callId);
  if (!next) return [];
  return [{ call: next.call, suspension: 0, behind: callId }, ...followers(kept, next.call.callId)];
}

/** Kept calls whose predecessor is settled. */
function freed(open: OpenCalls): Replay[] {
  const waiting = new Set([...open.suspended, ...open.kept].map(({ call }) => call.callId));
  return open.kept
    .filter(({ behind }) => !waiting.has(behind))
    .flatMap(({ call }) => [{ call, suspension: 0 }, ...followers(open.kept, call.callId)]);
}

/** All calls that a gate can process now. */
export function dueReplays(open: OpenCalls): Replay[] {
  if (open.suspended.length + open.kept.length + open.reruns.length === 0) return [];
  const first = [...decided(open), ...open.reruns].sort(byCallId);
  return [...first.flatMap((replay) => [replay, ...followers(open.kept, replay.call.callId)]), ...freed(open)];
}

/** The open calls after some of them were replayed. */
export function afterReplay(open: OpenCalls, outputs: readonly ToolCallOutput[]): OpenCalls {
  const ids = new Set(outputs.map((output) => output.callId));
  const calls = [...open.suspended, ...open.kept, ...open.reruns].map(({ call }) => call);
  const again = outputs.flatMap((output) => {
    const call = calls.find((candidate) => candidate.callId === output.callId);
    return call && output.outcome === 'suspended' ? [{ call: withGate(call), suspension: output.suspension }] : [];
  });
  const stays = ({ call }: { call: { callId: string } }): boolean => !ids.has(call.callId);
  return {
    suspended: [...open.suspended.filter(stays), ...again],
    kept: open.kept.filter(stays),
    reruns: open.reruns.filter(stays),
    decisions: open.decisions.filter((held) => {
      const output = outputs.find((candidate) => candidate.callId === held.callId);
      // A decision for a later suspension is early, not used: it waits, or expires with the run.
      if (!output || held.suspension > output.suspension) return true;
      return output.outcome === 'suspended' && held.suspension === output.suspension;
    }),
  };
}

/** A replay always passes the gates, because arguments may be new and rules may have changed. */
export const withGate = <C extends { gated: boolean }>(call: C): C => (call.gated ? call : { ...call, gated: true });
