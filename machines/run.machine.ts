/**
 * RUN (run-lifecycle, State Machine): one request, or one resumption, from RunStart to its last checkpoint. The states
 * and arrows are the document's; `active` holds what can be cancelled, and the terminal tail behind it cannot. A
 * commit state waits until its checkpoint is durable, since what follows it may end the run. Where nothing waits in the
 * states between, a transition goes through them in one step; its `meta.via` names them, and each leg is an arrow of
 * the document.
 */
import { assign, type DoneActorEvent, sendTo, setup, stopChild } from 'xstate';
import { askContext, contextEntries } from './contextUse.ts';
import { failingStates } from './failingRound.ts';
import { gateWork } from './gateWork.ts';
import { attemptStates, nextAttempt, nextModel } from './modelCall.machine.ts';
import { type AppendFailed, door, type EffectDone, type EffectFailed, type TimerElapsed } from './ports.ts';
import { type ResumeToolCallOutput, resumeToolCallMachine } from './resumeToolCall.machine.ts';
import * as round from './roundSteps.ts';
import type { HeldDecision, RunChartOutput, RunContext, RunInput } from './runContext.ts';
import * as end from './runEnd.ts';
import { runGuards } from './runGuards.ts';
import * as inbox from './runInbox.ts';
import * as step from './runSteps.ts';
import type { SubAgentChange } from './spending.ts';
import type { CallConcluded, ToolCallOutput } from './toolCall.machine.ts';
import { type ToolRoundOutput, toolRoundMachine } from './toolRound.machine.ts';
import type { QueuedMessage } from './vocabulary.ts';

export type RunEvent =
  | EffectDone
  | TimerElapsed
  | EffectFailed
  | AppendFailed
  /** `partial`: the text streamed so far, where the policy keeps it. */
  | { type: 'run.cancelled'; partial?: string }
  | { type: 'decision.arrived'; held: HeldDecision }
  | { type: 'message.steered'; message: QueuedMessage }
  | { type: 'message.returned'; messageId: string }
  | { type: 'call.suspended'; output: ToolCallOutput }
  | { type: 'call.settled'; output: ToolCallOutput }
  | CallConcluded
  | SubAgentChange
  | (DoneActorEvent<ToolRoundOutput, 'round'> & { type: 'xstate.done.actor.round' })
  | (DoneActorEvent<ResumeToolCallOutput, 'gate'> & { type: 'xstate.done.actor.gate' });

const inWindow = (context: RunContext): boolean => context.settings.policies.decisionsDuringRound === 'immediate';

const run = setup({
  types: {} as { context: RunContext; events: RunEvent; input: RunInput; output: RunChartOutput },
  actors: { toolRound: toolRoundMachine, resumeToolCall: resumeToolCallMachine },
  actions: {
    ...door,
    nextAttempt: assign((args) => nextAttempt(args)),
    nextModel: assign((args) => nextModel(args)),
    startTurn: assign(step.turnStarts),
    takeReply: assign(step.replyArrives),
    takeRound: assign(round.roundCollected),
    dropKept: assign({ kept: [] }),
    askTerminate: assign(({ event }) =>
      event.type === 'effect.done' && event.value.kind === 'terminate' ? { terminate: event.value } : {},
    ),
    endEarly: assign((args) => ({ end: end.endOf(args) })),
    endTerminated: assign((args) => ({ end: end.terminationOf(args) })),
    endExhausted: assign({ end: { termination: 'Stopped' as const, cause: 'context_exhausted' } }),
    endCut: assign({ end: { termination: 'Stopped' as const, cause: 'max_tokens' } }),
    endSuspended: assign({ end: { termination: 'Suspended' as const } }),
    endNotDurable: assign(end.endLost),
    closeAll: assign(end.closedAll),
    closeKept: assign(end.leftOpen),
    endFailed: assign(end.toolFailed),
    hold: assign(inbox.hold),
    unhold: assign(inbox.unhold),
    queueSteer: assign(inbox.queueSteer),
    takeBack: assign(inbox.takeBack),
    countSpent: assign(inbox.countSpent),
    suspendCall: assign(inbox.suspendCall),
    noteResult: assign(inbox.noteResult),
    settleCall: assign(inbox.settleCall),
    steerRound: sendTo('round', inbox.steered),
    stopRound: sendTo('round', { type: 'round.stopped' }),
    stopGate: stopChild('gate'),
  },
  guards: runGuards,
});

/** Opens the gate where there is something to decide and none is open; a run that a tool has failed decides no more. */
const openGate = run.enqueueActions(({ context, enqueue }) => {
  if (context.gate === 'open' || context.failure) return;
  const replays = gateWork(context);
  if (replays.length === 0) return;
  const { runId, gates, settings } = context;
  const { conversationId, policies, phases } = settings;
  const { suspensionsPerCall: suspensionsMax } = policies.limits;
  const { toolRetry: retry } = policies;
  const input = { conversationId, runId, id: `${runId}/gate${gates}`, replays, suspensionsMax, retry, phases };
  enqueue.spawnChild('resumeToolCall', { id: 'gate', input });
  enqueue.assign({ gates: gates + 1, gate: 'open', replaying: replays.map(({ call }) => call.callId) });
});

const openGateInWindow = run.enqueueActions(({ context, enqueue }) => {
  if (inWindow(context)) enqueue(openGate);
});

const closeGate = run.enqueueActions(({ enqueue }) => {
  enqueue.stopChild('gate');
  enqueue.assign({ gate: 'closed', replaying: [], concluded: [] });
  enqueue(openGate);
});

/** Steers start to count here; the conversation hears of it and takes them off its queue. */
const deliverSteers = run.enqueueActions(({ context, enqueue }) => {
  const due = step.dueSteers(context);
  if (due.length === 0) return;
  enqueue({ type: 'log', params: step.steerEntries(context.runId, due) });
  enqueue.assign({ steers: context.steers.slice(due.length) });
  enqueue.sendTo(({ self }) => self._parent ?? self, { type: 'steers.delivered', messages: due });
});

const takeRound = [{ type: 'log', params: round.roundEntries }, 'takeRound'] as const;

/** Where a durable reply leads; a gate still open is waited for first where the reply would end the run. */
const goesOn = {
  guard: 'goesOn',
  target: '#RUN.active.LoopTop',
  actions: { type: 'log', params: step.continuationEntries },
} as const;
const cutByLength = { guard: 'cutByLength', target: '#RUN.Terminate', actions: 'endCut' } as const;
const afterReply = [
  goesOn,
  cutByLength,
  { guard: 'hasSuspended', target: '#RUN.Suspended', actions: 'endSuspended' },
  { target: '#RUN.NaturalEnd' },
] as const;

export const runMachine = run.createMachine({
  id: 'RUN',
  context: ({ input }) => step.contextOf(input),
  output: ({ context }) => end.outputOf(context),
  initial: 'active',
  // The terminal tail cannot be cancelled, but what arrives there is not lost either.
  on: {
    'decision.arrived': { actions: 'hold' },
    'message.steered': { actions: 'queueSteer' },
    'message.returned': { actions: 'takeBack' },
    'sub-agent.changed': { actions: 'countSpent' },
    'append.failed': { actions: 'unhold' },
  },
  states: {
    active: {
      initial: 'RunStart',
      exit: [{ type: 'drop', params: ({ context }) => `${context.runId}/` }, 'stopGate'],
      on: {
        'run.cancelled': { target: '#RUN.Cancelled', actions: 'endEarly' },
        'append.failed': { target: '#RUN.Error', actions: 'endEarly' },
        'effect.failed': { target: '#RUN.Error', actions: 'endEarly' },
        // The deadline: the other timers, waits between attempts, are taken where they are waited for.
        'timer.elapsed': { target: '#RUN.Cancelled', actions: 'endEarly' },
        'call.concluded': { actions: 'noteResult' },
        'call.settled': { actions: 'settleCall' },
        'xstate.done.actor.gate': [
          { guard: 'noneFailed', actions: closeGate },
          { target: '#RUN.Error', actions: 'endFailed' },
        ],
      },
      states: {
        RunStart: {
          entry: [
            { type: 'log', params: step.openingEntries },
            { type: 'ask', params: step.askDeadline },
            { type: 'ask', params: ({ context }) => step.askPhases(context, 'start', ['runStart']) },
          ],
          always: { guard: 'nobodyAtStart', target: 'CommitUser' },
          on: { 'effect.done': { target: 'CommitUser', actions: { type: 'log', params: step.phaseWrites } } },
        },
        // A resumption has no message to commit; it waits all the same, so that nothing is replayed before it is on record.
        CommitUser: {
          entry: [
            { type: 'log', params: step.checkpoint('UserMessage') },
            { type: 'ask', params: step.askCommit('UserMessage') },
          ],
          on: {
            'effect.done': [
              {
                guard: 'straightToModel',
                target: 'LlmCall',
                actions: 'startTurn',
                meta: { via: ['ResumeReplay0', 'LoopTop', 'ResumeToolCall', 'StepPrepare'] },
              },
              { target: 'ResumeReplay0' },
            ],
          },
        },
        ResumeReplay0: {
          entry: openGate,
          always: [
            { guard: 'replayed', target: 'CommitReplay0' },
            { guard: 'onlyUndecided', target: '#RUN.Suspended', actions: 'endSuspended' },
            { guard: 'gateIdle', target: 'LoopTop' },
          ],
        },
        // The gate has made the replay durable in its own CommitReplay.
        CommitReplay0: {
          always: [
            { guard: 'suspendedAnew', target: '#RUN.Suspended', actions: 'endSuspended' },
            { target: 'LoopTop' },
          ],
        },
        LoopTop: { always: { target: 'ResumeToolCall' } },
        ResumeToolCall: {
          entry: openGate,
          always: { guard: 'gateIdle', target: 'StepPrepare' },
        },
        StepPrepare: {
          entry: deliverSteers,
          initial: 'hearing',
          states: {
            hearing: {
              entry: {
                type: 'ask',
                params: ({ context }) => step.askPhases(context, 'prepare', ['stepStart', 'beforeInference']),
              },
              always: { guard: 'nobodyPrepares', target: 'measuring' },
              on: {
                'effect.done': [
                  { guard: 'terminates', target: '#RUN.Terminate', actions: 'endTerminated' },
                  { target: 'measuring' },
                ],
              },
            },
            measuring: {
              entry: { type: 'ask', params: askContext },
              exit: { type: 'log', params: contextEntries },
              always: [
                { guard: 'unmeasuredAtLimit', target: '#RUN.Terminate', actions: 'endTerminated' },
                { guard: 'unmeasured', target: '#RUN.active.LlmCall', actions: 'startTurn' },
              ],
              on: {
                'effect.done': [
                  { guard: 'exhausted', target: '#RUN.Terminate', actions: 'endExhausted' },
                  { guard: 'atLimit', target: '#RUN.Terminate', actions: 'endTerminated' },
                  { target: '#RUN.active.LlmCall', actions: 'startTurn' },
                ],
              },
            },
          },
        },
        LlmCall: {
          initial: 'attempting',
          states: attemptStates,
          on: {
            'effect.done': [
              {
                guard: 'repliesUnheard',
                target: 'CommitAssistant',
                actions: [{ type: 'log', params: step.replyEntries }, 'takeReply'],
                meta: { via: ['AfterInference'] },
              },
              {
                guard: 'replies',
                target: 'AfterInference',
                actions: [{ type: 'log', params: step.replyEntries }, 'takeReply'],
              },
              { target: '#RUN.Error', actions: 'endEarly' },
            ],
            'decision.arrived': { actions: ['hold', openGateInWindow] },
          },
        },
        // Entered only where somebody takes part: else the reply goes on to CommitAssistant at once.
        AfterInference: {
          entry: {
            type: 'ask',
            params: ({ context }) => step.askPhases(context, 'after', ['afterInference', 'stepEnd']),
          },
          on: { 'effect.done': { target: 'CommitAssistant', actions: 'askTerminate' } },
        },
        CommitAssistant: {
          entry: [
            { type: 'log', params: step.checkpoint('AssistantTurnCommitted') },
            { type: 'ask', params: step.askCommit('AssistantTurnCommitted') },
          ],
          initial: 'committing',
          states: {
            committing: {
              on: {
                'effect.done': [
                  { guard: 'endsUnheard', target: '#RUN.CommitFinished', meta: { via: ['NaturalEnd', 'RunEnd'] } },
                  { guard: 'wasTerminated', target: '#RUN.Terminate', actions: 'endTerminated' },
                  { guard: 'hasToolCalls', target: '#RUN.active.ToolRound' },
                  { guard: 'gateOpen', target: 'joining' },
                  ...afterReply,
                ],
              },
            },
            joining: {
              on: { 'xstate.done.actor.gate': { guard: 'noneFailed', target: 'joined', actions: closeGate } },
            },
            // A gate that was waited for has settled a call, or one of its calls waits again.
            joined: {
              always: [
                { guard: 'gateOpen', target: 'joining' },
                goesOn,
                cutByLength,
                { target: '#RUN.Suspended', actions: 'endSuspended' },
              ],
            },
          },
        },
        ToolRound: {
          initial: 'running',
          states: {
            running: {
              invoke: { src: 'toolRound', id: 'round', input: round.roundInput },
              on: {
                'run.cancelled': { actions: ['endEarly', 'stopRound'] },
                'append.failed': { actions: ['endEarly', 'stopRound'] },
                'effect.failed': { actions: ['endEarly', 'stopRound'] },
                'timer.elapsed': { actions: ['endEarly', 'stopRound'] },
                'decision.arrived': { actions: ['hold', openGateInWindow] },
                'call.suspended': { actions: ['suspendCall', openGateInWindow] },
                'message.steered': { guard: 'cutsRound', actions: ['queueSteer', 'steerRound'] },
                // What failed at the gate ends the run when the round is over.
                'xstate.done.actor.gate': { actions: closeGate },
                'xstate.done.actor.round': [
                  { guard: 'roundCancelled', target: '#RUN.Cancelled' },
                  { guard: 'roundBroken', target: '#RUN.Error' },
                  { guard: 'stateConflict', target: '#RUN.Error', actions: 'endEarly' },
                  { guard: 'toolFailed', target: 'failing', actions: takeRound },
                  { target: '#RUN.active.CommitTool', actions: takeRound },
                ],
              },
            },
            ...failingStates,
          },
        },
        CommitTool: {
          entry: [
            { type: 'log', params: step.checkpoint('ToolResultsCommitted') },
            { type: 'ask', params: step.askCommit('ToolResultsCommitted') },
          ],
          on: {
            'effect.done': [
              {
                guard: 'straightToModel',
                target: 'LlmCall',
                actions: 'startTurn',
                meta: { via: ['ResumeAfterTool', 'LoopTop', 'ResumeToolCall', 'StepPrepare'] },
              },
              { target: 'ResumeAfterTool' },
            ],
          },
        },
        ResumeAfterTool: {
          entry: openGate,
          always: [
            { guard: 'allSuspended', target: '#RUN.Suspended', actions: 'endSuspended' },
            {
              guard: 'gateIdle',
              target: 'LoopTop',
              actions: [{ type: 'log', params: round.leaveKept }, 'dropKept'],
            },
          ],
        },
      },
    },
    Terminate: { entry: [{ type: 'log', params: end.terminateEntries }, 'closeKept'], always: { target: 'RunEnd' } },
    NaturalEnd: { always: { target: 'RunEnd' } },
    Suspended: { always: { target: 'RunEnd' } },
    Cancelled: { entry: [{ type: 'log', params: end.cancelEntries }, 'closeAll'], always: { target: 'RunEnd' } },
    Error: {
      entry: [{ type: 'log', params: end.errorEntries }, 'closeKept', { type: 'ask', params: end.askErrorPhases }],
      exit: { type: 'drop', params: ({ context }) => `${context.runId}/` },
      always: { guard: 'nobodyHearsError', target: 'RunEnd' },
      on: {
        'effect.done': { target: 'RunEnd' },
        'run.cancelled': { target: 'RunEnd' },
        'append.failed': { target: 'RunEnd', actions: { type: 'log', params: end.lostEntries } },
      },
    },
    RunEnd: {
      entry: { type: 'ask', params: end.askEndPhase },
      exit: { type: 'drop', params: ({ context }) => `${context.runId}/` },
      always: { guard: 'nobodyAtEnd', target: 'CommitFinished' },
      on: {
        'effect.done': { target: 'CommitFinished' },
        'run.cancelled': { target: 'CommitFinished' },
        'append.failed': { target: 'CommitFinished', actions: { type: 'log', params: end.lostEntries } },
      },
    },
    CommitFinished: {
      entry: [
        { type: 'log', params: end.closingEntries },
        { type: 'ask', params: end.askFinish },
      ],
      exit: { type: 'drop', params: ({ context }) => `${context.runId}/` },
      on: {
        'effect.done': { target: 'Done' },
        'append.failed': { guard: 'lostItsEnd', target: 'Done', actions: 'endNotDurable' },
      },
    },
    Done: { type: 'final' },
  },
});
