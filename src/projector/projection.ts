/**
 * The state of a projection. Rule: it belongs to one list of entries; a branch goes on from it without touching it.
 */
import type { Json } from '../../machines/vocabulary.ts';
import { branchCallBook, type CallBook, emptyCallBook } from './callBook.ts';
import { branch, emptyLedger, type Ledger } from './ledger.ts';
import { Lookup } from './lookup.ts';
import type { Phase } from './machine.ts';
import { type Notes, noNotes, note } from './notes.ts';
import { branchQueue, emptyQueue, type Queue } from './queue.ts';
import type { GroupOf } from './toolGroup.ts';

export interface Policy {
  groupOf: GroupOf | undefined;
  whileActive: 'steer' | 'followUp';
}

export interface Projection {
  readonly policy: Policy;
  phase: Phase;
  ledger: Ledger;
  calls: CallBook;
  queue: Queue;
  notes: Notes;
  /** Root message ids, to keep the cycles' ids apart. */
  roots: Lookup<string>;
  /** The run that works on the last cycle, where its entries say one. */
  run: string | undefined;
}

/** Where an entry stands. */
export interface Origin {
  seq: number | undefined;
  runId: string | undefined;
}

export const emptyProjection = (policy: Policy, owner: number): Projection => ({
  policy,
  phase: 'idle',
  ledger: emptyLedger(owner),
  calls: emptyCallBook(),
  queue: emptyQueue(owner),
  notes: noNotes(owner),
  roots: new Lookup(),
  run: undefined,
});

/** A projection that goes on by itself. The old one must take a new owner too. */
export const branchProjection = (projection: Projection, owner: number): Projection => ({
  ...projection,
  ledger: branch(projection.ledger, owner),
  calls: branchCallBook(projection.calls),
  queue: branchQueue(projection.queue),
  notes: { ...projection.notes },
  roots: new Lookup(projection.roots),
});

export function remark(projection: Projection, code: string, seq: number | undefined, detail?: Json): void {
  note(projection.notes, projection.ledger.owner, code, seq, detail);
}
