/**
 * The InferenceLoop view (request-cycle-model, 6.1). Rule: a round is one answer of the model, opened by its first
 * output; its input is what came since the round before, results in call order, each result in the first round that
 * follows it. What the model is given between two answers (a result, a steer, a placeholder) ends a round, and so
 * does the record of a reply.
 */
import type { Usage } from '../../machines/vocabulary.ts';
import { freezeList } from './json.ts';
import { type CycleRecord, keep, kept, type Ledger, outdateLastCycle } from './ledger.ts';
import type { BlockText, InferenceRound, ToolCallView } from './view.ts';

/** A round shows a text without its flag. */
export function addRoundText(ledger: Ledger, text: BlockText): void {
  const plain = text.flag === undefined ? text : Object.freeze({ kind: text.kind, text: text.text });
  ledger.texts = ledger.texts.push(ledger.owner, plain);
}

/** The round that takes the next output: the one that is open, else a new one. */
export function openRound(ledger: Ledger): void {
  if (ledger.replying) return;
  pushRound(ledger, undefined);
  ledger.replying = true;
}

/** The record of a reply: the usage of the last round, or of an empty reply's own. */
export function recordReply(ledger: Ledger, usage: Usage | undefined): void {
  const { cycles, rounds, owner } = ledger;
  const last = rounds.size - 1;
  const record = rounds.size > cycles.at(cycles.size - 1).rounds ? rounds.at(last) : undefined;
  if (record !== undefined && record.usage === undefined) {
    ledger.replying = false;
    if (usage === undefined) return;
    ledger.rounds = rounds.replace(owner, last, { ...record, usage, made: undefined });
    outdateLastCycle(ledger);
    return;
  }
  pushRound(ledger, usage);
  // Some logs put the record before the output it stands for.
  ledger.replying = true;
}

function pushRound(ledger: Ledger, usage: Usage | undefined): void {
  const { rounds, texts, calls, messages, results, owner } = ledger;
  ledger.rounds = rounds.push(owner, {
    texts: texts.size,
    calls: calls.size,
    messages: messages.size,
    results: results.size,
    usage,
    made: undefined,
  });
}

export function roundViews(ledger: Ledger, cycle: CycleRecord, to: number): readonly InferenceRound[] {
  const from = cycle.rounds;
  const views = new Array<InferenceRound>(to - from);
  for (let i = from; i < to; i++) {
    const before = i === from ? cycle : ledger.rounds.at(i - 1);
    views[i - from] = roundView(ledger, i, before.messages, before.results);
  }
  return freezeList(views);
}

function roundView(ledger: Ledger, index: number, messages: number, results: number): InferenceRound {
  const record = ledger.rounds.at(index);
  const after = index + 1 < ledger.rounds.size ? ledger.rounds.at(index + 1) : undefined;
  const texts = after === undefined ? ledger.texts.size : after.texts;
  const calls = after === undefined ? ledger.calls.size : after.calls;
  // Both ends only ever grow, so an equal sum means equal ends.
  const mark = texts + calls;
  const known = kept(record, mark);
  if (known !== undefined) return known;
  const input = Object.freeze({
    messages: freezeList(ledger.messages.slice(messages, record.messages)),
    results: freezeList(resultsInOrder(ledger, results, record.results)),
  });
  const output = Object.freeze({
    texts: freezeList(ledger.texts.slice(record.texts, texts)),
    calls: freezeList(ledger.calls.slice(record.calls, calls)),
  });
  const { usage } = record;
  return keep(record, mark, Object.freeze(usage === undefined ? { input, output } : { input, output, usage }));
}

function resultsInOrder({ results, calls }: Ledger, from: number, to: number): ToolCallView[] {
  if (from === to) return [];
  const arrived = results.slice(from, to);
  if (arrived.length > 1) arrived.sort((a, b) => a - b);
  return arrived.map((call) => calls.at(call));
}
