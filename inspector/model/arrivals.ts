/**
 * What came together, on its way into the conversations. Rule: what was there is copied once for all that came, not once for
 * each, so a long log costs as much as it is long.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Chart } from '../../src/inspect/chart.ts';
import { type Fact, NOTHING_OBSERVED, type Observed, Observing } from './observed.ts';

/** What of a conversation grows. */
export interface Growing {
  readonly entries: readonly LogEntry[];
  readonly inFlight?: { readonly text: string; readonly reasoning: string };
  readonly observed?: Observed;
}

interface Draft<Conversation> {
  conversation: Conversation;
  /** Our own copy, once there is an entry. */
  entries?: LogEntry[];
  observing?: Observing;
}

export class Arrivals<Conversation extends Growing> {
  readonly #known: (id: string) => Conversation;
  readonly #drafts = new Map<string, Draft<Conversation>>();

  /** `known`: the conversation as it is, or a blank one. */
  constructor(known: (id: string) => Conversation) {
    this.#known = known;
  }

  change(id: string, change: Partial<Conversation>): void {
    const draft = this.#draft(id);
    draft.conversation = { ...draft.conversation, ...change };
  }

  /** One that is there already is left out. */
  entry(id: string, entry: LogEntry): void {
    const draft = this.#draft(id);
    const there = draft.entries ?? draft.conversation.entries;
    if (entry.seq <= (there.at(-1)?.seq ?? -1)) return;
    draft.entries ??= [...there];
    draft.entries.push(entry);
    // What was streamed is durable now.
    if (entry.type === 'agent-output' || entry.type === 'model-reply') this.streamed(id, undefined);
  }

  /** What a reply in flight has said further; nothing: it is over. */
  streamed(id: string, more: { text?: string; reasoning?: string } | undefined): void {
    const draft = this.#draft(id);
    const { inFlight } = draft.conversation;
    const { text = '', reasoning = '' } = inFlight ?? {};
    if (more) {
      const said = { text: text + (more.text ?? ''), reasoning: reasoning + (more.reasoning ?? '') };
      draft.conversation = { ...draft.conversation, inFlight: said };
    } else if (inFlight) {
      const { inFlight: _, ...rest } = draft.conversation;
      draft.conversation = rest as Conversation;
    }
  }

  fact(id: string, fact: Fact, charts: ReadonlyMap<string, Chart>): void {
    const draft = this.#draft(id);
    draft.observing ??= new Observing(draft.conversation.observed ?? NOTHING_OBSERVED);
    draft.observing.take(fact, charts, (draft.entries ?? draft.conversation.entries).length - 1);
  }

  /** The conversations that something came for. */
  result(): Map<string, Conversation> {
    const made = [...this.#drafts].map(([id, { conversation, entries, observing }]): [string, Conversation] => [
      id,
      { ...conversation, ...(entries && { entries }), ...(observing && { observed: observing.result() }) },
    ]);
    return new Map(made);
  }

  #draft(id: string): Draft<Conversation> {
    let draft = this.#drafts.get(id);
    if (!draft) {
      draft = { conversation: this.#known(id) };
      this.#drafts.set(id, draft);
    }
    return draft;
  }
}
