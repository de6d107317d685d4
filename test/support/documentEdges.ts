/**
 * The three state diagrams of docs/internals/lifecycle.md as data, state for state and arrow for arrow, and the extra
 * arrows of the charts. Invariant: every extra arrow names its clause, and no other arrow exists.
 */
export type Edge = readonly [from: string, to: string];

/** The diagram of RUN (docs/internals/lifecycle.md, State Machine). */
const run: readonly Edge[] = [
  ['[*]', 'RunStart'],
  ['RunStart', 'CommitUser'],
  ['CommitUser', 'ResumeReplay0'],
  ['ResumeReplay0', 'CommitReplay0'],
  ['ResumeReplay0', 'LoopTop'],
  ['CommitReplay0', 'LoopTop'],
  ['CommitReplay0', 'Suspended'],
  ['LoopTop', 'ResumeToolCall'],
  ['ResumeToolCall', 'StepPrepare'],
  ['StepPrepare', 'Terminate'],
  ['StepPrepare', 'LlmCall'],
  ['LlmCall', 'Error'],
  ['LlmCall', 'Cancelled'],
  ['LlmCall', 'AfterInference'],
  ['AfterInference', 'CommitAssistant'],
  ['CommitAssistant', 'Terminate'],
  ['CommitAssistant', 'NaturalEnd'],
  ['CommitAssistant', 'ToolRound'],
  ['ToolRound', 'Error'],
  ['ToolRound', 'Cancelled'],
  ['ToolRound', 'CommitTool'],
  ['CommitTool', 'ResumeAfterTool'],
  ['ResumeAfterTool', 'Suspended'],
  ['ResumeAfterTool', 'LoopTop'],
  ['Terminate', 'RunEnd'],
  ['NaturalEnd', 'RunEnd'],
  ['Suspended', 'RunEnd'],
  ['Cancelled', 'RunEnd'],
  ['Error', 'RunEnd'],
  ['RunEnd', 'CommitFinished'],
  ['CommitFinished', '[*]'],
];

/** The diagram of RESUME_TOOL_CALL (docs/internals/lifecycle.md, RESUME_TOOL_CALL). */
const resumeToolCall: readonly Edge[] = [
  ['[*]', 'DrainDecisionChannel'],
  ['DrainDecisionChannel', 'NoDecision'],
  ['DrainDecisionChannel', 'ResolveDecision'],
  ['ResolveDecision', 'PersistResumeDecision'],
  ['PersistResumeDecision', 'Replay'],
  ['Replay', 'ReplayCancel'],
  ['Replay', 'ReplayResume'],
  ['ReplayCancel', 'ClearResolved'],
  ['ReplayResume', 'ExecuteReplayedTool'],
  ['ExecuteReplayedTool', 'ClearResolved'],
  ['ExecuteReplayedTool', 'SetNextSuspended'],
  ['SetNextSuspended', 'ClearResolved'],
  ['ClearResolved', 'SnapshotIfStateChanged'],
  ['SnapshotIfStateChanged', 'CommitReplay'],
  ['CommitReplay', '[*]'],
  ['NoDecision', '[*]'],
];

/** The diagram of TOOL_CALL (docs/internals/lifecycle.md, TOOL_CALL). */
const toolCall: readonly Edge[] = [
  ['[*]', 'BeforeToolExecute'],
  ['BeforeToolExecute', 'Blocked'],
  ['BeforeToolExecute', 'Suspended'],
  ['BeforeToolExecute', 'Failed'],
  ['BeforeToolExecute', 'ExecuteTool'],
  ['ExecuteTool', 'Succeeded'],
  ['ExecuteTool', 'Failed'],
  ['ExecuteTool', 'Suspended'],
  ['Succeeded', 'AfterToolExecute'],
  ['Failed', 'AfterToolExecute'],
  ['Blocked', 'AfterToolExecute'],
  ['Suspended', 'AfterToolExecute'],
  ['AfterToolExecute', '[*]'],
];

export const documentEdges = { RUN: run, RESUME_TOOL_CALL: resumeToolCall, TOOL_CALL: toolCall } as const;

export interface ExtraEdge {
  edge: Edge;
  clause: string;
}

export const extraEdges: Record<keyof typeof documentEdges, readonly ExtraEdge[]> = {
  RUN: [
    {
      edge: ['CommitAssistant', 'LoopTop'],
      clause:
        'docs/internals/model.md, Steer: a waiting steer continues the run; so do a pause of the model (docs/internals/contracts.md, REQ-BED-003), an empty reply, and a cut reply if compaction makes room',
    },
    {
      edge: ['CommitAssistant', 'Suspended'],
      clause:
        'docs/internals/lifecycle.md, Resume Gate: a reply without calls while an earlier call is still suspended',
    },
    {
      edge: ['ResumeReplay0', 'Suspended'],
      clause: 'docs/internals/lifecycle.md, State Machine: a suspended run is resumed before any decision exists',
    },
  ],
  RESUME_TOOL_CALL: [
    {
      edge: ['ClearResolved', 'ResolveDecision'],
      clause: 'docs/internals/lifecycle.md, Decision Replay: several decisions at one gate share one checkpoint',
    },
  ],
  TOOL_CALL: [],
};

export interface SuperstateEdge extends ExtraEdge {
  /** The arrows of the diagram that this arrow replaces in the chart. */
  standsFor: readonly Edge[];
}

/**
 * Arrows that leave all states of `active`: the exits to Cancelled and Error. The chart has each of them once, on
 * `active` itself (docs/internals/lifecycle.md, Cancellation and Tool Failure or Loop Error).
 */
export const superstateEdges: Record<keyof typeof documentEdges, readonly SuperstateEdge[]> = {
  RUN: [
    {
      edge: ['active', 'Cancelled'],
      clause: 'docs/internals/lifecycle.md, Cancellation: a cancel ends the run from any state; so does the deadline',
      standsFor: [['LlmCall', 'Cancelled']],
    },
    {
      edge: ['active', 'Error'],
      clause:
        'docs/internals/lifecycle.md, Tool Failure or Loop Error: a failed commit or executor ends the run from any state',
      standsFor: [],
    },
  ],
  RESUME_TOOL_CALL: [],
  TOOL_CALL: [],
};
