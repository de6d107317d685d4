/**
 * The three state diagrams of run-lifecycle as data, state for state and arrow for arrow, and the arrows that the
 * charts have besides. Rule: every extra arrow names the clause that asks for it; there are no others.
 */
export type Edge = readonly [from: string, to: string];

/** run-lifecycle, State Machine (non-stream canonical). */
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

/** run-lifecycle, RESUME_TOOL_CALL Sub-State Machine. */
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

/** run-lifecycle, TOOL_CALL Sub-State Machine. */
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
        'request-cycle-model, Steer: a waiting steer turns the natural end into another loop; so do a pause of the model (conversation-requirements, REQ-BED-003) and an empty reply (agent-loop-contract), and a reply that was cut where earlier messages can be summed up',
    },
    {
      edge: ['CommitAssistant', 'Suspended'],
      clause: 'run-lifecycle, Resume Gate: a reply without calls while an earlier call is still suspended',
    },
    {
      edge: ['ResumeReplay0', 'Suspended'],
      clause: 'run-lifecycle, CommitReplay0: a suspended run is resumed and nothing of it is decided yet',
    },
  ],
  RESUME_TOOL_CALL: [
    {
      edge: ['ClearResolved', 'ResolveDecision'],
      clause: 'run-lifecycle, Resume Gate: several decisions wait at one gate and share its checkpoint',
    },
  ],
  TOOL_CALL: [],
};

export interface SuperstateEdge extends ExtraEdge {
  /** The arrows of the diagram that it stands for and that the chart does not have besides. */
  standsFor: readonly Edge[];
}

/**
 * Arrows that leave all states of `active` at once: the document's exits to Error and Cancelled, drawn once for
 * wherever the run stands (run-lifecycle, CancellationToken Impact; Tool failure vs loop error).
 */
export const superstateEdges: Record<keyof typeof documentEdges, readonly SuperstateEdge[]> = {
  RUN: [
    {
      edge: ['active', 'Cancelled'],
      clause: 'CancellationToken Impact: cancelling ends the run wherever it stands; so does its deadline',
      standsFor: [['LlmCall', 'Cancelled']],
    },
    {
      edge: ['active', 'Error'],
      clause: 'Tool failure vs loop error: a failed commit or executor ends the run wherever it stands',
      standsFor: [],
    },
  ],
  RESUME_TOOL_CALL: [],
  TOOL_CALL: [],
};
