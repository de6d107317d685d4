/** What calls write to the conversation's state. Rule: two calls of one round may not write one key differently. */

import type { ToolCallOutput } from '../calls.ts';
import { canonical } from '../fingerprint.ts';
import type { NewEntry } from '../vocabulary.ts';

type Outputs = readonly (ToolCallOutput | undefined)[];

export function conflicts(outputs: Outputs): boolean {
  const written = new Map<string, string>();
  for (const output of outputs) {
    for (const [key, value] of Object.entries(output?.writes ?? {})) {
      const form = canonical(value);
      if ((written.get(key) ?? form) !== form) return true;
      written.set(key, form);
    }
  }
  return false;
}

export const writesOf = (runId: string, outputs: Outputs): NewEntry[] =>
  outputs.flatMap((output) =>
    output?.writes ? [{ runId, type: 'state-changed' as const, callId: output.callId, writes: output.writes }] : [],
  );
