/**
 * The ResolutionStep view (request-cycle-model, 6.2). Rule: a text item opens a block and is its only one; a call
 * joins the block that is open, or opens one without text where none is since the root or the last steer; neighbours
 * of one kind are a group. Results are no steps.
 */
import type { GroupName } from '../../machines/vocabulary.ts';
import { freezeList } from './json.ts';
import { keep, kept, type Ledger, type StepRecord } from './ledger.ts';
import type { BlockText, ResolutionStep, RoundMessage, ToolGroup } from './view.ts';

/** A user's message is a step of its own, a text opens a block. */
export function addStep(ledger: Ledger, of: RoundMessage | BlockText | null): void {
  const { steps, owner, groups } = ledger;
  ledger.steps = steps.push(owner, { of, groups: groups.size, made: undefined });
}

/** Makes the last group the one that takes a call of this kind. The call itself is added after that. */
export function addCallStep(ledger: Ledger, kind: GroupName): void {
  if (!isBlock(ledger.steps.at(ledger.steps.size - 1).of)) addStep(ledger, null);
  const { steps, groups, calls, owner } = ledger;
  const isFirst = steps.at(steps.size - 1).groups === groups.size;
  if (!isFirst && groups.at(groups.size - 1).kind === kind) return;
  ledger.groups = groups.push(owner, { kind, calls: calls.size, made: undefined });
}

const isBlock = (of: StepRecord['of']): of is BlockText | null =>
  of === null || of.kind === 'assistant' || of.kind === 'reasoning';

export function stepViews(ledger: Ledger, from: number, to: number): readonly ResolutionStep[] {
  const views = new Array<ResolutionStep>(to - from);
  for (let i = from; i < to; i++) views[i - from] = stepView(ledger, i);
  return freezeList(views);
}

function stepView(ledger: Ledger, index: number): ResolutionStep {
  const { steps, groups } = ledger;
  const record = steps.at(index);
  const { of } = record;
  if (!isBlock(of)) return kept(record, 0) ?? keep(record, 0, userStep(of));
  const end = index + 1 < steps.size ? steps.at(index + 1).groups : groups.size;
  // Both ends only ever grow, so an equal sum means equal ends.
  const mark = end + (end > record.groups ? endOfCalls(ledger, end - 1) : 0);
  const known = kept(record, mark);
  if (known !== undefined) return known;
  const views = new Array<ToolGroup>(end - record.groups);
  for (let i = record.groups; i < end; i++) views[i - record.groups] = groupView(ledger, i);
  return keep(record, mark, Object.freeze({ type: 'ai-block', text: of, groups: freezeList(views) }));
}

const userStep = ({ kind, messageId, content }: RoundMessage): ResolutionStep =>
  Object.freeze({ type: kind === 'steer' ? 'steer' : 'non-steer', messageId, content });

function groupView(ledger: Ledger, index: number): ToolGroup {
  const record = ledger.groups.at(index);
  const end = endOfCalls(ledger, index);
  const known = kept(record, end);
  if (known !== undefined) return known;
  const calls = freezeList(ledger.calls.slice(record.calls, end));
  return keep(record, end, Object.freeze({ kind: record.kind, calls }));
}

const endOfCalls = ({ groups, calls }: Ledger, group: number): number =>
  group + 1 < groups.size ? groups.at(group + 1).calls : calls.size;
