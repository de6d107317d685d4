/** Which sub-agent a call belongs to. Rule: only those whose logs are open are asked; an id means one call of a family. */
import type { CallRecord } from '../../machines/internal.ts';
import type { Brood } from './brood.ts';
import type { Child } from './child.ts';
import { nestedIn } from './nested.ts';

export interface Found {
  record: CallRecord;
  /** Ids that lead to it, from the outermost call's. */
  path: string[];
}

export interface Kept extends Found {
  brood: Brood;
  child: Child;
}

export function keeperIn(broods: Iterable<[string, Brood]>, callId: string): Kept | undefined {
  for (const [outer, brood] of broods) {
    for (const child of brood.children) {
      const record = child.known?.calls.get(callId);
      const inner = record ? { record, path: [callId] } : child.known && nestedIn(child.known)?.find(callId);
      if (inner) return { record: inner.record, path: [outer, ...inner.path], brood, child };
    }
  }
  return undefined;
}
