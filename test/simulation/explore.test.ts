/**
 * Simulated lives explore the charts. The prefix of some tape reaches every arrow, and other lives continue from there.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { Atlas } from './arrowAtlas.ts';
import { simulate } from './checkedLife.ts';
import { type Exploration, explore } from './explore.ts';

/** The gate opens only if a decision fits a waiting call, so it always finds work within a run. */
const NEVER = [
  'RESUME_TOOL_CALL.DrainDecisionChannel --> RESUME_TOOL_CALL.NoDecision: [nothingToDo]',
  'RESUME_TOOL_CALL.NoDecision --> RESUME_TOOL_CALL.Done',
];
/** A call is still replayed at the end of a reply without calls. Special lives take these. */
const JOINED = [
  'RUN.active.CommitAssistant.committing --> RUN.active.CommitAssistant.joining: effect.done [gateOpen]',
  'RUN.active.CommitAssistant.joining --> RUN.active.CommitAssistant.joined: xstate.done.actor.gate [noneFailed]',
  'RUN.active.CommitAssistant.joined --> RUN.active.LoopTop: [goesOn]',
];
/** The draws of a profile without faults, with the plainest policies and the most frequent acts of the host. */
const BUSY = [...Array<number>(15).fill(0), 0, 5, 0, 3, 0, 2, 2, 4, ...Array<number>(12).fill(0), 2];
/**
 * Two events must happen within one short wait. Random lives may miss these, and the generated paths take each of them.
 */
const SELDOM = [
  'CONVERSATION.closing --> CONVERSATION.closing.late: append.failed [wasGivenUp]',
  'CONVERSATION.closing --> CONVERSATION.closing: append.failed',
  'CONVERSATION.closing --> CONVERSATION.closing: decision.arrived',
  'CONVERSATION.closing --> CONVERSATION.idle.error: append.failed [lostTheSuspension]',
  'CONVERSATION.closing.late --> CONVERSATION.busy: message.sent',
  'CONVERSATION.closing.late --> CONVERSATION.busy: resume.requested',
  'CONVERSATION.closing.late --> CONVERSATION.busy: promotion.requested [hasFollowUp]',
  'CONVERSATION.superseding --> CONVERSATION.closing: cancel.requested',
  'CONVERSATION.superseding --> CONVERSATION.closing: close.requested',
  'CONVERSATION.superseding --> CONVERSATION.superseding: message.sent',
  'CONVERSATION.superseding --> CONVERSATION.waiting: append.failed [lostTheStop]',
  'CONVERSATION.superseding --> CONVERSATION.superseding: append.failed',
  'CONVERSATION.superseding --> CONVERSATION.superseding: decision.arrived',
  'RUN.active.CommitAssistant.joined --> RUN.active.CommitAssistant.joining: [gateOpen]',
  'RUN.active.CommitAssistant.joined --> RUN.Terminate: [cutByLength]',
  'RUN.active.CommitAssistant.joined --> RUN.active.CommitAssistant.measuring: [cutByFullWindow]',
  'RUN.active.CommitAssistant.joined --> RUN.Suspended',
  'RUN.Error --> RUN.RunEnd: run.cancelled',
  'TOOL_CALL.BeforeToolExecute --> TOOL_CALL.Failed: effect.done [suspendsTooOften]',
];
/** An act is cancelled in its own tick, or a promotion or a cancel overtakes it. The generated paths take each. */
const OVERTAKEN = [
  'CONVERSATION --> CONVERSATION: resume.requested [isWithdrawn]',
  'CONVERSATION --> CONVERSATION: promotion.requested',
  'CONVERSATION.busy --> CONVERSATION.busy: message.sent [isWithdrawn]',
  'CONVERSATION.busy.active --> CONVERSATION.busy.active: message.sent [isWithdrawn]',
  'CONVERSATION.busy.active --> CONVERSATION.busy.active: resume.requested [isWithdrawn]',
  'CONVERSATION.busy.active --> CONVERSATION.busy.active: resume.requested',
  'CONVERSATION.busy.active --> CONVERSATION.busy.active: promotion.requested',
  'CONVERSATION.waiting --> CONVERSATION.waiting: message.sent [isWithdrawn]',
  'CONVERSATION.waiting --> CONVERSATION.busy.cancelling: resume.requested [isWithdrawn]',
  'CONVERSATION.closing --> CONVERSATION.closing: message.sent [isWithdrawn]',
  'CONVERSATION.closing.late --> CONVERSATION.busy.cancelling: message.sent [isWithdrawn]',
  'CONVERSATION.closing.late --> CONVERSATION.busy.cancelling: resume.requested [isWithdrawn]',
  'CONVERSATION.superseding --> CONVERSATION.superseding: message.sent [isWithdrawn]',
  'CONVERSATION.superseding --> CONVERSATION.superseding: resume.requested [isWithdrawn]',
  'CONVERSATION.superseding --> CONVERSATION.superseding: resume.requested',
  'CONVERSATION.superseding --> CONVERSATION.superseding: promotion.requested',
  'CONVERSATION.superseding --> CONVERSATION.superseding: decision.arrived [isAccepted]',
];
/** Lives do not rewind. The generated paths take each of these. */
const REWINDS = [
  'CONVERSATION --> CONVERSATION: rewind.requested',
  'CONVERSATION.idle --> CONVERSATION.idle: rewind.requested',
  'CONVERSATION.waiting --> CONVERSATION.closing: rewind.requested',
  'CONVERSATION.closing.late --> CONVERSATION.idle: rewind.requested',
];
/**
 * These need a listener at the natural end of a run: a schema of final answers in some lives. The generated paths have
 * both.
 */
const HEARD = [
  'RUN.active.CommitAssistant.committing --> RUN.active.CommitAssistant.hearing: effect.done [hearsEnd]',
  'RUN.active.CommitAssistant.hearing --> RUN.active.LoopTop: effect.done [goesOn]',
  'RUN.active.CommitAssistant.hearing --> RUN.active.LoopTop: effect.done [continued]',
  'RUN.active.CommitAssistant.hearing --> RUN.NaturalEnd: effect.done',
];
/** A life spends at most one step here, and only with a slow plugin or store. A cancel has no effect in an idle one. */
const BRIEF = [
  'COMPACTION.Hearing',
  'COMPACTION.Summarizing.backingOff',
  'RUN.active.CommitAssistant.hearing',
  'RUN.active.CommitAssistant.measuring',
  'RUN.active.StepPrepare.compacted',
  'CONVERSATION.idle.ready',
  'CONVERSATION.closing',
  'CONVERSATION.closing.late',
  'CONVERSATION.superseding',
  'RESUME_TOOL_CALL.CommitReplay',
  'RESUME_TOOL_CALL.ReplayCancel',
  'RUN.Error',
  'RUN.active.ResumeAfterTool',
  'RUN.active.ResumeToolCall',
  'RUN.active.StepPrepare.measuring',
  'RUN.active.ToolRound.failed',
  'RUN.active.ToolRound.failing',
  'TOOL_CALL.ExecuteTool.backingOff',
];

describe('lives that are sent along the charts', () => {
  let found: Exploration;
  beforeAll(async () => {
    found = await explore({ lives: 2_600, tries: 120 });
  }, 600_000);

  it('INV-1 to INV-4, INV-9: go on at random from the place before each arrow, and break no invariant', () => {
    expect(found.sent).toBeGreaterThan(100);
    expect(found.broken).toEqual([]);
  });

  it('take every arrow of the five charts, but for those of a list of rare ones', () => {
    const arrows = [...found.atlas.arrows.values()];
    const missing = arrows.flatMap(({ name, taken }) => (taken.length === 0 ? [name] : []));
    const rare = [...NEVER, ...JOINED, ...SELDOM, ...OVERTAKEN, ...REWINDS, ...HEARD];
    expect(missing.filter((name) => !rare.includes(name))).toEqual([]);
    expect(missing).toEqual(expect.arrayContaining(NEVER));
    expect(arrows.length).toBeGreaterThan(150);
  });

  it('take the arrows of a gate that is joined, where nothing fails and the host acts often', async () => {
    const atlas = new Atlas();
    for (let seed = 1; seed <= 250; seed++) {
      const { violations } = await simulate({ seed, prefix: BUSY, inspect: atlas.follow(seed) });
      expect(violations).toEqual([]);
    }
    const taken = [...atlas.arrows.values()].filter(({ taken }) => taken.length > 0).map(({ name }) => name);
    expect(taken).toEqual(expect.arrayContaining(JOINED));
  });

  it('meet a cancel, a crash, a message and a decision in every state in which they rest for more than a moment', () => {
    expect(found.atlas.thin.filter((place) => !BRIEF.includes(place))).toEqual([]);
    expect(found.atlas.met.size).toBeGreaterThan(20);
  });

  it('come to the same place by the same head of a tape, whatever follows', async () => {
    const { tape } = await simulate({ seed: 1 });
    const head = tape.slice(0, 60);
    const [one, other] = [await simulate({ seed: 2, prefix: head }), await simulate({ seed: 3, prefix: head })];
    expect(one.tape.slice(0, 60)).toEqual(head);
    expect(other.tape.slice(0, 60)).toEqual(head);
    expect(one.tape).not.toEqual(other.tape);
  });
});
