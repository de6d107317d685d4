/**
 * The life of the appends of a conversation, as a pure function. Invariant: the store has one append at a time. A step waits for
 * the append before it until a cancel overtakes that append. Each append has one end: it landed, or it is lost together with
 * the last append that carried its entries.
 */

/**
 * `awaited`: later steps wait for it. `overtaken`: a cancel did not wait any longer, and later steps continue. `givenUp`: the
 * charts were told that the store is silent. The first append of the list is in the store, the others are queued.
 */
export type AppendStage = 'awaited' | 'overtaken' | 'givenUp';

export interface Append {
  readonly id: number;
  readonly stage: AppendStage;
  /** Refused appends whose entries this one contains, in order. */
  readonly carried: readonly number[];
}

export type AppendEvent =
  | { type: 'added'; id: number }
  /** The store has answered the first append. */
  | { type: 'landed' }
  | { type: 'refused' }
  /** A cancel waits no longer for earlier appends. */
  | { type: 'overtaken' }
  /** A cancel gives up what is not stored yet. */
  | { type: 'givenUp' };

/** What the driver does, in order. */
export type AppendAct =
  /** Passes the append to the store. `carries`: it begins with the entries of the refused append before it. */
  | { do: 'store'; id: number; carries: boolean }
  /** The entries are durable: starts what the step asked for. */
  | { do: 'begin'; id: number }
  /** The entries of the first append become the beginning of the second. */
  | { do: 'carry'; from: number; to: number }
  /** The entries are lost. `isNext`: later steps waited, so the failure is the next step, and they continue after it. */
  | { do: 'lose'; id: number; isNext: boolean }
  /** Reports a silent store to the charts. The entries may still be stored. */
  | { do: 'giveUp'; id: number }
  /** Later steps continue. */
  | { do: 'continue' };

export interface Appends {
  readonly appends: readonly Append[];
  readonly acts: readonly AppendAct[];
}

const proceed: AppendAct = { do: 'continue' };
const continues = (append: Append): readonly AppendAct[] => (append.stage === 'awaited' ? [proceed] : []);
const storing = (append: Append | undefined, carries: boolean): readonly AppendAct[] =>
  append ? [{ do: 'store', id: append.id, carries }] : [];

/** The second append is stored with the entries of the first. */
function carriedBy(first: Append, [second, ...rest]: readonly [Append, ...Append[]]): Appends {
  const carrier = { ...second, carried: [...first.carried, first.id, ...second.carried] };
  return {
    appends: [carrier, ...rest],
    acts: [{ do: 'carry', from: first.id, to: second.id }, ...storing(carrier, true)],
  };
}

function lost(append: Append): Appends {
  const isNext = append.stage === 'awaited' && append.carried.length === 0;
  const lose: AppendAct = { do: 'lose', id: append.id, isNext };
  return { appends: [], acts: isNext ? [lose] : [lose, ...continues(append)] };
}

function leave(appends: readonly Append[], stage: 'overtaken' | 'givenUp'): Appends {
  const left = appends.map((append) => (append.stage === 'givenUp' ? append : { ...append, stage }));
  const acts = appends.flatMap((append): readonly AppendAct[] => {
    const report: readonly AppendAct[] =
      stage === 'givenUp' && append.stage !== 'givenUp' ? [{ do: 'giveUp', id: append.id }] : [];
    return [...report, ...continues(append)];
  });
  return { appends: left, acts };
}

export function nextAppend(appends: readonly Append[], event: AppendEvent): Appends {
  const [first, ...rest] = appends;
  switch (event.type) {
    case 'added': {
      const append: Append = { id: event.id, stage: 'awaited', carried: [] };
      return { appends: [...appends, append], acts: first ? [] : storing(append, false) };
    }
    case 'landed': {
      if (!first) return { appends, acts: [] };
      return { appends: rest, acts: [{ do: 'begin', id: first.id }, ...continues(first), ...storing(rest[0], false)] };
    }
    case 'refused': {
      if (!first) return { appends, acts: [] };
      const [second, ...others] = rest;
      return second ? carriedBy(first, [second, ...others]) : lost(first);
    }
    default:
      return leave(appends, event.type);
  }
}
